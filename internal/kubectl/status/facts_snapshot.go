package status

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

// SnapshotFacts are the objects of one snapshot. A nil object does not exist, or the user may not read it.
type SnapshotFacts struct {
	Object  *snapshotv1.VolumeSnapshot
	Content *snapshotv1.VolumeSnapshotContent
	Record  *pavv1.PavSnapshot

	// Class is the VolumeSnapshotClass. DefaultClass is the name of the default one of the driver; it is only looked up if the
	// VolumeSnapshot names none.
	Class        *snapshotv1.VolumeSnapshotClass
	DefaultClass string
}

// ref returns namespace and name of the VolumeSnapshot, even if it is gone.
func (s *SnapshotFacts) ref() (namespace, name string) {
	switch {
	case s.Object != nil:
		return s.Object.Namespace, s.Object.Name
	case s.Record != nil:
		return s.Record.Spec.SnapshotRef.Namespace, s.Record.Spec.SnapshotRef.Name
	case s.Content != nil:
		return s.Content.Spec.VolumeSnapshotRef.Namespace, s.Content.Spec.VolumeSnapshotRef.Name
	}
	return "", ""
}

// claim returns the name of the claim that the snapshot is made of, or "".
func (s *SnapshotFacts) claim() string {
	if s.Object == nil || s.Object.Spec.Source.PersistentVolumeClaimName == nil {
		return ""
	}
	return *s.Object.Spec.Source.PersistentVolumeClaimName
}

// className returns the name of the VolumeSnapshotClass, or "".
func (s *SnapshotFacts) className() string {
	switch {
	case s.Object != nil && s.Object.Spec.VolumeSnapshotClassName != nil:
		return *s.Object.Spec.VolumeSnapshotClassName
	case s.Content != nil && s.Content.Spec.VolumeSnapshotClassName != nil:
		return *s.Content.Spec.VolumeSnapshotClassName
	}
	return ""
}

// contentName returns the name of the VolumeSnapshotContent, which may not exist yet, or "".
func (s *SnapshotFacts) contentName() string {
	switch {
	case s.Content != nil:
		return s.Content.Name
	case s.Record != nil:
		return s.Record.Spec.ContentRef.Name
	case s.Object == nil:
		return ""
	case s.Object.Status != nil && s.Object.Status.BoundVolumeSnapshotContentName != nil:
		return *s.Object.Status.BoundVolumeSnapshotContentName
	case s.Object.Spec.Source.VolumeSnapshotContentName != nil:
		return *s.Object.Spec.Source.VolumeSnapshotContentName
	}
	return protocol.SnapshotContentName(s.Object.UID)
}

// recordName returns the name of the PavSnapshot, which may not exist yet, or "".
func (s *SnapshotFacts) recordName() string {
	switch {
	case s.Record != nil:
		return s.Record.Name
	case s.Content != nil && s.Content.Spec.Source.VolumeHandle == nil:
		return protocol.SnapshotNameOfContent(s.Content.UID)
	case s.Content != nil:
		return protocol.SnapshotName(s.Content.Spec.VolumeSnapshotRef.UID)
	case s.Object != nil && s.Object.Spec.Source.VolumeSnapshotContentName == nil:
		return protocol.SnapshotName(s.Object.UID)
	}
	return ""
}

// volumeName returns the name of the PersistentVolume, as far as the record tells.
func (s *SnapshotFacts) volumeName() string {
	if s == nil || s.Record == nil {
		return ""
	}
	return s.Record.Spec.VolumeName
}

// driver returns the name of the driver that makes the snapshot, if that is decided already, or "".
func (s *SnapshotFacts) driver() string {
	switch {
	case s == nil:
		return ""
	case s.Record != nil:
		return s.Record.Spec.Provisioner
	case s.Content != nil:
		return s.Content.Spec.Driver
	}
	return ""
}

// isLeaving reports whether one of the objects is being deleted.
func (s *SnapshotFacts) isLeaving() bool {
	return s.Object != nil && s.Object.DeletionTimestamp != nil || s.Content != nil && s.Content.DeletionTimestamp != nil ||
		s.Record != nil && s.Record.DeletionTimestamp != nil
}

// refOfRecord returns the VolumeSnapshot of a record or, if it has none, the record.
func refOfRecord(record *pavv1.PavSnapshot) Ref {
	if ref := record.Spec.SnapshotRef; ref.Name != "" {
		return Ref{Kind: Snapshot, Namespace: ref.Namespace, Name: ref.Name}
	}
	return Ref{Kind: PavSnapshot, Name: record.Name}
}

// nameOfRecord returns namespace and name of the VolumeSnapshot of a record or, if it has none, the record's name.
func nameOfRecord(record *pavv1.PavSnapshot) string {
	ref := refOfRecord(record)
	if ref.Namespace == "" {
		return ref.Name
	}
	return ref.Namespace + "/" + ref.Name
}

// recordsInTheMaking returns the snapshots of the volume that are being made or deleted.
func (f *Facts) recordsInTheMaking() []*pavv1.PavSnapshot {
	var found []*pavv1.PavSnapshot
	for i := range f.Snapshots {
		if phase := f.Snapshots[i].Status.Phase; phase != pavv1.SnapshotReady && phase != pavv1.SnapshotRetained {
			found = append(found, &f.Snapshots[i])
		}
	}
	return found
}

func (f *Facts) recordNamed(name string) *pavv1.PavSnapshot {
	for i := range f.Snapshots {
		if f.Snapshots[i].Name == name {
			return &f.Snapshots[i]
		}
	}
	return nil
}

// readers returns the snapshots, and the claims of the copies, for which pods read the volume's storage, so that nothing may change it.
func (f *Facts) readers() (snapshots, copies []string) {
	if f.Volume == nil {
		return nil, nil
	}
	for _, reader := range f.Volume.Status.Readers {
		record, volume := f.recordNamed(reader.Name), f.copyNamed(reader.Name)
		switch {
		case volume != nil:
			copies = append(copies, volume.Spec.ClaimRef.Namespace+"/"+volume.Spec.ClaimRef.Name)
		case isCopy(reader):
			copies = append(copies, reader.Name)
		case record != nil:
			snapshots = append(snapshots, nameOfRecord(record))
		default:
			snapshots = append(snapshots, reader.Name)
		}
	}
	return snapshots, copies
}
