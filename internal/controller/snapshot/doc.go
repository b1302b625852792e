// Package snapshot creates and deletes snapshots of volumes: from the VolumeSnapshotContent, which the cluster's snapshot-controller
// or an administrator has written, to the PavSnapshot, and back to the status of the VolumeSnapshotContent. It has the part of the
// sidecar csi-snapshotter, for all PavProvisioners. A pass gathers an observation of the snapshot, decides on one step (a pure function
// of the observation) and takes it.
//
// The package never writes VolumeSnapshots, claims or PersistentVolumes, never binds or finalizes what the snapshot-controller binds and
// finalizes, and never deletes a snapshot whose handle another object has. Where the definitions of snapshots do not exist, it does
// nothing until they do.
package snapshot
