package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/simulation/agents"
	"github.com/albertofaria/pav/test/simulation/kubernetes"
	"github.com/albertofaria/pav/test/simulation/world"
)

// Disturber injects faults: for example, it kills agents, moves the leadership, disconnects nodes, and lets time pass.
type Disturber struct {
	World *world.World
	Nodes []*kubernetes.Node

	// Controller is the leading controller agent. Former is an agent that has lost its lease and does not know it yet,
	// or nil.
	Controller, Former *agents.Controller

	// Begin starts another controller agent, and BeginOn another node agent on a node.
	Begin   func() *agents.Controller
	BeginOn func(node *kubernetes.Node) *agents.Node

	// OnNodes has the node agents of the nodes that have power.
	OnNodes map[*kubernetes.Node]*agents.Node

	// Webhook is the webhook of the controller agent.
	Webhook *agents.Webhook

	// Drains are the drains of nodes.
	Drains *Drains

	// Quiet stops all disturbances.
	Quiet bool
}

// Choices implements world.Actor.
func (d *Disturber) Choices(add func(world.Choice)) {
	if d.Former != nil {
		add(world.Choice{What: "the former leader ends", Do: func() {
			d.Former.Kill()
			d.Former = nil
		}})
	}
	if d.Quiet {
		return
	}
	add(world.Choice{What: "something is disturbed", Do: d.disturb})
}

// Dies stops a controller agent. If it was the leader, another one starts and leads.
func (d *Disturber) Dies(c *agents.Controller) {
	c.Kill()
	switch c {
	case d.Former:
		d.Former = nil
	case d.Controller:
		d.Controller = d.Begin()
	}
}

// DiesOn stops the agent of a node and starts another one.
func (d *Disturber) DiesOn(node *kubernetes.Node) {
	d.OnNodes[node].Kill()
	d.OnNodes[node] = d.BeginOn(node)
}

func (d *Disturber) disturb() {
	switch d.World.Rand.IntN(22) {
	case 0:
		d.World.Counts["agents killed"]++
		d.Dies(d.Controller)
	case 1:
		if d.Former == nil {
			d.World.Counts["leaders replaced"]++
			d.Former, d.Controller = d.Controller, nil
			d.World.Sleep(15 * time.Second)
			d.Controller = d.Begin()
		}
	case 2, 3:
		d.World.Counts["lists again"]++
		d.Controller.Relist()
	case 8, 9, 10, 11:
		d.World.Counts["caches held"]++
		d.Controller.Hold(time.Duration(d.World.Rand.IntN(120)) * time.Second)
	case 4:
		d.World.Counts["minutes passed"]++
		d.World.Sleep(time.Duration(d.World.Rand.IntN(600)) * time.Second)
	case 12, 13:
		if node := d.Nodes[d.World.Rand.IntN(len(d.Nodes))]; node.Up {
			d.World.Counts["node agents killed"]++
			d.DiesOn(node)
		}
	case 15:
		d.World.Counts["kubelets confused"]++
		d.Nodes[d.World.Rand.IntN(len(d.Nodes))].Confuse()
	case 14:
		if node := d.Nodes[d.World.Rand.IntN(len(d.Nodes))]; node.Up {
			d.World.Counts["lists again on nodes"]++
			d.OnNodes[node].Relist()
		}
	case 16:
		d.World.Counts["webhooks gone or back"]++
		d.Webhook.Away = !d.Webhook.Away
	case 5:
		node := d.Nodes[d.World.Rand.IntN(len(d.Nodes))]
		d.World.Counts["links of nodes gone or back"]++
		node.Linked = !node.Linked
	case 6:
		d.lose(d.Nodes[d.World.Rand.IntN(len(d.Nodes))])
	case 7, 21:
		d.cordon(d.Nodes[d.World.Rand.IntN(len(d.Nodes))].Name)
	case 17, 18, 19, 20:
		d.Nodes[d.World.Rand.IntN(len(d.Nodes))].EvictOne()
	}
}

// cordon cordons a node, and often drains it. If the node is cordoned already, cordon ends that.
func (d *Disturber) cordon(name string) {
	node := world.Object[*corev1.Node](d.World.Store, "", name)
	if node == nil {
		return
	}
	_ = world.Change(d.World.Store, people, node, func(n *corev1.Node) { n.Spec.Unschedulable = !n.Spec.Unschedulable })
	if d.Drains.End(name); !node.Spec.Unschedulable && d.World.Rand.IntN(3) > 0 {
		d.Drains.Begin(name)
	}
}

// lose turns off the power of a node. If the node has no power already, lose deletes its Node object or restores the
// node.
func (d *Disturber) lose(node *kubernetes.Node) {
	found := world.Object[*corev1.Node](d.World.Store, "", node.Name)
	switch {
	case node.Up:
		d.World.Counts["nodes without power"]++
		d.OnNodes[node].Kill()
		delete(d.OnNodes, node)
		node.Cut()
	case found != nil && d.World.Rand.IntN(2) == 0:
		d.World.Counts["Nodes deleted"]++
		_ = d.World.Store.Delete(people, d.World.Store.KeyOf(found), nil, nil)
	default:
		d.restore(node)
	}
}

func (d *Disturber) restore(node *kubernetes.Node) {
	if !node.Up {
		node.Up = true
		d.OnNodes[node] = d.BeginOn(node)
	}
	if world.Object[*corev1.Node](d.World.Store, "", node.Name) == nil {
		if err := d.World.Store.Create(people, NewNode(node.Name)); err != nil {
			panic(err)
		}
	}
}

// Driver returns the Node service of a driver on a node, and the context of the agent that serves it. Both are nil if
// no agent runs on the node.
func (d *Disturber) Driver(node *kubernetes.Node, driver string) (csi.NodeServer, context.Context) {
	if agent := d.OnNodes[node]; agent != nil {
		return agent.Driver(driver)
	}
	return nil, nil //nolint:nilnil // without an agent, there is neither a service nor a context
}

// Calm stops all disturbances and repairs all damage.
func (d *Disturber) Calm() {
	d.Quiet, d.Webhook.Away = true, false
	if d.Former != nil {
		d.Former.Kill()
		d.Former = nil
	}
	for _, node := range d.Nodes {
		d.restore(node)
		node.Linked = true
		node.Recover()
		d.Drains.End(node.Name)
		found := world.Object[*corev1.Node](d.World.Store, "", node.Name)
		_ = world.Change(d.World.Store, people, found, func(n *corev1.Node) { n.Spec.Unschedulable = false })
	}
}

// NewNode returns the object of a node without taints.
func NewNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
}

// Populate creates the initial objects of a cluster. In a world with copies, it has snapshots, too.
func Populate(store *world.Store, nodes []string, copies bool) error {
	for _, name := range []string{"a", "b", "pav-pods"} {
		if err := store.Create(people, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
	}
	// PaV reads the age of this policy: stages that are older need no record.
	if err := store.Create(people, &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "pav-admitted-stages"}}); err != nil {
		return fmt.Errorf("the policy of stages: %w", err)
	}
	if err := store.Create(people, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: pavv1.Driver}}); err != nil {
		return fmt.Errorf("PaV's own driver: %w", err)
	}
	for _, name := range nodes {
		if err := store.Create(people, NewNode(name)); err != nil {
			return fmt.Errorf("node %s: %w", name, err)
		}
	}
	if copies {
		if err := errors.Join(addSnapshots(store), addAttributesClasses(store)); err != nil {
			return err
		}
	}
	for _, class := range classes(namesOf(copies)) {
		if err := store.Create(people, class); err != nil {
			return fmt.Errorf("class %s: %w", class.Name, err)
		}
	}
	for _, name := range namesOf(copies) {
		if err := store.Create(people, newProvisioner(name, 0)); err != nil {
			return fmt.Errorf("provisioner %s: %w", name, err)
		}
	}
	return nil
}
