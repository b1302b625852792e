package stage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// A staging pod creates /pav/ready in different states of its mount. The agent checks the mount, waits, and checks it
// again.
func TestSettling(t *testing.T) {
	mountVolume := func(t *testing.T, volume string) {
		t.Helper()
		must(t, unix.Mount("test", volume, "tmpfs", 0, ""))
	}
	nothing := func(*testing.T, string) {}
	for name, test := range map[string]struct {
		before, meanwhile func(t *testing.T, volume string)
		waits             bool
		failed            string
	}{
		"a mount that is there is served at once": {before: mountVolume, meanwhile: nothing},
		"a directory is served after a while":     {before: nothing, meanwhile: nothing, waits: true},
		"one that a mount comes late over is not": {before: nothing, meanwhile: mountVolume, waits: true, failed: "/pav/ready was created too early"},
		"nor is one that goes, and makes room for another": {before: nothing, meanwhile: func(t *testing.T, volume string) {
			t.Helper()
			must(t, os.Remove(volume))
			must(t, os.Mkdir(volume, 0o755))
		}, waits: true, failed: "/pav/ready was created too early"},
		"nor is one that goes": {before: nothing, meanwhile: func(t *testing.T, volume string) {
			t.Helper()
			must(t, os.Remove(volume))
		}, waits: true, failed: "/pav/ready was created too early"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			v := Volume{Driver: "driver", Handle: "handle"}
			name, _ := n.stager.names(v)
			n.withVolumes(v, "pv")
			n.ledger(t, v, name).Status.Phase = pavv1.StageStaging
			must(t, n.stager.keepRecord(t.Context(), n.API.Stages[name]))
			must(t, n.Dirs.Prepare(t.Context(), name))
			volume := filepath.Join(filepath.Dir(n.Dirs.Volume(name)), "pav/volume")
			must(t, os.Mkdir(volume, 0o755))
			test.before(t, volume)
			must(t, os.WriteFile(filepath.Dir(volume)+"/ready", nil, 0o600))
			now := time.Now()
			n.stager.now = func() time.Time { return now }

			task := n.stager.newTask(Subject{Volume: v}, corev1.PersistentVolumeFilesystem)
			next := func(want step) {
				t.Helper()
				o, err := task.observe(t.Context())
				must(t, err)
				got := stageTable.decide(o).step
				if got != want {
					t.Fatalf("the next step is %s, want %s; it sees %+v", got, want, o)
				}
				if got == stepWait && o.due() != SettleTime {
					t.Errorf("it looks again after %s, want %s", o.due(), SettleTime)
				}
			}
			next(stepAttach)
			must(t, task.attach(t.Context()))
			if test.waits {
				next(stepWait)
			}
			test.meanwhile(t, volume)
			now = now.Add(SettleTime)
			next(stepConfirm)
			must(t, task.confirm(t.Context()))

			status := n.API.Stages[name].Status
			if test.failed == "" {
				if status.Phase != pavv1.StageStaged {
					t.Errorf("the phase is %s: %+v", status.Phase, status.StagingFailure)
				}
				return
			}
			if status.Phase != pavv1.StageUnstaging || !strings.Contains(status.StagingFailure.Message, test.failed) {
				t.Errorf("the phase is %s, failure %+v", status.Phase, status.StagingFailure)
			}
			if attached, err := n.Dirs.Attached(t.Context(), name); err != nil || attached {
				t.Errorf("attached: %t, %v", attached, err)
			}
		})
	}
}

// A daemon that kubelet stops before it has mounted, because it evicts the pod, may end with exit code 0: only the phase
// tells whether the directory is the volume (seed 140000603 of the simulation).
func TestSettling_OfAPodWhoseContainersHaveEnded(t *testing.T) {
	over := func(phase corev1.PodPhase) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Status.Phase = phase }
	}
	for name, test := range map[string]struct {
		mounted, ready bool
		waits          bool
		phase          func(*corev1.Pod)
		want           step
	}{
		"a directory, after /pav/ready, phase Failed":    {ready: true, waits: true, phase: over(corev1.PodFailed), want: stepDetach},
		"a directory, after /pav/ready, phase Succeeded": {ready: true, waits: true, phase: over(corev1.PodSucceeded), want: stepConfirm},
		"a directory, without /pav/ready":                {want: stepConfirm},
		"a mount, after /pav/ready":                      {mounted: true, ready: true, want: stepConfirm},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			v := Volume{Driver: "driver", Handle: "handle"}
			name, _ := n.stager.names(v)
			n.withVolumes(v, "pv")
			n.ledger(t, v, name).Status.Phase = pavv1.StageStaging
			pod := n.API.Pods["stage-1"]
			pod.Spec.RestartPolicy, pod.Spec.Containers = corev1.RestartPolicyNever, []corev1.Container{{Name: "main"}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
			must(t, n.stager.keepRecord(t.Context(), n.API.Stages[name]))
			must(t, n.Dirs.Prepare(t.Context(), name))
			volume := filepath.Join(filepath.Dir(n.Dirs.Volume(name)), "pav/volume")
			must(t, os.Mkdir(volume, 0o755))
			if test.mounted {
				must(t, unix.Mount("test", volume, "tmpfs", 0, ""))
			}
			if test.ready {
				must(t, os.WriteFile(filepath.Dir(volume)+"/ready", nil, 0o600))
			}
			now := time.Now()
			n.stager.now = func() time.Time { return now }
			task := n.stager.newTask(Subject{Volume: v}, corev1.PersistentVolumeFilesystem)
			next := func(want step) {
				t.Helper()
				o, err := task.observe(t.Context())
				must(t, err)
				if got := stageTable.decide(o).step; got != want {
					t.Fatalf("the next step is %s, want %s; it sees %+v", got, want, o)
				}
			}
			next(stepAttach)
			must(t, task.attach(t.Context()))
			if test.waits {
				next(stepWait)
				now = now.Add(2 * SettleTime)
				next(stepWait)
				test.phase(n.API.Pods["stage-1"])
			}
			next(test.want)
		})
	}
}
