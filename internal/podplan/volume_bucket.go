package podplan

import (
	"context"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// CreateBucketVolume returns how a volume that is a bucket is to be created, which needs no pod of its own. Handle is the identifier of a
// bucket that another object claimed; "" for a bucket of its own, whose identifier is not known yet. The capacity of a bucket is what is
// requested, unless the definition says otherwise.
func (r VolumeRequest) CreateBucketVolume(ctx context.Context, c *pavv1.VolumeCreation, handle string) (*Creation, error) {
	if c == nil {
		c = &pavv1.VolumeCreation{}
	}
	vars, err := template.CreationVariables(r.requested())
	if err != nil {
		return nil, &Error{err}
	}
	creation := &Creation{Handle: handle}
	creation.Requested, _ = vars["requestedMinCapacity"].(int64)
	capacity, found, err := quantity(ctx, r.evaluate, capacityField, c.Capacity, vars)
	switch {
	case err != nil:
		return nil, err
	case !found:
		capacity = creation.Requested
	}
	if creation.Capacity = capacity; handle != "" {
		return creation, checkCapacity(capacityField, capacity, creation.Requested)
	}
	allowed, err := r.allowed()
	if err != nil {
		return nil, err
	}
	if creation.Topology, err = r.topology(ctx, c, vars, allowed); err != nil {
		return nil, err
	}
	return creation, checkCapacity(capacityField, capacity, creation.Requested)
}

// SecretNamespace returns the namespace of the staging pods of a definition, to which the credentials of its volumes are written before
// there is such a pod.
func SecretNamespace(spec *pavv1.PavProvisionerSpec) (string, error) {
	pod := struct {
		Metadata struct {
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}{}
	if err := json.Unmarshal(spec.VolumeStaging.PodTemplate.Raw, &pod); err != nil || template.HasTemplate(pod.Metadata.Namespace) {
		return "", refuse("%s.metadata.namespace: must not be a template where volumes are buckets, as the Secrets with their credentials are written to the namespace of the staging pod before there is one", StagingPod)
	}
	if pod.Metadata.Namespace == "" {
		return workflow.DefaultNamespace, nil
	}
	return pod.Metadata.Namespace, nil
}

// BucketAccessMode returns what the account of a volume may do with the bucket that the volume is.
func BucketAccessMode(modes []corev1.PersistentVolumeAccessMode) pavv1.BucketAccessMode {
	if len(modes) > 0 && !slices.ContainsFunc(modes, func(mode corev1.PersistentVolumeAccessMode) bool { return mode != corev1.ReadOnlyMany }) {
		return pavv1.AccessReadOnly
	}
	return pavv1.AccessReadWrite
}

// BucketProtocol returns the protocol by which volumes access a bucket: the first of those that it supports.
func BucketProtocol(spec *pavv1.PavProvisionerSpec, bucket *pavv1.PavBucket) pavv1.BucketProtocol {
	return orElse(bucket.Status.Protocols, BucketDefinition{Spec: spec}.validation().Protocols)[0]
}
