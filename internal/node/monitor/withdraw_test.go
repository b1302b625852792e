package monitor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/pavdir"
)

// A mount is served at once, and checked again a few seconds later.
func TestMonitor_MountThatIsReplacedAfterReady_IsWithdrawn(t *testing.T) {
	const early, due, late = recheckAfter - time.Millisecond, recheckAfter, recheckUntil + time.Second
	tmpfs := func(t *testing.T, volume string) {
		t.Helper()
		must(t, unix.Mount("test", volume, "tmpfs", 0, ""))
	}
	goes := func(t *testing.T, volume string) {
		t.Helper()
		must(t, unix.Unmount(volume, unix.MNT_DETACH))
	}
	replaced := func(t *testing.T, volume string) {
		t.Helper()
		goes(t, volume)
		tmpfs(t, volume)
	}
	nothing := func(*testing.T, string) {}
	for name, test := range map[string]struct {
		before, meanwhile func(t *testing.T, volume string)
		pod               func(*corev1.Pod)
		after             time.Duration
		withdrawn         bool
	}{
		"a mount that stays":                     {before: tmpfs, meanwhile: nothing, after: due},
		"a mount that is mounted on itself":      {before: tmpfs, meanwhile: func(t *testing.T, v string) { t.Helper(); must(t, unix.Mount(v, v, "", unix.MS_BIND, "")) }, after: due},
		"a mount that goes":                      {before: tmpfs, meanwhile: goes, after: due, withdrawn: true},
		"a mount that is replaced":               {before: tmpfs, meanwhile: replaced, after: due, withdrawn: true},
		"a mount that is covered":                {before: tmpfs, meanwhile: tmpfs, after: due, withdrawn: true},
		"before it is looked at":                 {before: tmpfs, meanwhile: replaced, after: early},
		"long after it was served":               {before: tmpfs, meanwhile: replaced, after: late},
		"by a pod that is being stopped":         {before: tmpfs, meanwhile: goes, pod: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, after: due},
		"a plain directory, which was looked at": {before: nothing, meanwhile: tmpfs, after: due},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			served := metav1.NewTime(time.Now().Truncate(time.Second))
			n.PutStage(t, func(s *pavv1.PavStage) {
				s.Status.Conditions = []metav1.Condition{{Type: pavv1.StageReady, Status: metav1.ConditionTrue, LastTransitionTime: served}}
			})
			must(t, n.Dirs.Prepare(t.Context(), "stage-a"))
			volume := filepath.Join(filepath.Dir(n.Dirs.Volume("stage-a")), "pav/volume")
			must(t, os.Mkdir(volume, 0o755))
			test.before(t, volume)
			must(t, n.Dirs.Attach(t.Context(), "stage-a", pavdir.Attachment{Mode: mount.Filesystem}))
			n.Publish(t, "boot")
			target := filepath.Join(n.PodDirectory(t, "client-uid"), "mount")
			must(t, os.WriteFile(target+"/file", []byte("kept"), 0o600))
			test.meanwhile(t, volume)
			if test.pod != nil {
				n.API.SetPod(test.pod)
			}

			n.now = func() time.Time { return served.Add(test.after) }
			events := slices.DeleteFunc(n.look(t), func(event string) bool { return !strings.Contains(event, ": "+string(lossDetached)+": ") })
			attached, err := n.Dirs.Attached(t.Context(), "stage-a")
			if err != nil || attached == test.withdrawn {
				t.Errorf("attached: %t, %v", attached, err)
			}
			degraded := meta.FindStatusCondition(n.API.Stages["stage-a"].Status.Conditions, pavv1.StageDegraded)
			if is := degraded != nil && degraded.Reason == string(lossDetached) && strings.Contains(degraded.Message, "/pav/ready was created too early"); is != test.withdrawn {
				t.Errorf("the condition is %+v", degraded)
			}
			if test.withdrawn != (len(events) == 3) { // on the claim, its pod and the PavStage
				t.Errorf("the events are %q", events)
			}
			if text, err := os.ReadFile(target + "/file"); err != nil || string(text) != "kept" {
				t.Errorf("the client reads %q, %v", text, err)
			}
			if again := n.look(t); len(again) > 0 {
				t.Errorf("another look tells more: %q", again)
			}
		})
	}
}
