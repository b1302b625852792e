package podplan

import (
	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// BucketPod returns a pod of a bucket, from its evaluated template, with its PodPolicy. Number is unique among the pods of the bucket.
func BucketPod(record *pavv1.PavBucket, kind string, rendered map[string]any, placement Placement, defaults workflow.Defaults, number int32) (*corev1.Pod, error) {
	fence := controllerPolicy(record, "PavBucket", kind, placement, defaults, number)
	fence.Labels[pavv1.ProvisionerLabel] = record.Spec.Provisioner
	fence.Annotations[pavv1.BucketAnnotation] = record.Name
	return build(kind, rendered, fence)
}

// AccessPod returns a pod of an access, from its evaluated template, with its PodPolicy. Number is unique among the pods of the access.
// Seal is the public key of the attempt; "" for a revocation.
func AccessPod(record *pavv1.PavBucketAccess, kind string, rendered map[string]any, seal string, placement Placement, defaults workflow.Defaults, number int32) (*corev1.Pod, error) {
	fence := controllerPolicy(record, "PavBucketAccess", kind, placement, defaults, number)
	fence.Labels[pavv1.ProvisionerLabel] = record.Spec.Provisioner
	fence.Annotations[pavv1.AccessAnnotation] = record.Name
	if seal != "" {
		fence.Annotations[pavv1.SealAnnotation] = seal
	}
	return build(kind, rendered, fence)
}
