// Package pki makes the keys, certificates and kubeconfig files of a cluster. The certificates are
// for tests: keys lie readable in the state directory, and nothing renews them.
package pki
