package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/reconcile"
)

// finders are, for each volume whose storage a deletion pod has deleted, the volumes whose creation pods ran at that time
// and whose handles are not known yet. Such a pod may have found the storage before it was deleted, and may still write its
// handle: that PersistentVolume would have no storage. So the volume keeps the handle until the handles of all of them are
// known. Pods that started later cannot find deleted storage. It is safe for concurrent use.
type finders struct {
	mu sync.Mutex
	of map[string]found // by the volume whose storage is deleted
}

// found are the finders of one PavVolume's storage, by name.
type found struct {
	uid     types.UID
	finders map[string]reconcile.Making
}

// get returns the finders of a volume's storage by name, and whether they were looked up.
func (f *finders) get(volume *pavv1.PavVolume) (all []reconcile.Making, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of, known := f.of[volume.Name]
	if known = known && of.uid == volume.UID; !known {
		return nil, false
	}
	for _, making := range of.finders {
		all = append(all, making)
	}
	slices.SortFunc(all, func(a, b reconcile.Making) int { return cmp.Compare(a.Name, b.Name) }) // the API server is asked in this order
	return all, true
}

// set records the finders of a volume's storage.
func (f *finders) set(volume *pavv1.PavVolume, all []reconcile.Making) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = map[string]found{}
	}
	of := found{uid: volume.UID, finders: map[string]reconcile.Making{}}
	for _, making := range all {
		of.finders[making.Name] = making
	}
	f.of[volume.Name] = of
}

// forget removes the finders of a volume's storage: there are none, or they must be looked up again.
func (f *finders) forget(volume string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, volume)
}

// ofFinder maps a volume whose handle has become known to the volumes that wait for that.
func (f *finders) ofFinder(_ context.Context, object client.Object) []ctrl.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	var requests []ctrl.Request
	for volume, of := range f.of {
		if _, waits := of.finders[object.GetName()]; waits {
			requests = append(requests, named(volume)...)
		}
	}
	slices.SortFunc(requests, func(a, b ctrl.Request) int { return cmp.Compare(a.Name, b.Name) })
	return requests
}

// tells passes updates that may end a creation pod which chooses its handle.
var tells = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*pavv1.PavVolume)
	after, also := e.ObjectNew.(*pavv1.PavVolume)
	return !ok || !also || reconcile.Chooses(before) != reconcile.Chooses(after) || before.Status.Pods != after.Status.Pods
}}

// gatherFinders looks up the creation pods that may still name the storage that the volume has deleted.
func (r *Reconciler) gatherFinders(ctx context.Context, o *observation) error {
	if o.volume.Status.FormerHandle == "" || o.volume.Status.Step == pavv1.StepDeleted && o.ownPV() != nil {
		return nil // the PersistentVolume is deleted first, and nothing waits for this
	}
	all, known := r.finders.get(o.volume)
	if !known {
		live, err := r.holders.Making(ctx, o.volume.Spec.Provisioner)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(slices.Clone(live), func(m reconcile.Making) bool { return m.Name == o.volume.Name })
		r.finders.set(o.volume, all) // before the cache is read: a handle that becomes known from now on brings another pass
	}
	var err error
	all = slices.DeleteFunc(all, func(m reconcile.Making) bool {
		known, problem := r.handleKnown(ctx, m)
		err = errors.Join(err, problem)
		return known && problem == nil
	})
	r.finders.set(o.volume, all)
	for _, making := range all {
		o.finders = append(o.finders, making.Name)
	}
	slices.Sort(o.finders)
	return err
}

// handleKnown reports whether the handle of a creation pod is known, or its volume is gone. The cache may be behind: for a volume
// that it does not have, the API server is asked.
func (r *Reconciler) handleKnown(ctx context.Context, m reconcile.Making) (bool, error) {
	for _, reader := range []client.Reader{r.Client, r.Live} {
		v, err := reconcile.Optional(ctx, reader, types.NamespacedName{Name: m.Name}, &pavv1.PavVolume{})
		switch {
		case err != nil:
			return false, err
		case v != nil && v.UID == m.UID:
			return v.Status.Pods > m.Pods || v.Status.Pods == m.Pods && !reconcile.Chooses(v), nil
		}
	}
	return true, nil
}

// holdsAnother reports whether the volume still keeps the handle of other storage than the current deletion pod has
// deleted. It can keep only one.
func (o observation) holdsAnother() bool {
	return len(o.finders) > 0 && o.volume.Status.FormerHandle != o.volume.Status.Handle
}

// forget decides about a volume of which only the record is left; the condition reports what it waits for.
func forget(condition string) func(observation) decision {
	return func(o observation) decision {
		if len(o.finders) == 0 {
			return decision{Step: stepForget}
		}
		d := holding(o, condition)
		d.Rule = "a creation pod may have found the deleted storage"
		return d
	}
}

// holding decides about a volume whose record is kept only for the handle of deleted storage.
func holding(o observation, condition string) decision {
	return rule.Waiting(condition, "HandleHeld", fmt.Sprintf("the storage with the handle %q is deleted; this record is kept until the handle of PavVolume %q is known, as its creation pod may have found that storage",
		o.volume.Status.FormerHandle, o.finders[0]), false)
}

// release releases the handle of deleted storage, which no creation pod can have found any more.
func (r *Reconciler) release(ctx context.Context, o observation, _ decision) error {
	if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) { status.FormerHandle = "" }); err != nil {
		return err
	}
	r.finders.forget(o.volume.Name)
	ctrl.LoggerFrom(ctx).V(1).Info("released the handle of deleted storage")
	return nil
}
