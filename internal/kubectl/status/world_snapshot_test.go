package status

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// snapshotted is a VolumeSnapshot apps/nightly of the claim apps/data, which the snapshot-controller has not handled yet.
func snapshotted() *world {
	return bound().with(func(f *Facts) {
		f.Subject, f.Class = Ref{Snapshot, "apps", "nightly"}, nil
		f.Provisioner.Spec.SnapshotCreation = &pavv1.SnapshotCreation{}
		f.Snapshot = &SnapshotFacts{
			Object: &snapshotv1.VolumeSnapshot{
				ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "nightly", UID: "s1", CreationTimestamp: *at(-4e9)},
				Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: new("data")}, VolumeSnapshotClassName: new("snap")},
			},
			Class: &snapshotv1.VolumeSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: "snap"}, Driver: "demo"},
		}
	})
}

// contented is one with a VolumeSnapshotContent, of which PaV has no record yet.
func contented() *world {
	return snapshotted().with(func(f *Facts) {
		f.Snapshot.Content = &snapshotv1.VolumeSnapshotContent{
			ObjectMeta: metav1.ObjectMeta{Name: "snapcontent-s1", UID: "c1", CreationTimestamp: *at(-3e9)},
			Spec: snapshotv1.VolumeSnapshotContentSpec{Driver: "demo", DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
				Source: snapshotv1.VolumeSnapshotContentSource{VolumeHandle: new("h")}},
		}
	})
}

// snapshotRecord is the PavSnapshot of apps/nightly with a status.
func snapshotRecord(status pavv1.PavSnapshotStatus) *pavv1.PavSnapshot {
	return &pavv1.PavSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: "snapshot-s1", UID: "r1", CreationTimestamp: *at(-2e9)},
		Spec: pavv1.PavSnapshotSpec{Provisioner: "demo", VolumeName: "pvc-u1", ContentRef: pavv1.SnapshotContentReference{Name: "snapcontent-s1", UID: "c1"},
			SnapshotRef: pavv1.SnapshotReference{Namespace: "apps", Name: "nightly", UID: "s1"}},
		Status: status,
	}
}

// recorded is one with a PavSnapshot.
func recorded(status pavv1.PavSnapshotStatus) *world {
	return contented().with(func(f *Facts) {
		f.Snapshot.Record = snapshotRecord(status)
		f.Snapshots = []pavv1.PavSnapshot{*f.Snapshot.Record}
	})
}

// snapshotting is one with a pod of a step, in its second attempt.
func snapshotting(step pavv1.SnapshotStep, change func(*pavv1.PavSnapshotStatus)) *world {
	status := pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotPending, Step: step, Attempt: 2, Pod: &pavv1.PodReference{Namespace: "pav-pods", Name: "snapshot-1"}}
	if change != nil {
		change(&status)
	}
	return recorded(status)
}

func snapshotFailure(pod, message string) *pavv1.WorkflowFailure {
	failure := &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowSnapshotCreation, Message: message, Time: *at(-1e8), NextAttemptTime: at(19e9)}
	if pod != "" {
		failure.PodNamespace, failure.PodName = "pav-pods", pod
	}
	return failure
}

// usable lets the VolumeSnapshot say that it is ready.
func usable(f *Facts) {
	f.Snapshot.Object.Status = &snapshotv1.VolumeSnapshotStatus{ReadyToUse: new(true)}
}
