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

// settlingTest is a node with a stage whose staging pod runs and has made /pav/volume.
type settlingTest struct {
	*testNode

	task   *task
	name   string // of the stage
	volume string // /pav/volume
	now    time.Time
	stop   func() error // stops the container of the staging pod
}

func newSettlingTest(t *testing.T) *settlingTest {
	t.Helper()
	s := &settlingTest{testNode: newNode(t), now: time.Now()}
	v := Volume{Driver: "driver", Handle: "handle"}
	s.name, _ = s.stager.names(v)
	s.withVolumes(v, "pv")
	s.ledger(t, v, s.name).Status.Phase = pavv1.StageStaging
	must(t, s.stager.keepRecord(t.Context(), s.API.Stages[s.name]))
	must(t, s.Dirs.Prepare(t.Context(), s.name))
	s.volume = filepath.Join(filepath.Dir(s.Dirs.Volume(s.name)), "pav/volume")
	must(t, os.Mkdir(s.volume, 0o755))
	s.stager.now = func() time.Time { return s.now }
	s.API.Pods["stage-1"].UID = "staging-uid"
	s.stop = s.container(t, "staging-uid")
	s.task = s.stager.newTask(Subject{Volume: v}, corev1.PersistentVolumeFilesystem)
	return s
}

// ready creates /pav/ready.
func (s *settlingTest) ready(t *testing.T) {
	t.Helper()
	must(t, os.WriteFile(filepath.Dir(s.volume)+"/ready", nil, 0o600))
}

// next fails the test if the agent does not take a step next, or does not wait for SettleTime.
func (s *settlingTest) next(t *testing.T, want step) {
	t.Helper()
	o, err := s.task.observe(t.Context())
	must(t, err)
	got := stageTable.decide(o).step
	if got != want {
		t.Fatalf("the next step is %s, want %s; it sees %+v", got, want, o)
	}
	if got == stepWait && o.due() != SettleTime {
		t.Errorf("it looks again after %s, want %s", o.due(), SettleTime)
	}
}

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
			s := newSettlingTest(t)
			test.before(t, s.volume)
			s.ready(t)
			s.next(t, stepAttach)
			must(t, s.task.attach(t.Context()))
			if test.waits {
				s.next(t, stepWait)
			}
			test.meanwhile(t, s.volume)
			s.now = s.now.Add(SettleTime)
			s.next(t, stepConfirm)
			must(t, s.task.confirm(t.Context()))

			status := s.API.Stages[s.name].Status
			if test.failed == "" {
				if status.Phase != pavv1.StageStaged {
					t.Errorf("the phase is %s: %+v", status.Phase, status.StagingFailure)
				}
				return
			}
			if status.Phase != pavv1.StageUnstaging || !strings.Contains(status.StagingFailure.Message, test.failed) {
				t.Errorf("the phase is %s, failure %+v", status.Phase, status.StagingFailure)
			}
			if attached, err := s.Dirs.Attached(t.Context(), s.name); err != nil || attached {
				t.Errorf("attached: %t, %v", attached, err)
			}
		})
	}
}

// kubelet stops a daemon that has not mounted yet, because it evicts the pod, and reports that late: clients do not get
// the directory meanwhile (seed 714001794 of the simulation).
func TestSettling_OfAPodWhoseContainersWereStopped(t *testing.T) {
	for name, test := range map[string]struct {
		then func(t *testing.T, s *settlingTest)
		want step
	}{
		"it is evicted": {want: stepDetach, then: func(_ *testing.T, s *settlingTest) {
			s.API.SetPod(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
		}},
		"they are started again": {want: stepConfirm, then: func(t *testing.T, s *settlingTest) {
			t.Helper()
			s.container(t, "staging-uid")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSettlingTest(t)
			s.ready(t)
			s.next(t, stepAttach)
			must(t, s.task.attach(t.Context()))
			s.next(t, stepWait)
			must(t, s.stop())
			s.now = s.now.Add(SettleTime)
			s.next(t, stepWait)
			s.now = s.now.Add(10 * SettleTime)
			s.next(t, stepWait)
			test.then(t, s)
			s.next(t, test.want)
		})
	}
}

// A daemon that kubelet stops before it has mounted, because it evicts the pod, may end with exit code 0: only the phase
// shows that the directory is not the volume (seed 140000603 of the simulation).
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
			s := newSettlingTest(t)
			pod := s.API.Pods["stage-1"]
			pod.Spec.RestartPolicy, pod.Spec.Containers = corev1.RestartPolicyNever, []corev1.Container{{Name: "main"}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
			if test.mounted {
				must(t, unix.Mount("test", s.volume, "tmpfs", 0, ""))
			}
			if test.ready {
				s.ready(t)
			}
			s.next(t, stepAttach)
			must(t, s.task.attach(t.Context()))
			if test.waits {
				s.next(t, stepWait)
				s.now = s.now.Add(2 * SettleTime)
				s.next(t, stepWait)
				test.phase(s.API.Pods["stage-1"])
			}
			s.next(t, test.want)
		})
	}
}
