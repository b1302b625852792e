package stage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/nodetest"
	"github.com/albertofaria/pav/internal/workflow"
)

// ofStage returns a task with the current state of the stage "stage-a".
func (n *testNode) ofStage(t *testing.T) *task {
	t.Helper()
	task := n.stager.newTask(Subject{Volume: Volume{Driver: "driver", Handle: "handle"}}, "")
	stage := n.API.Stages["stage-a"].DeepCopy()
	task.stage = stage
	attached, err := n.stager.attachedAs(t.Context(), "stage-a")
	must(t, err)
	task.attached = attached
	task.published, err = n.stager.Publications(t.Context(), "stage-a")
	must(t, err)
	task.stagingPod, err = n.stager.runner.Get(t.Context(), stage.Status.StagingPod, stage.UID)
	must(t, err)
	return task
}

// staging creates a stage in the phase Staging, with a file system at /pav/volume, and returns the path of that.
func (n *testNode) staging(t *testing.T) string {
	t.Helper()
	n.PutStage(t, func(stage *pavv1.PavStage) {
		stage.Spec.VolumeMode = corev1.PersistentVolumeFilesystem
		stage.Spec.Volume = apiextensionsv1.JSON{Raw: []byte("{}")}
		stage.Status.Phase = pavv1.StageStaging
	})
	must(t, n.Dirs.Prepare(t.Context(), "stage-a"))
	volume := filepath.Join(filepath.Dir(n.Dirs.Volume("stage-a")), "pav", "volume")
	must(t, os.Mkdir(volume, 0o755))
	must(t, unix.Mount("volume", volume, "tmpfs", 0, ""))
	return volume
}

func (n *testNode) wantPhase(t *testing.T, want pavv1.StagePhase, wantAttached bool) {
	t.Helper()
	task := n.ofStage(t)
	if got := task.stage.Status.Phase; got != want || (task.attached != "") != wantAttached {
		t.Errorf("got phase %s, attached %q, want phase %s, attached %t", got, task.attached, want, wantAttached)
	}
}

func TestConfirm_OfAnOldMountAtPavVolume(t *testing.T) {
	n := newNode(t)
	n.staging(t)
	must(t, n.ofStage(t).attach(t.Context()))
	must(t, n.ofStage(t).confirm(t.Context()))
	n.wantPhase(t, pavv1.StageStaged, true)
}

// When a daemon ends, its mount is gone. The directory below is opened instead.
func TestConfirm_OfAVolumeThatHasGone_IsAFailure(t *testing.T) {
	for name, restaging := range map[string]bool{"staging": false, "staging again": true} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			volume := n.staging(t)
			n.API.Stages["stage-a"].Status.Restaging = restaging
			must(t, unix.Unmount(volume, 0))
			must(t, n.ofStage(t).attach(t.Context()))
			must(t, unix.Mount("another", volume, "tmpfs", 0, ""))
			task := n.ofStage(t)
			end := task.confirm
			if restaging {
				end = task.overMount
			}
			must(t, end(t.Context()))
			n.wantPhase(t, pavv1.StageUnstaging, false)
			failure := n.ofStage(t).stage.Status.StagingFailure
			if failure == nil || failure.PodName != "stage-1" || failure.Reason != pavv1.FailureOutputInvalid {
				t.Fatalf("got failure %+v, want one of what the staging pod did", failure)
			}
			// Kubelet decides when the first attempt is repeated, so no time is recorded.
			if announced := failure.NextAttemptTime != nil; announced != restaging {
				t.Errorf("the next attempt is at %v", failure.NextAttemptTime)
			}
		})
	}
}

// The attached volume may not be the right one yet: a daemon may still mount over /pav/volume.
func TestPublish_WhileTheVolumeIsRestaged_IsRefused(t *testing.T) {
	n := newNode(t)
	v := n.staged(t)
	name, _ := n.stager.names(v)
	n.withVolumes(v, "pv")
	stage := n.ledger(t, v, name)
	stage.Status.Phase, stage.Status.Restaging = pavv1.StageStaging, true
	must(t, n.stager.keepRecord(t.Context(), stage))
	p := n.publicationFor(t, "client")
	if err := n.stager.Publish(t.Context(), v, p); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	n.mustBeMounted(t, p.Target, false)

	task := n.stager.newTask(Subject{Volume: v}, corev1.PersistentVolumeFilesystem)
	must(t, task.find(t.Context()))
	must(t, task.update(t.Context(), func(*pavv1.PavStageStatus) {
		task.setReady(task.stage, metav1.ConditionFalse, reasonCovering, "running clients get the volume")
	}))
	must(t, task.overMount(t.Context()))
	must(t, n.stager.Publish(t.Context(), v, p))
	n.mustBeMounted(t, p.Target, true)
	must(t, n.stager.Unpublish(t.Context(), v, p.Target))
}

// The record is written before the first client gets the new volume. It prevents the volume from being unstaged while
// that client has it.
func TestCover_IsRecordedBeforeClientsGetIt(t *testing.T) {
	n := newNode(t)
	n.staging(t)
	n.API.Stages["stage-a"].Status.Restaging = true
	must(t, n.ofStage(t).attach(t.Context()))
	n.Publish(t, "boot")
	mounts := n.stager.mounts
	n.stager.mounts = noBinds{Mounter: mounts}
	if err := n.ofStage(t).overMount(t.Context()); !errors.Is(err, errNoBind) {
		t.Fatalf("got %v, want %v", err, errNoBind)
	}
	task := n.ofStage(t)
	o := observation{attached: true, stagingPod: workflow.Failed, stagingIntended: true}
	task.observeLedger(&o)
	if !o.covering || stageTable.decide(o).step != stepOverMount {
		t.Errorf("got covering %t and step %s, want true and %s", o.covering, stageTable.decide(o).step, stepOverMount)
	}
	n.stager.mounts = mounts
	must(t, task.overMount(t.Context()))
	n.wantPhase(t, pavv1.StageStaged, true)
}

var errNoBind = errors.New("no bind")

type noBinds struct{ Mounter }

func (noBinds) Bind(context.Context, Binding) error { return errNoBind }

func TestBeginRestaging_FencesTheDeadVolume(t *testing.T) {
	n := newNode(t)
	n.PutStage(t, func(*pavv1.PavStage) {})
	n.Attach(t).Die()
	fenced := &fences{Mounter: n.stager.mounts, err: errors.New("no such connection")}
	n.stager.mounts = fenced
	for range 2 {
		if err := n.ofStage(t).beginRestaging(t.Context()); !errors.Is(err, fenced.err) {
			t.Errorf("got %v, want %v", err, fenced.err)
		}
	}
	n.wantPhase(t, pavv1.StageStaged, true)
	degraded := meta.FindStatusCondition(n.ofStage(t).stage.Status.Conditions, pavv1.StageDegraded)
	if degraded == nil || !strings.Contains(degraded.Message, "no such connection") || len(n.Events) != 2 {
		t.Errorf("got condition %v and %d events, want one that says why, told once to two", degraded, len(n.Events))
	}

	fenced.err = mount.ErrUnsupported
	must(t, n.ofStage(t).beginRestaging(t.Context()))
	n.wantPhase(t, pavv1.StageUnstaging, true)
	if fenced.count != 4 { // two failures, then the stage's mount and the target
		t.Errorf("fenced %d times, want 4", fenced.count)
	}
}

// fences is a Mounter that counts the calls of Fence, and answers them with err.
type fences struct {
	Mounter
	err   error
	count int
}

func (f *fences) Fence(context.Context, string) error {
	f.count++
	return f.err
}

func TestHost_Fences(t *testing.T) {
	n := newNode(t)
	n.PutStage(t, func(*pavv1.PavStage) {})
	d := n.Attach(t)
	must(t, n.stager.mounts.(Fencer).Fence(t.Context(), n.Dirs.Volume("stage-a")))
	<-d.Ended
	if err := mount.Probe(n.Dirs.Volume("stage-a")); !errors.Is(err, mount.ErrDead) {
		t.Errorf("got %v, want %v", err, mount.ErrDead)
	}
}

// The PavStage may be deleted while the volume is restaged: because the node is lost, or by force.
func TestRestage_OfADeletedStage_CreatesNoPod(t *testing.T) {
	n := newNode(t)
	n.staging(t)
	v := Volume{Driver: "driver", Handle: "handle"}
	name, _ := n.stager.names(v)
	record, err := n.Dirs.Recorded(t.Context(), "stage-a")
	must(t, err)
	must(t, n.Dirs.Record(t.Context(), name, *record))
	stage := n.API.Stages["stage-a"]
	stage.Name, stage.Status.Phase = name, pavv1.StageStaged
	n.API.Stages = map[string]*pavv1.PavStage{name: stage}
	n.stager.client = vanishing{API: n.API}

	must(t, n.stager.Restage(t.Context(), name))
	if exists, err := n.Dirs.Exists(t.Context(), name); err != nil || !exists || len(n.API.Stages) > 0 {
		t.Errorf("got directory %t, stages %v, %v, want the directory left as it is, and no stage", exists, n.API.Stages, err)
	}
}

// vanishing is an API server that loses a PavStage as soon as it is marked as being restaged.
type vanishing struct{ *nodetest.API }

func (v vanishing) Status() client.SubResourceWriter {
	return vanishingStatus{nodetest.Status{API: v.API}}
}

type vanishingStatus struct{ nodetest.Status }

func (v vanishingStatus) Update(_ context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	v.API.Lock()
	defer v.API.Unlock()
	delete(v.API.Stages, object.GetName())
	return nil
}
