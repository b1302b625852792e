// Package namespace runs commands and opens connections in the namespaces of another process. Only one thread of the
// calling process enters these namespaces.
package namespace
