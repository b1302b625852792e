package attempt

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// CheckAbsent asks the API server for the recorded pod of an owner, which the cache does not have. If the pod exists,
// the cache is behind, and the error is reconcile.ErrStale. The cache has yet to see the pod, or the agent that created
// it was stopped before it recorded that.
func CheckAbsent(ctx context.Context, runner *workflow.Runner, ref *pavv1.PodReference, owner types.UID) error {
	pod, err := runner.Get(ctx, ref, owner)
	if err != nil {
		return err
	}
	if pod != nil && (ref.UID == "" || ref.UID == pod.UID) {
		return reconcile.ErrStale
	}
	return nil
}

// Release removes the finalizer of a pod whose outcome is recorded, and deletes the pod unless it is kept for people
// to look at. The finalizer of a pod that still runs is removed at its end, which is an event and brings the next pass.
// So is the phase of a pod whose containers have ended.
func Release(ctx context.Context, runner *workflow.Runner, pod *corev1.Pod, keep bool) error {
	switch {
	case workflow.Observe(pod).IsOver():
		if err := runner.Release(ctx, pod); err != nil {
			return err
		}
	case workflow.Judge(pod).IsOver():
		return nil
	}
	if keep {
		return nil
	}
	return runner.Stop(ctx, pod)
}

// ReleaseOrphans releases pods whose owner does not exist any more. Live reads from the API server; owner is an empty
// object with the kind and name of the owner, which may be another object of that name by now. If a pod has that
// object as its owner, the cache is behind, and the error is reconcile.ErrStale.
func ReleaseOrphans(ctx context.Context, live client.Reader, runner *workflow.Runner, owner client.Object, name string, pods []corev1.Pod) error {
	if len(pods) == 0 {
		return nil
	}
	if err := live.Get(ctx, client.ObjectKey{Name: name}, owner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %q, the owner of pods: %w", name, err)
	}
	for i := range pods {
		if metav1.IsControlledBy(&pods[i], owner) {
			return reconcile.ErrStale
		}
		if err := Release(ctx, runner, &pods[i], false); err != nil {
			return err
		}
	}
	return nil
}

// IsKept reports whether a pod that is over is kept for people to look at: the last one that failed, until the next pod
// runs in its place. Failure is the failure that is recorded for the pod's kind of work; replaced says that the next
// pod of that kind is recorded.
func IsKept(pod *corev1.Pod, failure *pavv1.WorkflowFailure, replaced bool) bool {
	return failure != nil && failure.PodNamespace == pod.Namespace && failure.PodName == pod.Name && !replaced
}
