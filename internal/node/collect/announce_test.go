package collect

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/albertofaria/pav/internal/node/pavdir"
)

func TestAnnounce_SaysOfThePodItself(t *testing.T) {
	n := newNode(t)
	of := pavdir.Pod{Namespace: "ns", Name: podName, UID: podUID}
	must(t, n.Announce(t.Context(), of))
	of.UID = "another"
	if err := n.Announce(t.Context(), of); !apierrors.IsConflict(err) {
		t.Errorf("of another pod of that name: got %v", err)
	}
	if n.announced != 1 || len(n.results) > 0 {
		t.Errorf("it was announced %d times, with the results %q", n.announced, n.results)
	}
	n.pod = nil
	must(t, n.Announce(t.Context(), of)) // kubelet learns that the pod is gone elsewhere
}

// While PaV is rolled back, the policies of the earlier version are there before its node agents. It has no such annotation,
// and pods must start.
func TestAnnounce_WithThePoliciesOfAnEarlierVersion_LetsThePodStart(t *testing.T) {
	denied := func(message string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, podName, errors.New("ValidatingAdmissionPolicy 'pav-pods-of-own-node' with binding 'pav-pods-of-own-node' denied request: "+message))
	}
	for name, test := range map[string]struct {
		answer error
		fails  bool
	}{
		"the earlier policy":       {denied("a node agent may only write the result of a pod of the controller agent, once"), false},
		"this version's policy":    {denied("a node agent may only write of a pod of the controller agent, once, that it has got /pav, and its result"), true},
		"the API server is behind": {apierrors.NewTimeoutError("a node agent may only write the result of a pod of the controller agent, once", 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.fail = func(int) (bool, error) { return false, test.answer }
			err := n.Announce(t.Context(), pavdir.Pod{Namespace: "ns", Name: podName, UID: podUID})
			if (err != nil) != test.fails || n.announced > 0 {
				t.Errorf("got %v, announced %d times", err, n.announced)
			}
		})
	}
}
