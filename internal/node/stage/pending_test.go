package stage

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/nodetest"
	"github.com/albertofaria/pav/internal/workflow"
)

// Kubelet does not unmount the /pav of a pod whose directory it has lost. So an administrator has to know where it is
// mounted.
func TestUnstage_ThatWaitsForPav_NamesWhereItIsMounted(t *testing.T) {
	n := newNode(t)
	volume := Volume{Driver: "driver", Handle: "handle"}
	name, _ := n.stager.names(volume)
	n.PutStage(t, func(stage *pavv1.PavStage) {
		stage.Name = name
		stage.Status.Phase = pavv1.StageUnstaging
	})
	n.API.Stages = map[string]*pavv1.PavStage{name: n.API.Stages["stage-a"]}
	n.API.Pods = nil
	target := n.PodDirectory(t, "staging-uid") + "/mount"
	must(t, n.Dirs.Prepare(t.Context(), name))
	must(t, n.Dirs.Publish(t.Context(), name, target))

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	err := n.stager.Unstage(ctx, volume, "")
	if !errors.Is(err, ErrPending) || !strings.Contains(err.Error(), "/pav is still mounted at [\""+target+"\"]") {
		t.Errorf("got error %v, want one that names %q", err, target)
	}
}

func TestWaitsForUsers(t *testing.T) {
	for name, test := range map[string]struct {
		o    observation
		want bool
	}{
		"nobody has /pav":                     {o: observation{}},
		"a pod has it that is gone":           {o: observation{pavInUse: true}, want: true},
		"a pod has it that has ended":         {o: observation{pavInUse: true, stagingPod: workflow.Succeeded, unstagingPod: workflow.Failed}, want: true},
		"the staging pod has it, and runs":    {o: observation{pavInUse: true, stagingPod: workflow.Running}},
		"the unstaging pod has it, and runs":  {o: observation{pavInUse: true, stagingPod: workflow.Failed, unstagingPod: workflow.Running}},
		"the validation pod has it, and ends": {o: observation{pavInUse: true, validationPod: workflow.Stopping}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := waitsForUsers(test.o); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// A client's volume that hangs blocks only one thread, however often kubelet calls.
func TestBind_ThatHangs_IsNotStartedTwice(t *testing.T) {
	n := newNode(t)
	hanging := t.TempDir()
	d := nodetest.ServeFUSE(t, hanging)
	goOn := d.Hang()
	t.Cleanup(func() { must(t, unix.Unmount(hanging, unix.MNT_DETACH)) })
	binding := Binding{Source: hanging + "/volume", Target: n.PodDirectory(t, "client-uid") + "/mount"}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := n.stager.mounts.Bind(ctx, binding); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v", err)
	}
	patient, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 3 {
		if err := n.stager.mounts.Bind(patient, binding); !errors.Is(err, mount.ErrHangs) {
			t.Errorf("got error %v", err)
		}
	}
	other := binding
	other.Source, other.Target = t.TempDir(), n.PodDirectory(t, "another-uid")+"/mount"
	must(t, n.stager.mounts.Bind(t.Context(), other))
	must(t, n.stager.mounts.Unmount(t.Context(), other.Target))
	goOn()
	must(t, os.RemoveAll(other.Target))
}
