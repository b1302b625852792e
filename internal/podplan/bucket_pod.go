package podplan

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// BucketPod returns a pod of a bucket, from its evaluated template, with its PodPolicy. Number is unique among the pods of the bucket.
func BucketPod(record *pavv1.PavBucket, kind string, rendered map[string]any, placement Placement, defaults workflow.Defaults, number int32) (*corev1.Pod, error) {
	fence := controllerPolicy(record, "PavBucket", kind, placement, defaults, number)
	fence.Labels[pavv1.ProvisionerLabel] = record.Spec.Provisioner
	fence.Annotations[pavv1.BucketAnnotation] = record.Name
	if planned := record.Status.PlannedBucketID; planned != "" && kind == pavv1.WorkflowBucketCreation {
		fence.Annotations[pavv1.PlannedBucketAnnotation] = planned
	}
	return build(kind, rendered, fence)
}

// AccessAttempt is what a pod of an access is about.
type AccessAttempt struct {
	// Account is the number of the account that is granted or revoked.
	Account int32

	// Seal is the public key of the attempt; "" for a revocation.
	Seal string
}

// AccessPod returns a pod of an access, from its evaluated template, with its PodPolicy. Number is unique among the pods of the access.
func AccessPod(record *pavv1.PavBucketAccess, kind string, rendered map[string]any, about AccessAttempt, placement Placement, defaults workflow.Defaults, number int32) (*corev1.Pod, error) {
	fence := controllerPolicy(record, "PavBucketAccess", kind, placement, defaults, number)
	fence.Labels[pavv1.ProvisionerLabel] = record.Spec.Provisioner
	fence.Annotations[pavv1.AccessAnnotation] = record.Name
	fence.Annotations[pavv1.AccountAnnotation] = strconv.Itoa(int(about.Account))
	if about.Seal != "" {
		fence.Annotations[pavv1.SealAnnotation] = about.Seal
	}
	return build(kind, rendered, fence)
}
