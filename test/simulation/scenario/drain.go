package scenario

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/albertofaria/pav/test/simulation/kubernetes"
	"github.com/albertofaria/pav/test/simulation/world"
)

// Drains are runs of kubectl drain, with --ignore-daemonsets and --force.
type Drains struct {
	World *world.World

	running map[string]*drain // by node
}

// drain is one run. Like kubectl, it evicts the pods that were on the node at its start, and repeats evictions that
// are refused.
type drain struct {
	pods []types.UID
	due  time.Time
}

// patience is the time from an eviction that is refused to the next one.
const patience = 5 * time.Second

// Begin starts to drain a node, which is cordoned.
func (d *Drains) Begin(node string) {
	run := &drain{}
	for _, pod := range world.Objects[*corev1.Pod](d.World.Store) {
		if pod.Spec.NodeName == node && !isOfDaemonSet(pod) {
			run.pods = append(run.pods, pod.UID)
		}
	}
	if d.running == nil {
		d.running = map[string]*drain{}
	}
	d.World.Counts["drains"]++
	d.running[node] = run
}

// End ends the run for a node, as when its administrator interrupts it.
func (d *Drains) End(node string) { delete(d.running, node) }

// Choices implements world.Actor.
func (d *Drains) Choices(add func(world.Choice)) {
	for _, node := range slices.Sorted(maps.Keys(d.running)) {
		run := d.running[node]
		if time.Now().Before(run.due) {
			continue
		}
		pod := d.next(run)
		if pod == nil {
			d.World.Counts["drains that completed"]++
			d.End(node)
			continue
		}
		add(world.Choice{What: "kubectl drain evicts " + pod.Namespace + "/" + pod.Name, Do: func() {
			if kubernetes.Evict(d.World, people, pod) {
				run.due = time.Now().Add(patience)
				d.World.After(patience, func() {})
			}
			run.pods = append(run.pods[1:], pod.UID) // the others first
		}})
	}
}

// next returns the first pod of a run that still exists and is not being deleted, or nil.
func (d *Drains) next(run *drain) *corev1.Pod {
	found := map[types.UID]*corev1.Pod{}
	for _, pod := range world.Objects[*corev1.Pod](d.World.Store) {
		found[pod.UID] = pod
	}
	run.pods = slices.DeleteFunc(run.pods, func(uid types.UID) bool { return found[uid] == nil || found[uid].DeletionTimestamp != nil })
	if len(run.pods) == 0 {
		return nil
	}
	return found[run.pods[0]]
}

func isOfDaemonSet(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}
