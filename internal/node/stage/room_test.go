package stage

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func free(slots int) func(context.Context) (int, error) {
	return func(context.Context) (int, error) { return slots, nil }
}

func TestRoom_TheLastSlotIsForOneStage(t *testing.T) {
	r := newRoom()
	steps := []struct {
		reason string
		stage  string // that requests a slot; if free is nil, it releases its slot
		free   func(context.Context) (int, error)
		want   bool
	}{
		{"nothing is free", "a", free(0), false},
		{"the node has fewer slots than pods", "a", free(-1), false},
		{"one is free", "a", free(1), true},
		{"it was reserved", "b", free(1), false},
		{"its own reservation is not in the way", "a", free(1), true},
		{"two are free, and one of them is reserved", "b", free(2), true},
		{"both were reserved", "c", free(2), false},
		{"", "a", nil, false},
		{"one was given back", "c", free(2), true},
	}
	for _, step := range steps {
		if step.free == nil {
			r.release(step.stage)
			continue
		}
		if got, err := r.reserve(t.Context(), step.stage, false, time.Now(), step.free); err != nil || got != step.want {
			t.Errorf("%s: stage %s: got %t, %v; want %t", step.reason, step.stage, got, err, step.want)
		}
	}
}

// The pod for which a volume is staged ahead needs a slot, too, and the API server does not know yet that it gets one there.
func TestRoom_KeepsASlotForThePodThatIsAboutToCome(t *testing.T) {
	r, now := newRoom(), time.Now()
	steps := []struct {
		reason string
		stage  string
		ahead  bool
		after  time.Duration
		free   int
		want   bool
	}{
		{"one is for the client", "a", true, 0, 1, false},
		{"one for each", "a", true, 0, 2, true},
		{"its own are not in the way", "a", true, 0, 2, true},
		{"both are kept", "b", false, 0, 2, false},
		{"both are kept, and it needs two", "b", true, 0, 3, false},
		{"one is left", "b", false, 0, 3, true},
		{"the client has not come for long, and the others are reserved", "c", false, clientComes + time.Second, 3, true},
	}
	for _, step := range steps {
		if got, err := r.reserve(t.Context(), step.stage, step.ahead, now.Add(step.after), free(step.free)); err != nil || got != step.want {
			t.Errorf("%s: stage %s: got %t, %v; want %t", step.reason, step.stage, got, err, step.want)
		}
	}
	r = newRoom()
	for _, step := range []struct {
		free int
		want bool
	}{{2, true}, {1, true}} {
		if got, err := r.reserve(t.Context(), "a", step.free == 2, now, free(step.free)); err != nil || got != step.want {
			t.Errorf("with %d slots: got %t, %v; want %t", step.free, got, err, step.want)
		}
		r.arrived("a")
	}
}

// Between the count of the slots and the creation of the pod, the next step may become another one.
func TestRoom_SlotOfAPodThatIsNotCreated_IsGivenBack(t *testing.T) {
	n := newNode(t)
	n.stager.client = fake.NewClientBuilder().WithScheme(scheme.Scheme).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}).Build()
	task := n.stager.newTask(Subject{}, "")
	task.stage = &pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Name: "stage-a"}}
	counted := false
	next := table{{"the step changes", always, func(observation) decision {
		if counted = counted || n.stager.room.reserved["stage-a"]; counted {
			return decision{step: stepWait}
		}
		return decision{step: stepRunStaging}
	}}}
	d, err := task.decide(t.Context(), next, &observation{exists: true})
	if err != nil || d.step != stepWait || !counted {
		t.Fatalf("the next step is %s, %v; the slots were counted: %t", d.step, err, counted)
	}
	if n.stager.room.reserved["stage-a"] {
		t.Error("the slot is still reserved")
	}
}

func TestRoom_AnUnavailableAPIServerReservesNothing(t *testing.T) {
	r, away := newRoom(), errors.New("away")
	if _, err := r.reserve(t.Context(), "a", false, time.Now(), func(context.Context) (int, error) { return 9, away }); !errors.Is(err, away) {
		t.Errorf("got %v, want %v", err, away)
	}
	if got, err := r.reserve(t.Context(), "b", false, time.Now(), free(1)); err != nil || !got {
		t.Errorf("the next stage: got %t, %v; want true", got, err)
	}
}

func TestRoom_OneReadAtATime_AndNoWaitExceedsTheCall(t *testing.T) {
	r := newRoom()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := r.reserve(t.Context(), "a", false, time.Now(), func(context.Context) (int, error) {
		cancel()
		_, err := r.reserve(ctx, "b", false, time.Now(), free(9))
		return 9, err
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestFullNode_IsReportedOnce_AndCheckedAgain(t *testing.T) {
	now, trouble := time.Now(), &attemptProblems{}
	const full = "node n is full"
	if due, in := trouble.meets(noPod, full, now); due || in != reportDelay {
		t.Errorf("at first: got %t, %s; want false, %s", due, in, reportDelay)
	}
	now = now.Add(reportDelay)
	if due, _ := trouble.meets(noPod, full, now); !due {
		t.Error("it is not reported after a while")
	}
	trouble.reported[full] = true
	if due, in := trouble.meets(noPod, full, now.Add(time.Hour)); due || in != 0 {
		t.Errorf("it is reported again (%t, in %s)", due, in)
	}
	o := observation{full: true}
	if due := o.due(); due != roomPeriod {
		t.Errorf("it is looked at again after %s, want %s", due, roomPeriod)
	}
}
