package reconcile

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

const (
	// pageSize is how many objects are read in one request, and are in memory at once.
	pageSize = 500

	// maxBeginnings is how often a list is started again if the API server does not keep its pages long enough.
	maxBeginnings = 3
)

// LiveReads asks the API server for the holders of storage. The API server has no index by handle, so each answer
// needs whole lists. Callers that ask while a driver's lists are being read share the next read, which begins after
// all of them have asked.
type LiveReads struct {
	// Reader reads from the API server.
	Reader client.Reader

	mu      sync.Mutex
	drivers map[string]*reads
}

// reads are the reads of one driver's lists.
type reads struct {
	one chan struct{} // is full during a read

	// next has not begun yet; nil if no caller waits for it.
	next *read
}

// read is one read of the lists.
type read struct {
	done   chan struct{}
	all    []holding
	making []Making
	err    error
}

// Making is a PavVolume whose creation pod may choose the handle, and whose handle is not known yet.
type Making struct {
	Name string
	UID  types.UID

	// Pods is its status.pods, which differs for each pod.
	Pods int32
}

// Holders returns the objects that use the storage of a volume, as the API server has them after the call.
func (l *LiveReads) Holders(ctx context.Context, of StorageKey) ([]Holder, error) {
	r, err := l.ask(ctx, of.Driver)
	if err != nil {
		return nil, err
	}
	return holders(r.all, of), nil
}

// Making returns the volumes of a driver whose creation pods may choose their handles, and whose handles are not
// known yet, as the API server has them after the call.
func (l *LiveReads) Making(ctx context.Context, driver string) ([]Making, error) {
	r, err := l.ask(ctx, driver)
	if err != nil {
		return nil, err
	}
	return r.making, nil
}

// ask returns a read of a driver's lists that begins after the call.
func (l *LiveReads) ask(ctx context.Context, driver string) (*read, error) {
	d, r, first := l.join(driver)
	if first {
		l.do(ctx, driver, d, r)
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return r, r.err
}

// join returns the next read of a driver's lists, and reports whether the caller is the first that needs it.
func (l *LiveReads) join(driver string) (d *reads, r *read, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drivers == nil {
		l.drivers = map[string]*reads{}
	}
	if d = l.drivers[driver]; d == nil {
		d = &reads{one: make(chan struct{}, 1)}
		l.drivers[driver] = d
	}
	if first = d.next == nil; first {
		d.next = &read{done: make(chan struct{})}
	}
	return d, d.next, first
}

// do reads when the read before has ended.
func (l *LiveReads) do(ctx context.Context, driver string, d *reads, r *read) {
	defer close(r.done)
	select {
	case d.one <- struct{}{}:
		defer func() { <-d.one }()
	case <-ctx.Done():
		r.err = ctx.Err()
	}
	l.mu.Lock()
	d.next = nil // later callers need a read that begins after their call
	l.mu.Unlock()
	if r.err != nil {
		return
	}
	ours := client.MatchingLabels{pavv1.ProvisionerLabel: driver}
	for _, look := range []struct {
		list    client.ObjectList
		options []client.ListOption
	}{{&pavv1.PavVolumeList{}, []client.ListOption{ours}}, {&corev1.PersistentVolumeList{}, nil}, {&pavv1.PavStageList{}, []client.ListOption{ours}}} {
		var some *read
		if some, r.err = l.list(ctx, look.list, look.options); r.err != nil {
			r.err = fmt.Errorf("asking who has the storage of PavProvisioner %q: %w", driver, r.err)
			return
		}
		r.all, r.making = append(r.all, some.all...), append(r.making, some.making...)
	}
}

// list returns the holdings of a list: only the needed fields of each page are kept.
func (l *LiveReads) list(ctx context.Context, empty client.ObjectList, options []client.ListOption) (*read, error) {
	r := &read{}
	begin := func() { *r = read{} }
	err := Pages(ctx, l.Reader, empty, options, begin, func(page client.ObjectList) {
		r.all, r.making = append(r.all, holdingsOf(page)...), append(r.making, makingOf(page)...)
	})
	return r, err
}

// Pages reads a list from the API server and calls page for each page. All pages are of the moment at which the first was
// read. If the API server does not keep them long enough, the list is started again. Begin is called before each start.
func Pages[L client.ObjectList](ctx context.Context, reader client.Reader, empty L, options []client.ListOption, begin func(), page func(L)) (err error) {
	for range maxBeginnings {
		begin()
		if err = pages(ctx, reader, empty, options, page); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			break
		}
	}
	return err
}

func pages[L client.ObjectList](ctx context.Context, reader client.Reader, empty L, options []client.ListOption, each func(L)) error {
	for next := ""; ; {
		page, ok := empty.DeepCopyObject().(L)
		if !ok {
			return fmt.Errorf("%T is not a list", empty)
		}
		if err := reader.List(ctx, page, append(slices.Clone(options), client.Limit(pageSize), client.Continue(next))...); err != nil {
			return err
		}
		each(page)
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}

// makingOf returns the volumes of a list whose creation pods may choose their handles, and whose handles are not
// known yet.
func makingOf(list client.ObjectList) []Making {
	volumes, ok := list.(*pavv1.PavVolumeList)
	if !ok {
		return nil
	}
	var making []Making
	for i := range volumes.Items {
		if v := &volumes.Items[i]; Chooses(v) {
			making = append(making, Making{Name: v.Name, UID: v.UID, Pods: v.Status.Pods})
		}
	}
	return making
}

// Chooses reports whether the creation pod of a volume may choose the handle, and the handle is not known yet.
func Chooses(v *pavv1.PavVolume) bool {
	return v.Status.Step == pavv1.StepCreating && (v.Status.Plan == nil || v.Status.Plan.Handle == "")
}
