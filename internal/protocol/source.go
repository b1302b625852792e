package protocol

import corev1 "k8s.io/api/core/v1"

// The kinds of objects that a provisioner creates volumes from. All others are those of volume populators, as for external-provisioner,
// except for those that claim buckets.
const (
	KindClaim    = "PersistentVolumeClaim"
	KindSnapshot = "VolumeSnapshot"
)

// AllowVolumeModeChange on a VolumeSnapshotContent, "true", lets claims of another volume mode have what is in the snapshot. Only
// administrators can write it.
const AllowVolumeModeChange = "snapshot.storage.kubernetes.io/allow-volume-mode-change"

// Source returns what a claim's volume is to be filled from, or nil. The API server keeps dataSource and dataSourceRef equal, unless the
// latter has another namespace.
func Source(claim *corev1.PersistentVolumeClaim) *corev1.TypedObjectReference {
	if ref := claim.Spec.DataSourceRef; ref != nil {
		return ref
	}
	if source := claim.Spec.DataSource; source != nil {
		return &corev1.TypedObjectReference{APIGroup: source.APIGroup, Kind: source.Kind, Name: source.Name}
	}
	return nil
}

// IsPopulators reports whether a volume populator handles a source. As for external-provisioner, the kind alone decides.
func IsPopulators(source *corev1.TypedObjectReference) bool {
	return source.Kind != KindClaim && source.Kind != KindSnapshot
}

// SourceNamespace returns the namespace of a claim's source.
func SourceNamespace(claim *corev1.PersistentVolumeClaim, source *corev1.TypedObjectReference) string {
	if source.Namespace != nil && *source.Namespace != "" {
		return *source.Namespace
	}
	return claim.Namespace
}

// SourceKey returns the key of the snapshot or claim, be it of a bucket, that a claim names as its source, see KeyOfSource; "" if it names
// none.
func SourceKey(claim *corev1.PersistentVolumeClaim) string {
	source := Source(claim)
	if source == nil || IsPopulators(source) && len(BucketAPIsOf(source)) == 0 {
		return ""
	}
	return KeyOfSource(source.Kind, SourceNamespace(claim, source), source.Name)
}

// GrantsKey returns the key of the ReferenceGrants that decide whether a claim may use what it names as its source, see KeyOfGrants; ""
// if none do, as the source is in the namespace of the claim.
func GrantsKey(claim *corev1.PersistentVolumeClaim) string {
	source := Source(claim)
	if source == nil || IsPopulators(source) || SourceNamespace(claim, source) == claim.Namespace {
		return ""
	}
	return KeyOfGrants(SourceNamespace(claim, source))
}

// KeyOfGrants returns the key of the ReferenceGrants of a namespace.
func KeyOfGrants(namespace string) string { return KeyOfSource("ReferenceGrant", namespace, "") }

// KeyOfSource returns the key of an object that claims may name as their source.
func KeyOfSource(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }
