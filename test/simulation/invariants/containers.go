package invariants

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/simulation/kubernetes"
	simnode "github.com/albertofaria/pav/test/simulation/node"
	"github.com/albertofaria/pav/test/simulation/world"
)

// Starting checks each container before it starts. For a staging pod, /pav/volume must not exist yet: the node agent
// would take it for the volume of this pod.
func (i *Invariants) Starting(node *kubernetes.Node, pod *corev1.Pod) {
	if found, exists := node.Finds(pod); exists && pod.Labels[pavv1.WorkflowLabel] == pavv1.WorkflowStaging {
		i.failf(3, "staging pod %s finds %q at /pav/volume before it has begun", pod.Name, found)
	}
	i.stagePodStarts(node, pod)
	if stage := world.Object[*pavv1.PavStage](i.store, "", pod.Labels[pavv1.StageLabel]); stage != nil {
		if volume := world.Object[*pavv1.PavVolume](i.store, "", stage.Spec.VolumeName); volume != nil && i.running[volume.UID] != "" && !i.runsOnline(i.running[volume.UID]) {
			i.failf(2, "a container of pod %s starts while pod %s of PavVolume %s runs", pod.Name, i.running[volume.UID], volume.Name)
		}
	}
	owner := metav1.GetControllerOf(pod)
	if owner != nil && owner.Kind == "PavStage" {
		i.use(pod, owner.UID)
	}
	if owner == nil || owner.Kind != "PavVolume" && owner.Kind != "PavSnapshot" {
		return
	}
	if other, runs := i.running[owner.UID]; runs && other != pod.UID {
		i.failf(2, "a container of pod %s starts while another pod of %s %s runs", pod.Name, owner.Kind, owner.Name)
	}
	i.running[owner.UID], i.owners[pod.UID] = pod.UID, owner.UID
	i.use(pod, owner.UID)
}

// stagePodStarts checks that a volume is staged or unstaged only while no client can write to it. During a restage,
// clients may have only dead mounts of it.
func (i *Invariants) stagePodStarts(node *kubernetes.Node, pod *corev1.Pod) {
	workflow := pod.Labels[pavv1.WorkflowLabel]
	stage := world.Object[*pavv1.PavStage](i.store, "", pod.Labels[pavv1.StageLabel])
	if stage == nil || workflow != pavv1.WorkflowStaging && workflow != pavv1.WorkflowUnstaging {
		return
	}
	if workflow == pavv1.WorkflowStaging {
		i.stagingIsAllowed(pod, stage)
	}
	targets := node.Machine.Targets()
	for _, c := range node.Clients() {
		if c.Volume != stage.Spec.Provisioner+"/"+stage.Spec.VolumeHandle || stage.Spec.Client != nil && stage.Spec.Client.UID != c.UID {
			continue
		}
		for j := range targets {
			if t := &targets[j]; t.Path == c.Path && t.Layers > 0 && t.Sees == c.Volume && t.Health == simnode.Answers {
				i.failf(3, "%s pod %s starts while client %s has the volume %s", workflow, pod.Name, c.Pod, c.Volume)
			}
		}
	}
}

// Ended records the end of each container.
func (i *Invariants) Ended(pod types.UID) {
	delete(i.running, i.owners[pod])
	delete(i.owners, pod)
	i.uses = slices.DeleteFunc(i.uses, func(u use) bool { return u.pod == pod })
}
