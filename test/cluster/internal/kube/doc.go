// Package kube reads from the API server whether a cluster is ready. It only reads, and needs no client library.
package kube
