package volume

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

// size is what the status of a claim says of the size of its volume. It follows from the record of the volume and is never read
// as one.
type size struct {
	// capacity is what the volume has; allocated is what it is growing to, or has grown to; "" if it never grew. Both are in the
	// form in which Kubernetes writes quantities.
	capacity, allocated string

	// resize is the state of an expansion; "" if none is in progress.
	resize corev1.ClaimResourceStatus

	// resizing says that the condition Resizing is there, and onNode that FileSystemResizePending is; failure is the message of the
	// condition ControllerResizeError.
	resizing, onNode bool
	failure          string
}

// sizeOf returns what the claim of a volume is to show.
func sizeOf(o observation) size {
	shown := sizeShown(o.user)
	if !o.expanding() && !o.canGrow() || o.provisioner == nil && strings.HasPrefix(string(shown.resize), "Node") {
		return shown
	}
	is := o.sizeHad(shown)
	switch {
	case o.canGrow() && o.pvTooSmall():
		// Kubelet expands a volume that it mounts if its PersistentVolume has more than its claim, unless that says that the
		// controller is not ready yet; it would write the capacity alone.
		is = size{capacity: shown.capacity, allocated: o.allocatedHad(shown), resize: corev1.PersistentVolumeClaimControllerResizeInProgress, resizing: true}
	case o.expansion() != nil:
		o.showExpansion(&is)
	case shown.allocated == "" && is.capacity == shown.capacity:
	case o.canGrow() && o.tooSmall(): // nothing has begun yet
		is.allocated = shown.allocated
	default:
		is.allocated = o.allocatedHad(shown)
	}
	switch {
	case is.onNode:
		// Kubelet asks its driver for what is allocated, and writes that as the capacity.
		is.allocated = o.volume.Status.Capacity.String()
		if o.isLesser(shown) {
			is.allocated = shown.allocated
		}
		is.resize = o.resizeOnNode(shown, is.allocated)
	case o.expansion() == nil && o.isInfeasibleOnNode() && nodeBackoff(o) > 0: // on a second node that has the volume, for example
		is.allocated, is.resize = shown.allocated, shown.resize
	}
	if o.dropsSizes {
		is.allocated, is.resize = shown.allocated, shown.resize
	}
	return is
}

// showExpansion adds what a claim is to show of an expansion by the controller agent.
func (o observation) showExpansion(is *size) {
	e := o.expansion()
	is.allocated, is.resize, is.resizing = e.Target.String(), corev1.PersistentVolumeClaimControllerResizeInProgress, true
	if e.Failure == nil {
		return
	}
	is.failure = e.Failure.Message
	if e.Failure.Reason == pavv1.FailureInfeasible && !o.expanding() {
		is.resize = corev1.PersistentVolumeClaimControllerResizeInfeasible
	}
}

// allocatedHad returns what a claim is to show as allocated while the volume does not grow: what it requests, or what was allocated for
// a growth that came about. A ResourceQuota counts the larger of request and allocation, and the request can be lowered while the
// volume grows. What the storage has beyond that was not asked for, and is not counted.
func (o observation) allocatedHad(shown size) string {
	requested, has := o.requested(), o.volume.Status.Capacity
	if shown.allocated == "" || has == nil {
		return requested.String()
	}
	allocated := resource.MustParse(shown.allocated)
	if has.Cmp(allocated) < 0 {
		allocated = *has
	}
	if requested.Cmp(allocated) >= 0 {
		return requested.String()
	}
	return allocated.String()
}

// lesserSize returns what a claim is to show instead of a size that the API server refuses, or the same size if there is nothing else.
// That of Kubernetes 1.32 refuses to let a status say that more is allocated than a ResourceQuota has room for, as where a volume has
// more than its claim requests; later ones only count it. Kubelet is then to ask its driver for what was allocated before, with which a
// node makes available what there is. When it has, the claim shows that.
func (o observation) lesserSize(shown, is size) size {
	lesser := resource.MustParse(o.allocatedHad(shown))
	if has := o.volume.Status.Capacity; !is.onNode || lesser.Cmp(*has) >= 0 {
		return is
	}
	is.allocated = lesser.String()
	if shown.capacity != "" && lesser.Cmp(resource.MustParse(shown.capacity)) <= 0 {
		is.capacity, is.resize, is.onNode = o.volume.Status.Capacity.String(), "", false
	}
	return is
}

// isLesser reports whether a claim shows what lesserSize returned, which kubelet acts on.
func (o observation) isLesser(shown size) bool {
	if !shown.onNode || !strings.HasPrefix(string(shown.resize), "Node") || shown.allocated == "" || shown.capacity == "" {
		return false
	}
	allocated := resource.MustParse(shown.allocated)
	return allocated.Cmp(*o.requested()) >= 0 && allocated.Cmp(resource.MustParse(shown.capacity)) > 0 && allocated.Cmp(*o.volume.Status.Capacity) < 0
}

// sizeHad returns the capacity that a claim is to show, and whether nodes have to make more available: then kubelet writes the
// capacity when one has done so. It is never less than before, also if someone has changed it.
func (o observation) sizeHad(shown size) size {
	has := o.volume.Status.Capacity
	switch {
	case has == nil, shown.capacity != "" && has.Cmp(resource.MustParse(shown.capacity)) <= 0:
		return size{capacity: shown.capacity}
	case shown.capacity != "" && o.growsOnNodes():
		// What the storage has is made available, whatever becomes of a further expansion.
		e := o.expansion()
		return size{capacity: shown.capacity, onNode: e == nil || e.Failure != nil && !o.expanding()}
	default:
		return size{capacity: has.String()}
	}
}

// growsOnNodes reports whether nodes have to make a new capacity available.
func (o observation) growsOnNodes() bool {
	return o.provisioner != nil && o.provisioner.Spec.VolumeExpansion != nil && o.provisioner.Spec.VolumeExpansion.NodePodTemplate != nil
}

// resizeOnNode returns the state of an expansion that is left to the nodes: kubelet's, unless that is about another capacity, or the
// nodes are to try again after one has said that it is infeasible.
//
// Kubelet calls NodeExpandVolume in the states NodeResizePending and NodeResizeInProgress only.
func (o observation) resizeOnNode(shown size, allocated string) corev1.ClaimResourceStatus {
	const pending, progress = corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress
	switch {
	case shown.allocated == allocated && (shown.resize == pending || shown.resize == progress):
		return shown.resize
	case shown.allocated == allocated && o.isInfeasibleOnNode() && nodeBackoff(o) > 0:
		return shown.resize
	}
	return pending
}

// isInfeasibleOnNode reports whether kubelet has said that the expansion is infeasible on a node.
func (o observation) isInfeasibleOnNode() bool { return protocol.IsInfeasibleOnNode(o.user) }

// nodeBackoff returns how long the nodes are not asked again after one has said that the expansion is infeasible: the definition may
// have been changed since.
func nodeBackoff(o observation) time.Duration {
	if o.provisioner != nil && o.volume.Status.ProvisionerGeneration != o.provisioner.Generation {
		return 0
	}
	var since time.Time
	for _, c := range o.user.Status.Conditions {
		if c.Type == corev1.PersistentVolumeClaimNodeResizeError { // Kubelet never renews it.
			since = c.LastTransitionTime.Time
		}
	}
	if asked := o.volume.Status.NodesAskedTime; asked != nil && asked.After(since) {
		since = asked.Time
	}
	return max(0, workflow.InfeasibleDelay-o.now.Sub(since))
}

// sizeShown returns what a claim shows.
func sizeShown(claim *corev1.PersistentVolumeClaim) size {
	status := &claim.Status
	is := size{resize: status.AllocatedResourceStatuses[corev1.ResourceStorage]}
	if q, found := status.Capacity[corev1.ResourceStorage]; found {
		is.capacity = q.String()
	}
	if q, found := status.AllocatedResources[corev1.ResourceStorage]; found {
		is.allocated = q.String()
	}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == corev1.PersistentVolumeClaimResizing:
			is.resizing = true
		case c.Type == corev1.PersistentVolumeClaimFileSystemResizePending:
			is.onNode = true
		case c.Type == corev1.PersistentVolumeClaimControllerResizeError:
			is.failure = cmp.Or(c.Message, "unknown")
		}
	}
	return is
}

// show changes the status of a claim so that it shows a size.
func (s size) show(status *corev1.PersistentVolumeClaimStatus, now metav1.Time) {
	set := func(list *corev1.ResourceList, value string) {
		if value == "" {
			delete(*list, corev1.ResourceStorage)
			return
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[corev1.ResourceStorage] = resource.MustParse(value)
	}
	set(&status.Capacity, s.capacity)
	set(&status.AllocatedResources, s.allocated)
	switch {
	case s.resize == "":
		delete(status.AllocatedResourceStatuses, corev1.ResourceStorage)
	case status.AllocatedResourceStatuses == nil:
		status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: s.resize}
	default:
		status.AllocatedResourceStatuses[corev1.ResourceStorage] = s.resize
	}
	status.Conditions = withConditions(status.Conditions, now, []claimCondition{
		{corev1.PersistentVolumeClaimResizing, s.resizing, "", false},
		{corev1.PersistentVolumeClaimControllerResizeError, s.failure != "", s.failure, true},
		{corev1.PersistentVolumeClaimFileSystemResizePending, s.onNode, "a node that has the volume makes the new capacity available, or the next one that gets it", false},
	})
}
