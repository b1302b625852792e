package stage

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
)

// LivePods returns the node's pods that have not ended, from the API server. Pods that have ended but are not
// deleted, as those of a completed Job, have no containers that could use a volume.
func (s *Stager) LivePods(ctx context.Context) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := s.client.List(ctx, list, client.MatchingFields{"spec.nodeName": s.node}); err != nil {
		return nil, fmt.Errorf("listing the node's pods: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	}), nil
}

// observeUsers gathers whether a volume that is to be unstaged is still mounted for pods that run.
func (t *task) observeUsers(ctx context.Context, o *observation) error {
	t.inUseBy = nil
	unstaging := t.ending || t.stage != nil && t.stage.Status.Phase == pavv1.StageUnstaging && !t.stage.Status.Restaging
	if !unstaging {
		return nil
	}
	mounted, err := t.mountedPublications(ctx)
	if err != nil || len(mounted) == 0 {
		return err
	}
	pods, err := t.LivePods(ctx)
	if err != nil {
		return err
	}
	live := map[types.UID]bool{}
	for i := range pods {
		live[pods[i].UID] = true
	}
	t.inUseBy = slices.DeleteFunc(mounted, func(p publication) bool { return !live[p.Client.UID] })
	o.inUse = len(t.inUseBy) > 0
	return nil
}

// mountedPublications returns the recorded targets at which something is mounted.
func (t *task) mountedPublications(ctx context.Context) ([]publication, error) {
	var found []publication
	for i := range t.published {
		mounted, err := t.mounts.Mounted(ctx, t.published[i].Target)
		if err != nil {
			return nil, err
		}
		if mounted {
			found = append(found, t.published[i])
		}
	}
	return found, nil
}

// inUse ends the call because pods that still run have the volume, and reports that. If the volume were unmounted,
// their writes would go to the node's disk, or be lost.
func (t *task) inUse(ctx context.Context) error {
	var pods []string
	for i := range t.inUseBy {
		pods = append(pods, observability.Name(t.inUseBy[i].Client.Namespace, t.inUseBy[i].Client.Name))
	}
	note := observability.Clip(fmt.Sprintf("kubelet of node %s asks to unstage the volume of provisioner %q, handle %q, but pods %q still run there and have it mounted; it is unstaged when they have ended",
		t.node, t.Driver, t.Handle, pods), observability.MaxNote)
	if due, _ := t.repeats.Due(t.Handle, note, t.now()); due { // kubelet asks again and again
		if t.stage != nil {
			t.reportOnStage(ctx, t.stage, corev1.EventTypeWarning, "FailedUnmount", note)
		}
		t.reportToPods(t.inUseBy, corev1.EventTypeWarning, "FailedUnmount", note)
	}
	return fmt.Errorf("%w: provisioner %q, handle %q: pods %q still run, and have the volume mounted", ErrBusy, t.Driver, t.Handle, pods)
}

// reportToPods records an event on each pod of the publications.
func (s *Stager) reportToPods(publications []publication, kind, reason, note string) {
	reported := map[types.UID]bool{"": true}
	for i := range publications {
		pod := &publications[i].Client
		if reported[pod.UID] {
			continue
		}
		reported[pod.UID] = true
		s.events.Event(&corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		}, kind, reason, note)
	}
}
