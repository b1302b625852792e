package kubernetes

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/simulation/storage"
	"github.com/albertofaria/pav/test/simulation/world"
)

// Trouble is how often, of a thousand times, something goes wrong with a pod.
type Trouble struct {
	// Hangs: a container never starts. Fails: it ends with a failure, before or after its effect.
	Hangs, Fails int
}

// Node is a node with its kubelet, its containers, and what PaV's node agent does for them.
type Node struct {
	World   *world.World
	Name    string
	Storage *storage.System
	Trouble *Trouble

	// Up says that the node has power, and Linked that it reaches the API server.
	Up, Linked bool

	// Starting hears of each container before it starts, and Ended of its end.
	Starting func(pod *corev1.Pod)
	Ended    func(pod types.UID)

	containers []*container
	mounts     map[string]mounted // by name of stage
}

// container is that of a pod: what really is, not what is told.
type container struct {
	pod    *corev1.Pod // as it was when it started
	script storage.Script
	files  map[string]string

	hangs, effective, ended, failed bool
	wants                           bool // to end: a client's
	lost                            bool // with its files, as the node lost its power
}

// Choices implements world.Actor.
func (n *Node) Choices(add func(world.Choice)) {
	if !n.Up {
		return
	}
	for _, c := range n.containers {
		n.runs(c, add)
	}
	if !n.Linked {
		return
	}
	for _, pod := range world.Objects[*corev1.Pod](n.World.Store) {
		if pod.Spec.NodeName != n.Name {
			continue
		}
		if what, do := n.kubelet(pod); do != nil {
			add(world.Choice{What: fmt.Sprintf("kubelet on %s %s %s/%s", n.Name, what, pod.Namespace, pod.Name), Weight: 3, Do: do})
		}
	}
	n.forget(add)
	n.unstages(add)
}

// runs adds what a container may do by itself.
func (n *Node) runs(c *container, add func(world.Choice)) {
	if c.ended || c.hangs || c.script.Verb == "" {
		return
	}
	name := c.pod.Namespace + "/" + c.pod.Name
	if !c.effective {
		add(world.Choice{What: "takes effect: " + name, Weight: 2, Do: func() { n.effect(c) }})
		return
	}
	add(world.Choice{What: "ends: " + name, Weight: 2, Do: func() { n.end(c, n.World.Chance(n.Trouble.Fails)) }})
}

func (n *Node) effect(c *container) {
	if n.World.Chance(n.Trouble.Fails) {
		n.end(c, true)
		return
	}
	c.effective = true
	owner := metav1.GetControllerOf(c.pod)
	files, err := n.Storage.Run(c.pod.Annotations[driverAnnotation], c.script, owner.UID)
	if err != nil {
		n.end(c, true)
		return
	}
	c.files = files
}

func (n *Node) end(c *container, failed bool) {
	c.ended, c.failed = true, failed
	if n.Ended != nil {
		n.Ended(c.pod.UID)
	}
}

// driverAnnotation tells a container which driver's storage it is about.
const driverAnnotation = "simulation/driver"

func (n *Node) containerOf(pod *corev1.Pod) *container {
	for _, c := range n.containers {
		if c.pod.UID == pod.UID {
			return c
		}
	}
	return nil
}

// kubelet returns what kubelet is to do next for a pod of its node.
func (n *Node) kubelet(pod *corev1.Pod) (string, func()) {
	c := n.containerOf(pod)
	switch {
	case c == nil && isOver(pod), c == nil && pod.DeletionTimestamp != nil:
		return n.over(pod, nil)
	case c == nil:
		return n.starts(pod)
	case !c.ended && pod.DeletionTimestamp != nil:
		return "kills", func() { n.end(c, true) }
	case !c.ended && c.hangs:
		return "", nil
	case !c.ended && c.wants:
		return "lets end", func() { n.end(c, false) }
	case !c.ended && pod.Status.Phase == corev1.PodPending:
		return "tells start of", change(n.World, pod, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Status.StartTime = new(metav1.NewTime(time.Now()))
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", ContainerID: "sim://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now())}}}}
		})
	case !c.ended:
		return "", nil
	}
	return n.over(pod, c)
}

func (n *Node) starts(pod *corev1.Pod) (string, func()) {
	if ready, what, do := n.stage(pod); !ready {
		return what, do
	}
	return "starts", func() {
		c := &container{pod: pod, hangs: n.World.Chance(n.Trouble.Hangs)}
		if pod.Labels[pavv1.WorkflowLabel] != "" {
			script, err := storage.Parse(pod.Spec.Containers[0].Args)
			if err != nil {
				panic(err)
			}
			c.script = script
		}
		n.containers = append(n.containers, c)
		if c.hangs {
			return
		}
		if n.Starting != nil {
			n.Starting(pod)
		}
	}
}

// over returns what is to be done next for a pod whose container has ended, or never started.
func (n *Node) over(pod *corev1.Pod, c *container) (string, func()) {
	if !isOver(pod) {
		return "tells end of", change(n.World, pod, func(p *corev1.Pod) { tellEnd(p, c) })
	}
	if c != nil && isControllers(pod) && pod.Annotations[pavv1.ResultAnnotation] == "" {
		return "tells the result of", change(n.World, pod, func(p *corev1.Pod) {
			result := workflow.Result{Handle: c.files["handle"], Capacity: c.files["capacity"]}
			if c.lost {
				result = workflow.Result{Unreadable: map[string]string{"handle": "lost", "capacity": "lost", "error": "lost"}}
			}
			value, err := result.Encode()
			if err != nil {
				panic(err)
			}
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, pavv1.ResultAnnotation, value)
		})
	}
	if pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 0) > 0 {
		return "lets go of", func() {
			_ = n.World.Store.Delete(by, n.World.Store.KeyOf(pod), preconditions(pod.UID), new(int64(0)))
		}
	}
	return "", nil
}

func isControllers(pod *corev1.Pod) bool {
	return pod.Labels[pavv1.WorkflowLabel] != "" && pod.Labels[pavv1.StageLabel] == ""
}

func tellEnd(p *corev1.Pod, c *container) {
	p.Status.Phase = corev1.PodSucceeded
	if c == nil || c.failed || c.hangs {
		p.Status.Phase = corev1.PodFailed
	}
	if c == nil || c.hangs {
		return // none of its containers ever ran
	}
	ended := &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(time.Now()), FinishedAt: metav1.NewTime(time.Now())}
	if c.failed {
		ended.ExitCode, ended.Reason = 1, "Error"
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", ContainerID: "sim://1", State: corev1.ContainerState{Terminated: ended}}}
}

// forget has containers go whose pods are gone.
func (n *Node) forget(add func(world.Choice)) {
	for _, c := range slices.Clone(n.containers) {
		pod := world.Object[*corev1.Pod](n.World.Store, c.pod.Namespace, c.pod.Name)
		if pod != nil && pod.UID == c.pod.UID {
			continue
		}
		add(world.Choice{What: "kubelet on " + n.Name + " forgets " + c.pod.Namespace + "/" + c.pod.Name, Do: func() {
			if !c.ended && !c.hangs {
				n.end(c, true)
			}
			n.containers = slices.DeleteFunc(n.containers, func(other *container) bool { return other == c })
		}})
	}
}

// Cut takes the node's power: all that runs on it ends, without a word.
func (n *Node) Cut() {
	for _, c := range n.containers {
		if !c.ended && !c.hangs {
			n.end(c, true)
		}
		c.ended, c.failed, c.lost = true, true, true
	}
	n.mounts, n.Up = nil, false
}

// LetEnd has the clients of a pod's name end well.
func (n *Node) LetEnd(pod types.UID) {
	for _, c := range n.containers {
		if c.pod.UID == pod {
			c.wants = true
		}
	}
}

// Clients returns the pods of clients that run here.
func (n *Node) Clients() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, c := range n.containers {
		if !c.ended && c.script.Verb == "" {
			pods = append(pods, c.pod)
		}
	}
	return pods
}
