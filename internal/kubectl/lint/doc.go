// Package lint is "kubectl pav lint": it says of PavProvisioners in files what admission says of them, and
// where in the file. It asks an API server only where it is told to, and then for a dry run.
package lint
