package reading

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// The kinds of readers.
const (
	KindVolume   = "PavVolume"
	KindSnapshot = "PavSnapshot"
)

// Readers records who reads volumes and snapshots.
type Readers struct {
	// Client reads from the cache and writes.
	Client client.Client

	// Live reads from the API server.
	Live client.Reader
}

// GatherStages looks up where the storage of the volume is staged, if that matters.
func (s Readers) GatherStages(ctx context.Context, r *Reading) error {
	if r.WhileStaged == pavv1.SnapshotAllow {
		return nil
	}
	var err error
	if r.Stages, err = reconcile.StagesOf(ctx, s.Client, r.Provisioner, r.VolumeHandle); err != nil {
		return err
	}
	r.Nodes = map[string]bool{}
	for i := range r.Stages {
		name := r.Stages[i].Spec.NodeName
		node, err := reconcile.Optional(ctx, s.Client, client.ObjectKey{Name: name}, &corev1.Node{})
		if err != nil {
			return err
		}
		r.Nodes[name] = !reconcile.IsNodeGone(node)
	}
	return nil
}

// Enter makes the object a reader, so that nothing changes or deletes the storage before it is read. The write fails if the record was
// written since the caller read it from the API server, so that the storage cannot change and be read at once. Where no node may have the
// volume, nodes look for readers after they have written a PavStage, and PaV looks for PavStages after it has written the reader: one of
// both sees the other. The error is reconcile.ErrStale if the cache will show why the storage may not be read.
func (s Readers) Enter(ctx context.Context, r Reading) error {
	if !r.isRecorded() {
		return nil
	}
	if !r.HoldsFor() {
		if r.Changes() != "" || r.isFull() {
			return reconcile.ErrStale
		}
		reader := pavv1.Reader{Kind: r.Kind, Name: r.Name, Unstaged: r.WhileStaged == pavv1.SnapshotWait}
		if err := s.write(ctx, r, append(slices.DeleteFunc(slices.Clone(r.readers()), r.isSelf), reader)); err != nil {
			return err
		}
	}
	if r.Snapshot != nil || r.WhileStaged != pavv1.SnapshotWait {
		return nil
	}
	var err error
	if r.Stages, err = s.liveStages(ctx, r); err != nil {
		return err
	}
	if r.MustWait() {
		return reconcile.ErrStale // the cache will show it, and the next decision is to wait
	}
	return nil
}

// liveStages asks the API server where the storage of the volume is staged. PavStages have a label for the name of their
// PersistentVolume, and none for the handle: the names are those of which the cache has a PersistentVolume or a PavStage.
func (s Readers) liveStages(ctx context.Context, r Reading) ([]pavv1.PavStage, error) {
	hashes, err := s.hashesOf(ctx, r)
	if err != nil {
		return nil, err
	}
	named, err := labels.NewRequirement(pavv1.VolumeLabel, selection.In, hashes)
	if err != nil {
		return nil, fmt.Errorf("asking where volume %q is staged: %w", r.VolumeName, err)
	}
	stages := &pavv1.PavStageList{}
	of := client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(labels.Set{pavv1.ProvisionerLabel: r.Provisioner}).Add(*named)}
	if err := s.Live.List(ctx, stages, of); err != nil {
		return nil, fmt.Errorf("asking where volume %q is staged: %w", r.VolumeName, err)
	}
	return slices.DeleteFunc(stages.Items, func(s pavv1.PavStage) bool { return s.Spec.VolumeHandle != r.VolumeHandle }), nil
}

// hashesOf returns the labels of the PersistentVolumes that are, or were, of the storage that is read.
func (s Readers) hashesOf(ctx context.Context, r Reading) ([]string, error) {
	hashes := []string{workflow.Hash(r.VolumeName)}
	volumes, err := reconcile.VolumesOf(ctx, s.Client, r.Provisioner, r.VolumeHandle)
	if err != nil {
		return nil, err
	}
	for _, pv := range volumes {
		hashes = append(hashes, workflow.Hash(pv.Name))
	}
	stages, err := reconcile.StagesOf(ctx, s.Client, r.Provisioner, r.VolumeHandle)
	if err != nil {
		return nil, err
	}
	for i := range stages {
		hashes = append(hashes, workflow.Hash(stages[i].Spec.VolumeName))
	}
	return hashes, nil
}

// Leave removes the object from the readers.
func (s Readers) Leave(ctx context.Context, r Reading) error {
	return s.write(ctx, r, slices.DeleteFunc(slices.Clone(r.readers()), r.isSelf))
}

// write writes the readers of a volume or a snapshot, unless someone else wrote its record meanwhile.
func (s Readers) write(ctx context.Context, r Reading, readers []pavv1.Reader) error {
	var before, after client.Object
	if r.Snapshot != nil {
		changed := r.Snapshot.DeepCopy()
		changed.Status.Readers = readers
		before, after = r.Snapshot, changed
	} else {
		changed := r.Volume.DeepCopy()
		changed.Status.Readers = readers
		before, after = r.Volume, changed
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := s.Client.Status().Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("updating the readers of %s: %w", r.what(), err)
	}
	return nil
}

// Former returns those recorded readers that do not read the storage with a key any more, see pavv1.DataSource.Key. Volume is the name of
// the volume whose storage that is; "" for a snapshot. A reader that does not exist was removed by force.
func Former(ctx context.Context, reader client.Reader, recorded []pavv1.Reader, provisioner, key, volume string) ([]pavv1.Reader, error) {
	var former []pavv1.Reader
	for _, of := range recorded {
		reads, err := reads(ctx, reader, of, provisioner, key, volume)
		if err != nil {
			return nil, err
		}
		if !reads {
			former = append(former, of)
		}
	}
	return former, nil
}

// Without returns the recorded readers without the former ones, after it has asked the API server for these. The error is
// reconcile.ErrStale if one of them reads.
func (s Readers) Without(ctx context.Context, recorded, former []pavv1.Reader, provisioner, key, volume string) ([]pavv1.Reader, error) {
	gone, err := Former(ctx, s.Live, former, provisioner, key, volume)
	if err == nil && len(gone) < len(former) {
		err = reconcile.ErrStale
	}
	return slices.DeleteFunc(slices.Clone(recorded), func(of pavv1.Reader) bool { return slices.Contains(gone, of) }), err
}

// reads reports whether a recorded reader exists, and may still read the storage.
func reads(ctx context.Context, reader client.Reader, of pavv1.Reader, provisioner, key, volume string) (bool, error) {
	if of.Kind == KindVolume {
		v, err := reconcile.Optional(ctx, reader, client.ObjectKey{Name: of.Name}, &pavv1.PavVolume{})
		if v == nil || !v.IsFrom(provisioner, key) || !v.IsInTheMaking() {
			return false, err
		}
		// One that was created from another PersistentVolume of the storage leaves only that one.
		return volume == "" || v.Spec.Source.VolumeName == volume || v.Status.Step == pavv1.StepCreating && v.Status.Pod != nil, err
	}
	snapshot, err := reconcile.Optional(ctx, reader, client.ObjectKey{Name: of.Name}, &pavv1.PavSnapshot{})
	return snapshot != nil && volume != "" && snapshot.Spec.VolumeName == volume && pavv1.SourceVolume(snapshot.Spec.VolumeHandle) == key, err
}

// Sync asks the nodes that have the volume staged to write to the storage what they have in memory.
func (s Readers) Sync(ctx context.Context, r Reading) error {
	asked := r.SyncRequested.UTC().Format(pavv1.RetryFormat)
	for _, stage := range r.Unasked() {
		changed := stage.DeepCopy()
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, pavv1.SyncAnnotation, asked)
		if err := s.Client.Patch(ctx, changed, client.MergeFromWithOptions(stage, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("updating PavStage %q: %w", stage.Name, err)
		}
	}
	return nil
}

// IsUnready reports whether the recorded pod of a reader cannot run as it was recorded: someone has removed the object from the readers,
// or the definition asks for something else of the nodes now. The caller has read the record from the API server. The error is
// reconcile.ErrStale if a node has staged the volume and the cache does not show it yet.
func (s Readers) IsUnready(ctx context.Context, r Reading) (bool, error) {
	if !r.HoldsFor() || r.WhileStaged == pavv1.SnapshotSync && r.SyncRequested == nil {
		return true, nil
	}
	if r.WhileStaged != pavv1.SnapshotSync {
		return false, nil
	}
	stages, err := s.liveStages(ctx, r)
	if err != nil {
		return false, err
	}
	for i := range stages {
		if _, known := r.Nodes[stages[i].Spec.NodeName]; !known {
			return false, reconcile.ErrStale
		}
	}
	if r.Stages = stages; len(r.Unsynced()) > 0 {
		return false, reconcile.ErrStale
	}
	return false, nil
}
