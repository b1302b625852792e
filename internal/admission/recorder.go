package admission

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
)

// Recorder writes records of stages whose staging pods were not checked, as neither they nor the unstaging pods had
// references: when the volume is unstaged, its definition may give the unstaging pod some, and its clients are gone.
// It waits until a volume is staged, to avoid conflicts with the node agent.
type Recorder struct {
	// Cache has the stages, and Pods judges them.
	Cache client.Reader
	Pods  *PodHandler
}

// Register adds the recorder and its watch to the manager.
func (r *Recorder) Register(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("record").
		For(&pavv1.PavStage{}, builder.WithPredicates(predicate.NewPredicateFuncs(wantsRecord))).
		WithOptions(options).
		Complete(r)
}

// wantsRecord reports whether a stage is staged and has no record.
func wantsRecord(object client.Object) bool {
	stage, ok := object.(*pavv1.PavStage)
	return ok && stage.DeletionTimestamp == nil && stage.Status.Phase == pavv1.StageStaged && podplan.RecordOf(stage) == nil
}

// Reconcile implements reconcile.Reconciler.
func (r *Recorder) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	stage := &pavv1.PavStage{}
	if err := r.Cache.Get(ctx, request.NamespacedName, stage); err != nil || !wantsRecord(stage) {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// The cache has no copies of the volume and the claim.
	if err := r.Pods.Client.Get(ctx, request.NamespacedName, stage); err != nil || !wantsRecord(stage) {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s, found, err := r.Pods.gather(ctx, stage)
	if err != nil || !s.used || found.objects == nil {
		return ctrl.Result{}, err
	}
	return reconcile.Result(write(ctx, r.Pods.Client, stage, nextRecord(s.record, nil, found)))
}
