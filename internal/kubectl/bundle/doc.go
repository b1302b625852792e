// Package bundle writes the file that accompanies a bug report: objects, logs and results, as a compressed archive. It
// removes from them what usually holds secrets; docs/kubectl-pav.md says what is removed and what is left.
//
// It never sends a request of its own, and knows nothing of what is right or wrong with an installation.
package bundle
