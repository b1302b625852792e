package provisioner

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
)

// counts are how many volumes, stages, snapshots and nodes a provisioner has.
type counts struct {
	volumes, stages, snapshots pavv1.ProvisionerCount

	// registered and wanted are numbers of nodes.
	registered, wanted int32
}

// set writes the counts into a status, and reports whether that changed it.
func (c counts) set(status *pavv1.PavProvisionerStatus) bool {
	nodes := pavv1.ProvisionerNodes{
		Registered: c.registered, Wanted: c.wanted, Summary: fmt.Sprintf("%d/%d", c.registered, c.wanted),
	}
	before := status.DeepCopy()
	status.Volumes, status.Stages, status.Snapshots, status.Nodes = &c.volumes, &c.stages, &c.snapshots, &nodes
	status.Failing = new(c.volumes.Failing + c.stages.Failing + c.snapshots.Failing)
	return !equality.Semantic.DeepEqual(before, status)
}

// count counts the cached objects of a provisioner, without copying them.
func (r *Reconciler) count(ctx context.Context, name string) (counts, error) {
	var c counts
	for _, of := range []struct {
		kind  string
		list  client.ObjectList
		index string
		count *pavv1.ProvisionerCount
	}{
		{"PavVolumes", &pavv1.PavVolumeList{}, reconcile.VolumesByProvisioner, &c.volumes},
		{"PavStages", &pavv1.PavStageList{}, reconcile.StagesByProvisioner, &c.stages},
		{"PavSnapshots", &pavv1.PavSnapshotList{}, reconcile.SnapshotsByProvisioner, &c.snapshots},
	} {
		if err := r.Client.List(ctx, of.list, client.MatchingFields{of.index: name}, client.UnsafeDisableDeepCopy); err != nil {
			return c, fmt.Errorf("counting %s: %w", of.kind, err)
		}
		if err := meta.EachListItem(of.list, func(item runtime.Object) error {
			add(of.count, item)
			return nil
		}); err != nil {
			return c, fmt.Errorf("counting %s: %w", of.kind, err)
		}
	}
	c.registered, c.wanted = r.nodes.of(name), r.nodes.of(pavv1.Driver)
	return c, nil
}

func add(count *pavv1.ProvisionerCount, object runtime.Object) {
	count.Total++
	if isFailing(object) {
		count.Failing++
	}
}

// countWithin returns how long changed counts wait for further changes, and so how often at most one provisioner's status is
// written for counts. The agents of all nodes get each write: together at most 100 events a second.
func countWithin(nodes int32) time.Duration {
	return max(time.Second, time.Duration(nodes)*10*time.Millisecond)
}

// pace decides when changed counts are written.
type pace struct {
	mu  sync.Mutex
	due map[string]time.Time // by provisioner with a change that waits
}

// wait returns how long a provisioner's counts have to wait: within, since the first call after settle.
func (p *pace) wait(name string, within time.Duration, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	due, waits := p.due[name]
	if !waits {
		due = now.Add(within)
		p.due[name] = due
	}
	return max(0, due.Sub(now))
}

// settle notes that a provisioner's counts are written.
func (p *pace) settle(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.due, name)
}
