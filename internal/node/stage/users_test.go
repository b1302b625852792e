package stage

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/albertofaria/pav/internal/node/pavdir"
)

// Kubelet requests the unstaging of a volume that a pod has: its staging path has no mount that would show it the
// users.
func TestUnstage_OfAVolumeThatAPodHas(t *testing.T) {
	tests := map[string]struct {
		uid   types.UID
		node  string
		phase corev1.PodPhase
		want  error
	}{
		"the pod runs":                       {"client-uid", "node", corev1.PodRunning, ErrBusy},
		"the pod has not started yet":        {"client-uid", "node", corev1.PodPending, ErrBusy},
		"the pod has completed":              {"client-uid", "node", corev1.PodSucceeded, nil},
		"the pod has failed":                 {"client-uid", "node", corev1.PodFailed, nil},
		"another pod has its name":           {"another-uid", "node", corev1.PodRunning, nil},
		"the pod is bound to no node at all": {"client-uid", "", corev1.PodPending, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			v := Volume{Driver: "driver", Handle: "handle"}
			n.withVolumes(v, "pv")
			shared, _ := n.stager.names(v)
			n.ledger(t, v, shared)
			must(t, n.stager.keepRecord(t.Context(), n.API.Stages[shared]))
			target := n.PodDirectory(t, "client-uid") + "/mount"
			must(t, errors.Join(os.MkdirAll(n.Dirs.Volume(shared), 0o755), os.MkdirAll(target, 0o750)))
			must(t, unix.Mount(n.Dirs.Volume(shared), target, "", unix.MS_BIND, ""))
			must(t, n.Dirs.RecordPublication(t.Context(), shared, publication{
				Target: target, Client: pavdir.Client{Namespace: "default", Name: "client", UID: "client-uid"}, Boot: pavdir.Boot{BootID: "boot"},
			}))
			n.API.Pods["client"] = &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "client", UID: test.uid},
				Spec:       corev1.PodSpec{NodeName: test.node}, Status: corev1.PodStatus{Phase: test.phase},
			}
			o := observation{}
			task := n.stager.newTask(Subject{Volume: v}, "")
			task.ending = true
			must(t, task.find(t.Context()))
			must(t, task.observeNode(t.Context(), &o))
			var err error
			if o.inUse {
				err = task.inUse(t.Context())
			}
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if mounted, err := n.stager.mounts.Mounted(t.Context(), target); err != nil || !mounted {
				t.Errorf("it was taken: %v", err)
			}
			var events []string
			for len(n.Events) > 0 {
				events = append(events, <-n.Events)
			}
			about := func(event string) bool {
				return strings.Contains(event, "FailedUnmount") && strings.Contains(event, "default/client")
			}
			if test.want != nil && (len(events) != 3 || slices.ContainsFunc(events, func(e string) bool { return !about(e) })) {
				t.Errorf("got events %q, want one on the stage, the claim and the pod", events)
			}
			if o.inUse && (!errors.Is(task.inUse(t.Context()), test.want) || len(n.Events) > 0) {
				t.Error("kubelet's next call had another answer, or made events again")
			}
		})
	}
}
