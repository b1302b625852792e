package flush

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/stage"
)

const (
	// timeout is how long one attempt waits for a volume. The work goes on after that, and the next attempt finds that it still
	// does, or that little is left to write.
	timeout = 10 * time.Second

	// burst is how long to wait after an attempt during which the PavStage was changed.
	burst = 200 * time.Millisecond
)

// Syncer writes volumes back. *pavdir.Directories implements it.
type Syncer interface {
	// Sync writes to the storage what the node has in memory of the volume of a stage. It returns when ctx ends, even if the
	// volume hangs.
	Sync(ctx context.Context, stage string) error
}

// Flusher is a reconcile.Reconciler of the node's PavStages. It writes a volume back if that was requested and is not answered.
type Flusher struct {
	stager  *stage.Stager
	volumes Syncer
	timeout time.Duration

	mu       sync.Mutex
	answered map[string]answer // by the name of the stage
}

// answer is up to which request a stage has answered.
type answer struct {
	uid types.UID
	to  time.Time
}

// New returns a Flusher for the stages of a Stager.
func New(stager *stage.Stager, volumes Syncer) *Flusher {
	return &Flusher{stager: stager, volumes: volumes, timeout: timeout, answered: map[string]answer{}}
}

// requested returns when it was requested to write a volume back; false if that was not requested, or is no time.
func requested(of metav1.Object) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339Nano, of.GetAnnotations()[pavv1.SyncAnnotation])
	// The answer has microseconds. With more, it would never be up to the request.
	return at.Truncate(time.Microsecond), err == nil
}

// pending reports whether a PavStage may have a request that is not answered. Only its metadata is known.
func (f *Flusher) pending(of client.Object) bool {
	at, is := requested(of)
	if !is {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.answered[of.GetName()]
	return last.uid != of.GetUID() || at.After(last.to)
}

// remember notes up to which request a PavStage has answered. Its status says so, unless the API server has an older
// definition of PavStages.
func (f *Flusher) remember(of *pavv1.PavStage, to time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answered[of.Name] = answer{uid: of.UID, to: to}
}

func (f *Flusher) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.answered, name)
}

// Reconcile implements reconcile.Reconciler. The request is read before the volume is written back, so that what the answer
// says holds for all that was written before the request. The answer is written only if nothing of the PavStage was changed
// meanwhile: the volume is the same then, and was available all the time.
func (f *Flusher) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	config := f.stager.Config()
	is := &pavv1.PavStage{}
	err := config.Client.Get(ctx, request.NamespacedName, is)
	if apierrors.IsNotFound(err) {
		f.forget(request.Name)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("getting PavStage %q: %w", request.Name, err)
	}
	at, asked := requested(is)
	if !asked || is.Spec.NodeName != config.Node {
		return ctrl.Result{}, nil
	}
	if synced := is.Status.SyncedTime; synced != nil && !at.After(synced.Time) {
		f.remember(is, synced.Time)
		return ctrl.Result{}, nil
	}
	if !f.available(is) {
		return ctrl.Result{}, nil // Unstaging writes the volume back, too. If the volume becomes available, there is an event.
	}
	problem := f.write(ctx, is)
	if ctx.Err() != nil {
		return ctrl.Result{}, nil //nolint:nilerr // The next agent does it.
	}
	err = f.answer(ctx, is, at, problem)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: burst}, nil
	}
	return ctrl.Result{}, errors.Join(problem, err)
}

// available reports whether clients may have the volume, and its mounts are of this boot.
func (f *Flusher) available(is *pavv1.PavStage) bool {
	return is.Status.Phase == pavv1.StageStaged && !is.Status.Restaging && !stage.IsTerminating(is) && f.stager.IsThisBoot(&is.Status)
}

// write writes the volume of a stage back, if the stage has one that clients can write to.
func (f *Flusher) write(ctx context.Context, is *pavv1.PavStage) error {
	reservesOnly := is.Spec.Scope == pavv1.StagingScopePod && is.Spec.Client == nil
	if is.Spec.ReadOnly || reservesOnly {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	err := f.volumes.Sync(bounded, is.Name)
	if err != nil && bounded.Err() != nil {
		return fmt.Errorf("volume %s is not written back on node %s within %s, and may hang: %w", is.Spec.VolumeName, is.Spec.NodeName, f.timeout, err)
	}
	if err != nil {
		return fmt.Errorf("writing volume %s back on node %s: %w", is.Spec.VolumeName, is.Spec.NodeName, err)
	}
	return nil
}

// answer writes the answer to a request to the PavStage.
func (f *Flusher) answer(ctx context.Context, is *pavv1.PavStage, to time.Time, problem error) error {
	if problem != nil {
		text := strings.Join(strings.Fields(problem.Error()), " ")
		return f.stager.SetSynced(ctx, is, is.Status.SyncedTime, text)
	}
	if err := f.stager.SetSynced(ctx, is, &metav1.MicroTime{Time: to}, ""); err != nil {
		return err
	}
	f.remember(is, to)
	return nil
}
