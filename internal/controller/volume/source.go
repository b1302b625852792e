package volume

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/reading"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// source is what is known of the snapshot or the volume that a volume is created from.
type source struct {
	// snapshot is the PavSnapshot; nil if it does not exist any more, or the source is a volume.
	snapshot *pavv1.PavSnapshot

	// volume and pv are the PavVolume and the PersistentVolume of the source; nil if they do not exist any more, or are another volume's.
	// PaV need not have provisioned the PersistentVolume. givenAway says that it is not the source claim's any more: another tenant may have
	// the storage.
	volume    *pavv1.PavVolume
	pv        *corev1.PersistentVolume
	givenAway bool

	// nameTaken says that the PavVolume of the name is that of another volume.
	nameTaken bool

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
	if s.volume != nil && !s.volume.IsOf(provisioner, of.Handle) {
		s.nameTaken = !s.volume.IsNewOfStatic()
		s.volume = nil
	}
	if s.pv, err = reconcile.Optional(ctx, reader, client.ObjectKey{Name: of.VolumeName}, &corev1.PersistentVolume{}); err != nil {
		return err
	}
	if pv := s.pv; pv != nil && (pv.Spec.CSI == nil || pv.Spec.CSI.Driver != provisioner || pv.Spec.CSI.VolumeHandle != of.Handle) {
		s.pv = nil
	}
	if s.pv != nil {
		s.givenAway = s.pv.Spec.ClaimRef == nil || s.pv.Spec.ClaimRef.UID != of.UID // one that is released keeps its claim
	} else {
		s.givenAway = s.volume != nil && s.volume.Status.Phase == pavv1.VolumeRetained
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

// reading returns the volume as a reader of what it is created from.
func (o observation) reading() reading.Reading {
	r := reading.Reading{Kind: reading.KindVolume, Name: o.volume.Name, Provisioner: o.volume.Spec.Provisioner, WhileStaged: pavv1.SnapshotAllow, Now: o.now}
	switch {
	case o.source == nil:
	case !o.isClone():
		r.Snapshot = o.source.snapshot
	default:
		r.VolumeName, r.VolumeHandle = o.volume.Spec.Source.VolumeName, o.volume.Spec.Source.Handle
		r.Volume, r.WhileStaged = o.source.volume, reading.WhileStaged(o.provisioner)
		r.Stages, r.Nodes, r.SyncRequested = o.source.stages, o.source.nodes, o.volume.Status.SyncRequestTime
	}
	return r
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
	case o.cannotKeepSourceUnstaged():
		d = new(rule.Waiting(pavv1.VolumeProvisioned, "Unsupported", fmt.Sprintf("%s has a PersistentVolume that was not provisioned by PaV, which cannot keep nodes from staging it; spec.snapshotCreation.whileStaged of PavProvisioner %q is Wait",
			o.sourceText(), o.volume.Spec.Provisioner), true))
	default:
		d = o.reading().Obstacle(pavv1.VolumeProvisioned)
	}
	return d
}

// cannotKeepSourceUnstaged reports whether no node may have the source when it is read, and PaV has no record of it that says so.
func (o observation) cannotKeepSourceUnstaged() bool {
	return o.isClone() && o.source.volume == nil && reading.WhileStaged(o.provisioner) == pavv1.SnapshotWait
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
		case reading.IsBeingDeleted(snapshot):
			return gone(" is being deleted")
		}
		return nil
	}
	switch volume := o.source.volume; {
	case volume == nil && o.source.pv == nil:
		return gone(" was deleted before the volume was created from it")
	case volume == nil && !o.source.nameTaken && o.provisioner != nil && keepsRecord(o.provisioner) && reconcile.IsStaticInUse(o.source.pv):
		return new(rule.Waiting(pavv1.VolumeProvisioned, "SourceNotReady", reading.NoRecord(o.source.pv.Name), false))
	case o.source.givenAway:
		return gone(" had a PersistentVolume that is not the claim's any more")
	case volume != nil && isBeingDeleted(volume):
		return gone(" is being deleted")
	case volume != nil && volume.IsInTheMaking():
		return new(rule.Waiting(pavv1.VolumeProvisioned, "SourceNotReady", o.sourceText()+" has a volume that is not provisioned yet", false))
	case volume != nil && volume.Spec.Static && volume.DeletionTimestamp != nil:
		return new(rule.Waiting(pavv1.VolumeProvisioned, "SourceNotReady", reading.NoRecord(volume.Name), false))
	}
	return nil
}

// isBeingDeleted reports whether a deletion pod of a volume that was created is recorded or has run, or the storage is deleted: it may be
// damaged, and is no source any more.
func isBeingDeleted(volume *pavv1.PavVolume) bool {
	status := &volume.Status
	if status.Step == pavv1.StepDeleting || status.Step == pavv1.StepDeleted {
		return true
	}
	return !volume.IsInTheMaking() && (status.DeletionBegun || status.DeletionFailure != nil && status.DeletionFailure.PodName != "")
}

// sourceChanged reports whether the source volume has another capacity than when the attempt began. Templates would see a wrong one, and
// the volume could be made too small for the data.
func (o observation) sourceChanged() bool {
	if !o.isClone() {
		return false
	}
	now, then := o.source.capacity(), o.volume.Status.SourceCapacity
	return now != nil && (then == nil || now.Cmp(*then) != 0)
}

// capacity returns the largest capacity that the source volume may have; nil if it is not known, or the source is a snapshot.
func (s *source) capacity() *resource.Quantity {
	switch {
	case s == nil:
		return nil
	case s.volume != nil && s.volume.Status.LargestCapacity() != nil:
		return s.volume.Status.LargestCapacity()
	case s.pv != nil:
		return new(s.pv.Spec.Capacity[corev1.ResourceStorage])
	default:
		return nil
	}
}

// checkRoom returns a podplan.Error if the claim requests less than the source has by now. The claim was checked before.
func (o observation) checkRoom(request podplan.VolumeRequest) error {
	has := o.source.capacity()
	if has == nil {
		return nil
	}
	text, _, _ := unstructured.NestedString(request.Claim, "spec", "resources", "requests", "storage")
	if requested, err := resource.ParseQuantity(text); err != nil || requested.Cmp(*has) < 0 {
		return &podplan.Error{Err: fmt.Errorf("spec.dataSourceRef: %s has grown to %s, and the claim requests %s: create the claim again, with a request of at least as much", o.sourceText(), has, text)}
	}
	return nil
}

// readsSource reports whether a pod that reads the source is recorded, or is about to be.
func (o observation) readsSource(next step) bool {
	return next == stepBegin || next == stepCreate || o.creating() && o.volume.Status.Pod != nil
}

// mustSync reports whether nodes are asked to write what they have in memory before the creation pod is created.
func (o observation) mustSync() bool { return o.reading().WhileStaged == pavv1.SnapshotSync }

// dependsOnSource reports whether volumes of a definition need their sources after they were created.
func dependsOnSource(p *pavv1.PavProvisioner) bool {
	return p.Spec.VolumeCreation != nil && p.Spec.VolumeCreation.DependsOnSource
}

// enterSource makes sure that the source can be read until the creation pod has ended: nothing deletes a snapshot that a PavVolume in the
// making names, and nothing changes a volume as long as it has readers.
func (r *Reconciler) enterSource(ctx context.Context, o observation) error {
	if o.volume.Spec.Source == nil {
		return nil
	}
	if o.source == nil {
		return reconcile.ErrStale
	}
	live, err := r.checkSource(ctx, o)
	if err != nil {
		return err
	}
	return r.readers().Enter(ctx, live.reading())
}

// checkSource asks the API server whether the source still is what the cache shows, and returns the observation with what it has. If not,
// the error is reconcile.ErrStale.
func (r *Reconciler) checkSource(ctx context.Context, o observation) (observation, error) {
	live := o
	if err := r.gatherSource(ctx, r.Live, &live); err != nil {
		return o, err
	}
	if live.source == nil || live.sourceGone() != nil || (live.source.volume == nil) != (o.source.volume == nil) {
		return o, reconcile.ErrStale
	}
	if then, now := o.source.capacity(), live.source.capacity(); o.isClone() && (then == nil || now == nil || then.Cmp(*now) != 0) {
		return o, reconcile.ErrStale
	}
	return live, nil
}

// isGivenAway reports whether the source is not the claim's any more that the volume is created from.
func (o observation) isGivenAway() bool { return o.isClone() && o.source.givenAway }

// checkOwner asks the API server, after a creation pod has read its source, whether it was the claim's all the time. If not, the error is a
// podplan.Error: the pod may have copied the data of another tenant.
func (r *Reconciler) checkOwner(ctx context.Context, o observation) error {
	if !o.isClone() {
		return nil
	}
	live := o
	if err := r.gatherSource(ctx, r.Live, &live); err != nil {
		return err
	}
	if live.isGivenAway() {
		return &podplan.Error{Err: fmt.Errorf("%s had a PersistentVolume that was given to another claim while it was read", o.sourceText())}
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
	if o.source == nil {
		return nil
	}
	live, err := r.checkSource(ctx, o)
	if err != nil {
		return err
	}
	unready, err := r.readers().IsUnready(ctx, live.reading())
	if err == nil && unready {
		err = errUnready
	}
	return err
}
