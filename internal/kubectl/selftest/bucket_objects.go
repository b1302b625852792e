package selftest

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/source"
	"github.com/albertofaria/pav/internal/protocol"
)

// postClaim creates the claim of the bucket, and its class. The error is that of meta.IsNoMatchError if the cluster does not have the API.
func (s *bucketScenario) postClaim(ctx context.Context) (client.Object, error) {
	var claim client.Object = s.objectBucketClaim()
	if s.bucket.api == pavv1.BucketAPICOSI1 {
		if err := s.create(ctx, s.bucketClass()); err != nil {
			return nil, err
		}
		claim = s.bucketClaim()
	}
	if err := s.post(ctx, claim); err != nil {
		return nil, fmt.Errorf("creating %s: %w", describeObject(claim), err)
	}
	return claim, nil
}

// postAccess creates the BucketAccess, and its class.
func (s *bucketScenario) postAccess(ctx context.Context) (client.Object, error) {
	if err := s.create(ctx, s.accessClass()); err != nil {
		return nil, err
	}
	access := s.bucketAccess()
	if err := s.post(ctx, access); err != nil {
		return nil, fmt.Errorf("creating %s: %w", describeObject(access), err)
	}
	return access, nil
}

// objectBucketClaim returns the ObjectBucketClaim of the test, with the additionalConfig of the one in the files, if any. PaV names the
// bucket.
func (r *run) objectBucketClaim() *objectbucketv1.ObjectBucketClaim {
	claim := &objectbucketv1.ObjectBucketClaim{ObjectMeta: r.meta(r.name, bucketName)}
	claim.Spec.StorageClassName, claim.Spec.GenerateBucketName = r.name, "pav-test"
	if r.input.bucket != nil {
		claim.Spec.AdditionalConfig = r.input.bucket.Spec.AdditionalConfig
	}
	return claim
}

// bucketClass returns the BucketClass of the test, with the parameters of the StorageClass and of the one in the files, if any.
func (r *run) bucketClass() *cosiv1.BucketClass {
	class := &cosiv1.BucketClass{ObjectMeta: r.meta("", r.name), DriverName: r.name, DeletionPolicy: cosiv1.DeletionPolicyDelete, Parameters: r.parameters()}
	if r.input.bucketClass != nil && len(r.options.Parameters) == 0 {
		class.Parameters = r.input.bucketClass.Parameters
	}
	return class
}

// accessClass returns the BucketAccessClass of the test.
func (r *run) accessClass() *cosiv1.BucketAccessClass {
	class := &cosiv1.BucketAccessClass{ObjectMeta: r.meta("", r.name), DriverName: r.name, AuthenticationType: cosiv1.AuthenticationTypeKey, Parameters: r.parameters()}
	if !r.givesKeys() {
		class.AuthenticationType = cosiv1.AuthenticationTypeIAM
	}
	if r.input.accessClass != nil && len(r.options.Parameters) == 0 {
		class.Parameters = r.input.accessClass.Parameters
	}
	return class
}

func (r *run) bucketClaim() *cosiv1.BucketClaim {
	claim := &cosiv1.BucketClaim{ObjectMeta: r.meta(r.name, bucketName)}
	claim.Spec.BucketClassName, claim.Spec.Protocols = r.name, []cosiv1.Protocol{r.protocol()}
	return claim
}

func (r *run) bucketAccess() *cosiv1.BucketAccess {
	access := &cosiv1.BucketAccess{ObjectMeta: r.meta(r.name, bucketName)}
	access.Spec = cosiv1.BucketAccessSpec{BucketClaimName: bucketName, BucketAccessClassName: r.name, CredentialsSecretName: bucketName + "-access", Protocol: r.protocol()}
	if !r.givesKeys() {
		access.Spec.ServiceAccountName = "default"
	}
	return access
}

// protocol returns the first protocol that the definition supports, which is S3 by default.
func (r *run) protocol() cosiv1.Protocol {
	definition, err := r.input.definition()
	if err != nil || definition.Spec.BucketValidation == nil || len(definition.Spec.BucketValidation.Protocols) == 0 {
		return cosiv1.ProtocolS3
	}
	return cosiv1.Protocol(protocol.COSIProtocol(definition.Spec.BucketValidation.Protocols[0]))
}

// givesKeys reports whether the definition supports accesses with credentials, which it does by default.
func (r *run) givesKeys() bool {
	definition, err := r.input.definition()
	if err != nil || definition.Spec.BucketValidation == nil || len(definition.Spec.BucketValidation.AuthenticationTypes) == 0 {
		return true
	}
	return slices.Contains(definition.Spec.BucketValidation.AuthenticationTypes, pavv1.AuthenticationKey)
}

// takeBuckets removes from the documents the classes of the provisioner's buckets, claims of these classes, and accesses. The first of each
// kind is a pattern.
func (in *input) takeBuckets(documents []source.Document) ([]source.Document, error) {
	var rest []source.Document
	classes := map[string]bool{}
	if in.class != nil {
		classes[in.class.Name] = true
	}
	for _, d := range documents {
		driver, _, _ := unstructured.NestedString(d.Object, "driverName")
		if driver == in.provisioner() && (d.Kind() == "BucketClass" || d.Kind() == "BucketAccessClass") {
			classes[d.Name()] = true
		}
	}
	for _, d := range documents {
		taken, err := in.takeBucket(d, classes)
		if err != nil {
			return nil, fmt.Errorf("reading %s %q: %w", d.Kind(), d.Name(), err)
		}
		if !taken {
			rest = append(rest, d)
		}
	}
	return rest, nil
}

// takeBucket reports whether a document is about the provisioner's buckets.
func (in *input) takeBucket(d source.Document, classes map[string]bool) (bool, error) {
	switch d.Kind() {
	case "ObjectBucketClaim":
		claim := &objectbucketv1.ObjectBucketClaim{}
		if err := decode(d.Object, claim); err != nil || !classes[claim.Spec.StorageClassName] {
			return false, err
		}
		in.secrets = append(in.secrets, claim.Name)
		if in.bucket == nil {
			in.bucket = claim
		}
	case "BucketClass":
		if !classes[d.Name()] || in.bucketClass != nil {
			return classes[d.Name()], nil
		}
		in.bucketClass = &cosiv1.BucketClass{}
		return true, decode(d.Object, in.bucketClass)
	case "BucketAccessClass":
		if !classes[d.Name()] || in.accessClass != nil {
			return classes[d.Name()], nil
		}
		in.accessClass = &cosiv1.BucketAccessClass{}
		return true, decode(d.Object, in.accessClass)
	case "BucketClaim":
		claim := &cosiv1.BucketClaim{}
		err := decode(d.Object, claim)
		return classes[claim.Spec.BucketClassName], err
	case "BucketAccess":
		access := &cosiv1.BucketAccess{}
		if err := decode(d.Object, access); err != nil || !classes[access.Spec.BucketAccessClassName] {
			return false, err
		}
		in.secrets = append(in.secrets, access.Spec.CredentialsSecretName)
	default:
		return false, nil
	}
	return true, nil
}

// usesSecret reports whether an object is a pod that needs one of some Secrets, which the claims of the files would get.
func usesSecret(object map[string]any, secrets []string) bool {
	if kind, _, _ := unstructured.NestedString(object, "kind"); kind != "Pod" || len(secrets) == 0 {
		return false
	}
	pod := &corev1.Pod{}
	if err := decode(object, pod); err != nil {
		return false
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, from := range c.EnvFrom {
			if from.SecretRef != nil && slices.Contains(secrets, from.SecretRef.Name) {
				return true
			}
		}
		for _, v := range c.Env {
			if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil && slices.Contains(secrets, v.ValueFrom.SecretKeyRef.Name) {
				return true
			}
		}
	}
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Secret != nil && slices.Contains(secrets, v.Secret.SecretName)
	})
}
