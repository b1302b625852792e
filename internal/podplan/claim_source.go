package podplan

import (
	"cmp"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan/topology"
	"github.com/albertofaria/pav/internal/protocol"
)

// ClaimSource has the objects of the snapshot or the claim that a claim names as its source. One that is nil does not exist.
type ClaimSource struct {
	// Cached says that it has only the claim or the VolumeSnapshot, from a cache: the rest is read from the API server, as caches are not
	// ordered.
	Cached bool

	// NoSnapshots says that the cluster has no snapshots.
	NoSnapshots bool

	// Snapshot, Content and Record are those of a VolumeSnapshot.
	Snapshot *snapshotv1.VolumeSnapshot
	Content  *snapshotv1.VolumeSnapshotContent
	Record   *pavv1.PavSnapshot

	// Claim, PV and Volume are those of a claim. PaV need not have provisioned the PersistentVolume.
	Claim  *corev1.PersistentVolumeClaim
	PV     *corev1.PersistentVolume
	Volume *pavv1.PavVolume
}

// SourceProblem is why a volume cannot be created from a source.
type SourceProblem struct {
	// Reason is one of the constants below.
	Reason string

	// Text says why. It continues the name of the source.
	Text string
}

// The reasons why a volume cannot be created from a source.
const (
	// SourceMissing: it does not exist.
	SourceMissing = "SourceMissing"

	// SourceDeleting: it is being deleted.
	SourceDeleting = "SourceDeleting"

	// SourceNotReady: it is not bound, or not ready to use yet.
	SourceNotReady = "SourceNotReady"

	// SourceRefused: the claim cannot have it.
	SourceRefused = "SourceRefused"
)

// SourceName names the source of a claim, in words.
func SourceName(claim *corev1.PersistentVolumeClaim) string {
	ref := protocol.Source(claim)
	return fmt.Sprintf("%s %q", ref.Kind, protocol.SourceNamespace(claim, ref)+"/"+ref.Name)
}

// CheckSourceKind returns why a definition cannot create a volume from the kind of source that a claim names, or "".
func CheckSourceKind(p *pavv1.PavProvisioner, claim *corev1.PersistentVolumeClaim) string {
	ref := protocol.Source(claim)
	group := map[string]string{protocol.KindSnapshot: snapshotv1.GroupName}[ref.Kind]
	if ref.APIGroup != nil && *ref.APIGroup != group || ref.APIGroup == nil && group != "" {
		return fmt.Sprintf("spec.dataSourceRef.apiGroup: must be %q for the kind %s", group, ref.Kind)
	}
	if !CanCreateFrom(p.Spec.VolumeCreation, pavv1.DataSourceKind(ref.Kind)) {
		return fmt.Sprintf("spec.dataSourceRef: PavProvisioner %q cannot fill a new volume from %s %q: its spec.volumeCreation.dataSources lacks %s", p.Name, ref.Kind, ref.Name, ref.Kind)
	}
	return ""
}

// Problem returns why no volume of a PavProvisioner can be created for a claim from its source, or nil.
func (s *ClaimSource) Problem(provisioner string, claim *corev1.PersistentVolumeClaim) *SourceProblem {
	var found *SourceProblem
	if protocol.Source(claim).Kind == protocol.KindSnapshot {
		found = s.problemOfSnapshot(provisioner, claim)
	} else {
		found = s.problemOfClaim(provisioner, claim)
	}
	if found == nil {
		found = s.problemOfSize(claim)
	}
	return found
}

func sourceRefused(format string, args ...any) *SourceProblem {
	return &SourceProblem{SourceRefused, fmt.Sprintf(format, args...)}
}

func (s *ClaimSource) problemOfSnapshot(provisioner string, claim *corev1.PersistentVolumeClaim) *SourceProblem {
	switch {
	case s.NoSnapshots:
		return sourceRefused("cannot exist: the cluster has no definitions of snapshots, see docs/snapshots.md")
	case s.Snapshot == nil:
		return &SourceProblem{SourceMissing, "does not exist"}
	case s.Snapshot.DeletionTimestamp != nil:
		return &SourceProblem{SourceDeleting, "is being deleted"}
	case s.Cached && s.Snapshot.Status != nil && s.Snapshot.Status.BoundVolumeSnapshotContentName != nil:
		return nil
	case s.Content == nil || !s.isBound():
		return &SourceProblem{SourceNotReady, "is not bound to a VolumeSnapshotContent yet" + s.why()}
	case s.Content.Spec.Driver != provisioner:
		return sourceRefused("is a snapshot of the driver %q, not of PavProvisioner %q", s.Content.Spec.Driver, provisioner)
	case protocol.SnapshotOf(s.Content) == "":
		return sourceRefused("is a member of a group of snapshots, which PaV does not support")
	case s.Record == nil || s.Record.Status.Phase != pavv1.SnapshotReady || s.Record.Status.Handle == "" || !isReady(s.Snapshot):
		return &SourceProblem{SourceNotReady, "is not ready to use yet" + s.why()}
	case s.Record.Status.RecordUID != s.Record.UID:
		return sourceRefused("has a record that was restored from a backup: another object may have its storage by now")
	case s.changesMode(claim):
		return sourceRefused("has the volume mode %s, and the claim requests %s: an administrator can allow that with the annotation %s of VolumeSnapshotContent %q",
			*s.Content.Spec.SourceVolumeMode, modeOf(claim.Spec.VolumeMode), protocol.AllowVolumeModeChange, s.Content.Name)
	default:
		return nil
	}
}

// isBound reports whether VolumeSnapshot and VolumeSnapshotContent refer to each other.
func (s *ClaimSource) isBound() bool {
	status := s.Snapshot.Status
	return status != nil && status.BoundVolumeSnapshotContentName != nil && *status.BoundVolumeSnapshotContentName == s.Content.Name &&
		s.Content.Spec.VolumeSnapshotRef.UID == s.Snapshot.UID
}

func isReady(snapshot *snapshotv1.VolumeSnapshot) bool {
	return snapshot.Status.ReadyToUse != nil && *snapshot.Status.ReadyToUse
}

// why repeats the error of a VolumeSnapshot that is not ready.
func (s *ClaimSource) why() string {
	if s.Snapshot.Status == nil || s.Snapshot.Status.Error == nil || s.Snapshot.Status.Error.Message == nil {
		return ""
	}
	return ": " + *s.Snapshot.Status.Error.Message
}

// changesMode reports whether the claim requests another volume mode than that of the snapshot, and may not.
func (s *ClaimSource) changesMode(claim *corev1.PersistentVolumeClaim) bool {
	mode := s.Content.Spec.SourceVolumeMode
	return mode != nil && *mode != modeOf(claim.Spec.VolumeMode) && s.Content.Annotations[protocol.AllowVolumeModeChange] != "true"
}

func (s *ClaimSource) problemOfClaim(provisioner string, claim *corev1.PersistentVolumeClaim) *SourceProblem {
	switch {
	case s.Claim == nil:
		return &SourceProblem{SourceMissing, "does not exist"}
	case s.Claim.UID == claim.UID:
		return sourceRefused("is the claim itself")
	case s.Claim.DeletionTimestamp != nil:
		return &SourceProblem{SourceDeleting, "is being deleted"}
	case s.Claim.Status.Phase != corev1.ClaimBound || s.Claim.Spec.VolumeName == "":
		return &SourceProblem{SourceNotReady, fmt.Sprintf("is not bound yet: its phase is %s", cmp.Or(s.Claim.Status.Phase, corev1.ClaimPending))}
	case s.Cached:
		return nil
	case s.PV == nil || s.PV.Spec.ClaimRef == nil || s.PV.Spec.ClaimRef.UID != s.Claim.UID:
		return sourceRefused("is not bound: PersistentVolume %q does not exist, or is another claim's", s.Claim.Spec.VolumeName)
	case s.PV.Spec.CSI == nil || s.PV.Spec.CSI.Driver != provisioner:
		return sourceRefused("has no volume of PavProvisioner %q", provisioner)
	case modeOf(s.Claim.Spec.VolumeMode) != modeOf(claim.Spec.VolumeMode):
		return sourceRefused("has the volume mode %s, and the claim requests %s", modeOf(s.Claim.Spec.VolumeMode), modeOf(claim.Spec.VolumeMode))
	}
	if _, known := s.topologyOfPV(); !known {
		return sourceRefused("has a PersistentVolume whose nodeAffinity PaV cannot apply to pods: only the operator In is supported in %q", s.PV.Name)
	}
	return nil
}

// problemOfSize returns that the claim requests less than its source has, or nil.
func (s *ClaimSource) problemOfSize(claim *corev1.PersistentVolumeClaim) *SourceProblem {
	least, requested := s.capacity(), claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if least == nil || requested.Cmp(*least) >= 0 {
		return nil
	}
	return sourceRefused("has a capacity of %s, and the claim requests %s: request at least as much", least.String(), requested.String())
}

// capacity returns the least capacity of a volume that is created from the source; nil if it is not known.
func (s *ClaimSource) capacity() *resource.Quantity {
	switch {
	case s.Record != nil:
		return s.Record.Status.Size
	case s.Volume != nil && s.Volume.Status.Capacity != nil:
		return s.Volume.Status.LargestCapacity()
	case s.PV != nil:
		return new(s.PV.Spec.Capacity[corev1.ResourceStorage])
	default:
		return nil
	}
}

// topologyOfPV returns the nodes that reach the volume of the source claim, and whether PaV can tell.
func (s *ClaimSource) topologyOfPV() ([]pavv1.TopologyLabels, bool) {
	if s.Volume != nil {
		return s.Volume.Status.AccessibleTopology, true
	}
	return topology.OfAffinity(s.PV.Spec.NodeAffinity)
}

// Recorded returns the source, with which there is no problem, as it is recorded in the PavVolume of a claim.
func (s *ClaimSource) Recorded(claim *corev1.PersistentVolumeClaim) (*pavv1.DataSource, error) {
	ref := protocol.Source(claim)
	recorded := &pavv1.DataSource{
		Kind: pavv1.DataSourceKind(ref.Kind), Namespace: protocol.SourceNamespace(claim, ref), Name: ref.Name, Capacity: s.capacity(),
	}
	if recorded.Kind == pavv1.DataSourceSnapshot {
		var err error
		recorded.UID, recorded.SnapshotName, recorded.Handle = s.Snapshot.UID, s.Record.Name, s.Record.Status.Handle
		recorded.AccessibleTopology = s.Record.Status.AccessibleTopology
		recorded.Parameters, err = SnapshotParameters(s.Record)
		return recorded, err
	}
	recorded.UID, recorded.VolumeName, recorded.Handle = s.Claim.UID, s.PV.Name, s.PV.Spec.CSI.VolumeHandle
	recorded.Parameters = s.PV.Spec.CSI.VolumeAttributes
	recorded.AccessibleTopology, _ = s.topologyOfPV()
	return recorded, nil
}
