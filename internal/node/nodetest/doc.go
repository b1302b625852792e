// Package nodetest has what the tests of a node's packages need of a node: kubelet's directory on real mounts, a FUSE
// daemon that hangs or dies on command, and the objects of an API server. Only tests import it.
package nodetest
