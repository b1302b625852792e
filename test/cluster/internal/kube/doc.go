// Package kube reads from the API server whether a cluster is ready, and installs CRDs. It needs no client library.
package kube
