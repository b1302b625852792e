package selftest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// failure is a failed workflow in a ledger. PaV would retry; the test does not wait for that.
type failure struct {
	ledger string
	what   *pavv1.WorkflowFailure
}

func (f *failure) Error() string {
	if f.what.PodName == "" {
		return f.ledger + ": " + f.what.Message
	}
	return f.what.Message
}

// troubles watches the ledgers of a provisioner for failed workflows. It is safe for concurrent use.
type troubles struct {
	client      client.WithWatch
	provisioner string

	mu       sync.Mutex
	reported map[string]bool
}

// newly returns whether a failure was not reported before. Ledgers keep their last failure.
func (t *troubles) newly(f *failure) bool {
	key := fmt.Sprint(f.ledger, "/", f.what.Workflow, "/", f.what.PodName, "/", f.what.Time.UnixNano())
	if f.what.PodName == "" {
		key += "/" + f.what.Message // The message of a pod may arrive later than the failure.
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reported[key] {
		return false
	}
	t.reported[key] = true
	return true
}

// undoing are the workflows whose failures keep a volume from being removed.
var undoing = []string{pavv1.WorkflowUnstaging, pavv1.WorkflowDeletion}

// undoingBuckets are the workflows whose failures keep a bucket from being removed.
var undoingBuckets = []string{pavv1.WorkflowBucketDeletion, pavv1.WorkflowRevocation}

// during runs a function, and ends it with a *failure as soon as one of the workflows fails again for the
// provisioner. Without workflows, any failure ends it.
func (t *troubles) during(ctx context.Context, function func(context.Context) error, workflows ...string) error {
	selected := client.MatchingLabels{pavv1.ProvisionerLabel: t.provisioner}
	check := func(seen objects) (bool, error) { return false, t.checkAll(seen, workflows) }
	return race(ctx, function,
		func(ctx context.Context) error { return await(ctx, t.client, &pavv1.PavVolumeList{}, check, selected) },
		func(ctx context.Context) error { return await(ctx, t.client, &pavv1.PavStageList{}, check, selected) })
}

// ofSnapshots runs a function, and ends it with a *failure as soon as a workflow of a snapshot of the provisioner fails again.
func (t *troubles) ofSnapshots(ctx context.Context, function func(context.Context) error) error {
	check := func(seen objects) (bool, error) { return false, t.checkAll(seen, nil) }
	return race(ctx, function, func(ctx context.Context) error {
		return await(ctx, t.client, &pavv1.PavSnapshotList{}, check, client.MatchingLabels{pavv1.ProvisionerLabel: t.provisioner})
	})
}

// ofBuckets runs a function, and ends it with a *failure as soon as one of the workflows fails again for a bucket of the provisioner, or for
// an access to one. Without workflows, any failure ends it.
func (t *troubles) ofBuckets(ctx context.Context, function func(context.Context) error, workflows ...string) error {
	selected := client.MatchingLabels{pavv1.ProvisionerLabel: t.provisioner}
	check := func(seen objects) (bool, error) { return false, t.checkAll(seen, workflows) }
	return race(ctx, function,
		func(ctx context.Context) error { return await(ctx, t.client, &pavv1.PavBucketList{}, check, selected) },
		func(ctx context.Context) error {
			return await(ctx, t.client, &pavv1.PavBucketAccessList{}, check, selected)
		})
}

func (t *troubles) checkAll(seen objects, workflows []string) error {
	for _, object := range seen {
		for _, what := range failures(object) {
			if err := t.check(object, what, workflows); err != nil {
				return err
			}
		}
	}
	return nil
}

// failures returns the failed workflows in a ledger.
func failures(ledger client.Object) []*pavv1.WorkflowFailure {
	switch l := ledger.(type) {
	case *pavv1.PavVolume:
		return l.Status.Failures()
	case *pavv1.PavSnapshot:
		return l.Status.Failures()
	case *pavv1.PavBucket:
		return l.Status.Failures()
	case *pavv1.PavBucketAccess:
		return l.Status.Failures()
	case *pavv1.PavStage:
		return []*pavv1.WorkflowFailure{l.Status.StagingFailure, l.Status.UnstagingFailure}
	default:
		return nil
	}
}

func (t *troubles) check(ledger client.Object, what *pavv1.WorkflowFailure, workflows []string) error {
	if what == nil {
		return nil
	}
	f := &failure{ledger: describeObject(ledger), what: what}
	if !t.newly(f) || len(workflows) > 0 && !slices.Contains(workflows, what.Workflow) {
		return nil
	}
	return f
}

var (
	errTimeout     = errors.New("not done in time")
	errInterrupted = errors.New("interrupted")
)

// cannotUnstage reports whether err is the failure of an unstaging pod, which blocks everything else.
func cannotUnstage(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.what.Workflow == pavv1.WorkflowUnstaging
}
