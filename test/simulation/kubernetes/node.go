package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/simulation/node"
	"github.com/albertofaria/pav/test/simulation/storage"
	"github.com/albertofaria/pav/test/simulation/world"
)

// Trouble is how often, of a thousand times, something goes wrong with a pod.
type Trouble struct {
	// Hangs: a container never starts. Fails: it ends with a failure, before or after its effect. Dies: a daemon that
	// serves a volume ends, at each step. Late: a daemon calls its volume ready before it has mounted it.
	Hangs, Fails, Dies, Late int

	// Broken is a driver of which no container ever starts.
	Broken string
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

	// Machine is the node itself, and Drivers returns a driver's Node service as long as the agent that serves it
	// lives, and its life.
	Machine *node.Node
	Drivers func(driver string) (csi.NodeServer, context.Context)

	containers []*container
	devices    map[string]*device // by driver and handle
	targets    map[string]*target // by pod and volume
}

// NewNode returns a node that is up.
func NewNode(w *world.World, name string, system *storage.System, trouble *Trouble) *Node {
	return &Node{
		World: w, Name: name, Storage: system, Trouble: trouble, Up: true, Linked: true, Machine: node.New(name, KubeletDir),
		devices: map[string]*device{}, targets: map[string]*target{},
	}
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
	for _, key := range slices.Sorted(maps.Keys(n.targets)) {
		t := n.targets[key]
		n.hear(&t.operation, t.pv+" of "+t.namespace+"/"+t.name, add)
	}
}

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
	targets, ok := n.targetsOf(pod)
	if !ok {
		return "", nil
	}
	waits := false
	for _, t := range targets {
		what, do, done := n.publish(t)
		if do != nil {
			return what, do
		}
		waits = waits || !done
	}
	if waits {
		return "", nil
	}
	return "starts", func() { n.start(pod) }
}

// Recover has the containers start that hang and that nobody could start on another node.
func (n *Node) Recover() {
	for _, c := range n.containers {
		if c.hangs && !c.ended && c.pod.Labels[pavv1.StageLabel] != "" {
			c.hangs = false
			n.begin(c)
		}
	}
}

// over returns what is to be done next for a pod whose container has ended, or never started.
func (n *Node) over(pod *corev1.Pod, c *container) (string, func()) {
	if !isOver(pod) {
		return "tells end of", change(n.World, pod, func(p *corev1.Pod) { tellEnd(p, c) })
	}
	if what, do, done := n.unpublish(string(pod.UID)); !done {
		return what, do
	}
	if pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 0) > 0 {
		return "lets go of", func() {
			_ = n.World.Store.Delete(by, n.World.Store.KeyOf(pod), preconditions(pod.UID), new(int64(0)))
		}
	}
	return "", nil
}

func tellEnd(p *corev1.Pod, c *container) {
	p.Status.Phase = corev1.PodSucceeded
	if c == nil || c.failed || c.hangs {
		p.Status.Phase = corev1.PodFailed
	}
	if c == nil || c.hangs {
		return // none of its containers ever ran
	}
	id, ended := "sim://1", &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(time.Now()), FinishedAt: metav1.NewTime(time.Now())}
	switch {
	case c.lost: // kubelet's words; it has the ID if it told of the container before
		id, *ended = "", corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "The container could not be located when the pod was terminated"}
		if len(p.Status.ContainerStatuses) > 0 {
			id = p.Status.ContainerStatuses[0].ContainerID
		}
	case c.failed:
		ended.ExitCode, ended.Reason = 1, "Error"
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", ContainerID: id, State: corev1.ContainerState{Terminated: ended}}}
}

// forget has containers and volumes go whose pods are gone.
func (n *Node) forget(add func(world.Choice)) {
	for _, c := range slices.Clone(n.containers) {
		if n.knows(c.pod.Namespace, c.pod.Name, c.pod.UID) {
			continue
		}
		add(world.Choice{What: "kubelet on " + n.Name + " forgets " + c.pod.Namespace + "/" + c.pod.Name, Do: func() {
			if !c.ended && !c.hangs {
				n.end(c, true)
			}
			n.containers = slices.DeleteFunc(n.containers, func(other *container) bool { return other == c })
		}})
	}
	for _, key := range slices.Sorted(maps.Keys(n.targets)) {
		t := n.targets[key]
		if t == nil || n.knows(t.namespace, t.name, uidOf(t)) || slices.ContainsFunc(n.containers, func(c *container) bool { return c.pod.UID == uidOf(t) }) {
			continue
		}
		if what, do, done := n.unpublish(t.uid); !done && do != nil {
			add(world.Choice{What: fmt.Sprintf("kubelet on %s %s %s/%s, which is gone", n.Name, what, t.namespace, t.name), Do: do})
		}
	}
}

func (n *Node) knows(namespace, name string, uid types.UID) bool {
	pod := world.Object[*corev1.Pod](n.World.Store, namespace, name)
	return pod != nil && pod.UID == uid && pod.Spec.NodeName == n.Name
}

func uidOf(t *target) types.UID { return types.UID(t.uid) }

// Cut takes the node's power: all that runs on it ends, without a word, and its mounts go. What kubelet and the
// agent have on disk stays, so that kubelet knows of volumes, but not how they are.
func (n *Node) Cut() {
	for _, c := range slices.Clone(n.containers) {
		if !c.ended && !c.hangs {
			n.end(c, true)
			if c.lost = n.World.Rand.IntN(2) == 0; c.lost {
				n.World.Counts["containers that kubelet could not locate"]++
			}
		}
		c.ended, c.failed = true, true
		if c.script.Verb == "" {
			n.containers = slices.DeleteFunc(n.containers, func(other *container) bool { return other == c }) // is started again
		}
	}
	n.Machine.Reboot(n.sameBoot())
	for _, d := range n.devices {
		d.staged, d.operation = uncertain, operation{found: true}
	}
	for _, t := range n.targets {
		t.published, t.operation = uncertain, operation{found: true}
	}
	n.Up = false
}

// sameBoot chooses whether a node that comes back has the boot ID that it had: nodes that are containers do.
func (n *Node) sameBoot() bool {
	same := n.World.Rand.IntN(2) == 0
	if same {
		n.World.Counts["nodes without power in the same boot"]++
	}
	return same
}

// LetEnd has the clients of a pod's name end well.
func (n *Node) LetEnd(pod types.UID) {
	for _, c := range n.containers {
		if c.pod.UID == pod {
			c.wants = true
		}
	}
}

// Client is a volume that a client has on a node.
type Client struct {
	// Pod is its namespace and name, Volume the driver and handle, and Sees what is mounted for it; empty for nothing.
	Pod, Volume, Sees string

	// UID is that of the pod, and Path where it has the volume.
	UID  types.UID
	Path string
}

// Clients returns what the clients that run here have. Where someone removed a pod by force, and kubelet unstages its
// volume while its container runs, nobody can know of that client: it is left out.
func (n *Node) Clients() []Client {
	var clients []Client
	for _, c := range n.containers {
		if c.ended || c.script.Verb != "" {
			continue
		}
		for _, volume := range c.pod.Spec.Volumes {
			if t := n.claimed(c.pod, volume); t != nil && (!t.device.confused || n.knows(t.namespace, t.name, uidOf(t))) {
				sees, _ := n.Machine.Mounted(t.path())
				clients = append(clients, Client{Pod: t.namespace + "/" + t.name, Volume: t.device.driver + "/" + t.device.handle, Sees: sees, UID: uidOf(t), Path: t.path()})
			}
		}
	}
	return clients
}

// claimed returns the target of a pod's volume that is a claim's.
func (n *Node) claimed(pod *corev1.Pod, volume corev1.Volume) *target {
	if volume.PersistentVolumeClaim == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(n.targets)) {
		if t := n.targets[key]; t.uid == string(pod.UID) && t.device != nil {
			return t
		}
	}
	return nil
}
