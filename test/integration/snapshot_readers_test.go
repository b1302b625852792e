package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// volumeWaits waits until a condition of a volume is false for a reason.
func volumeWaits(t *testing.T, c *cluster, volume *pavv1.PavVolume, condition, reason string) {
	t.Helper()
	exists(t, c, volume, "waits: "+reason, func(v *pavv1.PavVolume) bool {
		found := meta.FindStatusCondition(v.Status.Conditions, condition)
		return found != nil && found.Status == metav1.ConditionFalse && found.Reason == reason
	})
}

// A volume does not change while it is read, and is not read while it changes; nobody waits for ever.
func TestSnapshot_ReaderAndWriter(t *testing.T) {
	c := start(t)
	run(t, c)
	_, pv, volume := snappedVolume(t, c, "read", growable)
	claim := ownedClaim("read", "me")
	first := requestSnapshot(t, c, pv, "read", "monday")
	reading := first.creation(t, 1, "none")
	mustPatch(t, c, claim, requests("2Gi"))
	volumeWaits(t, c, volume, pavv1.VolumeExpanded, pavv1.ReasonBeingRead)

	// The growth goes before a snapshot that is requested later.
	second := requestSnapshot(t, c, pv, "read", "tuesday")
	second.wantWaiting(t, "VolumeChanges")
	wantReaders(t, c, volume, first.reader())
	end(t, c, reading, workflow.Result{}, 0)
	expansion, _ := podOf(t, c, claim, pavv1.WorkflowExpansion)
	first.wantSays(t, first.record.Name+", 1073741824, ready.")
	wantReaders(t, c, volume)
	second.wantWaiting(t, "VolumeChanges")
	end(t, c, expansion, workflow.Result{}, 0)
	wantSize(t, c, claim, "2Gi")

	reading = second.creation(t, 1, "none")
	wantReaders(t, c, volume, second.reader())
	mustDelete(t, c, claim)
	gone(t, c, claim)
	volumeWaits(t, c, volume, pavv1.VolumeDeleted, pavv1.ReasonBeingRead)
	end(t, c, reading, workflow.Result{}, 0)
	second.wantSays(t, second.record.Name+", 2147483648, ready.")
	deleteVolume(t, c, claim, pv)
	for _, s := range []*snapshot{first, second} {
		s.delete(t)
		end(t, c, s.deletion(t, 2, s.record.Name), workflow.Result{}, 0)
		s.wantGone(t)
	}
}

// Snapshots that cannot exist without their volume go first.
func TestSnapshot_OfAVolumeThatItDependsOn_GoesFirst(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner, pv, volume := snappedVolume(t, c, "depended-on", withDeletionPod, inPool, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.SnapshotCreation.DependsOnVolume = true
	})
	claim := ownedClaim("depended-on", "me")
	s := requestSnapshot(t, c, pv, "depended-on", "monday")
	end(t, c, s.creation(t, 1, "none"), workflow.Result{}, 0)
	s.wantSays(t, s.record.Name+", 1073741824, ready.")
	mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) { p.Spec.SnapshotCreation = nil }) // which changes nothing for what was made so
	mustDelete(t, c, claim)
	gone(t, c, claim)
	volumeWaits(t, c, volume, pavv1.VolumeDeleted, "SnapshotsExist")
	wantEvent(t, c, pv, "Warning", "VolumeFailedDelete", `such as PavSnapshot "`+s.record.Name+`"`)
	s.delete(t)
	deletion := s.deletion(t, 2, s.record.Name)
	volumeWaits(t, c, volume, pavv1.VolumeDeleted, "SnapshotsExist")
	end(t, c, deletion, workflow.Result{}, 0)
	s.wantGone(t)
	deleteVolume(t, c, claim, pv)
}

// A volume that is given to another claim while a snapshot of it waits is the other claim's: nothing of it is captured.
func TestSnapshot_OfAVolumeThatIsGivenAway_IsNotMade(t *testing.T) {
	c := start(t)
	a := run(t, c)
	nodeIn(t, c, fakeNode, "none")
	_, pv, _ := snappedVolume(t, c, "given-away", func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.SnapshotCreation.WhileStaged = pavv1.SnapshotWait
	})
	stage := createStaged(t, c, stageOf(pv, "stage-given-away", fakeNode))
	s := requestSnapshot(t, c, pv, "given-away", "monday")
	s.wantWaiting(t, "StillStaged")
	owner := pv.Spec.ClaimRef.UID
	mustPatch(t, c, pv, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "another" })
	removeStage(t, c, stage)
	s.wantWaiting(t, "NoVolume")
	if n := podsMade(a); n > 0 {
		t.Errorf("%d pods were made", n)
	}
	s.wantSays(t, `failed: the PersistentVolume "`+pv.Name+`", of which the snapshot is to be made, is not bound any more to the claim`)
	mustPatch(t, c, pv, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = owner })
	s.delete(t)
	s.wantGone(t)
	noPodIsLeft(t, c)
}

// removeStage removes a stage, as the agent of its node does when nobody needs it.
func removeStage(t *testing.T, c *cluster, stage *pavv1.PavStage) {
	t.Helper()
	mustPatch(t, c, stage, func(s *pavv1.PavStage) { s.Finalizers = nil })
	mustDelete(t, c, stage)
	gone(t, c, stage)
}

// What nodes have in memory is written to the storage before the pod exists.
func TestSnapshot_OfAStagedVolume_FollowsItsSync(t *testing.T) {
	c := start(t)
	a := run(t, c)
	nodeIn(t, c, fakeNode, "none")
	nodeIn(t, c, "by-another-hand", "none")
	_, pv, _ := snappedVolume(t, c, "synced", func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.SnapshotCreation.WhileStaged = pavv1.SnapshotSync
	})
	stages := []*pavv1.PavStage{
		createStaged(t, c, stageOf(pv, "stage-synced", fakeNode)), createStaged(t, c, stageOf(pv, "stage-synced-late", "by-another-hand")),
	}
	s := requestSnapshot(t, c, pv, "synced", "monday")
	for i, stage := range stages {
		exists(t, c, stage, "is to be written back", func(stage *pavv1.PavStage) bool { return stage.Annotations[pavv1.SyncAnnotation] != "" })
		exists(t, c, s.record, "waits for that", func(r *pavv1.PavSnapshot) bool {
			return r.Status.SyncRequestTime != nil && r.Status.SyncRequestTime.UTC().Format(pavv1.RetryFormat) == stage.Annotations[pavv1.SyncAnnotation] && r.Status.Pod != nil && r.Status.Pod.UID == ""
		})
		if n := podsMade(a); n > 0 {
			t.Errorf("after %d of 2 nodes have answered, %d pods were made", i, n)
		}
		stage.Status.SyncedTime = s.record.Status.SyncRequestTime
		if err := nodeAgent(t, c, stage.Spec.NodeName).Status().Update(t.Context(), stage); err != nil {
			t.Fatal(err)
		}
	}
	end(t, c, s.creation(t, 1, "none"), workflow.Result{}, 0)
	s.wantSays(t, s.record.Name+", 1073741824, ready.")
	exists(t, c, s.record, "does not wait for nodes", func(r *pavv1.PavSnapshot) bool { return r.Status.SyncRequestTime == nil })
	s.delete(t)
	end(t, c, s.deletion(t, 2, s.record.Name), workflow.Result{}, 0)
	s.wantGone(t)
	for _, stage := range stages {
		removeStage(t, c, stage)
	}
}

// A volume that must not be staged is read when no node has it staged any more.
func TestSnapshot_OfAStagedVolume_WaitsForItsEnd(t *testing.T) {
	c := start(t)
	a := run(t, c)
	nodeIn(t, c, fakeNode, "none")
	_, pv, volume := snappedVolume(t, c, "unstaged", func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.SnapshotCreation.WhileStaged = pavv1.SnapshotWait
	})
	stage := createStaged(t, c, stageOf(pv, "stage-unstaged", fakeNode))
	s := requestSnapshot(t, c, pv, "unstaged", "monday")
	s.wantWaiting(t, "StillStaged")
	wantEvent(t, c, s.object, "Normal", "SnapshotCreationWaiting", "unstaged on node "+fakeNode)
	wantReaders(t, c, volume)
	if n := podsMade(a); n > 0 {
		t.Errorf("%d pods were made", n)
	}
	removeStage(t, c, stage)
	creation := s.creation(t, 1, "none")
	reader := s.reader()
	reader.Unstaged = true
	wantReaders(t, c, volume, reader)
	end(t, c, creation, workflow.Result{}, 0)
	s.wantSays(t, s.record.Name+", 1073741824, ready.")
	wantReaders(t, c, volume)
	s.delete(t)
	end(t, c, s.deletion(t, 2, s.record.Name), workflow.Result{}, 0)
	s.wantGone(t)
}
