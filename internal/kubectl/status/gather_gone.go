package status

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// mostGone is the number of the last pods of a volume or snapshot whose events are searched.
const mostGone = 3

// gone searches events about workflow pods that were removed after they had succeeded. The name of such a pod follows
// from its volume and number. It searches only PaV's namespace: if the template chose another one, that is not
// recorded.
func (g *gatherer) gone(ctx context.Context) error {
	for _, n := range g.numberings() {
		for number := max(n.total-mostGone+1, 1); number <= n.total; number++ {
			for _, kind := range n.kinds {
				name := workflow.Name(kind, string(n.owner), strconv.Itoa(int(number)))
				if g.podNamed(workflow.DefaultNamespace, name) != nil || g.hides(hiddenEvents+" in namespace "+workflow.DefaultNamespace) {
					continue
				}
				pod := GonePod{Name: name, Workflow: kind, Number: number}
				if err := g.readGone(ctx, &pod); err != nil {
					return err
				}
				if !pod.Scheduled.IsZero() {
					g.Gone = append(g.Gone, pod)
				}
			}
		}
	}
	return nil
}

// numbering says whose pods have numbers, the last number, and their workflows.
type numbering struct {
	owner types.UID
	total int32
	kinds []string
}

func (g *gatherer) numberings() []numbering {
	switch {
	case g.Bucket != nil:
		return g.Bucket.numberings()
	case g.Snapshot != nil && g.Snapshot.Record != nil:
		return []numbering{{g.Snapshot.Record.UID, g.Snapshot.Record.Status.Pods, pavv1.WorkflowsOfSnapshots()}}
	case g.Snapshot == nil && g.Volume != nil:
		return []numbering{{g.Volume.UID, g.Volume.Status.Pods, pavv1.WorkflowsOfVolumes()}}
	}
	return nil
}

func (b *BucketFacts) numberings() []numbering {
	var all []numbering
	if b.Record != nil {
		all = append(all, numbering{b.Record.UID, b.Record.Status.Pods, pavv1.WorkflowsOfBuckets()})
	}
	for _, record := range last(b.Accesses, mostGone) {
		all = append(all, numbering{record.UID, record.Status.Pods, pavv1.WorkflowsOfAccesses()})
	}
	return all
}

func (g *gatherer) readGone(ctx context.Context, pod *GonePod) error {
	list := &corev1.EventList{}
	selector := fields.Set{"involvedObject.kind": "Pod", "involvedObject.name": pod.Name}
	if _, err := g.list(ctx, list, hiddenEvents+" in namespace "+workflow.DefaultNamespace,
		client.InNamespace(workflow.DefaultNamespace), client.MatchingFieldsSelector{Selector: selector.AsSelector()}); err != nil {
		return err
	}
	for i := range list.Items {
		e := &list.Items[i]
		first, _ := times(e)
		switch {
		case e.Reason == "Scheduled":
			pod.Scheduled = first
		case e.Reason == "Started" && (pod.Began.IsZero() || first.Before(&pod.Began)):
			pod.Began = first
		case e.Type == corev1.EventTypeWarning:
			g.Events = append(g.Events, *e)
		}
	}
	return nil
}
