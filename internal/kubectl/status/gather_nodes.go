package status

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/kubectl/agent"
)

// mostNodes and mostPods limit the objects that are read one by one.
const (
	mostNodes = 20
	mostPods  = 12
)

// nodes reads the nodes on which the volume is staged or needed.
func (g *gatherer) nodes(ctx context.Context) error {
	var err error
	if g.AgentNamespace, err = agent.Namespace(ctx, g); err != nil {
		return err
	}
	for i := range g.Stages {
		g.Nodes[g.Stages[i].Spec.NodeName] = &Node{}
	}
	for i := range g.Clients {
		if pod := &g.Clients[i]; pod.Spec.NodeName != "" && !isOver(pod) {
			g.Nodes[pod.Spec.NodeName] = &Node{}
		}
	}
	read := 0
	for name, node := range g.Nodes {
		if read++; read > mostNodes {
			break
		}
		if err := g.node(ctx, name, node); err != nil {
			return err
		}
	}
	return nil
}

func (g *gatherer) node(ctx context.Context, name string, node *Node) error {
	object := &corev1.Node{}
	found, err := g.get(ctx, "", name, hiddenNodes, object)
	if err != nil {
		return err
	}
	if found {
		node.Object = object
	}
	node.Gone = !found && !g.hides(hiddenNodes)
	registration := &storagev1.CSINode{}
	if found, err = g.get(ctx, "", name, "CSINodes", registration); err != nil {
		return err
	} else if found {
		node.Registration = registration
	}
	pods := &corev1.PodList{}
	allowed, err := g.list(ctx, pods, hiddenAgents, client.InNamespace(g.AgentNamespace), agent.Labels(agent.Node),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.nodeName", name)})
	if err != nil || !allowed {
		return err
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			node.Agent = &pods.Items[i]
		}
	}
	node.AgentMissing = node.Agent == nil
	return nil
}

// object is an object that events may be about.
type object struct {
	namespace, kind, name string
	uid                   types.UID
}

// objects returns all objects that events may be about.
func (g *gatherer) objects() []object {
	if g.Snapshot != nil {
		return append(g.Snapshot.objects(), objectsOf(last(g.Pods, mostPods))...)
	}
	if g.Bucket != nil {
		return append(g.Bucket.objects(), objectsOf(last(g.Pods, mostPods))...)
	}
	var objects []object
	namespace, name := g.claimRef()
	if g.Claim != nil {
		objects = append(objects, object{namespace, "PersistentVolumeClaim", name, g.Claim.UID})
	} else if g.Volume != nil {
		objects = append(objects, object{namespace, "PersistentVolumeClaim", name, g.Volume.Spec.ClaimRef.UID})
	}
	if g.PV != nil {
		objects = append(objects, object{corev1.NamespaceDefault, "PersistentVolume", g.PV.Name, g.PV.UID})
	}
	if g.Volume != nil {
		objects = append(objects, object{corev1.NamespaceDefault, "PavVolume", g.Volume.Name, g.Volume.UID})
	}
	for i := range g.Stages {
		objects = append(objects, object{corev1.NamespaceDefault, "PavStage", g.Stages[i].Name, g.Stages[i].UID})
	}
	return append(append(objects, objectsOf(last(g.Clients, mostPods))...), objectsOf(last(g.Pods, mostPods))...)
}

// objects returns the objects of a snapshot.
func (s *SnapshotFacts) objects() []object {
	var objects []object
	if s.Object != nil {
		objects = append(objects, object{s.Object.Namespace, "VolumeSnapshot", s.Object.Name, s.Object.UID})
	}
	if s.Content != nil {
		objects = append(objects, object{corev1.NamespaceDefault, "VolumeSnapshotContent", s.Content.Name, s.Content.UID})
	}
	if s.Record != nil {
		objects = append(objects, object{corev1.NamespaceDefault, "PavSnapshot", s.Record.Name, s.Record.UID})
	}
	return objects
}

func objectsOf(pods []corev1.Pod) []object {
	objects := make([]object, 0, len(pods))
	for i := range pods {
		objects = append(objects, object{pods[i].Namespace, "Pod", pods[i].Name, pods[i].UID})
	}
	return objects
}

// events reads the events of all objects, one object at a time: a field selector finds the events of one name.
func (g *gatherer) events(ctx context.Context) error {
	for _, o := range g.objects() {
		if o.name == "" {
			continue
		}
		what := hiddenEvents + fmt.Sprintf(" in namespace %s", o.namespace)
		if g.hides(what) {
			continue
		}
		list := &corev1.EventList{}
		selector := fields.Set{"involvedObject.kind": o.kind, "involvedObject.name": o.name}
		if _, err := g.list(ctx, list, what, client.InNamespace(o.namespace), client.MatchingFieldsSelector{Selector: selector.AsSelector()}); err != nil {
			return err
		}
		for i := range list.Items {
			// The event is about a former object with the same name.
			if uid := list.Items[i].InvolvedObject.UID; uid == "" || uid == o.uid {
				g.Events = append(g.Events, list.Items[i])
			}
		}
	}
	return nil
}

// last returns the last of a list.
func last[T any](list []T, most int) []T {
	return list[max(len(list)-most, 0):]
}
