package stage

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
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

	// Arrived says that the pod is on this node. Otherwise it is on none, and the scheduler has chosen this one for the claim.
	Arrived bool
}

// VolumeOf returns the volume of a claim whose pod has come to this node; false if the claim has no volume of PaV, or one that
// many nodes can have: such a volume may be in use here.
func (s *Stager) VolumeOf(ctx context.Context, key types.NamespacedName) (Expected, bool, error) {
	claim, volume := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	if found, err := s.found(ctx, key, claim); err != nil || !found || claim.Spec.VolumeName == "" {
		return Expected{}, false, err
	}
	if found, err := s.found(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume); err != nil || !found || volume.Spec.CSI == nil ||
		!podplan.IsExclusive(volume.Spec.AccessModes) {
		return Expected{}, false, err
	}
	of := Volume{Driver: volume.Spec.CSI.Driver, Handle: volume.Spec.CSI.VolumeHandle}
	provisioner, err := s.catalogue.Provisioner(ctx, of.Driver)
	return Expected{Volume: of, Name: volume.Name, Arrived: true}, err == nil && provisioner != nil, err
}

// StageAhead begins what kubelet is about to ask for: to stage a volume for a pod that has just come to this node, or that the
// scheduler binds to it as soon as it sees that the volume is provisioned. A call of kubelet interrupts it, and continues its
// work; the error is then ErrBusy.
//
// It does nothing unless there is such a pod (IsAwaited) and no PavStage of the volume. It leaves to kubelet's call pods that the controller agent has to
// admit, as it admits them for volumes that are used (ErrPending), and what takes the last slots of the node, of which a pod
// that is still to come needs one (ErrFull). With scope Pod there is nothing to do without a client pod.
func (s *Stager) StageAhead(ctx context.Context, e Expected) error {
	provisioner, err := s.catalogue.Provisioner(ctx, e.Driver)
	if err != nil || provisioner == nil || provisioner.Scope() != pavv1.StagingScopeNode {
		return err
	}
	of := Subject{Volume: e.Volume}
	_, name := s.names(e.Volume)
	return s.untilCalled(ctx, of, func(ctx context.Context) error {
		// What is left of an earlier use or attempt, or another node has, is for kubelet's call.
		if found, err := s.found(ctx, client.ObjectKey{Name: name}, &pavv1.PavStage{}); err != nil || found {
			return err
		}
		if awaited, err := s.IsAwaited(ctx, e); err != nil || !awaited {
			return err
		}
		// Before the PavStage is written, which would keep other nodes from the volume.
		defer s.room.release(name)
		if _, has, err := s.reserveSlots(ctx, name, !e.Arrived); err != nil {
			return err
		} else if !has {
			return s.noSlots()
		}
		t := s.newTask(of, "")
		t.ahead, t.slotForClient = true, !e.Arrived
		return t.run(ctx, stageTable)
	})
}

// noSlots says why a volume is not staged ahead.
func (s *Stager) noSlots() error {
	return fmt.Errorf("%w: node %s has no slot for the pod that serves the volume", ErrFull, s.node)
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

// IsAwaited reports whether a pod needs the volume on this node that has come and has not started, or that no node has yet, but the
// scheduler has chosen this one for the claim. Only one node at a time can have the volume. Tenants can write that choice and a
// pod's node, too, so the volume, the node and the pod must fit together as they must for the scheduler or for kubelet: who can
// have a volume staged ahead on a node can run a pod there.
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
		!e.Arrived && claim.Annotations[protocol.SelectedNode] != s.node {
		return false, nil
	}
	node := &corev1.Node{}
	if found, err := s.found(ctx, client.ObjectKey{Name: s.node}, node); err != nil || !found || pvhelpers.CheckNodeAffinity(volume, node.Labels) != nil {
		return false, err
	}
	if e.Arrived {
		return s.hasArrived(ctx, claim, node)
	}
	return s.hasComing(ctx, claim, node)
}

// hasArrived reports whether a pod of this node that has not started needs a claim, and kubelet is about to mount it.
func (s *Stager) hasArrived(ctx context.Context, claim *corev1.PersistentVolumeClaim, node *corev1.Node) (bool, error) {
	if isUnready(node) {
		return false, nil
	}
	pods := &corev1.PodList{}
	if err := s.client.List(ctx, pods, client.InNamespace(claim.Namespace), client.MatchingFields{"spec.nodeName": s.node}); err != nil {
		return false, fmt.Errorf("listing the node's pods of namespace %q: %w", claim.Namespace, err)
	}
	return slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool {
		return protocol.Mounts(&pod, claim) && isStarting(&pod) && fits(node, &pod, node.Spec.Taints, corev1.TaintEffectNoExecute)
	}), nil
}

// isUnready reports whether kubelet says that its node is not ready: it starts no pods while the node shuts down.
func isUnready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionFalse
	})
}

// isStarting reports whether a pod has not started, and may still do so.
func isStarting(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && cmp.Or(pod.Status.Phase, corev1.PodPending) == corev1.PodPending
}

// fits reports whether a pod's node selector and affinity allow a node, and it tolerates the taints with one of the effects.
func fits(node *corev1.Node, pod *corev1.Pod, taints []corev1.Taint, effects ...corev1.TaintEffect) bool {
	if allowed, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !allowed {
		return false
	}
	_, kept := scheduling.FindMatchingUntoleratedTaint(klog.Background(), taints, pod.Spec.Tolerations, func(t *corev1.Taint) bool {
		return slices.Contains(effects, t.Effect)
	}, true)
	return !kept
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
	taints := node.Spec.Taints
	if node.Spec.Unschedulable {
		taints = append(slices.Clone(taints), corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	return isStarting(pod) && len(pod.Spec.SchedulingGates) == 0 && fits(node, pod, taints, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)
}
