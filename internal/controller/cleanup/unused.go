package cleanup

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

const (
	// startDelay is how long a node agent may take from its PavStage to the staging pod before the stage is checked.
	startDelay = 5 * time.Second

	// usedDelay is the time to the next check of a stage that has no staging pod, but a client.
	usedDelay = 30 * time.Second
)

// checkUnused releases a stage that has no staging pod yet, and on whose node no pod uses the claim: it blocks other
// nodes and the deletion of the volume for no purpose. The node agent loses nothing, as it records the staging pod in
// the PavStage before it creates the pod, and that write fails once the PavStage is gone.
func (r *StageReconciler) checkUnused(ctx context.Context, cached *pavv1.PavStage) (ctrl.Result, error) {
	if hasBegun(cached) {
		return ctrl.Result{}, nil
	}
	if left := cached.CreationTimestamp.Add(startDelay).Sub(r.Now()); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	stage, err := r.liveStage(ctx, cached)
	if err != nil || stage == nil || hasBegun(stage) {
		return ctrl.Result{}, err
	}
	used, err := r.isUsed(ctx, stage)
	if err != nil {
		return ctrl.Result{}, err
	}
	if used {
		return ctrl.Result{RequeueAfter: usedDelay}, nil
	}
	return reconcile.Result(r.release(ctx, stage, "it has no staging pod, and no pod on its node uses the claim"))
}

// hasBegun reports whether staging may have begun on the node, or the stage protects nothing anyway. A stage that is
// staged, or was, is never released: on a node that is cut off, a client whose object is deleted may still write.
func hasBegun(stage *pavv1.PavStage) bool {
	status := &stage.Status
	switch status.Phase {
	case "", pavv1.StageValidating, pavv1.StageStaging:
		return status.StagingPod != nil || status.Restaging
	default:
		return true
	}
}

// liveStage returns a PavStage as the API server has it, or nil if it is gone.
func (r *StageReconciler) liveStage(ctx context.Context, cached *pavv1.PavStage) (*pavv1.PavStage, error) {
	list := &pavv1.PavStageList{}
	if err := r.Live.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: cached.Name}); err != nil {
		return nil, fmt.Errorf("reading PavStage %q: %w", cached.Name, err)
	}
	for i := range list.Items {
		if list.Items[i].UID == cached.UID {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// isUsed reports whether a pod on the stage's node uses the claim for which the volume was to be staged, or the one
// that it is bound to by now, or whether a staging pod exists although none is recorded.
func (r *StageReconciler) isUsed(ctx context.Context, stage *pavv1.PavStage) (bool, error) {
	staging := &metav1.PartialObjectMetadataList{}
	staging.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := r.Live.List(ctx, staging, client.MatchingLabels{
		pavv1.StageLabel: stage.Name, pavv1.WorkflowLabel: pavv1.WorkflowStaging,
	}); err != nil {
		return false, fmt.Errorf("looking up the staging pods of PavStage %q: %w", stage.Name, err)
	}
	if len(staging.Items) > 0 {
		return true, nil
	}
	claims := []types.NamespacedName{{Namespace: stage.Spec.ClaimRef.Namespace, Name: stage.Spec.ClaimRef.Name}}
	pv := &corev1.PersistentVolume{}
	if err := r.Live.Get(ctx, types.NamespacedName{Name: stage.Spec.VolumeName}, pv); err == nil && pv.Spec.ClaimRef != nil {
		claims = append(claims, types.NamespacedName{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name})
	} else if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading PersistentVolume %q: %w", stage.Spec.VolumeName, err)
	}
	pods := &corev1.PodList{}
	if err := r.Live.List(ctx, pods, client.MatchingFields{"spec.nodeName": stage.Spec.NodeName}); err != nil {
		return false, fmt.Errorf("looking up the pods of node %q: %w", stage.Spec.NodeName, err)
	}
	return usedBy(pods.Items, claims), nil
}

// usedBy reports whether a pod that has not ended uses one of the claims.
func usedBy(pods []corev1.Pod, claims []types.NamespacedName) bool {
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if protocol.UsesOneOf(pod, claims) {
			return true
		}
	}
	return false
}
