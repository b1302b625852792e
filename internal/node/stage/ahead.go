package stage

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	pvhelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
)

// Expected is a volume that a pod is about to need on this node, and the name of its PersistentVolume.
type Expected struct {
	Volume

	Name string
}

// StageAhead begins what kubelet is about to ask for: to stage a volume for a pod for which the scheduler has chosen this
// node, but which it does not bind to the node before it sees that the volume is provisioned. A call of kubelet interrupts
// it, and continues its work; the error is then ErrBusy.
//
// It does nothing unless there is such a pod (IsAwaited), and leaves to kubelet's call what must not be done before the pod
// is on the node: pods that the controller agent has to admit, as it admits them for volumes that are used (ErrPending), and
// what takes the last slots of the node, of which the pod itself needs one (ErrFull). With scope Pod there is nothing to do
// without a client pod.
func (s *Stager) StageAhead(ctx context.Context, e Expected) error {
	provisioner, err := s.catalogue.Provisioner(ctx, e.Driver)
	if err != nil || provisioner == nil || provisioner.Scope() != pavv1.StagingScopeNode {
		return err
	}
	of := Subject{Volume: e.Volume}
	_, name := s.names(e.Volume)
	return s.untilCalled(ctx, of, func(ctx context.Context) error {
		if awaited, err := s.IsAwaited(ctx, e); err != nil || !awaited {
			return err
		}
		// Before the PavStage is written, which would keep other nodes from the volume.
		defer s.room.release(name)
		if _, has, err := s.reserveSlots(ctx, name, true); err != nil {
			return err
		} else if !has {
			return s.noSlots()
		}
		t := s.newTask(of, "")
		t.ahead = true
		return t.run(ctx, stageTable)
	})
}

// noSlots says why a volume is not staged ahead.
func (s *Stager) noSlots() error {
	return fmt.Errorf("%w: node %s has no slot for the pod that needs the volume and the one that serves it", ErrFull, s.node)
}

// untilCalled does work that kubelet has not asked for, while other calls for the subject are locked out. A call of kubelet
// ends the context of the work, and the error is then ErrBusy.
func (s *Stager) untilCalled(ctx context.Context, of Subject, work func(context.Context) error) error {
	yielding, end := s.inflight.preemptible(ctx, of.key())
	defer end()
	release, err := s.Lock(of)
	if err != nil {
		return err
	}
	defer release()
	err = work(yielding)
	if err != nil && yielding.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: kubelet has called", ErrBusy)
	}
	return err
}

// IsAwaited reports whether a pod that no node has yet needs the volume on this node: only one node at a time can have the
// volume, and the scheduler has chosen this one for the claim. Tenants can write that, too, so the volume, the node and the
// pod must fit together as they must for the scheduler: who can have a volume staged ahead on a node can run a pod there.
func (s *Stager) IsAwaited(ctx context.Context, e Expected) (bool, error) {
	names, err := s.catalogue.VolumeNames(ctx, e.Driver, e.Handle)
	if err != nil || !slices.Equal(names, []string{e.Name}) {
		return false, err
	}
	volume := &corev1.PersistentVolume{}
	if found, err := s.found(ctx, client.ObjectKey{Name: e.Name}, volume); err != nil || !found {
		return false, err
	}
	ref := volume.Spec.ClaimRef
	if !isOf(volume, e.Volume) || !podplan.IsExclusive(volume.Spec.AccessModes) || ref == nil {
		return false, nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	if found, err := s.found(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, claim); err != nil || !found {
		return false, err
	}
	if claim.UID != ref.UID || claim.Spec.VolumeName != e.Name || claim.Status.Phase != corev1.ClaimBound || claim.DeletionTimestamp != nil ||
		claim.Annotations[protocol.SelectedNode] != s.node {
		return false, nil
	}
	node := &corev1.Node{}
	if found, err := s.found(ctx, client.ObjectKey{Name: s.node}, node); err != nil || !found || pvhelpers.CheckNodeAffinity(volume, node.Labels) != nil {
		return false, err
	}
	return s.hasComing(ctx, claim, node)
}

// The pods that no node has are read in pages, and not all of them, as a namespace may have very many.
const (
	comingPage  = 25
	comingPages = 8
)

// hasComing reports whether a pod that no node has yet needs a claim, and may come to the node.
func (s *Stager) hasComing(ctx context.Context, claim *corev1.PersistentVolumeClaim, node *corev1.Node) (bool, error) {
	pods := &corev1.PodList{}
	for range comingPages {
		err := s.client.List(ctx, pods, client.InNamespace(claim.Namespace), client.MatchingFields{"spec.nodeName": ""},
			client.Limit(comingPage), client.Continue(pods.Continue))
		if err != nil {
			return false, fmt.Errorf("listing the pods of namespace %q that no node has: %w", claim.Namespace, err)
		}
		if slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return protocol.Uses(&pod, claim.Name) && mayComeTo(node, &pod) }) {
			return true, nil
		}
		if pods.Continue == "" {
			break
		}
	}
	return false, nil
}

// found reads an object, and reports whether it exists.
func (s *Stager) found(ctx context.Context, key client.ObjectKey, object client.Object) (bool, error) {
	err := s.client.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("getting %T %q: %w", object, key, err)
	}
	return true, nil
}

// mayComeTo reports whether the scheduler may bind a pod to a node, except for the resources that the pod requests.
func mayComeTo(node *corev1.Node, pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 || cmp.Or(pod.Status.Phase, corev1.PodPending) != corev1.PodPending {
		return false
	}
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !fits {
		return false
	}
	taints := node.Spec.Taints
	if node.Spec.Unschedulable {
		taints = append(slices.Clone(taints), corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	_, kept := scheduling.FindMatchingUntoleratedTaint(klog.Background(), taints, pod.Spec.Tolerations, func(t *corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule
	}, true)
	return !kept
}
