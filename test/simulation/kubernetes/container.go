package kubernetes

import (
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/simulation/node"
	"github.com/albertofaria/pav/test/simulation/storage"
	"github.com/albertofaria/pav/test/simulation/world"
)

// container is the actual state of a pod's container. The API server may not know it yet.
type container struct {
	pod    *corev1.Pod // the pod at the start of the container
	script storage.Script
	volume *node.Mount // the mount of its volume at /pav/volume

	hangs, effective, ended, failed bool
	wants                           bool      // for a client: it is about to exit
	until                           time.Time // when a slow container goes on
	killed                          bool      // by kubelet
	handled                         bool      // it is a daemon, and exited with 0 when it was killed
	at                              time.Time // when it ended
	told                            bool      // its exit code was reported
	lost                            bool      // killed by a power loss, and forgotten by the container runtime
}

// runs adds the actions that a container can take by itself.
func (n *Node) runs(c *container, add func(world.Choice)) {
	if c.ended || c.hangs || c.script.Verb == "" || time.Now().Before(c.until) {
		return
	}
	name := c.pod.Namespace + "/" + c.pod.Name
	if !c.effective {
		add(world.Choice{What: "takes effect: " + name, Weight: 2, Do: func() { n.effect(c) }})
		return
	}
	if c.script.Serves() {
		if n.World.Chance(n.Trouble.Dies) {
			add(world.Choice{What: "dies: " + name, Do: func() {
				n.World.Counts["daemons that died"]++
				n.end(c, true)
			}})
		}
		return
	}
	add(world.Choice{What: "ends: " + name, Weight: 2, Do: func() {
		failed := n.World.Chance(n.Trouble.Fails)
		if failed {
			n.World.Counts["containers that failed after their effect"]++
		}
		n.end(c, failed)
	}})
}

// refusing are the scripts that may call what they are asked for infeasible.
var refusing = map[string]string{storage.Create: "creation", storage.TakeSnapshot: "creation", storage.ExpandOnNode: "node expansion"}

func (n *Node) effect(c *container) {
	if n.World.Chance(n.Trouble.Fails) {
		n.World.Counts["containers that failed"]++
		if refusing[c.script.Verb] != "" && n.World.Rand.Int64N(2) == 0 {
			n.World.Counts[refusing[c.script.Verb]+" pods that called it infeasible"]++
			_ = n.Machine.PodMakes(pavOf(c), workflow.InfeasibleFile) // the power may have gone
		}
		n.end(c, true)
		return
	}
	c.effective = true
	var err error
	switch c.script.Verb {
	case storage.Stage:
		if c.script.Serves() && !c.script.IsBlock() && n.World.Chance(n.Trouble.Late) {
			err = n.serveLate(c)
		} else if err = n.mount(c); err == nil && c.script.Serves() {
			err = n.Machine.PodMakes(pavOf(c), "ready")
		}
	case storage.ExpandOnNode:
		err = n.expandOnNode(c)
	case storage.Unstage:
		_ = n.Machine.PodUnmounts(pavOf(c)) // the mount may have gone with its daemon
	case storage.Validate: // it may share the script of staging, so it creates the same directories
		err = n.offerDirectory(c)
	default:
		var files map[string]string
		files, err = n.Storage.Run(c.pod.Annotations[driverAnnotation], c.script, metav1.GetControllerOf(c.pod).UID)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			err = errors.Join(err, n.Machine.PodWrites(pavOf(c), name, files[name]))
		}
		if slices.Contains(c.script.Words, storage.Ready) {
			err = errors.Join(err, n.Machine.PodMakes(pavOf(c), "ready"))
			if n.Ready != nil {
				n.Ready(c.pod.UID)
			}
			n.linger(c)
		}
	}
	if err != nil {
		n.World.Notef("%v", err)
		n.end(c, true)
	}
}

// pavOf returns the target path of a container's /pav.
func pavOf(c *container) string {
	return (&target{uid: string(c.pod.UID), pv: workflow.PavVolume}).path()
}

// Finds returns the name of the volume or disk at /pav/volume of a pod. Exists reports whether there is anything.
func (n *Node) Finds(pod *corev1.Pod) (what string, exists bool) {
	return n.Machine.PodSees(pavOf(&container{pod: pod}))
}

// mount mounts the volume of a staging container at /pav/volume.
func (n *Node) mount(c *container) (err error) {
	volume := node.Volume{Name: c.pod.Annotations[driverAnnotation] + "/" + c.script.Handle, Daemon: c.script.Serves()}
	if c.script.IsBlock() {
		volume.Mode, volume.Bytes = mount.Block, 1<<30
	}
	if c.volume, err = n.Machine.PodMounts(pavOf(c), volume); err == nil {
		n.seesSize(c)
	}
	return err
}

// latest is the maximum time from the creation of /pav/ready to the mount of a late volume. It is less than the three
// seconds for which the node agent waits.
const latest = 2500 * time.Millisecond

// serveLate makes a daemon create /pav/ready first, with a plain directory at /pav/volume. The daemon mounts its volume
// over the directory a moment later, at a fixed time that other events do not delay.
func (n *Node) serveLate(c *container) error {
	n.World.Counts["volumes that were mounted late"]++
	time.AfterFunc(1+time.Duration(n.World.Rand.Int64N(int64(latest))), func() {
		if !c.ended && n.mount(c) != nil {
			n.end(c, true)
		}
	})
	return n.offerDirectory(c)
}

// offerDirectory makes a container offer a plain directory of the node's disk as its volume.
func (n *Node) offerDirectory(c *container) error {
	return errors.Join(n.Machine.PodMakes(pavOf(c), "volume"), n.Machine.PodMakes(pavOf(c), "ready"))
}

func (n *Node) end(c *container, failed bool) {
	c.ended, c.failed, c.at = true, failed, time.Now()
	n.Machine.Runs(c.pod.UID, false)
	if c.volume != nil && c.script.Serves() {
		c.volume.Becomes(node.Dead)
	}
	if n.Ended != nil {
		n.Ended(c.pod.UID)
	}
}

// linger lets a container that has created /pav/ready go on, sometimes for long.
func (n *Node) linger(c *container) {
	if n.World.Chance(n.Trouble.Slow) {
		n.World.Counts["creation pods that go on for long after /pav/ready"]++
		long := time.Duration(n.World.Rand.Int64N(int64(slowest)))
		c.until = time.Now().Add(long)
		n.World.After(long, func() {})
	}
}

// slowest is how long a slow container does nothing after its start, at most.
const slowest = 5 * time.Minute

// driverAnnotation is the annotation with the driver whose storage a container changes.
const driverAnnotation = "simulation/driver"

func (n *Node) start(pod *corev1.Pod) {
	c := &container{pod: pod}
	if pod.Labels[pavv1.WorkflowLabel] != "" {
		c.hangs = n.World.Chance(n.Trouble.Hangs) || n.Trouble.Broken != "" && pod.Annotations[driverAnnotation] == n.Trouble.Broken
		if c.hangs {
			n.World.Counts["containers that hang"]++
		}
		script, err := storage.Parse(pod.Spec.Containers[0].Args)
		if err != nil {
			panic(err) // the templates of the simulation are always valid
		}
		c.script = script
		if !c.hangs && n.World.Chance(n.Trouble.Slow) {
			n.World.Counts["slow containers"]++
			slow := time.Duration(n.World.Rand.Int64N(int64(slowest)))
			c.until = time.Now().Add(slow)
			n.World.After(slow, func() {})
		}
	}
	n.containers = append(n.containers, c)
	if !c.hangs {
		n.begin(c)
	}
}

func (n *Node) begin(c *container) {
	n.Machine.Runs(c.pod.UID, true)
	if n.Starting != nil {
		n.Starting(c.pod)
	}
}
