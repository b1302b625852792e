package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
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
// needs lists of all that a driver has. Callers that ask while a driver's lists are being read share the next read, which
// begins after all of them have asked. PersistentVolumes without ProvisionerLabel, which may be of any driver, are read for
// all drivers together.
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
		d.next = &read{done: make(chan struct{}), err: errUnread} // also if the reader panics
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
	}
	l.mu.Lock()
	d.next = nil // later callers need a read that begins after their call
	l.mu.Unlock()
	if ctx.Err() != nil {
		r.err = ctx.Err()
		return
	}
	if driver == unlabelled {
		r.err = l.read(ctx, r, &corev1.PersistentVolumeList{}, client.MatchingLabelsSelector{Selector: withoutLabel})
		return
	}
	if err := l.readOf(ctx, driver, r); err != nil {
		r.err = fmt.Errorf("asking who has the storage of PavProvisioner %q: %w", driver, err)
		return
	}
	r.err = nil
}

var errUnread = errors.New("the API server was not asked")

// unlabelled stands for the driver of PersistentVolumes without ProvisionerLabel, which withoutLabel selects.
const unlabelled = ""

var withoutLabel = labels.NewSelector().Add(*without(pavv1.ProvisionerLabel))

func without(label string) *labels.Requirement {
	requirement, err := labels.NewRequirement(label, selection.DoesNotExist, nil)
	utilruntime.Must(err)
	return requirement
}

// readOf reads the lists of a driver, in the order in which storage is handed on: a PavVolume becomes a PersistentVolume, which
// gets its labels, and is staged. So what is handed on meanwhile is in a later list.
func (l *LiveReads) readOf(ctx context.Context, driver string, into *read) error {
	ours := client.MatchingLabels{pavv1.ProvisionerLabel: driver}
	if err := l.read(ctx, into, &pavv1.PavVolumeList{}, ours); err != nil {
		return err
	}
	others, err := l.ask(ctx, unlabelled)
	if err != nil {
		return err
	}
	for _, h := range others.all {
		if strings.HasPrefix(h.storage, Storage(driver, "")) {
			into.all = append(into.all, h)
		}
	}
	if err := l.read(ctx, into, &corev1.PersistentVolumeList{}, ours); err != nil {
		return err
	}
	return l.read(ctx, into, &pavv1.PavStageList{}, ours)
}

// read adds the holdings of a list: only the needed fields of each page are kept.
func (l *LiveReads) read(ctx context.Context, into *read, empty client.ObjectList, options ...client.ListOption) error {
	all, making := len(into.all), len(into.making)
	begin := func() { into.all, into.making = into.all[:all], into.making[:making] }
	return Pages(ctx, l.Reader, empty, options, begin, func(page client.ObjectList) {
		into.all, into.making = append(into.all, holdingsOf(page)...), append(into.making, makingOf(page)...)
	})
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
