// Package kube asks the API server of a cluster the few things that tell whether it is ready. It
// only reads, and needs no client library.
package kube
