package status

import (
	"context"
	"fmt"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

// What a user may not be allowed to read of snapshots, as in Facts.Hidden.
const (
	hiddenSnapshots       = "VolumeSnapshots"
	hiddenContents        = "VolumeSnapshotContents"
	hiddenSnapshotClasses = "VolumeSnapshotClasses"
	hiddenRecords         = "PavSnapshots"
)

// SnapshotOf returns the PavSnapshot of a VolumeSnapshot, a VolumeSnapshotContent or itself.
func SnapshotOf(ctx context.Context, reader client.Reader, ref Ref) (*pavv1.PavSnapshot, error) {
	g := &gatherer{reader, &Facts{Subject: ref}}
	if err := g.fromSnapshot(ctx); err != nil {
		return nil, err
	}
	switch {
	case g.Snapshot.Record != nil:
		return g.Snapshot.Record, nil
	case g.hides(hiddenRecords):
		return nil, fmt.Errorf("you may not read PavSnapshots")
	default:
		return nil, fmt.Errorf("%s: PaV has no record of it; see kubectl pav describe %s", ref, ref)
	}
}

// getKnown reads an object of a kind that the cluster need not have.
func (g *gatherer) getKnown(ctx context.Context, namespace, name, what string, object client.Object) (bool, error) {
	found, err := g.get(ctx, namespace, name, what, object)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return found, err
}

// listKnown reads a list of a kind that the cluster need not have.
func (g *gatherer) listKnown(ctx context.Context, list client.ObjectList, what string, options ...client.ListOption) error {
	if _, err := g.list(ctx, list, what, options...); !meta.IsNoMatchError(err) {
		return err
	}
	return nil
}

// fromSnapshot reads the three objects of a snapshot, of which the user has named one.
func (g *gatherer) fromSnapshot(ctx context.Context) error {
	s := &SnapshotFacts{}
	g.Snapshot = s
	var err error
	switch g.Subject.Kind {
	case Content:
		err = g.content(ctx, g.Subject.Name)
	case PavSnapshot:
		err = g.record(ctx, g.Subject.Name)
	default:
		if err = g.object(ctx, g.Subject.Namespace, g.Subject.Name); err == nil && s.Object == nil {
			err = g.formerSnapshot(ctx)
		}
	}
	if err != nil {
		return err
	}
	if s.Object == nil && s.Content == nil && s.Record == nil {
		return g.noSnapshot()
	}
	if s.Content == nil {
		if err := g.content(ctx, s.contentName()); err != nil {
			return err
		}
	}
	if s.Object == nil {
		namespace, name := s.ref()
		if err := g.object(ctx, namespace, name); err != nil {
			return err
		}
	}
	if s.Record == nil {
		return g.record(ctx, s.recordName())
	}
	g.Snapshots = []pavv1.PavSnapshot{*s.Record}
	return nil
}

// noSnapshot returns the error about a snapshot of which nothing was found.
func (g *gatherer) noSnapshot() error {
	kinds := map[Kind]struct{ one, all string }{
		Snapshot: {"VolumeSnapshot", hiddenSnapshots}, Content: {"VolumeSnapshotContent", hiddenContents}, PavSnapshot: {"PavSnapshot", hiddenRecords},
	}
	kind := kinds[g.Subject.Kind]
	if g.hides(kind.all) {
		return fmt.Errorf("you may not read %s", kind.all)
	}
	if g.Subject.Namespace != "" {
		return fmt.Errorf("there is no %s %q in namespace %q", kind.one, g.Subject.Name, g.Subject.Namespace)
	}
	return fmt.Errorf("there is no %s %q", kind.one, g.Subject.Name)
}

// object reads the VolumeSnapshot, unless it is another one with the same name.
func (g *gatherer) object(ctx context.Context, namespace, name string) error {
	object := &snapshotv1.VolumeSnapshot{}
	found, err := g.getKnown(ctx, namespace, name, hiddenSnapshots, object)
	if err != nil || !found {
		return err
	}
	s := g.Snapshot
	if s.Record != nil && s.Record.Spec.SnapshotRef.UID != "" && s.Record.Spec.SnapshotRef.UID != object.UID {
		return nil
	}
	s.Object = object
	return nil
}

func (g *gatherer) content(ctx context.Context, name string) error {
	content := &snapshotv1.VolumeSnapshotContent{}
	found, err := g.getKnown(ctx, "", name, hiddenContents, content)
	if found {
		g.Snapshot.Content = content
	}
	return err
}

func (g *gatherer) record(ctx context.Context, name string) error {
	record := &pavv1.PavSnapshot{}
	found, err := g.getKnown(ctx, "", name, hiddenRecords, record)
	if found {
		g.Snapshot.Record, g.Snapshots = record, []pavv1.PavSnapshot{*record}
	}
	return err
}

// formerSnapshot looks for the newest record of a VolumeSnapshot that is gone.
func (g *gatherer) formerSnapshot(ctx context.Context) error {
	found, err := g.records(ctx, func(record *pavv1.PavSnapshot) bool {
		ref := record.Spec.SnapshotRef
		return ref.Namespace == g.Subject.Namespace && ref.Name == g.Subject.Name
	})
	if err == nil && len(found) > 0 {
		g.Snapshot.Record = &found[len(found)-1]
	}
	return err
}

// records returns some of the PavSnapshots, oldest first. No label has what is searched for, so this lists all.
func (g *gatherer) records(ctx context.Context, wanted func(*pavv1.PavSnapshot) bool) ([]pavv1.PavSnapshot, error) {
	var found []pavv1.PavSnapshot
	list := &pavv1.PavSnapshotList{}
	for {
		if err := g.listKnown(ctx, list, hiddenRecords, client.Limit(page), client.Continue(list.Continue)); err != nil {
			return nil, err
		}
		for i := range list.Items {
			if wanted(&list.Items[i]) {
				found = append(found, *list.Items[i].DeepCopy())
			}
		}
		if list.Continue == "" {
			slices.SortFunc(found, func(a, b pavv1.PavSnapshot) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
			return found, nil
		}
	}
}

// snapshotSource reads what a snapshot is made of: its class, the claim, and the volume.
func (g *gatherer) snapshotSource(ctx context.Context) error {
	s := g.Snapshot
	namespace, _ := s.ref()
	claim := &corev1.PersistentVolumeClaim{}
	found, err := g.get(ctx, namespace, s.claim(), hiddenClaims, claim)
	if err != nil {
		return err
	}
	volume := s.volumeName()
	// The claim may be another one with the same name.
	if found && (volume == "" || claim.Spec.VolumeName == volume) {
		g.Claim, volume = claim, claim.Spec.VolumeName
	}
	if err := g.volume(ctx, volume); err != nil {
		return err
	}
	return g.snapshotClass(ctx)
}

func (g *gatherer) snapshotClass(ctx context.Context) error {
	s := g.Snapshot
	if name := s.className(); name != "" {
		class := &snapshotv1.VolumeSnapshotClass{}
		found, err := g.getKnown(ctx, "", name, hiddenSnapshotClasses, class)
		if found {
			s.Class = class
		}
		return err
	}
	list := &snapshotv1.VolumeSnapshotClassList{}
	if err := g.listKnown(ctx, list, hiddenSnapshotClasses); err != nil {
		return err
	}
	for i := range list.Items {
		if c := &list.Items[i]; c.Annotations[protocol.DefaultSnapshotClass] == "true" && c.Driver == g.provisionerName() {
			s.DefaultClass = c.Name
		}
	}
	return nil
}

// snapshots reads the snapshots of a volume and, if they hold the claim, the VolumeSnapshots that are made of that.
func (g *gatherer) snapshots(ctx context.Context) error {
	name := g.volumeName()
	if name == "" {
		return nil
	}
	var err error
	if g.Snapshots, err = g.records(ctx, func(record *pavv1.PavSnapshot) bool { return record.Spec.VolumeName == name }); err != nil {
		return err
	}
	if g.Claim == nil || g.Claim.DeletionTimestamp == nil || !slices.Contains(g.Claim.Finalizers, protocol.SourceProtection) {
		return nil
	}
	list := &snapshotv1.VolumeSnapshotList{}
	if err := g.listKnown(ctx, list, hiddenSnapshots, client.InNamespace(g.Claim.Namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		object := &list.Items[i]
		source, done := object.Spec.Source.PersistentVolumeClaimName, object.Status != nil && object.Status.ReadyToUse != nil && *object.Status.ReadyToUse
		if source != nil && *source == g.Claim.Name && !done {
			g.Unfinished = append(g.Unfinished, *object)
		}
	}
	return nil
}
