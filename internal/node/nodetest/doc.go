// Package nodetest has test helpers for the packages below internal/node: kubelet's directory with real mounts, a FUSE
// daemon that hangs or dies on command, and the objects of an API server. Only tests import it.
package nodetest
