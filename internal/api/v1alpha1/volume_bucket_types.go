package v1alpha1

import "k8s.io/apimachinery/pkg/types"

// BucketClaimReference identifies the object that claimed a bucket.
type BucketClaimReference struct {
	// kind of the object: ObjectBucketClaim or BucketClaim.
	Kind string `json:"kind"`

	// namespace of the object.
	Namespace string `json:"namespace"`

	// name of the object.
	Name string `json:"name"`

	// uid of the object.
	UID types.UID `json:"uid"`
}

// VolumeBucketReference is the bucket that a volume is.
type VolumeBucketReference struct {
	// name is the name of the PavBucket.
	Name string `json:"name"`

	// claim is the object that claimed the bucket, which is not deleted with the volume; absent if the bucket is created for the
	// volume.
	// +optional
	Claim *BucketClaimReference `json:"claim,omitempty"`

	// bucketId identifies the bucket in its store, and is the handle of the volume; absent if the bucket is created for the volume.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	BucketID string `json:"bucketId,omitempty"`
}

// VolumeBucket is what staging needs to know of the bucket that a volume is. It is the variable bucket of templates.
type VolumeBucket struct {
	// id identifies the bucket in its store. It is the handle of the volume.
	ID string `json:"id"`

	// info is what clients need to know besides credentials.
	// +optional
	Info map[string]string `json:"info,omitempty"`

	// secretName is the name of the Secret with the credentials of the volume, in the namespace of its staging pods.
	SecretName string `json:"secretName"`
}

// IsClaimed reports whether another object claimed the bucket.
func (r *VolumeBucketReference) IsClaimed() bool { return r.Claim != nil }

// HasVolumes reports whether the provisioner has volumes. One that serves buckets need not.
func (s *PavProvisionerSpec) HasVolumes() bool {
	return !s.HasBuckets() || len(s.VolumeStaging.PodTemplate.Raw) > 0
}

// MakesBucketVolumes reports whether the volumes that the provisioner creates are buckets.
func (s *PavProvisionerSpec) MakesBucketVolumes() bool {
	return s.VolumeCreation != nil && s.VolumeCreation.FromBucket
}
