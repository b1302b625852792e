package monitor

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/protocol"
)

// ArrivalOptions limits a cache to the pods of a node that have not started, and to what claimsOf needs of them.
func ArrivalOptions(nodeName string) cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {
		Field: fields.AndSelectors(
			fields.OneTermEqualSelector("spec.nodeName", nodeName),
			fields.OneTermEqualSelector("status.phase", string(corev1.PodPending)),
		),
		Transform: trimArrival,
	}}}
}

// WatchArrivals stages volumes ahead for pods that have just come to the node. Kubelet looks for new volumes of its pods every
// 0.1 s, and does the same again before it mounts them, so that its call comes 0.2 to 0.3 s after the pod. Pods has
// ArrivalOptions.
func WatchArrivals(ctx context.Context, pods cache.Cache, m *Monitor) error {
	informer, err := pods.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching pods that have not started: %w", err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		if pod, ok := object.(*corev1.Pod); ok {
			for _, claim := range claimsOf(pod) {
				m.arrivals.Add(claim)
			}
		}
	}}); err != nil {
		return fmt.Errorf("watching pods that have not started: %w", err)
	}
	return nil
}

// trimArrival removes from a pod everything that claimsOf does not need. Of very many volumes it keeps the first: the others wait
// for kubelet's calls.
func trimArrival(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Status: corev1.PodStatus{StartTime: pod.Status.StartTime},
	}
	mounted := mountedVolumes(&pod.Spec)
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if claim := protocol.ClaimOf(pod, volume); claim != "" && mounted[volume.Name] && len(kept.Spec.Volumes) < aheadAtOnce {
			source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}
			kept.Spec.Volumes = append(kept.Spec.Volumes, corev1.Volume{Name: volume.Name, VolumeSource: source})
		}
	}
	return kept, nil
}

// claimsOf returns the claims of a pod's volumes, of a pod that trimArrival has trimmed. There are none once kubelet has begun
// to start the pod: it calls by itself then.
func claimsOf(pod *corev1.Pod) (claims []types.NamespacedName) {
	if pod.DeletionTimestamp != nil || pod.Status.StartTime != nil {
		return nil
	}
	for i := range pod.Spec.Volumes {
		claims = append(claims, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Spec.Volumes[i].PersistentVolumeClaim.ClaimName})
	}
	return claims
}

// mountedVolumes returns the names of the volumes of a pod that its containers have. Kubelet mounts no others.
func mountedVolumes(pod *corev1.PodSpec) map[string]bool {
	names := map[string]bool{}
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			for j := range containers[i].VolumeMounts {
				names[containers[i].VolumeMounts[j].Name] = true
			}
			for j := range containers[i].VolumeDevices {
				names[containers[i].VolumeDevices[j].Name] = true
			}
		}
	}
	return names
}

// workOnArrivals finds the volumes of claims whose pods have come to the node, until the queue ends.
func (m *Monitor) workOnArrivals(ctx context.Context) {
	for {
		claim, over := m.arrivals.Get()
		if over {
			return
		}
		if of, is, err := m.volumeOf(ctx, claim); err != nil {
			// Kubelet's call is about to meet the same error, and reports it.
			m.log.V(1).Info("finding the volume of a pod that has come to the node",
				observability.Claim, observability.Name(claim.Namespace, claim.Name), observability.Reason, err.Error())
		} else if is {
			m.expect(of)
		}
		m.arrivals.Done(claim)
	}
}
