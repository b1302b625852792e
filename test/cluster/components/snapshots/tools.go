//go:build tools

// Package snapshots pins the version of Kubernetes' snapshot add-on, as tool dependencies. It is a separate module because
// the add-on needs newer modules of Kubernetes than Kubernetes 1.36.
package snapshots

import (
	// The CRDs are files of this module. The controller itself would take an older version of it.
	_ "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	_ "github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller"
)
