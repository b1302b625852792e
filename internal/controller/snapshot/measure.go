package snapshot

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

// measure logs and counts what a write of the status has recorded: a failure, and the outcome of a pod that is removed from the status.
// The write happens once, so each is counted once.
func (r *Reconciler) measure(ctx context.Context, record *pavv1.PavSnapshot, before *pavv1.PavSnapshotStatus) {
	after := &record.Status
	failure := attempt.NewFailure(before.Failure, after.Failure)
	if failure == nil {
		failure = attempt.NewFailure(before.DeletionFailure, after.DeletionFailure)
	}
	if failure != nil {
		ctrl.LoggerFrom(ctx).Info("an attempt failed", observability.Workflow, failure.Workflow, observability.Pod, observability.Name(failure.PodNamespace, failure.PodName), observability.Reason, failure.Message)
	}
	over := before.Pod != nil && (after.Pod == nil || after.Pod.Name != before.Pod.Name)
	if r.Metrics == nil || !over && failure == nil {
		return
	}
	p := metrics.Pod{Provisioner: record.Spec.Provisioner, Workflow: workflows[before.Step], Ref: before.Pod}
	if over {
		p.Pod = r.cachedPod(ctx, record, p.Ref)
	}
	switch {
	case failure != nil:
		p.Workflow = failure.Workflow
		r.Metrics.Failed(p, failure)
	case workflow.Judge(p.Pod) == workflow.Succeeded:
		r.Metrics.Succeeded(p)
	}
}

// cachedPod returns a pod of the snapshot from the cache, or nil.
func (r *Reconciler) cachedPod(ctx context.Context, record *pavv1.PavSnapshot, ref *pavv1.PodReference) *corev1.Pod {
	pod, err := reconcile.Optional(ctx, r.Client, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, &corev1.Pod{})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot measure a pod", observability.Pod, observability.Name(ref.Namespace, ref.Name))
	}
	if pod == nil || !workflow.Belongs(pod, record.UID) {
		return nil
	}
	return pod
}

// since returns how long ago something happened, in words.
func (r *Reconciler) since(at metav1.Time) string {
	return r.Now().Sub(at.Time).Round(time.Millisecond).String()
}
