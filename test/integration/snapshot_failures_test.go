package integration

import (
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// What a pod has made before it failed is deleted before the next one runs, whatever the text in /pav/error is.
func TestSnapshot_Failures_AreRevertedAndRepeated(t *testing.T) {
	c := start(t)
	run(t, c)
	_, pv, volume := snappedVolume(t, c, "hardly-snapped")
	s := requestSnapshot(t, c, pv, "hardly-snapped", "monday")
	first := s.creation(t, 1, "none")
	end(t, c, first, workflow.Result{SnapshotHandle: "half", Error: "the array is full"}, 3)
	revert := s.deletion(t, 2, "half")
	s.wantSays(t, "creating: yes, failed: pod pav-pods/"+first.Name+` failed: container "main" ended with exit code 3: the array is full`)
	wantEvent(t, c, s.object, "Warning", "SnapshotCreationFailed", "the array is full")
	wantEvent(t, c, s.content, "Warning", "SnapshotCreationFailed", "; the creation is reverted first")
	wantReaders(t, c, volume)
	end(t, c, revert, workflow.Result{Error: "cannot undo it"}, 1)
	wantEvent(t, c, s.content, "Warning", "SnapshotDeleteError", "cannot undo it")
	again := s.deletion(t, 3, "half")
	end(t, c, again, workflow.Result{}, 0)

	second := s.creation(t, 4, "none")
	s.wantSays(t, "creating: yes, failed: pod pav-pods/"+first.Name)
	wantReaders(t, c, volume, s.reader())
	if r := s.record.Status; r.Attempt != 2 || r.DeletionAttempt != 0 || r.DeletionFailure != nil || r.Handle != "" || meta.FindStatusCondition(r.Conditions, pavv1.SnapshotDeleted) != nil {
		t.Errorf("the second attempt is recorded as %+v", r)
	}
	end(t, c, second, workflow.Result{}, 0)
	s.wantSays(t, s.record.Name+", 1073741824, ready.")
	wantReaders(t, c, volume)
	noPodIsLeft(t, c)
	s.delete(t)
	end(t, c, s.deletion(t, 5, s.record.Name), workflow.Result{}, 0)
	s.wantGone(t)
}

// A pod that is removed by force may have chosen a handle, which nobody will know: people are told where they may look.
func TestSnapshot_Failures_OfAPodThatVanishes_AreSaid(t *testing.T) {
	c := start(t)
	run(t, c)
	_, pv, _ := snappedVolume(t, c, "snapped-by-nobody")
	s := requestSnapshot(t, c, pv, "snapped-by-nobody", "monday")
	pod := s.creation(t, 1, "none")
	startPod(t, c, pod)
	mustPatch(t, c, pod, func(p *corev1.Pod) { p.Finalizers = nil })
	removeNow(t, c, pod)
	revert := s.deletion(t, 2, "none")
	for _, object := range []client.Object{s.object, s.content, s.record} {
		wantEvent(t, c, object, "Warning", "SnapshotDeleteError", "what the pod made may be left")
	}
	end(t, c, revert, workflow.Result{}, 0)
	end(t, c, s.creation(t, 3, "none"), workflow.Result{}, 0)
	s.wantSays(t, s.record.Name+", 1073741824, ready.")
	s.delete(t)
	end(t, c, s.deletion(t, 4, s.record.Name), workflow.Result{}, 0)
	s.wantGone(t)
}

// What cannot be is not reverted, and not tried again until the definition changes.
func TestSnapshot_Failures_ThatAreInfeasible_Wait(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner, pv, volume := snappedVolume(t, c, "infeasibly-snapped")
	s := requestSnapshot(t, c, pv, "infeasibly-snapped", "monday")
	first, text := s.creation(t, 1, "none"), "no such tier"
	end(t, c, first, workflow.Result{Infeasible: &text}, 1)
	s.wantSays(t, "failed: pod pav-pods/"+first.Name)
	wantEvent(t, c, s.object, "Warning", "SnapshotCreationFailed", "no such tier")
	wantReaders(t, c, volume)
	if r := s.record; r.Status.Pods != 1 {
		t.Errorf("%d pods were made", r.Status.Pods)
	}
	mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) { p.Spec.SnapshotCreation.Handle = field(`"planned"`) })
	end(t, c, s.creation(t, 2, "none"), workflow.Result{SnapshotHandle: "ignored"}, 0)
	s.wantSays(t, "planned, 1073741824, ready.")
	s.delete(t)
	end(t, c, s.deletion(t, 3, "planned"), workflow.Result{}, 0)
	s.wantGone(t)
}

// Until there is a class of the driver, and a definition of snapshots, the VolumeSnapshotContent says what is missing.
func TestSnapshot_Failures_OfWhatIsMissing_AreSaid(t *testing.T) {
	c := start(t)
	a := run(t, c)
	provisioner, pv, _ := snappedVolume(t, c, "unsnapped")
	mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) { p.Spec.SnapshotCreation = nil })
	s := requestSnapshot(t, c, pv, "unsnapped-other", "monday")
	wantEvent(t, c, s.object, "Warning", "SnapshotCreationFailed", `VolumeSnapshotClass "unsnapped-other" does not exist`)
	s.wantSays(t, `failed: VolumeSnapshotClass "unsnapped-other" does not exist: create it.`)
	class := mustCreate(t, c, &snapshotv1.VolumeSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: "unsnapped-other"}, Driver: "other", DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
	})
	s.wantSays(t, `failed: VolumeSnapshotClass "unsnapped-other" is for snapshots of the driver "other"`)
	wantEvent(t, c, s.content, "Warning", "SnapshotCreationFailed", `is for snapshots of the driver "other"`)
	mustDelete(t, c, class)
	snapshotClass(t, c, "unsnapped", "unsnapped-other")

	s.wantSays(t, `failed: PavProvisioner "unsnapped" has no spec.snapshotCreation`)
	s.wantWaiting(t, "Unsupported")
	wantEvent(t, c, s.object, "Warning", "SnapshotCreationFailed", "has no spec.snapshotCreation")
	if n := podsMade(a); n > 0 {
		t.Errorf("%d pods were made", n)
	}
	mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) { snapshottable(p, nil) })
	creation := s.creation(t, 1, "none")
	s.wantSays(t, "creating: yes.")
	end(t, c, creation, workflow.Result{}, 0)
	s.wantSays(t, s.record.Name+", 1073741824, ready.")
	s.delete(t)
	end(t, c, s.deletion(t, 2, s.record.Name), workflow.Result{}, 0)
	s.wantGone(t)
}

// A snapshot whose pod tells the handle of another one is neither reverted nor deleted: both would delete the other one.
func TestSnapshot_Failures_OfAHandleInUse_DeleteNothing(t *testing.T) {
	c := start(t)
	a := run(t, c)
	provisioner, pv, _ := snappedVolume(t, c, "snapped-twice")
	first := requestSnapshot(t, c, pv, "snapped-twice", "monday")
	end(t, c, first.creation(t, 1, "none"), workflow.Result{SnapshotHandle: "the only one"}, 0)
	first.wantSays(t, "the only one, 1073741824, ready.")
	second := requestSnapshot(t, c, pv, "snapped-twice", "tuesday")
	creation := second.creation(t, 1, "none")
	mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) { p.Spec.SnapshotCreation = nil }) // so that no other attempt follows
	end(t, c, creation, workflow.Result{SnapshotHandle: "the only one"}, 0)
	exists(t, c, second.record, "has failed for that reason", func(r *pavv1.PavSnapshot) bool {
		return r.Status.Failure != nil && r.Status.Failure.Reason == pavv1.FailureHandleInUse && r.Status.Step == "" && r.Status.Handle == ""
	})
	wantEvent(t, c, second.object, "Warning", "SnapshotCreationFailed", `the snapshot handle "the only one" is already in use by PavSnapshot "`+first.record.Name+`"`)
	second.delete(t)
	second.wantGone(t)
	if n := podsMade(a); n != 2 {
		t.Errorf("%d pods were made for two snapshots", n)
	}
	first.delete(t)
	end(t, c, first.deletion(t, 2, "the only one"), workflow.Result{}, 0)
	first.wantGone(t)
}
