package stage

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/albertofaria/pav/internal/podplan"
)

func TestInflight_StagingExcludesEverything_PublishingOnlyItsTarget(t *testing.T) {
	f := newInflight()
	endFirst, err := f.lockTarget("volume", "/a")
	if err != nil {
		t.Fatal(err)
	}
	endSecond, err := f.lockTarget("volume", "/b")
	if err != nil {
		t.Errorf("two targets of a volume exclude each other: %v", err)
	}
	if _, err := f.lockTarget("volume", "/a"); !errors.Is(err, ErrBusy) {
		t.Errorf("one target twice: got %v, want ErrBusy", err)
	}
	if _, err := f.lockVolume("volume"); !errors.Is(err, ErrBusy) {
		t.Errorf("staging while publishing: got %v, want ErrBusy", err)
	}
	endOther, err := f.lockVolume("other")
	if err != nil {
		t.Errorf("volumes exclude each other: %v", err)
	}
	endOther()

	endFirst()
	endSecond()
	end, err := f.lockVolume("volume")
	if err != nil {
		t.Fatalf("staging after publishing: %v", err)
	}
	if _, err := f.lockTarget("volume", "/a"); !errors.Is(err, ErrBusy) {
		t.Errorf("publishing while staging: got %v, want ErrBusy", err)
	}
	end()
	if len(f.exclusive)+len(f.shared) != 0 {
		t.Errorf("claims are left: %v %v", f.exclusive, f.shared)
	}
}

func TestHub_WakesWaiters_AndRemembersOneWakeUp(t *testing.T) {
	notifier := NewNotifier()
	woken, end := notifier.subscribe("a", "b")
	notifier.Wake("c")
	select {
	case <-woken:
		t.Error("woken for another stage")
	default:
	}
	for _, wake := range []func(){func() { notifier.Wake("a") }, func() { notifier.Wake("b") }, notifier.WakeAll} {
		wake()
		wake() // must not block
		select {
		case <-woken:
		default:
			t.Error("not woken")
		}
	}
	end()
	if len(notifier.waiters) != 0 {
		t.Errorf("waiters are left: %v", notifier.waiters)
	}
	notifier.Wake("a")
}

func TestInflight_OfTargetsThatExcludeEachOther_TheFirstContinues(t *testing.T) {
	f := newInflight()
	endFirst, err := f.lockTarget("volume", "/a")
	if err != nil {
		t.Fatal(err)
	}
	endSecond, err := f.lockTarget("volume", "/b")
	if err != nil {
		t.Fatal(err)
	}
	defer endSecond()
	if !f.first("volume", "/a") || f.first("volume", "/b") {
		t.Error("not the first one is the first")
	}
	endFirst()
	if !f.first("volume", "/b") {
		t.Error("the second one does not go on when the first has ended")
	}
}

func TestInflight_WorkOfTheAgentGivesWayToCalls(t *testing.T) {
	f := newInflight()
	yielding, end := f.preemptible(t.Context(), "volume")
	release, err := f.lockVolume("volume")
	if err != nil {
		t.Fatal(err)
	}
	f.interrupt(t.Context(), "other")
	if yielding.Err() != nil {
		t.Error("it ended for another volume")
	}
	go func() {
		<-yielding.Done()
		release()
		end()
	}()
	f.interrupt(t.Context(), "volume")
	release, err = f.lockVolume("volume")
	if err != nil {
		t.Errorf("it is not over: %v", err)
	} else {
		release()
	}
}

func TestVolumeNameIn(t *testing.T) {
	tests := map[string]struct{ target, want string }{
		"a file system": {"/var/lib/kubelet/pods/7f2c/volumes/kubernetes.io~csi/pv-1/mount", "pv-1"},
		"a device":      {"/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/publish/pv-1/7f2c", "pv-1"},
		"another form":  {"/tmp/target", ""},
		"a short one":   {"/", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := volumeNameIn(test.target); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTrouble_IsReportedOncePerCause_AndNotAtOnce(t *testing.T) {
	known, now := &attemptProblems{}, time.Now()
	steps := []struct {
		reason, pod, cause string
		after              time.Duration
		due                bool
		in                 time.Duration
	}{
		{reason: "nothing is wrong"},
		{reason: "it may pass", cause: "image", in: reportDelay},
		{reason: "another cause does not begin again", cause: "back-off", after: time.Second, in: reportDelay - time.Second},
		{reason: "it does not pass", cause: "image", after: reportDelay - time.Second, due: true},
		{reason: "once is enough", cause: "image", after: time.Second},
		{reason: "the other cause is reported, too", cause: "back-off", due: true},
		{reason: "it has passed"},
		{reason: "another pod begins again", pod: "next", cause: "image", in: reportDelay},
	}
	for _, step := range steps {
		now = now.Add(step.after)
		due, in := known.meets("pod"+step.pod, step.cause, now)
		if due != step.due || in != step.in {
			t.Errorf("%s: got %t, in %s, want %t, in %s", step.reason, due, in, step.due, step.in)
		}
		if due {
			known.reported[step.cause] = true
		}
	}
}

func TestIsExclusive(t *testing.T) {
	tests := map[string]struct {
		modes []corev1.PersistentVolumeAccessMode
		want  bool
	}{
		"one node":                  {modes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, want: true},
		"one pod":                   {modes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}, want: true},
		"one node, or many to read": {modes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany}, want: false},
		"many nodes":                {modes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, want: false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := podplan.IsExclusive(test.modes); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
