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

// Trouble has the rates, in thousandths, of failures of pods.
type Trouble struct {
	// Hangs is the rate of containers that never start, and Slow of those that do nothing for up to minutes. Fails is the rate of containers that fail, before or after
	// their effect. Dies is the rate, per step, of deaths of a daemon that serves a volume. Late is the rate of daemons
	// that create /pav/ready before they have mounted their volume.
	Hangs, Slow, Fails, Dies, Late int

	// Broken is the driver whose containers never start; empty for none.
	Broken string
}

// Node is a node with its kubelet, its containers and its volumes.
type Node struct {
	World   *world.World
	Name    string
	Storage *storage.System
	Trouble *Trouble

	// Up reports that the node has power. Linked reports that it can reach the API server.
	Up, Linked bool

	// Starting is called before each container starts, Ready when a creation pod has created /pav/ready, and Ended after the
	// container has ended.
	Starting     func(pod *corev1.Pod)
	Ready, Ended func(pod types.UID)

	// Machine has the node's directories and mounts. Drivers returns the Node service of a driver, and the context of
	// the node agent that serves it. The service is nil while no agent runs.
	Machine *node.Node
	Drivers func(driver string) (csi.NodeServer, context.Context)

	// Expanded is called when the node agent answers that a volume, by driver and handle, has a capacity on the node; available is
	// what it really has there. Both are in bytes.
	Expanded func(volume string, available, capacity int64)

	containers []*container
	devices    map[string]*device // by driver and handle
	available  map[string]int64   // what volumes have on the node, in bytes, by driver and handle
	targets    map[string]*target // by pod and volume
	evicted    map[types.UID]bool // the pods that kubelet evicts
}

// NewNode returns a node that has power and reaches the API server.
func NewNode(w *world.World, name string, system *storage.System, trouble *Trouble) *Node {
	return &Node{
		World: w, Name: name, Storage: system, Trouble: trouble, Up: true, Linked: true, Machine: node.New(name, KubeletDir),
		available: map[string]int64{}, devices: map[string]*device{}, targets: map[string]*target{}, evicted: map[types.UID]bool{},
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
		n.grows(t, add)
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

// kubelet returns kubelet's next action for a pod on its node.
func (n *Node) kubelet(pod *corev1.Pod) (string, func()) {
	c := n.containerOf(pod)
	unwanted := pod.DeletionTimestamp != nil || n.evicted[pod.UID]
	switch {
	case c == nil && (isOver(pod) || unwanted):
		return n.over(pod, nil)
	case c == nil:
		return n.starts(pod)
	case !c.ended && unwanted:
		return "kills", func() {
			c.killed, c.handled = true, c.script.Serves() && n.World.Rand.IntN(2) == 0
			n.end(c, true)
		}
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

// Recover starts the hanging containers of staging and unstaging pods. No other node can run these pods.
func (n *Node) Recover() {
	for _, c := range n.containers {
		if c.hangs && !c.ended && c.pod.Labels[pavv1.StageLabel] != "" {
			c.hangs = false
			n.begin(c)
		}
	}
}

// over returns kubelet's next action for a pod whose container has ended or has never started.
func (n *Node) over(pod *corev1.Pod, c *container) (string, func()) {
	ran := c != nil && !c.hangs
	switch {
	case ran && !c.told && !c.lost && !isOver(pod) && c.pod.Labels[pavv1.WorkflowLabel] != "":
		return "tells exit code of", func() { n.tellExit(pod, c) }
	case !isOver(pod):
		return "tells end of", change(n.World, pod, func(p *corev1.Pod) {
			if ran {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{exitOf(p, c)}
			}
			p.Status.Phase = corev1.PodSucceeded
			if !ran || c.failed {
				p.Status.Phase = corev1.PodFailed
			}
			if n.evicted[p.UID] {
				n.tellEviction(p)
			}
		})
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

// tellExit reports how a container has ended. Kubelet holds the phase back until it has looked at the containers once
// more, unless it is late with its reports.
func (n *Node) tellExit(pod *corev1.Pod, c *container) {
	c.told = true
	if n.World.Rand.IntN(4) == 0 {
		return
	}
	n.World.Counts["exit codes told before the phase"]++
	change(n.World, pod, func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{exitOf(p, c)}
	})()
}

func exitOf(p *corev1.Pod, c *container) corev1.ContainerStatus {
	id, ended := "sim://1", &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: metav1.NewTime(c.at), FinishedAt: metav1.NewTime(c.at)}
	switch {
	case c.lost: // the message is kubelet's own; it has the ID only if it has reported the container before
		id, *ended = "", unlocated
		if len(p.Status.ContainerStatuses) > 0 {
			id = p.Status.ContainerStatuses[0].ContainerID
		}
	case c.handled: // its exit code is 0
	case c.killed:
		ended.ExitCode, ended.Reason = 137, "Error"
	case c.failed:
		ended.ExitCode, ended.Reason = 1, "Error"
	}
	return corev1.ContainerStatus{Name: "main", ContainerID: id, State: corev1.ContainerState{Terminated: ended}}
}

// forget adds the removal of containers and volumes whose pods are gone.
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

// Cut turns off the node's power. All its containers end without a report, and its mounts are gone. The files of
// kubelet and of the agent remain on disk, so kubelet knows the volumes but not their state.
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
			n.containers = slices.DeleteFunc(n.containers, func(other *container) bool { return other == c }) // a client: kubelet starts it again
		}
	}
	clear(n.evicted) // kubelet does not know it any more
	n.Machine.Reboot(n.sameBoot())
	for _, d := range n.devices {
		d.staged, d.operation = uncertain, operation{found: true}
	}
	for _, t := range n.targets {
		t.published, t.operation, t.expansion = uncertain, operation{found: true}, operation{}
	}
	n.Up = false
}

// sameBoot reports whether the node keeps its boot ID after a power loss. It chooses at random. A node that is itself a
// container keeps the ID.
func (n *Node) sameBoot() bool {
	same := n.World.Rand.IntN(2) == 0
	if same {
		n.World.Counts["nodes without power in the same boot"]++
	}
	return same
}

// LetEnd makes the container of a client pod exit successfully.
func (n *Node) LetEnd(pod types.UID) {
	for _, c := range n.containers {
		if c.pod.UID == pod {
			c.wants = true
		}
	}
}

// Client is a volume of a running client on a node.
type Client struct {
	// Pod is the namespace and name of the client's pod, Volume the driver and handle of its volume, and Sees the name
	// of the volume that is mounted for it; empty for none.
	Pod, Volume, Sees string

	// UID is the UID of the pod, and Path the target path of the volume.
	UID  types.UID
	Path string
}

// Clients returns the volumes of the clients that run on the node. It leaves out a client whose pod was removed by
// force if kubelet unstages its volume while its container is still running: no component can know of that client.
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

// claimed returns the target of a pod's volume if the volume is a claim, or nil.
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
