// Package namespace runs commands and opens connections inside another process's namespaces. Only
// the thread that does so enters them; the calling process stays where it is.
package namespace
