package kubernetes

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/protocol"
	"github.com/albertofaria/pav/internal/stageplan"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/simulation/world"
)

// mounted is a volume that is staged on a node.
type mounted struct{ driver, handle, pv, namespace, claim string }

// stage brings the volumes of a client to its node, and reports whether all are there. It stands for the node
// agent: a stage is written first, then it is looked again whether the volume is still the claim's.
func (n *Node) stage(pod *corev1.Pod) (ready bool, what string, do func()) {
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		claim := world.Object[*corev1.PersistentVolumeClaim](n.World.Store, pod.Namespace, volume.PersistentVolumeClaim.ClaimName)
		if claim == nil || claim.Status.Phase != corev1.ClaimBound {
			return false, "", nil
		}
		pv := world.Object[*corev1.PersistentVolume](n.World.Store, "", claim.Spec.VolumeName)
		if pv == nil || pv.Spec.CSI == nil || !isFor(pv, claim) {
			return false, "", nil
		}
		if what, do := n.stageVolume(pod, claim, pv); do != nil || what != "" {
			return false, what, do
		}
	}
	return true, "", nil
}

// stageVolume returns what is to be done next until a volume is staged here; nothing and no word once it is.
func (n *Node) stageVolume(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) (string, func()) {
	name := stageplan.Name(pv, n.Name)
	if _, staged := n.mounts[name]; staged {
		return "", nil
	}
	found := world.Object[*pavv1.PavStage](n.World.Store, "", name)
	switch {
	case found == nil:
		return "records the stage for", func() {
			_ = n.World.Store.Create("node agent on "+n.Name, n.newStage(name, claim, pv))
		}
	case found.Spec.NodeName != n.Name || found.DeletionTimestamp != nil:
		return "waits for the stage of", nil
	}
	return "stages for", func() {
		if !n.stillBound(found) {
			n.removeStage(found)
			return
		}
		n.mount(name, mounted{driver: pv.Spec.CSI.Driver, handle: pv.Spec.CSI.VolumeHandle, pv: pv.Name, namespace: pod.Namespace, claim: claim.Name})
		change(n.World, found, func(s *pavv1.PavStage) { s.Status.Phase, s.Status.Validated = pavv1.StageStaged, true })()
	}
}

func (n *Node) mount(name string, m mounted) {
	if n.mounts == nil {
		n.mounts = map[string]mounted{}
	}
	n.mounts[name] = m
}

func (n *Node) newStage(name string, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) *pavv1.PavStage {
	stage := &pavv1.PavStage{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Finalizers: []string{pavv1.StageFinalizer},
			Labels: map[string]string{pavv1.ProvisionerLabel: pv.Spec.CSI.Driver, pavv1.VolumeLabel: workflow.Hash(pv.Name), pavv1.NodeLabel: workflow.Hash(n.Name)},
		},
		Spec: stageplan.Spec(pv, claim, n.Name),
	}
	stage.Spec.Volume, stage.Spec.Claim = rawOf(pv), rawOf(claim)
	return stage
}

func rawOf(object any) apiextensionsv1.JSON {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return apiextensionsv1.JSON{Raw: raw}
}

// stillBound says what a node agent asks the API server after a stage is written.
func (n *Node) stillBound(stage *pavv1.PavStage) bool {
	pv := world.Object[*corev1.PersistentVolume](n.World.Store, "", stage.Spec.VolumeName)
	ref := stage.Spec.ClaimRef
	claim := world.Object[*corev1.PersistentVolumeClaim](n.World.Store, ref.Namespace, ref.Name)
	return pv != nil && claim != nil && claim.UID == ref.UID && isFor(pv, claim) && pv.Status.Phase != corev1.VolumeReleased && claim.Spec.VolumeName == pv.Name
}

// unstages adds the ends of stages that no client needs any more.
func (n *Node) unstages(add func(world.Choice)) {
	for _, name := range slices.Sorted(maps.Keys(n.mounts)) {
		if n.needed(n.mounts[name]) {
			continue
		}
		add(world.Choice{What: "kubelet on " + n.Name + " unstages " + name, Do: func() {
			delete(n.mounts, name)
			if stage := world.Object[*pavv1.PavStage](n.World.Store, "", name); stage != nil {
				n.removeStage(stage)
			}
		}})
	}
	for _, stage := range world.Objects[*pavv1.PavStage](n.World.Store) {
		if _, staged := n.mounts[stage.Name]; stage.Spec.NodeName == n.Name && !staged && !n.wanted(stage) {
			add(world.Choice{What: "kubelet on " + n.Name + " gives up " + stage.Name, Do: func() { n.removeStage(stage) }})
		}
	}
}

// wanted reports whether a client waits for a stage.
func (n *Node) wanted(stage *pavv1.PavStage) bool {
	return n.needed(mounted{namespace: stage.Spec.ClaimRef.Namespace, claim: stage.Spec.ClaimRef.Name})
}

// needed reports whether a client runs with a volume, or is to.
func (n *Node) needed(m mounted) bool {
	for _, c := range n.containers {
		if !c.ended && c.pod.Namespace == m.namespace && protocol.Uses(c.pod, m.claim) {
			return true
		}
	}
	return slices.ContainsFunc(world.Objects[*corev1.Pod](n.World.Store), func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName == n.Name && pod.Namespace == m.namespace && protocol.Uses(pod, m.claim) && !isOver(pod) && pod.DeletionTimestamp == nil
	})
}

func (n *Node) removeStage(stage *pavv1.PavStage) {
	agent := "node agent on " + n.Name
	if err := n.World.Store.Delete(agent, n.World.Store.KeyOf(stage), preconditions(stage.UID), nil); apierrors.IsNotFound(err) {
		return
	}
	_ = world.Change(n.World.Store, agent, stage, func(s *pavv1.PavStage) { withoutFinalizer(s, pavv1.StageFinalizer) })
}
