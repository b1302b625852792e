package kubernetes

import (
	"context"
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/albertofaria/pav/test/simulation/world"
)

// growing returns the claim of a target if its volume has grown and the node has not made that available yet, or nil.
func (n *Node) growing(t *target) *corev1.PersistentVolumeClaim {
	pv := world.Object[*corev1.PersistentVolume](n.World.Store, "", t.pv)
	if t.device == nil || pv == nil || pv.Spec.ClaimRef == nil {
		return nil
	}
	claim := world.Object[*corev1.PersistentVolumeClaim](n.World.Store, pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name)
	if claim == nil || !isFor(pv, claim) || !GrowsOnNode(claim) {
		return nil
	}
	return claim
}

// GrowsOnNode reports whether kubelet is to make the new capacity of a claim's volume available, or is doing so.
func GrowsOnNode(claim *corev1.PersistentVolumeClaim) bool {
	state := claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
	return state == corev1.PersistentVolumeClaimNodeResizePending || state == corev1.PersistentVolumeClaimNodeResizeInProgress
}

// grows adds the expansion of a volume that a running pod uses.
func (n *Node) grows(t *target, add func(world.Choice)) {
	n.hear(&t.expansion, "the expansion of "+t.pv, add)
	pod := world.Object[*corev1.Pod](n.World.Store, t.namespace, t.name)
	if t.published != yes || pod == nil || pod.UID != uidOf(t) || pod.DeletionTimestamp != nil || n.evicted[pod.UID] {
		return
	}
	if what, do := n.expand(t); do != nil {
		add(world.Choice{What: fmt.Sprintf("kubelet on %s %s %s/%s", n.Name, what, t.namespace, t.name), Weight: 3, Do: do})
	}
}

// expand returns the action in which kubelet makes the new capacity of a volume available for a pod, if it is to do that now.
func (n *Node) expand(t *target) (string, func()) {
	claim := n.growing(t)
	if claim == nil || t.attempt != nil || t.device.attempt != nil || t.device.staged != yes {
		return "", nil
	}
	allocated := claim.Status.AllocatedResources[corev1.ResourceStorage]
	request := &csi.NodeExpandVolumeRequest{
		VolumeId: t.device.handle, VolumePath: t.path(), StagingTargetPath: t.device.path(),
		CapacityRange: &csi.CapacityRange{RequiredBytes: allocated.Value()}, VolumeCapability: t.device.capability(),
	}
	what, do := n.call(&t.expansion, "expands "+t.pv+" for", t.device.driver, func(ctx context.Context, server csi.NodeServer) error {
		_, err := server.NodeExpandVolume(ctx, request)
		return err
	}, func(err error) { n.expanded(t, claim, allocated.Value(), err) })
	if do == nil {
		return "", nil
	}
	return what, func() {
		n.says(claim, allocated.Value(), func(s *corev1.PersistentVolumeClaimStatus) {
			s.AllocatedResourceStatuses[corev1.ResourceStorage] = corev1.PersistentVolumeClaimNodeResizeInProgress
		})
		do()
	}
}

// expanded writes down how the expansion to a capacity, in bytes, has ended. An infeasible one is not repeated.
func (n *Node) expanded(t *target, claim *corev1.PersistentVolumeClaim, capacity int64, err error) {
	switch status.Code(err) {
	case codes.OK:
		n.World.Counts["volumes expanded on nodes"]++
		if n.Expanded != nil {
			n.Expanded(t.device.driver+"/"+t.device.handle, n.available[t.device.driver+"/"+t.device.handle], capacity)
		}
		n.says(claim, capacity, func(s *corev1.PersistentVolumeClaimStatus) {
			s.Capacity = corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(capacity, resource.BinarySI)}
			s.AllocatedResourceStatuses = nil
			s.Conditions = slices.DeleteFunc(s.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
				return c.Type == corev1.PersistentVolumeClaimFileSystemResizePending || c.Type == corev1.PersistentVolumeClaimResizing
			})
		})
	case codes.InvalidArgument, codes.OutOfRange, codes.NotFound:
		n.World.Counts["expansions on nodes that were infeasible"]++
		n.says(claim, capacity, func(s *corev1.PersistentVolumeClaimStatus) {
			s.AllocatedResourceStatuses[corev1.ResourceStorage] = corev1.PersistentVolumeClaimNodeResizeInfeasible
		})
	default: // kubelet repeats the call
	}
}

// says changes the status of a claim that still is to have a capacity on the node.
func (n *Node) says(claim *corev1.PersistentVolumeClaim, capacity int64, apply func(*corev1.PersistentVolumeClaimStatus)) {
	change(n.World, claim, func(c *corev1.PersistentVolumeClaim) {
		if allocated := c.Status.AllocatedResources[corev1.ResourceStorage]; c.UID == claim.UID && GrowsOnNode(c) && allocated.Value() == capacity {
			apply(&c.Status)
		}
	})()
}

// seesSize records that a volume that is mounted on the node has the size that it has in the storage system.
func (n *Node) seesSize(c *container) {
	driver := c.pod.Annotations[driverAnnotation]
	if volume := n.Storage.Find(driver, c.script.Handle); volume != nil {
		n.available[driver+"/"+c.script.Handle] = volume.Size
	}
}

// expandOnNode makes as much of a mounted volume available on the node as a script asks for.
func (n *Node) expandOnNode(c *container) error {
	volume := c.pod.Annotations[driverAnnotation] + "/" + c.script.Handle
	if sees, _ := n.Machine.PodSees(pavOf(c)); sees != volume {
		return fmt.Errorf("%s is not mounted at /pav/volume of %s/%s, which has %q there", volume, c.pod.Namespace, c.pod.Name, sees)
	}
	asked, err := c.script.Size()
	if err != nil {
		return err
	}
	if found := n.Storage.Find(c.pod.Annotations[driverAnnotation], c.script.Handle); found == nil || found.Size < asked {
		return fmt.Errorf("%s has %v, and is to have %d bytes on %s", volume, found, asked, n.Name)
	}
	n.available[volume] = max(n.available[volume], asked)
	return nil
}
