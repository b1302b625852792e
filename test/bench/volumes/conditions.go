package main

import (
	"fmt"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// running is met when a pod runs.
func running(pod *corev1.Pod) condition { return inPhase(pod, corev1.PodRunning) }

// succeeded is met when a pod has succeeded.
func succeeded(pod *corev1.Pod) condition { return inPhase(pod, corev1.PodSucceeded) }

func inPhase(pod *corev1.Pod, phase corev1.PodPhase) condition {
	key := client.ObjectKeyFromObject(pod)
	return condition{fmt.Sprintf("pod %s %s", key, phase), func(e event) bool {
		seen, ok := e.object.(*corev1.Pod)
		return ok && client.ObjectKeyFromObject(seen) == key && !e.deleted && seen.Status.Phase == phase
	}}
}

// runningAgain is met when the first container of a pod runs that is not the container that ran before.
func runningAgain(pod *corev1.Pod, container string) condition {
	key := client.ObjectKeyFromObject(pod)
	return condition{fmt.Sprintf("pod %s runs again", key), func(e event) bool {
		seen, ok := e.object.(*corev1.Pod)
		if !ok || client.ObjectKeyFromObject(seen) != key || e.deleted || len(seen.Status.ContainerStatuses) == 0 {
			return false
		}
		status := seen.Status.ContainerStatuses[0]
		return status.State.Running != nil && status.ContainerID != container
	}}
}

// choice says which pods a condition is about.
type choice struct {
	what string
	is   func(*corev1.Pod) bool
}

// only chooses one pod, and ofWorkflow those that run a workflow of a provisioner.
func only(pod *corev1.Pod) choice {
	key := client.ObjectKeyFromObject(pod)
	return choice{fmt.Sprintf("pod %s", key), func(seen *corev1.Pod) bool { return client.ObjectKeyFromObject(seen) == key }}
}

func ofWorkflow(provisioner, workflow string) choice {
	return choice{fmt.Sprintf("a pod of %s for %s", provisioner, workflow), func(seen *corev1.Pod) bool {
		return seen.Labels[pavv1.ProvisionerLabel] == provisioner && seen.Labels[pavv1.WorkflowLabel] == workflow
	}}
}

// exists is met when there is such a pod.
func exists(c choice) condition {
	return condition{c.what + " exists", func(e event) bool {
		seen, ok := e.object.(*corev1.Pod)
		return ok && !e.deleted && c.is(seen)
	}}
}

// containersEnded is met when all containers of such a pod have ended.
func containersEnded(c choice) condition {
	return condition{"the containers have ended of " + c.what, func(e event) bool {
		seen, ok := e.object.(*corev1.Pod)
		return ok && c.is(seen) && len(seen.Status.ContainerStatuses) > 0 && !slices.ContainsFunc(seen.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.State.Terminated == nil
		})
	}}
}

// replaced is met when another pod on the same node, with the same value of a label, is ready.
func replaced(pod *corev1.Pod, label string) condition {
	return condition{fmt.Sprintf("another pod for %s is ready", pod.Name), func(e event) bool {
		seen, ok := e.object.(*corev1.Pod)
		return ok && !e.deleted && seen.UID != pod.UID && seen.Namespace == pod.Namespace && seen.Spec.NodeName == pod.Spec.NodeName &&
			seen.Labels[label] == pod.Labels[label] && ready(seen)
	}}
}

func ready(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// bound is met when all of the claims are bound.
func bound(claims ...*corev1.PersistentVolumeClaim) condition {
	waiting := map[types.NamespacedName]bool{}
	for _, claim := range claims {
		waiting[client.ObjectKeyFromObject(claim)] = true
	}
	return condition{fmt.Sprintf("%d claims bound, the first is %s", len(claims), claims[0].Name), func(e event) bool {
		if claim, ok := e.object.(*corev1.PersistentVolumeClaim); ok && !e.deleted && claim.Status.Phase == corev1.ClaimBound {
			delete(waiting, client.ObjectKeyFromObject(claim))
		}
		return len(waiting) == 0
	}}
}

// bucketBound is met when a claim of a bucket is bound.
func bucketBound(claim *obcv1.ObjectBucketClaim) condition {
	key := client.ObjectKeyFromObject(claim)
	return condition{fmt.Sprintf("ObjectBucketClaim %s bound", key), func(e event) bool {
		seen, ok := e.object.(*obcv1.ObjectBucketClaim)
		return ok && !e.deleted && client.ObjectKeyFromObject(seen) == key && seen.Status.Phase == obcv1.ClaimBound
	}}
}

// hasCapacity is met when the status of a claim has a capacity, and says nothing of an expansion any more.
func hasCapacity(claim *corev1.PersistentVolumeClaim, size string) condition {
	key, want := client.ObjectKeyFromObject(claim), resource.MustParse(size)
	return condition{fmt.Sprintf("claim %s has %s", key, size), func(e event) bool {
		seen, ok := e.object.(*corev1.PersistentVolumeClaim)
		return ok && client.ObjectKeyFromObject(seen) == key && seen.Status.Capacity.Storage().Cmp(want) == 0 && len(seen.Status.Conditions) == 0
	}}
}

// usable is met when a VolumeSnapshot is ready to use.
func usable(snapshot *snapshotv1.VolumeSnapshot) condition {
	key := client.ObjectKeyFromObject(snapshot)
	return condition{fmt.Sprintf("VolumeSnapshot %s is ready", key), func(e event) bool {
		seen, ok := e.object.(*snapshotv1.VolumeSnapshot)
		return ok && !e.deleted && client.ObjectKeyFromObject(seen) == key && seen.Status != nil && seen.Status.ReadyToUse != nil && *seen.Status.ReadyToUse
	}}
}

// gone is met when all of the objects have been deleted. Each object must have existed.
func gone(objects ...client.Object) condition {
	waiting := map[string]bool{}
	for _, object := range objects {
		waiting[kindAndName(object)] = true
	}
	return condition{fmt.Sprintf("gone: %s", kindAndName(objects[0])), func(e event) bool {
		if e.deleted {
			delete(waiting, kindAndName(e.object))
		}
		return len(waiting) == 0
	}}
}

func kindAndName(object client.Object) string {
	return fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))
}

// all is met when each of the conditions has been met at some time.
func all(conditions []condition) condition {
	met := make([]bool, len(conditions))
	return condition{fmt.Sprintf("%d times: %s", len(conditions), conditions[0].what), func(e event) bool {
		for i, c := range conditions {
			met[i] = met[i] || c.met(e)
		}
		return !slices.Contains(met, false)
	}}
}
