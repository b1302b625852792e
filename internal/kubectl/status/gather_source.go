package status

import (
	"context"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

// source reads what a claim names as its source, if PaV has not begun with the claim. Whether a claim may have a source of another
// namespace, only the controller agent knows.
func (g *gatherer) source(ctx context.Context) error {
	if g.Claim == nil || g.Volume != nil || !protocol.Unbound(g.Claim) {
		return nil
	}
	ref := protocol.Source(g.Claim)
	if ref == nil || protocol.IsPopulators(ref) || protocol.SourceNamespace(g.Claim, ref) != g.Claim.Namespace {
		return nil
	}
	g.Source = &podplan.ClaimSource{}
	if ref.Kind == protocol.KindSnapshot {
		return g.sourceSnapshot(ctx, ref.Name)
	}
	return g.sourceClaim(ctx, ref.Name)
}

func (g *gatherer) sourceSnapshot(ctx context.Context, name string) error {
	s, snapshot := g.Source, &snapshotv1.VolumeSnapshot{}
	found, err := g.get(ctx, g.Claim.Namespace, name, hiddenSnapshots, snapshot)
	if meta.IsNoMatchError(err) {
		s.NoSnapshots = true
		return nil
	}
	if err != nil || !found {
		return err
	}
	s.Snapshot = snapshot
	if snapshot.Status == nil || snapshot.Status.BoundVolumeSnapshotContentName == nil {
		return nil
	}
	content, record := &snapshotv1.VolumeSnapshotContent{}, &pavv1.PavSnapshot{}
	if found, err = g.get(ctx, "", *snapshot.Status.BoundVolumeSnapshotContentName, hiddenContents, content); err != nil || !found {
		return err
	}
	s.Content = content
	if found, err = g.get(ctx, "", protocol.SnapshotOf(content), hiddenRecords, record); found && record.Spec.Provisioner == content.Spec.Driver {
		s.Record = record
	}
	return err
}

func (g *gatherer) sourceClaim(ctx context.Context, name string) error {
	s, claim := g.Source, &corev1.PersistentVolumeClaim{}
	found, err := g.get(ctx, g.Claim.Namespace, name, hiddenClaims, claim)
	if err != nil || !found {
		return err
	}
	s.Claim = claim
	pv, volume := &corev1.PersistentVolume{}, &pavv1.PavVolume{}
	if found, err = g.get(ctx, "", claim.Spec.VolumeName, hiddenPVs, pv); err != nil || !found {
		return err
	}
	s.PV = pv
	found, err = g.get(ctx, "", claim.Spec.VolumeName, hiddenVolumes, volume)
	if csi := pv.Spec.CSI; found && csi != nil && volume.Spec.Provisioner == csi.Driver && volume.Status.Handle == csi.VolumeHandle {
		s.Volume = volume
	}
	return err
}

// copies reads the volumes that are created from the volume or the snapshot, if something waits for them.
func (g *gatherer) copies(ctx context.Context) error {
	var provisioner, key string
	switch {
	case g.Snapshot != nil && g.Snapshot.Record != nil && neededAsSource(g.Snapshot.Record.Status.Conditions, pavv1.SnapshotDeleted):
		provisioner, key = g.Snapshot.Record.Spec.Provisioner, pavv1.SourceSnapshot(g.Snapshot.Record.Status.Handle)
	case g.Snapshot == nil && g.Volume != nil && (neededAsSource(g.Volume.Status.Conditions, pavv1.VolumeDeleted) || slices.ContainsFunc(g.Volume.Status.Readers, isCopy)):
		provisioner, key = g.Volume.Spec.Provisioner, pavv1.SourceVolume(g.Volume.Status.Handle)
	default:
		return nil
	}
	list := &pavv1.PavVolumeList{}
	if _, err := g.list(ctx, list, hiddenVolumes, client.MatchingLabels{pavv1.SourceLabel: workflow.Hash(key)}); err != nil {
		return err
	}
	g.Copies = slices.DeleteFunc(list.Items, func(v pavv1.PavVolume) bool { return !v.IsFrom(provisioner, key) })
	slices.SortFunc(g.Copies, func(a, b pavv1.PavVolume) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return nil
}
