package invariants

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/eviction"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/simulation/kubernetes"
	"github.com/albertofaria/pav/test/simulation/world"
)

// Settled returns the problems that remain some time after all faults have stopped. Each claim must have its volume, or
// a warning that explains why not, and each deletion must complete. PodDisruptionBudgets and the topology of local
// volumes must be correct. warnings returns the warnings about a claim.
func (i *Invariants) Settled(warnings func(claim *corev1.PersistentVolumeClaim) []string) error {
	var problems []error
	for _, claim := range world.Objects[*corev1.PersistentVolumeClaim](i.store) {
		switch {
		case claim.DeletionTimestamp != nil && (i.used(claim.Namespace, claim.Name, "") || i.isSource(claim)):
			// pods still use the claim, or snapshots are made of it, so Kubernetes keeps it
		case claim.DeletionTimestamp != nil:
			problems = append(problems, fmt.Errorf("claim %s/%s is deleted and does not go", claim.Namespace, claim.Name))
		case claim.Status.Phase == corev1.ClaimPending && i.expects(claim) && mistaken(claim):
			if !slices.ContainsFunc(warnings(claim), func(w string) bool { return strings.Contains(w, "volume mode") }) {
				problems = append(problems, fmt.Errorf("claim %s/%s has a mode that its provisioner has not; its warnings are %q", claim.Namespace, claim.Name, warnings(claim)))
			}
		case claim.Status.Phase == corev1.ClaimPending && i.expects(claim) && !i.refused(claim) && !lost(warnings(claim)) && !unattributed(warnings(claim)) && !i.waitsForSource(claim, warnings(claim)):
			problems = append(problems, fmt.Errorf("claim %s/%s waits; its warnings are %q", claim.Namespace, claim.Name, warnings(claim)))
		}
	}
	for _, kind := range []string{"PavVolume", "PavStage", "PavSnapshot", "PersistentVolume", "Pod"} {
		for _, object := range i.store.All(kind) {
			if object.GetDeletionTimestamp() != nil && i.why(object) == "" {
				problems = append(problems, fmt.Errorf("%s is deleted and does not go; finalizers %v", i.store.KeyOf(object), object.GetFinalizers()))
			}
		}
	}
	return errors.Join(slices.Concat(problems, i.budgets(), i.places(), i.snapshots(), i.growth(warnings), i.unmodified(warnings))...)
}

// Unstopped returns an error if a pod of a PavVolume has not started and is not needed any more, but PaV has not
// deleted it.
func (i *Invariants) Unstopped() error {
	for _, pod := range world.Objects[*corev1.Pod](i.store) {
		owner := metav1.GetControllerOf(pod)
		if owner == nil || pod.DeletionTimestamp != nil || workflow.Started(pod) || isOver(pod) {
			continue
		}
		volume := world.Object[*pavv1.PavVolume](i.store, "", owner.Name)
		if volume == nil || volume.UID != owner.UID {
			continue
		}
		if why := i.unneeded(volume); why != "" {
			return fmt.Errorf("invariant 7: pod %s of PavVolume %s has not started, and is not stopped, although %s", pod.Name, volume.Name, why)
		}
	}
	return nil
}

// unneeded returns the reason why a volume does not need the pod of its current step, or "" if it needs the pod.
func (i *Invariants) unneeded(volume *pavv1.PavVolume) string {
	switch volume.Status.Step {
	case pavv1.StepValidating, pavv1.StepCreating, pavv1.StepExpanding, pavv1.StepModifying:
		ref := volume.Spec.ClaimRef
		if claim := world.Object[*corev1.PersistentVolumeClaim](i.store, ref.Namespace, ref.Name); claim == nil || claim.UID != ref.UID || claim.DeletionTimestamp != nil {
			return "its claim is gone"
		}
	case pavv1.StepDeleting:
		policy := volume.Spec.ReclaimPolicy
		if pv := world.Object[*corev1.PersistentVolume](i.store, "", volume.Name); pv != nil && isOf(pv, volume.Spec.Provisioner, volume.Status.Handle) {
			policy = pv.Spec.PersistentVolumeReclaimPolicy
		}
		if policy != corev1.PersistentVolumeReclaimDelete {
			return "the volume is retained"
		}
	case pavv1.StepGranting, pavv1.StepReverting, pavv1.StepDeleted:
	}
	return ""
}

// budgets returns the namespaces with a wrong PodDisruptionBudget. A namespace that is open to workflow pods must have
// one that forbids all evictions. Any other namespace must have none.
func (i *Invariants) budgets() []error {
	var problems []error
	for _, namespace := range world.Objects[*corev1.Namespace](i.store) {
		_, open := namespace.Labels[pavv1.AllowPodsLabel]
		open = open || namespace.Name == workflow.DefaultNamespace
		budget := world.Object[*policyv1.PodDisruptionBudget](i.store, namespace.Name, eviction.BudgetName)
		switch {
		case open != (budget != nil):
			problems = append(problems, fmt.Errorf("namespace %s is open: %v; and has a PodDisruptionBudget: %v", namespace.Name, open, budget != nil))
		case budget != nil && budget.Spec.MinAvailable.IntVal != math.MaxInt32:
			problems = append(problems, fmt.Errorf("the PodDisruptionBudget of namespace %s allows %s to be evicted", namespace.Name, budget.Spec.MinAvailable))
		}
	}
	return problems
}

// places returns the local volumes whose node affinity is not exactly the node that was selected for their claim.
func (i *Invariants) places() []error {
	var problems []error
	for _, pv := range world.Objects[*corev1.PersistentVolume](i.store) {
		if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != "local" || pv.Annotations[protocol.ProvisionedBy] == "" {
			continue
		}
		var nodes []string
		if affinity := pv.Spec.NodeAffinity; affinity != nil && len(affinity.Required.NodeSelectorTerms) == 1 {
			for _, expression := range affinity.Required.NodeSelectorTerms[0].MatchExpressions {
				nodes = append(nodes, expression.Values...)
			}
		}
		claim := world.Object[*corev1.PersistentVolumeClaim](i.store, pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name)
		if claim == nil || claim.UID != pv.Spec.ClaimRef.UID {
			continue
		}
		if selected := cmp.Or(claim.Annotations[protocol.SelectedNode], "n1"); !slices.Equal(nodes, []string{selected}) {
			problems = append(problems, fmt.Errorf("PersistentVolume %s is local to %v, and its claim to %q", pv.Name, nodes, selected))
		}
	}
	return problems
}

// used reports whether a scheduled pod uses a claim on a node, or on any node if node is "".
func (i *Invariants) used(namespace, claim, node string) bool {
	return slices.ContainsFunc(world.Objects[*corev1.Pod](i.store), func(pod *corev1.Pod) bool {
		on := pod.Spec.NodeName
		return pod.Namespace == namespace && protocol.Uses(pod, claim) && on != "" && (node == "" || on == node)
	})
}

// why returns the reason that an object under deletion states for its delay, or "".
func (i *Invariants) why(object client.Object) string {
	switch o := object.(type) {
	case *pavv1.PavVolume:
		return whyNot(o.Status.Conditions)
	case *pavv1.PavSnapshot:
		return whyNot(o.Status.Conditions)
	case *corev1.PersistentVolume:
		if o.Status.Phase == corev1.VolumeBound {
			return "it is bound"
		}
		if volume := world.Object[*pavv1.PavVolume](i.store, "", o.Name); volume != nil {
			return i.why(volume)
		}
	case *pavv1.PavStage:
		if o.Status.Phase != "" && i.used(o.Spec.ClaimRef.Namespace, o.Spec.ClaimRef.Name, o.Spec.NodeName) {
			return "its clients use it"
		}
	}
	return ""
}

// whyNot returns the reason of a condition that is false, or "".
func whyNot(conditions []metav1.Condition) string {
	for _, c := range conditions {
		if c.Status == metav1.ConditionFalse {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// refused reports whether a claim waits because another volume has the handle that it asks for.
func (i *Invariants) refused(claim *corev1.PersistentVolumeClaim) bool {
	volume := world.Object[*pavv1.PavVolume](i.store, "", protocol.VolumeName(claim.UID))
	if volume == nil {
		return false
	}
	c := meta.FindStatusCondition(volume.Status.Conditions, pavv1.VolumeProvisioned)
	return volume.Status.Conflict != nil || c != nil && strings.Contains(c.Message, "handle")
}

// lost reports whether a warning says that a claim's PersistentVolume was removed by force before Kubernetes had bound the
// claim, and its storage is retained.
func lost(warnings []string) bool {
	return slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "removed by force before the claim was bound") })
}

// mistaken reports whether a claim has the wrong volume mode: classes of the provisioner raw support only block
// volumes, and all other classes only file systems.
func mistaken(claim *corev1.PersistentVolumeClaim) bool {
	isBlock := *claim.Spec.VolumeMode == corev1.PersistentVolumeBlock
	return isBlock != strings.HasPrefix(*claim.Spec.StorageClassName, "raw")
}

// expects reports whether a claim should get a volume: its class exists, binds immediately, and has a provisioner that
// is not under deletion.
func (i *Invariants) expects(claim *corev1.PersistentVolumeClaim) bool {
	class := world.Object[*storagev1.StorageClass](i.store, "", *claim.Spec.StorageClassName)
	if class == nil {
		return false
	}
	if p := world.Object[*pavv1.PavProvisioner](i.store, "", class.Provisioner); p == nil || p.DeletionTimestamp != nil {
		return false
	}
	return *class.VolumeBindingMode == storagev1.VolumeBindingImmediate
}

// Left returns everything that remains after all people have deleted their objects: state on the nodes, pods, stages,
// and records of volumes that are not retained. It also returns PersistentVolumes without storage, and storage that
// neither a record nor a warning mentions. warnings has all warnings.
func (i *Invariants) Left(warnings []string, nodes []*kubernetes.Node) error {
	var problems []error
	for _, node := range nodes {
		for _, what := range node.Machine.Left() {
			problems = append(problems, fmt.Errorf("on node %s is left: %s", node.Name, what))
		}
	}
	for _, pod := range world.Objects[*corev1.Pod](i.store) {
		problems = append(problems, fmt.Errorf("pod %s/%s is left", pod.Namespace, pod.Name))
	}
	for _, stage := range world.Objects[*pavv1.PavStage](i.store) {
		problems = append(problems, fmt.Errorf("PavStage %s is left", stage.Name))
	}
	named := map[string]bool{}
	for _, volume := range world.Objects[*pavv1.PavVolume](i.store) {
		if volume.Status.Phase != pavv1.VolumeRetained {
			problems = append(problems, fmt.Errorf("PavVolume %s is left, in phase %q, step %q: %s", volume.Name, volume.Status.Phase, volume.Status.Step, i.why(volume)))
		}
		named[volume.Spec.Provisioner+"/"+volume.Status.Handle] = true
	}
	for _, pv := range world.Objects[*corev1.PersistentVolume](i.store) {
		if pv.Spec.CSI != nil {
			named[pv.Spec.CSI.Driver+"/"+pv.Spec.CSI.VolumeHandle] = true
		}
		if i.storage.Find(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle) == nil && makes(pv.Spec.CSI.Driver) {
			problems = append(problems, fmt.Errorf("PersistentVolume %s has lost its storage", pv.Name))
		}
	}
	all := strings.Join(warnings, "\n")
	last := i.last()
	for _, key := range i.storage.All() {
		driver, handle, _ := strings.Cut(key, "/")
		v := i.storage.Find(driver, handle)
		if named[key] || v.By == "" {
			continue
		}
		maker := last[v.By]
		retained := maker != nil && maker.Status.Phase == pavv1.VolumeRetained
		if retained || strings.Contains(all, fmt.Sprintf("%q", handle)) || maker != nil && strings.Contains(all, maker.Name) {
			continue
		}
		problems = append(problems, fmt.Errorf("the storage of the handle %q of %s is left, and nobody knows", handle, driver))
	}
	return errors.Join(append(problems, i.leftSnapshots(all))...)
}

// last returns the last version of each PavVolume that ever existed, by UID.
func (i *Invariants) last() map[types.UID]*pavv1.PavVolume {
	last := map[types.UID]*pavv1.PavVolume{}
	for _, e := range i.store.Events("PavVolume") {
		if volume, ok := e.After.(*pavv1.PavVolume); ok {
			last[volume.UID] = volume
		}
	}
	return last
}
