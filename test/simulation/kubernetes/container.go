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

// container is the container of a pod as it is, whatever the API server knows of it.
type container struct {
	pod    *corev1.Pod // as it was when it started
	script storage.Script
	volume *node.Mount // that it has mounted for others

	hangs, effective, ended, failed bool
	wants                           bool // to end: a client's
	lost                            bool // with the node's power, and the runtime does not remember it
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
	if c.script.Serves() {
		if n.World.Chance(n.Trouble.Dies) {
			add(world.Choice{What: "dies: " + name, Do: func() { n.end(c, true) }})
		}
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
	var err error
	switch c.script.Verb {
	case storage.Stage:
		if c.script.Serves() && !c.script.IsBlock() && n.World.Chance(n.Trouble.Late) {
			err = n.serveLate(c)
		} else if err = n.mount(c); err == nil && c.script.Serves() {
			err = n.Machine.PodMakes(pavOf(c), "ready")
		}
	case storage.Unstage:
		_ = n.Machine.PodUnmounts(pavOf(c)) // it may be gone with its daemon
	case storage.Validate: // its script is that of staging, and leaves what that leaves
		err = n.offerDirectory(c)
	default:
		var files map[string]string
		files, err = n.Storage.Run(c.pod.Annotations[driverAnnotation], c.script, metav1.GetControllerOf(c.pod).UID)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			err = errors.Join(err, n.Machine.PodWrites(pavOf(c), name, files[name]))
		}
	}
	if err != nil {
		n.World.Notef("%v", err)
		n.end(c, true)
	}
}

// pavOf returns the path of the /pav that a container has.
func pavOf(c *container) string {
	return (&target{uid: string(c.pod.UID), pv: workflow.PavVolume}).path()
}

// Finds returns what a pod finds at /pav/volume, if there is anything.
func (n *Node) Finds(pod *corev1.Pod) (what string, exists bool) {
	return n.Machine.PodSees(pavOf(&container{pod: pod}))
}

// mount has a staging container mount its volume.
func (n *Node) mount(c *container) (err error) {
	volume := node.Volume{Name: c.pod.Annotations[driverAnnotation] + "/" + c.script.Handle, Daemon: c.script.Serves()}
	if c.script.IsBlock() {
		volume.Mode, volume.Bytes = mount.Block, 1<<30
	}
	c.volume, err = n.Machine.PodMounts(pavOf(c), volume)
	return err
}

// latest is how long after it called its volume ready a daemon mounts it. An agent waits for three seconds.
const latest = 2500 * time.Millisecond

// serveLate has a daemon call a directory ready, and mount its volume over that when a moment has passed, whatever else
// happens meanwhile.
func (n *Node) serveLate(c *container) error {
	n.World.Counts["volumes that were mounted late"]++
	time.AfterFunc(1+time.Duration(n.World.Rand.Int64N(int64(latest))), func() {
		if !c.ended && n.mount(c) != nil {
			n.end(c, true)
		}
	})
	return n.offerDirectory(c)
}

// offerDirectory has a container call a plain directory of the node's disk its volume.
func (n *Node) offerDirectory(c *container) error {
	return errors.Join(n.Machine.PodMakes(pavOf(c), "volume"), n.Machine.PodMakes(pavOf(c), "ready"))
}

func (n *Node) end(c *container, failed bool) {
	c.ended, c.failed = true, failed
	n.Machine.Runs(c.pod.UID, false)
	if c.volume != nil && c.script.Serves() {
		c.volume.Becomes(node.Dead)
	}
	if n.Ended != nil {
		n.Ended(c.pod.UID)
	}
}

// driverAnnotation tells a container which driver's storage it is about.
const driverAnnotation = "simulation/driver"

func (n *Node) start(pod *corev1.Pod) {
	c := &container{pod: pod}
	if pod.Labels[pavv1.WorkflowLabel] != "" {
		c.hangs = n.World.Chance(n.Trouble.Hangs) || n.Trouble.Broken != "" && pod.Annotations[driverAnnotation] == n.Trouble.Broken
		script, err := storage.Parse(pod.Spec.Containers[0].Args)
		if err != nil {
			panic(err) // the templates are the simulation's own
		}
		c.script = script
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
