package claim

import (
	"cmp"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/podplan/topology"
	"github.com/albertofaria/pav/internal/protocol"
)

// source is the snapshot or the volume that a volume is to be created from.
type source struct {
	// cached says that it has only the claim or the VolumeSnapshot, from the cache: the API server is asked for the rest, as caches are not
	// ordered.
	cached bool

	// granted says that a ReferenceGrant in the namespace of the object lets the claim use it; only for another namespace.
	granted bool

	// noSnapshots says that the cluster has no snapshots.
	noSnapshots bool

	// snapshot, content and record are those of a VolumeSnapshot, each nil if it does not exist.
	snapshot *snapshotv1.VolumeSnapshot
	content  *snapshotv1.VolumeSnapshotContent
	record   *pavv1.PavSnapshot

	// claim, pv and volume are those of a claim, each nil if it does not exist. PaV need not have provisioned the PersistentVolume.
	claim  *corev1.PersistentVolumeClaim
	pv     *corev1.PersistentVolume
	volume *pavv1.PavVolume
}

const snapshotGroup = snapshotv1.GroupName

func refuseDataSource(o snapshot) string {
	ref := protocol.Source(o.claim)
	if ref == nil {
		return ""
	}
	group := map[string]string{protocol.KindSnapshot: snapshotGroup}[ref.Kind]
	if ref.APIGroup != nil && *ref.APIGroup != group || ref.APIGroup == nil && group != "" {
		return fmt.Sprintf("spec.dataSourceRef.apiGroup: must be %q for the kind %s", group, ref.Kind)
	}
	if !podplan.CanCreateFrom(o.provisioner.Spec.VolumeCreation, pavv1.DataSourceKind(ref.Kind)) {
		return fmt.Sprintf("spec.dataSourceRef: PavProvisioner %q cannot fill a new volume from %s %q: its spec.volumeCreation.dataSources lacks %s", o.provisioner.Name, ref.Kind, ref.Name, ref.Kind)
	}
	if namespace := protocol.SourceNamespace(o.claim, ref); namespace != o.claim.Namespace {
		if message := o.refuseNamespace(namespace); message != "" {
			return message
		}
	}
	if o.source == nil {
		return "" // it is looked up before anything is written
	}
	what := fmt.Sprintf("%s %q", ref.Kind, protocol.SourceNamespace(o.claim, ref)+"/"+ref.Name)
	var message string
	if ref.Kind == protocol.KindSnapshot {
		message = o.source.refuseSnapshot(o)
	} else {
		message = o.source.refuseClaim(o)
	}
	if message == "" {
		message = o.refuseSize()
	}
	if message == "" {
		return ""
	}
	return fmt.Sprintf("spec.dataSourceRef: %s %s", what, message)
}

// refuseNamespace returns why the claim may not use sources of another namespace, or "".
func (o snapshot) refuseNamespace(namespace string) string {
	switch {
	case !o.crossNamespace:
		return "spec.dataSourceRef.namespace: sources in other namespaces are not allowed; to allow them, the administrator sets the option --cross-namespace-sources of PaV's controller agent"
	case o.source != nil && !o.source.granted:
		return fmt.Sprintf("spec.dataSourceRef.namespace: no ReferenceGrant in namespace %q lets claims of namespace %q use the source", namespace, o.claim.Namespace)
	default:
		return ""
	}
}

// refuseSnapshot returns why no volume can be created from the VolumeSnapshot, or "". The text continues its name.
func (s *source) refuseSnapshot(o snapshot) string {
	switch {
	case s.noSnapshots:
		return "cannot exist: the cluster has no definitions of snapshots, see docs/snapshots.md"
	case s.snapshot == nil:
		return "does not exist"
	case s.snapshot.DeletionTimestamp != nil:
		return "is being deleted"
	case s.cached && s.snapshot.Status != nil && s.snapshot.Status.BoundVolumeSnapshotContentName != nil:
		return ""
	case s.content == nil || !s.isBound():
		return "is not bound to a VolumeSnapshotContent yet" + s.why()
	case s.content.Spec.Driver != o.provisioner.Name:
		return fmt.Sprintf("is a snapshot of the driver %q, not of PavProvisioner %q", s.content.Spec.Driver, o.provisioner.Name)
	case protocol.SnapshotOf(s.content) == "":
		return "is a member of a group of snapshots, which PaV does not support"
	case s.record == nil || s.record.Status.Phase != pavv1.SnapshotReady || s.record.Status.Handle == "" || !isReady(s.snapshot):
		return "is not ready to use yet" + s.why()
	case s.record.Status.RecordUID != s.record.UID:
		return "has a record that was restored from a backup: another object may have its storage by now"
	case s.changesMode(o.claim):
		return fmt.Sprintf("has the volume mode %s, and the claim requests %s: an administrator can allow that with the annotation %s of VolumeSnapshotContent %q",
			*s.content.Spec.SourceVolumeMode, modeOf(o.claim.Spec.VolumeMode), protocol.AllowVolumeModeChange, s.content.Name)
	default:
		return ""
	}
}

// isBound reports whether VolumeSnapshot and VolumeSnapshotContent refer to each other.
func (s *source) isBound() bool {
	status := s.snapshot.Status
	return status != nil && status.BoundVolumeSnapshotContentName != nil && *status.BoundVolumeSnapshotContentName == s.content.Name &&
		s.content.Spec.VolumeSnapshotRef.UID == s.snapshot.UID
}

func isReady(snapshot *snapshotv1.VolumeSnapshot) bool {
	return snapshot.Status.ReadyToUse != nil && *snapshot.Status.ReadyToUse
}

// why repeats the error of a VolumeSnapshot that is not ready.
func (s *source) why() string {
	if s.snapshot.Status == nil || s.snapshot.Status.Error == nil || s.snapshot.Status.Error.Message == nil {
		return ""
	}
	return ": " + *s.snapshot.Status.Error.Message
}

// changesMode reports whether the claim requests another volume mode than that of the snapshot, and may not.
func (s *source) changesMode(claim *corev1.PersistentVolumeClaim) bool {
	mode := s.content.Spec.SourceVolumeMode
	return mode != nil && *mode != modeOf(claim.Spec.VolumeMode) && s.content.Annotations[protocol.AllowVolumeModeChange] != "true"
}

// refuseClaim returns why no volume can be created from the volume of the claim, or "". The text continues its name.
func (s *source) refuseClaim(o snapshot) string {
	switch {
	case s.claim == nil:
		return "does not exist"
	case s.claim.UID == o.claim.UID:
		return "is the claim itself"
	case s.claim.DeletionTimestamp != nil:
		return "is being deleted"
	case s.claim.Status.Phase != corev1.ClaimBound || s.claim.Spec.VolumeName == "":
		return fmt.Sprintf("is not bound yet: its phase is %s", cmp.Or(s.claim.Status.Phase, corev1.ClaimPending))
	case s.cached:
		return ""
	case s.pv == nil || s.pv.Spec.ClaimRef == nil || s.pv.Spec.ClaimRef.UID != s.claim.UID:
		return fmt.Sprintf("is not bound: PersistentVolume %q does not exist, or is another claim's", s.claim.Spec.VolumeName)
	case s.pv.Spec.CSI == nil || s.pv.Spec.CSI.Driver != o.provisioner.Name:
		return fmt.Sprintf("has no volume of PavProvisioner %q", o.provisioner.Name)
	case modeOf(s.claim.Spec.VolumeMode) != modeOf(o.claim.Spec.VolumeMode):
		return fmt.Sprintf("has the volume mode %s, and the claim requests %s", modeOf(s.claim.Spec.VolumeMode), modeOf(o.claim.Spec.VolumeMode))
	}
	if _, known := s.topologyOfPV(); !known {
		return fmt.Sprintf("has a PersistentVolume whose nodeAffinity PaV cannot apply to pods: only the operator In is supported in %q", s.pv.Name)
	}
	return ""
}

func modeOf(mode *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if mode == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *mode
}

// refuseSize returns that the claim requests less than its source has, or "".
func (o snapshot) refuseSize() string {
	least, requested := o.source.capacity(), o.claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if least == nil || requested.Cmp(*least) >= 0 {
		return ""
	}
	return fmt.Sprintf("has a capacity of %s, and the claim requests %s: request at least as much", least.String(), requested.String())
}

// capacity returns the least capacity of a volume that is created from the source; nil if it is not known.
func (s *source) capacity() *resource.Quantity {
	switch {
	case s.record != nil:
		return s.record.Status.Size
	case s.volume != nil && s.volume.Status.Capacity != nil:
		return s.volume.Status.LargestCapacity()
	case s.pv != nil:
		return new(s.pv.Spec.Capacity[corev1.ResourceStorage])
	default:
		return nil
	}
}

// topologyOfPV returns the nodes that reach the volume of the source claim, and whether PaV can tell.
func (s *source) topologyOfPV() ([]pavv1.TopologyLabels, bool) {
	if s.volume != nil {
		return s.volume.Status.AccessibleTopology, true
	}
	return topology.OfAffinity(s.pv.Spec.NodeAffinity)
}

// recorded returns the source as it is recorded in the PavVolume; nil if the claim names none.
func (o snapshot) recorded() (*pavv1.DataSource, error) {
	ref, s := protocol.Source(o.claim), o.source
	if ref == nil {
		return nil, nil
	}
	recorded := &pavv1.DataSource{
		Kind: pavv1.DataSourceKind(ref.Kind), Namespace: protocol.SourceNamespace(o.claim, ref), Name: ref.Name, Capacity: s.capacity(),
	}
	if recorded.Kind == pavv1.DataSourceSnapshot {
		var err error
		recorded.UID, recorded.SnapshotName, recorded.Handle = s.snapshot.UID, s.record.Name, s.record.Status.Handle
		recorded.AccessibleTopology = s.record.Status.AccessibleTopology
		recorded.Parameters, err = podplan.SnapshotParameters(s.record)
		return recorded, err
	}
	recorded.UID, recorded.VolumeName, recorded.Handle = s.claim.UID, s.pv.Name, s.pv.Spec.CSI.VolumeHandle
	recorded.Parameters = s.pv.Spec.CSI.VolumeAttributes
	recorded.AccessibleTopology, _ = s.topologyOfPV()
	return recorded, nil
}
