package world

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Queue is the work queue of one controller. The world decides when a worker gets which request.
type Queue struct {
	// Name consists of the names of the agent and the controller.
	Name string

	world   *World
	limiter workqueue.TypedRateLimiter[ctrl.Request]

	mu         sync.Mutex
	ready      []ctrl.Request
	processing map[ctrl.Request]bool
	again      map[ctrl.Request]bool // added while a worker processed it
	idle       int                   // number of waiting workers
	handed     chan ctrl.Request
	ended      chan struct{}
	ending     bool

	// Handed counts the requests that workers have received from the queue.
	Handed int
}

var _ workqueue.TypedRateLimitingInterface[ctrl.Request] = (*Queue)(nil)

// NewQueue returns an empty queue for a controller of an agent.
func NewQueue(w *World, name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) *Queue {
	return &Queue{
		Name: name, world: w, limiter: limiter, processing: map[ctrl.Request]bool{}, again: map[ctrl.Request]bool{},
		handed: make(chan ctrl.Request), ended: make(chan struct{}),
	}
}

// Choices adds one choice for each ready request if a worker is idle: a worker gets the request.
func (q *Queue) Choices(add func(Choice)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.idle == 0 || q.ending {
		return
	}
	slices.SortFunc(q.ready, func(a, b ctrl.Request) int { return strings.Compare(a.String(), b.String()) })
	for _, request := range q.ready {
		add(Choice{What: fmt.Sprintf("%s gets %s", q.Name, request), Weight: 4, Do: func() { q.hand(request) }})
	}
}

func (q *Queue) hand(request ctrl.Request) {
	q.mu.Lock()
	q.ready = slices.DeleteFunc(q.ready, func(other ctrl.Request) bool { return other == request })
	q.processing[request] = true
	q.idle--
	q.Handed++
	q.mu.Unlock()
	q.handed <- request
}

// Get implements workqueue.TypedInterface.
func (q *Queue) Get() (ctrl.Request, bool) {
	q.mu.Lock()
	q.idle++
	q.mu.Unlock()
	select {
	case request := <-q.handed:
		return request, false
	case <-q.ended:
		return ctrl.Request{}, true
	}
}

// Add implements workqueue.TypedInterface.
func (q *Queue) Add(request ctrl.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.ending:
	case q.processing[request]:
		q.again[request] = true
	case !slices.Contains(q.ready, request):
		q.ready = append(q.ready, request)
	}
}

// Done implements workqueue.TypedInterface.
func (q *Queue) Done(request ctrl.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.processing, request)
	if q.again[request] {
		delete(q.again, request)
		q.ready = append(q.ready, request)
	}
}

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *Queue) AddAfter(request ctrl.Request, wait time.Duration) {
	if wait <= 0 {
		q.Add(request)
		return
	}
	q.world.After(wait, func() { q.Add(request) })
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *Queue) AddRateLimited(request ctrl.Request) {
	q.AddAfter(request, q.limiter.When(request))
}

// Forget implements workqueue.TypedRateLimitingInterface.
func (q *Queue) Forget(request ctrl.Request) { q.limiter.Forget(request) }

// NumRequeues implements workqueue.TypedRateLimitingInterface.
func (q *Queue) NumRequeues(request ctrl.Request) int { return q.limiter.NumRequeues(request) }

// Len implements workqueue.TypedInterface.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.ready)
}

// ShutDown implements workqueue.TypedInterface.
func (q *Queue) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.ending {
		q.ending = true
		close(q.ended)
	}
}

// ShutDownWithDrain implements workqueue.TypedInterface.
func (q *Queue) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown implements workqueue.TypedInterface.
func (q *Queue) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ending
}
