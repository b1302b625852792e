package collect

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestSweep_RemovesWhatIsLeftOfPodsThatAreGone_AndNothingElse(t *testing.T) {
	unmount := func(t *testing.T, n *node) {
		t.Helper()
		must(t, unix.Unmount(n.target, 0))
		must(t, os.Remove(n.target))
	}
	for name, test := range map[string]struct {
		change func(t *testing.T, n *node)
		stays  bool
	}{
		"the pod is gone":               {change: func(t *testing.T, n *node) { t.Helper(); unmount(t, n); n.pod = nil }},
		"the pod is another one by now": {change: func(t *testing.T, n *node) { t.Helper(); unmount(t, n); n.pod.UID = "other" }},
		"it is on no record, and nobody has it": {change: func(t *testing.T, n *node) {
			t.Helper()
			unmount(t, n)
			must(t, os.Remove(n.kubelet+"/plugins/"+pavv1.Driver+"/pods/"+volume+"/pod.json"))
		}},
		"the pod is there": {change: unmount, stays: true},
		"the pod was told of, but is there": {change: func(t *testing.T, n *node) {
			t.Helper()
			unmount(t, n)
			n.pod.Annotations = map[string]string{pavv1.ResultAnnotation: "{}"}
		}, stays: true},
		"someone still has it": {change: func(_ *testing.T, n *node) { n.pod = nil }, stays: true},
		"the API server does not answer": {change: func(t *testing.T, n *node) {
			t.Helper()
			unmount(t, n)
			n.fail = func(int) (bool, error) { return false, errors.New("connection refused") }
		}, stays: true},
		"its record cannot be read": {change: func(t *testing.T, n *node) {
			t.Helper()
			unmount(t, n)
			write(t, n.kubelet+"/plugins/"+pavv1.Driver+"/pods/"+volume+"/pod.json", "{")
		}, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.publish(t)
			test.change(t, n)
			must(t, n.Sweep(t.Context()))
			ids, err := n.dirs.Pods(t.Context())
			must(t, err)
			if stays := len(ids) > 0; stays != test.stays {
				t.Errorf("it stays: %t, want %t", stays, test.stays)
			}
			if len(n.results) > 0 {
				t.Errorf("something was told: %s", n.results)
			}
			must(t, n.dirs.UnpublishPod(t.Context(), volume, n.target))
		})
	}
	must(t, newNode(t).Sweep(t.Context())) // There is nothing to sweep yet.
}
