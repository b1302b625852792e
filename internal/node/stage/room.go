package stage

import (
	"context"
	"fmt"
	"maps"
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// roomPeriod is how often a call that waits for a free pod slot checks for one: the agent does not watch other pods.
const roomPeriod = 5 * time.Second

// noPod is the UID of a pod that is not created yet, for the causes that keep pods from starting.
const noPod = "none"

// clientComes is how long a slot is kept for the pod for which a volume is staged ahead. The scheduler binds it within a
// second or two, if it has no other volume to wait for.
const clientComes = 30 * time.Second

// room has the reserved pod slots of the node, by stage: for pods that are about to be created, and that no list of
// the API server has yet. Two calls must not use the last slot.
type room struct {
	turn chan struct{} // held by the call that counts

	mu       sync.Mutex
	reserved map[string]bool
	clients  map[string]time.Time // until when a slot is kept for the pod for which the stage was staged ahead
}

func newRoom() *room {
	return &room{turn: make(chan struct{}, 1), reserved: map[string]bool{}, clients: map[string]time.Time{}}
}

// reserve reserves a slot for a stage if free returns that there is one. Ahead, it needs one more, and keeps it for the
// client of the stage.
func (r *room) reserve(ctx context.Context, stage string, ahead bool, now time.Time, free func(context.Context) (int, error)) (bool, error) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-r.turn }()
	left, err := free(ctx)
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reserved, stage)
	delete(r.clients, stage)
	maps.DeleteFunc(r.clients, func(_ string, until time.Time) bool { return now.After(until) })
	need := 1
	if ahead {
		need = 2
	}
	if left-len(r.reserved)-len(r.clients) < need {
		return false, nil
	}
	r.reserved[stage] = true
	if ahead {
		r.clients[stage] = now.Add(clientComes)
	}
	return true, nil
}

// arrived gives back the slots that were kept for the clients of stages: they are on the node.
func (r *room) arrived(stages ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, stage := range stages {
		delete(r.clients, stage)
	}
}

// release releases the slot of a stage: its pod exists, or will not be created.
func (r *room) release(stage string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reserved, stage)
}

// observeRoom gathers whether the node has a slot for the pod that is created next. Without one, the scheduler would
// evict another pod for it, since the pod is critical to the node: that could be its own client. Unstaging pods are
// created all the same, as staging must be reverted.
func (t *task) observeRoom(ctx context.Context, o *observation) error {
	slots, reserved, err := t.reserveSlots(ctx, t.stage.Name, t.slotForClient)
	if err != nil || reserved {
		return err
	}
	if t.ahead {
		return t.noSlots()
	}
	o.full = true
	t.full = fmt.Sprintf("node %s is full: all of its %d pod slots are taken, and the pod that serves the volume needs one; "+
		"it waits until a pod there has ended; run fewer pods there, or raise maxPods of its kubelet", t.node, slots)
	t.attempts.change(t.stage.Name, func(known *attemptProblems) {
		o.reportDue, o.reportIn = known.meets(noPod, t.full, t.now())
	})
	return nil
}

// reserveSlots reserves a slot for the pod of a stage, and one for its client if that is still to come. It returns how many
// pods the node can run.
func (s *Stager) reserveSlots(ctx context.Context, stage string, forClient bool) (slots int, reserved bool, err error) {
	reserved, err = s.room.reserve(ctx, stage, forClient, s.now(), func(ctx context.Context) (left int, err error) {
		slots, left, err = s.freeSlots(ctx)
		return left, err
	})
	return slots, reserved, err
}

// freeSlots returns how many pods the node can run, and how many more it can take.
func (s *Stager) freeSlots(ctx context.Context) (slots, left int, err error) {
	node := &corev1.Node{}
	if err = s.client.Get(ctx, client.ObjectKey{Name: s.node}, node); err != nil {
		return 0, 0, fmt.Errorf("getting Node %q: %w", s.node, err)
	}
	allocatable, known := node.Status.Allocatable[corev1.ResourcePods]
	if !known {
		return 0, math.MaxInt, nil
	}
	var bound, coming int
	err = s.together(ctx,
		func(ctx context.Context) (err error) {
			bound, err = s.countPods(ctx, s.node)
			return err
		},
		func(ctx context.Context) (err error) { // Pods that the scheduler is about to bind to this node.
			coming, err = s.countPods(ctx, "", client.MatchingLabels{pavv1.NodeLabel: workflow.Hash(s.node)})
			return err
		})
	slots = int(allocatable.Value())
	return slots, slots - bound - coming, err
}

// countPods returns how many pods with a nodeName have not ended, which is how the scheduler counts.
func (s *Stager) countPods(ctx context.Context, node string, among ...client.ListOption) (int, error) {
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	live := client.MatchingFieldsSelector{Selector: fields.AndSelectors(
		fields.OneTermEqualSelector("spec.nodeName", node),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
	)}
	if err := s.client.List(ctx, pods, append(among, live)...); err != nil {
		return 0, fmt.Errorf("counting the pods of node %q: %w", s.node, err)
	}
	return len(pods.Items), nil
}
