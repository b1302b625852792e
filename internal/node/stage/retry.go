package stage

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// asked returns when somebody asked for the next attempt at what has failed of a stage; the zero time where
// nobody did, or an attempt has begun since: a wish counts once, also where the clock that wrote it is
// ahead of ours. An agent that begins anew may heed one twice.
func (t *troubles) asked(stage *pavv1.PavStage, now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	value := stage.Annotations[pavv1.RetryAnnotation]
	if known := t.of[stage.Name]; value == "" || known != nil && known.granted == value {
		return time.Time{}
	}
	return pavv1.RetryAsked(stage, now)
}

// grant notes that an attempt has begun.
func (t *troubles) grant(stage *pavv1.PavStage) {
	if value := stage.Annotations[pavv1.RetryAnnotation]; value != "" {
		t.change(stage.Name, func(known *trouble) { known.granted = value })
	}
}

// unlessAsked returns how long to wait after a failure: not at all where somebody has asked for the next attempt since.
func (t *task) unlessAsked(wait time.Duration, last *pavv1.WorkflowFailure) time.Duration {
	if wait > 0 && t.troubles.asked(t.stage, t.clusterTime()).After(last.Time.Time) {
		return 0
	}
	return wait
}

// goOnUnstaging goes on with an unstaging between kubelet's calls, to which it gives way.
func (k *Keeper) goOnUnstaging(ctx context.Context, stage *pavv1.PavStage) {
	of := subjectOf(stage)
	k.begin(ctx, stage.Name, func(ctx context.Context) error {
		return k.unstage(ctx, of, func(ctx context.Context) (bool, error) {
			now, err := k.get(ctx, stage.Name)
			return now != nil && now.UID == stage.UID && now.Status.Phase == pavv1.StageUnstaging && !now.Status.Restaging, err
		})
	})
}

// hurry looks at a stage now, whatever the keeper has tried in vain before.
func (k *Keeper) hurry(stage string) {
	k.mu.Lock()
	delete(k.pauses, stage)
	k.mu.Unlock()
	k.retries.Forget(stage)
	k.Look(stage)
}

// WatchRetries wakes whoever works on a stage when somebody asks for its next attempt, and has the keeper look at it.
func WatchRetries(ctx context.Context, mgr manager.Manager, hub *Hub, keeper *Keeper) error {
	stages := &metav1.PartialObjectMetadata{}
	stages.SetGroupVersionKind(pavv1.GroupVersion.WithKind("PavStage"))
	informer, err := mgr.GetCache().GetInformer(ctx, stages)
	if err != nil {
		return fmt.Errorf("watching PavStages: %w", err)
	}
	// The wishes that are there already are found by the keeper's first look at all stages.
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		old, ok := before.(client.Object)
		stage, also := after.(client.Object)
		if !ok || !also || old.GetAnnotations()[pavv1.RetryAnnotation] == stage.GetAnnotations()[pavv1.RetryAnnotation] {
			return
		}
		hub.Wake(stage.GetName())
		keeper.hurry(stage.GetName())
	}, DeleteFunc: func(object any) {
		if name, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			keeper.stager.troubles.forget(name)
		}
	}}); err != nil {
		return fmt.Errorf("watching PavStages: %w", err)
	}
	return nil
}
