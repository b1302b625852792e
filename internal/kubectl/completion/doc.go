// Package completion completes what is typed of a command of "kubectl pav": names of objects, files,
// namespaces and contexts. It asks the API server for names only, not for long, and says nothing where that fails.
package completion
