package volume

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/reading"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// volumeKind is the kind of the records, as readers of other volumes.
const volumeKind = "PavVolume"

// source is what is known of the snapshot or the volume that a volume is created from.
type source struct {
	// snapshot is the PavSnapshot; nil if it does not exist any more, or the source is a volume.
	snapshot *pavv1.PavSnapshot

	// volume and pv are the PavVolume and the PersistentVolume of the source; nil if they do not exist any more, or are another volume's.
	// PaV need not have provisioned the PersistentVolume.
	volume *pavv1.PavVolume
	pv     *corev1.PersistentVolume

	// stages are the PavStages of the volume, and nodes says for each of their nodes whether it exists.
	stages []pavv1.PavStage
	nodes  map[string]bool
}

func (r *Reconciler) readers() reading.Readers {
	return reading.Readers{Client: r.Client, Live: r.Live}
}

// gatherSource reads from what a volume is created, as long as it is not provisioned.
func (r *Reconciler) gatherSource(ctx context.Context, reader client.Reader, o *observation) error {
	of := o.volume.Spec.Source
	if of == nil || !o.pending() {
		return nil
	}
	s := &source{}
	if o.source != nil {
		s.stages, s.nodes = o.source.stages, o.source.nodes
	}
	var err error
	if of.Kind == pavv1.DataSourceSnapshot {
		s.snapshot, err = reconcile.Optional(ctx, reader, client.ObjectKey{Name: of.SnapshotName}, &pavv1.PavSnapshot{})
		if s.snapshot != nil && (s.snapshot.Spec.Provisioner != o.volume.Spec.Provisioner || s.snapshot.Status.Handle != of.Handle) {
			s.snapshot = nil
		}
	} else {
		err = s.gatherVolume(ctx, reader, o.volume.Spec.Provisioner, of)
	}
	o.source = s
	return err
}

func (s *source) gatherVolume(ctx context.Context, reader client.Reader, provisioner string, of *pavv1.DataSource) error {
	var err error
	if s.volume, err = reconcile.Optional(ctx, reader, client.ObjectKey{Name: of.VolumeName}, &pavv1.PavVolume{}); err != nil {
		return err
	}
	if s.volume != nil && (s.volume.Spec.Provisioner != provisioner || s.volume.Status.Handle != of.Handle) {
		s.volume = nil
	}
	if s.pv, err = reconcile.Optional(ctx, reader, client.ObjectKey{Name: of.VolumeName}, &corev1.PersistentVolume{}); err != nil {
		return err
	}
	if csi := s.pv; csi != nil && (csi.Spec.CSI == nil || csi.Spec.CSI.Driver != provisioner || csi.Spec.CSI.VolumeHandle != of.Handle) {
		s.pv = nil
	}
	return nil
}

// gatherSourceStages looks up where the source volume is staged, if that matters.
func (r *Reconciler) gatherSourceStages(ctx context.Context, o *observation) error {
	if !o.isClone() {
		return nil
	}
	of := o.reading()
	err := r.readers().GatherStages(ctx, &of)
	o.source.stages, o.source.nodes = of.Stages, of.Nodes
	return err
}

// isClone reports whether the volume is to be created from another volume.
func (o observation) isClone() bool {
	return o.source != nil && o.volume.Spec.Source.Kind == pavv1.DataSourceClaim
}

// reading returns the volume as a reader of the volume that it is created from.
func (o observation) reading() reading.Reading {
	if !o.isClone() {
		return reading.Reading{WhileStaged: pavv1.SnapshotAllow}
	}
	return reading.Reading{
		Kind: volumeKind, Name: o.volume.Name, Provisioner: o.volume.Spec.Provisioner, VolumeName: o.volume.Spec.Source.VolumeName, Volume: o.source.volume,
		WhileStaged: reading.WhileStaged(o.provisioner), Stages: o.source.stages, Nodes: o.source.nodes, SyncRequested: o.volume.Status.SyncRequestTime, Now: o.now,
	}
}

// sourceText names the object that the claim names as its source.
func (o observation) sourceText() string {
	of := o.volume.Spec.Source
	return fmt.Sprintf("%s %q", of.Kind, of.Namespace+"/"+of.Name)
}

// obstacle decides about a volume that cannot be created from its source now; nil if it can, or is created empty.
func (o observation) obstacle() *decision {
	if o.source == nil {
		return nil
	}
	d := o.sourceGone()
	switch {
	case d != nil:
	case !o.isClone():
		return nil
	case o.source.volume == nil && reading.WhileStaged(o.provisioner) == pavv1.SnapshotWait:
		d = new(rule.Waiting(pavv1.VolumeProvisioned, "Unsupported", fmt.Sprintf("%s has a PersistentVolume that was not provisioned by PaV, which cannot keep nodes from staging it; spec.snapshotCreation.whileStaged of PavProvisioner %q is Wait",
			o.sourceText(), o.volume.Spec.Provisioner), true))
	default:
		d = o.reading().Obstacle(pavv1.VolumeProvisioned)
	}
	return d
}

// sourceGone decides about a source whose storage is deleted, is being deleted, or is not ready; nil if it can be read.
func (o observation) sourceGone() *decision {
	const advice = ": delete the claim, as its volume cannot be created any more"
	gone := func(text string) *decision {
		return new(rule.InDoubt(rule.Waiting(pavv1.VolumeProvisioned, "SourceGone", o.sourceText()+text+advice, true)))
	}
	if snapshot := o.source.snapshot; !o.isClone() {
		switch {
		case snapshot == nil:
			return gone(" was deleted before the volume was created from it")
		case snapshot.Status.Phase == pavv1.SnapshotDeleting && (snapshot.Status.Pod != nil || snapshot.Status.Step != ""):
			return gone(" is being deleted")
		}
		return nil
	}
	switch volume := o.source.volume; {
	case volume == nil && o.source.pv == nil:
		return gone(" was deleted before the volume was created from it")
	case volume != nil && isDeleted(volume):
		return gone(" is being deleted")
	case volume != nil && isPending(volume):
		return new(rule.Waiting(pavv1.VolumeProvisioned, "SourceNotReady", o.sourceText()+" has a volume that is not provisioned yet", false))
	}
	return nil
}

// isDeleted reports whether a deletion pod of the volume is recorded, or its storage is deleted.
func isDeleted(volume *pavv1.PavVolume) bool {
	step := volume.Status.Step
	return step == pavv1.StepDeleting || step == pavv1.StepDeleted
}

func isPending(volume *pavv1.PavVolume) bool { return observation{volume: volume}.pending() }

// sourceChanged reports whether the source volume has another capacity than what is recorded. Templates would see a wrong one, and the
// volume could be made too small for the data. The claim controller looks at the source again when the record is gone.
func (o observation) sourceChanged() bool {
	if !o.isClone() {
		return false
	}
	now := o.source.capacity()
	return now != nil && (o.volume.Spec.Source.Capacity == nil || now.Cmp(*o.volume.Spec.Source.Capacity) != 0)
}

// capacity returns the capacity of the source volume; nil if it is not known.
func (s *source) capacity() *resource.Quantity {
	switch {
	case s.volume != nil:
		return s.volume.Status.Capacity
	case s.pv != nil:
		return new(s.pv.Spec.Capacity[corev1.ResourceStorage])
	default:
		return nil
	}
}

// readsSource reports whether a pod that reads the source is recorded, or is about to be.
func (o observation) readsSource(next step) bool {
	return next == stepBegin || next == stepCreate || o.creating() && o.volume.Status.Pod != nil
}

// mustSync reports whether nodes are asked to write what they have in memory before the creation pod is created.
func (o observation) mustSync() bool { return o.reading().WhileStaged == pavv1.SnapshotSync }

// enterSource makes sure that the source can be read until the creation pod has ended: nothing deletes a snapshot that a PavVolume in the
// making names, and nothing changes a volume as long as it has readers.
func (r *Reconciler) enterSource(ctx context.Context, o observation) error {
	if o.volume.Spec.Source == nil {
		return nil
	}
	if o.source == nil {
		return reconcile.ErrStale
	}
	if err := r.checkSource(ctx, o); err != nil {
		return err
	}
	return r.readers().Enter(ctx, o.reading(), func(live *pavv1.PavVolume) bool {
		o.source = &source{volume: live}
		return live.Status.Handle == o.volume.Spec.Source.Handle && !isPending(live) && !isDeleted(live) && !o.sourceChanged()
	})
}

// checkSource asks the API server whether the source still exists. If not, the cache will show it, and the error is reconcile.ErrStale.
func (r *Reconciler) checkSource(ctx context.Context, o observation) error {
	if o.volume.Spec.Source == nil {
		return nil
	}
	live := o
	if err := r.gatherSource(ctx, r.Live, &live); err != nil {
		return err
	}
	if live.source == nil || live.sourceGone() != nil || live.sourceChanged() {
		return reconcile.ErrStale
	}
	return nil
}

// leaveSource removes the volume from the readers of its source.
func (r *Reconciler) leaveSource(ctx context.Context, o observation, _ decision) error {
	return r.readers().Leave(ctx, o.reading())
}

// syncSource asks the nodes that have the source staged to write to the storage what they have in memory.
func (r *Reconciler) syncSource(ctx context.Context, o observation, _ decision) error {
	return r.readers().Sync(ctx, o.reading())
}

// giveUpSync ends an attempt for which a node has not written to the storage what it has in memory.
func (r *Reconciler) giveUpSync(ctx context.Context, o observation, d decision) error {
	if err := r.confirm(ctx, o, d); err != nil {
		return err
	}
	if err := r.checkNotCreated(ctx, o); err != nil {
		return err
	}
	failure := workflow.FailureWithoutPod(pavv1.WorkflowCreation, fmt.Errorf("waited for %s for %s", reading.SyncTimeout, o.reading().SyncText()))
	return r.failProvisioning(ctx, o, failure, nothing, false)
}

// errUnready says that a recorded creation pod cannot run as it was recorded.
var errUnready = errors.New("the recorded creation pod cannot read its source")

// checkReads asks the API server, before a recorded creation pod is created, whether it may read the source.
func (r *Reconciler) checkReads(ctx context.Context, o observation) error {
	if err := r.checkSource(ctx, o); err != nil || !o.isClone() {
		return err
	}
	unready, err := r.readers().IsUnready(ctx, o.reading())
	if err == nil && unready {
		err = errUnready
	}
	return err
}
