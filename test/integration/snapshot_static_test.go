package integration

import (
	"strings"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

func retainsSnapshot(content *snapshotv1.VolumeSnapshotContent) {
	content.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
}

// A snapshot for which an administrator wrote the VolumeSnapshotContent can be used at once, and is deleted with it.
func TestSnapshot_OfAnAdministrator(t *testing.T) {
	c := start(t)
	a := run(t, c)
	driver(t, c, "found", snapshottable)
	s := &snapshot{c: c, content: &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: "found"},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete, Driver: "found", VolumeSnapshotRef: corev1.ObjectReference{Namespace: "default", Name: "found"},
			Source: snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: new("from elsewhere")},
		},
	}}
	mustCreate(t, c, s.content)
	s.object = &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "found", Finalizers: []string{snapshotFinalizer}},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: &s.content.Name}},
	}
	s.record = &pavv1.PavSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "snapshotcontent-" + string(s.content.UID)}}
	t.Cleanup(func() { s.remove(t) })
	s.wantSays(t, "from elsewhere, ready.")
	if s.content.Status.CreationTime == nil {
		t.Error("it has no time of creation")
	}
	exists(t, c, s.record, "is ready", func(r *pavv1.PavSnapshot) bool {
		return r.Status.Phase == pavv1.SnapshotReady && r.Status.Handle == "from elsewhere" && r.Spec.SnapshotHandle == r.Status.Handle
	})

	// The snapshot-controller binds it, and protects it from then on.
	mustCreate(t, c, s.object)
	mustPatch(t, c, s.content, func(content *snapshotv1.VolumeSnapshotContent) {
		content.Spec.VolumeSnapshotRef.UID, content.Finalizers = s.object.UID, []string{boundFinalizer}
	})
	if n := podsMade(a); n > 0 {
		t.Errorf("%d pods were made", n)
	}
	s.delete(t)
	end(t, c, s.deletion(t, 1, "from elsewhere"), workflow.Result{}, 0)
	s.wantGone(t)
}

// A snapshot whose record was lost is recorded again, and deleted, also if its volume is gone by now.
func TestSnapshot_WhoseRecordIsLost_OutlivesItsVolume(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "outlived", snapshottable)
	snapshotClass(t, c, "outlived", "outlived")
	pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		ClaimRef:               &corev1.ObjectReference{Name: "none"},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "outlived", VolumeHandle: "none"}},
	}}
	s := requestSnapshot(t, c, pv, "outlived", "monday")
	s.wantSays(t, `failed: no PersistentVolume of the driver "outlived" has the handle "none".`)
	mustPatchStatus(t, c, s.content, func(content *snapshotv1.VolumeSnapshotContent) {
		content.Status = &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: new("made before"), ReadyToUse: new(true), RestoreSize: new(int64(1))}
	})
	exists(t, c, s.record, "is ready", func(r *pavv1.PavSnapshot) bool {
		return r.Status.Phase == pavv1.SnapshotReady && r.Status.Handle == "made before"
	})
	s.wantSays(t, "made before, 1, ready.")
	s.delete(t)
	end(t, c, s.deletion(t, 1, "made before"), workflow.Result{}, 0)
	s.wantGone(t)
}

// The storage of a snapshot that is retained stays, and belongs to the administrator when the VolumeSnapshotContent is deleted, who
// may change their mind.
func TestSnapshot_Retained(t *testing.T) {
	c := start(t)
	a := run(t, c)
	_, pv, _ := snappedVolume(t, c, "snapped-for-good")
	s := requestSnapshot(t, c, pv, "snapped-for-good", "monday", retainsSnapshot)
	end(t, c, s.creation(t, 1, "none"), workflow.Result{}, 0)
	s.wantSays(t, s.record.Name+", 1073741824, ready.")
	mustPatch(t, c, s.object, func(o *snapshotv1.VolumeSnapshot) { o.Finalizers = nil })
	mustDelete(t, c, s.object)
	gone(t, c, s.object)
	exists(t, c, s.record, "is ready", func(r *pavv1.PavSnapshot) bool { return r.Status.Phase == pavv1.SnapshotReady })
	mustDelete(t, c, s.content)
	gone(t, c, s.content)
	exists(t, c, s.record, "is retained", func(r *pavv1.PavSnapshot) bool {
		return r.Status.Phase == pavv1.SnapshotRetained && len(r.Finalizers) == 0 && r.Status.Handle == r.Name
	})
	if n := podsMade(a); n != 1 {
		t.Errorf("%d pods were made", n)
	}
	mustPatch(t, c, s.record, func(r *pavv1.PavSnapshot) { r.Spec.DeletionPolicy = pavv1.SnapshotPolicyDelete })
	exists(t, c, s.record, "has its finalizer again", func(r *pavv1.PavSnapshot) bool { return len(r.Finalizers) == 1 })
	mustDelete(t, c, s.record)
	end(t, c, s.deletion(t, 2, s.record.Name), workflow.Result{}, 0)
	gone(t, c, s.record)
	noPodIsLeft(t, c)
}

// A snapshot whose deletion waits for another object with its handle is retained if the policy of either says so.
func TestSnapshot_RetainedWhileItsDeletionWaits(t *testing.T) {
	c := start(t)
	a := run(t, c)
	_, pv, _ := snappedVolume(t, c, "snapped-twice")
	s := requestSnapshot(t, c, pv, "snapped-twice", "monday")
	end(t, c, s.creation(t, 1, "none"), workflow.Result{}, 0)
	s.wantSays(t, s.record.Name+", 1073741824, ready.")
	other := mustCreate(t, c, &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: "snapped-once-more", Finalizers: []string{boundFinalizer}},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete, Driver: "snapped-twice", VolumeSnapshotRef: corev1.ObjectReference{Namespace: "default", Name: "tuesday"},
			Source: snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: &s.record.Name},
		},
	})
	others := &pavv1.PavSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "snapshotcontent-" + string(other.UID)}}
	exists(t, c, others, "is ready", func(r *pavv1.PavSnapshot) bool { return r.Status.Phase == pavv1.SnapshotReady })
	waits := func(what string) {
		t.Helper()
		exists(t, c, s.record, "waits for "+what, func(r *pavv1.PavSnapshot) bool {
			waits := meta.FindStatusCondition(r.Status.Conditions, pavv1.SnapshotDeleted)
			return waits != nil && waits.Reason == "StillInUse" && strings.HasPrefix(waits.Message, what)
		})
	}
	s.delete(t)
	waits(`PavSnapshot "` + others.Name + `" has the same snapshot`)

	mustPatch(t, c, other, retainsSnapshot)
	mustDelete(t, c, other)
	gone(t, c, other)
	exists(t, c, others, "is retained", func(r *pavv1.PavSnapshot) bool {
		return r.Status.Phase == pavv1.SnapshotRetained && r.Status.RetainedTime != nil
	})
	waits(`PavSnapshot "` + others.Name + `" has the same snapshot`)
	mustPatch(t, c, s.content, retainsSnapshot)
	gone(t, c, s.content)
	mustPatch(t, c, s.object, func(o *snapshotv1.VolumeSnapshot) { o.Finalizers = nil })
	exists(t, c, s.record, "is retained", func(r *pavv1.PavSnapshot) bool {
		return r.Status.Phase == pavv1.SnapshotRetained && len(r.Finalizers) == 0
	})
	if n := podsMade(a); n != 1 {
		t.Errorf("%d pods were made", n)
	}
	mustDelete(t, c, s.record)
	mustDelete(t, c, others)
	noPodIsLeft(t, c)
}

// What a pod has begun to make is deleted if the snapshot is deleted in the making, also if it would be retained.
func TestSnapshot_DeletedInTheMaking(t *testing.T) {
	for name, change := range map[string]func(*snapshotv1.VolumeSnapshotContent){
		"deleted": func(*snapshotv1.VolumeSnapshotContent) {}, "retained": retainsSnapshot,
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			run(t, c)
			_, pv, volume := snappedVolume(t, c, "hardly-snapped-and-"+name)
			s := requestSnapshot(t, c, pv, "hardly-snapped-and-"+name, "monday", change)
			pod := s.creation(t, 1, "none")
			startPod(t, c, pod)
			mustDelete(t, c, s.content) // which alone stops nothing
			exists(t, c, s.content, "is kept", func(content *snapshotv1.VolumeSnapshotContent) bool { return content.DeletionTimestamp != nil })
			mustDelete(t, c, s.object)
			exists(t, c, pod, "is stopped", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
			wantReaders(t, c, volume, s.reader())
			endRunning(t, c, pod, 143)
			tell(t, c, pod, workflow.Result{SnapshotHandle: "half"})
			deletion := s.deletion(t, 2, "half")
			wantReaders(t, c, volume)
			s.wantSays(t, "creating: yes.")
			end(t, c, deletion, workflow.Result{}, 0)
			removeNow(t, c, pod)
			s.wantGone(t)
			noPodIsLeft(t, c)
		})
	}
}
