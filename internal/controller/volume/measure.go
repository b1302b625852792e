package volume

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/observability/metrics"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// measure logs and counts what a write of the status has recorded: a failure, and the outcome of a pod that is removed from
// the status. The write happens once, so each is counted once.
func (r *Reconciler) measure(ctx context.Context, volume *pavv1.PavVolume, before *pavv1.PavVolumeStatus) {
	after := &volume.Status
	failure := attempt.NewFailure(before.Failure, after.Failure)
	if failure == nil {
		failure = attempt.NewFailure(before.DeletionFailure, after.DeletionFailure)
	}
	for _, kind := range []string{pavv1.WorkflowExpansion, pavv1.WorkflowModification} {
		if failure == nil {
			failure = attempt.NewFailure(before.ChangeFailure(kind), after.ChangeFailure(kind))
		}
	}
	if failure != nil {
		ctrl.LoggerFrom(ctx).Info("an attempt failed", observability.Workflow, failure.Workflow, observability.Pod, podName(failure), observability.Reason, failure.Message)
	}
	over := before.Pod != nil && (after.Pod == nil || after.Pod.Name != before.Pod.Name)
	if r.Metrics == nil || !over && failure == nil {
		return
	}
	p := metrics.Pod{Provisioner: volume.Spec.Provisioner, Workflow: workflows[before.Step], Ref: before.Pod}
	if over {
		p.Pod = r.cachedPod(ctx, volume, p.Ref)
	}
	switch {
	case failure != nil:
		p.Workflow = failure.Workflow
		r.Metrics.Failed(p, failure)
	case workflow.Judge(p.Pod) == workflow.Succeeded, p.Pod != nil && workflow.IsReady(p.Pod) && after.Handle != "":
		r.Metrics.Succeeded(p)
	}
}

// podName returns the name of the pod that failed, or "" if none was created.
func podName(failure *pavv1.WorkflowFailure) string {
	if failure.PodName == "" {
		return ""
	}
	return observability.Name(failure.PodNamespace, failure.PodName)
}

// since returns how long ago something happened, in words.
func (r *Reconciler) since(at metav1.Time) string {
	return r.Now().Sub(at.Time).Round(time.Millisecond).String()
}

// cachedPod returns a pod of the volume from the cache, or nil.
func (r *Reconciler) cachedPod(ctx context.Context, volume *pavv1.PavVolume, ref *pavv1.PodReference) *corev1.Pod {
	pod, err := reconcile.Optional(ctx, r.Client, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, &corev1.Pod{})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot measure a pod", observability.Pod, observability.Name(ref.Namespace, ref.Name))
	}
	if pod == nil || !workflow.Belongs(pod, volume.UID) {
		return nil
	}
	return pod
}
