// Package pki creates the keys, certificates and kubeconfig files of a cluster. The certificates are only for tests:
// the keys are in plain text in the state directory, and nothing renews the certificates.
package pki
