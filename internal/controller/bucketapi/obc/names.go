package obc

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
)

// longestPrefix is how much of spec.generateBucketName is in the name of a bucket, as in lib-bucket-provisioner.
const longestPrefix = 26

// naming is how a bucket is named.
type naming struct {
	// bucket is the name; "" if neither claim nor class gives one.
	bucket string

	// requested says that the claim chose the name, so that the bucket may be anybody's.
	requested bool

	// existing identifies a bucket that exists already, which the administrator chose; "" for none.
	existing string
}

// nameOf returns how the bucket of a claim is named. It never depends on when it is asked: a name that PaV makes has the UID of the claim.
func nameOf(claim *objectbucketv1.ObjectBucketClaim, parameters map[string]string) naming {
	spec := &claim.Spec
	switch existing := parameters[objectbucketv1.BucketNameParameter]; {
	case existing != "":
		return naming{bucket: existing, existing: existing}
	case spec.BucketName != "":
		return naming{bucket: spec.BucketName, requested: true}
	case spec.GenerateBucketName != "":
		prefix := spec.GenerateBucketName[:min(len(spec.GenerateBucketName), longestPrefix)]
		return naming{bucket: strings.ToValidUTF8(prefix, "") + "-" + string(claim.UID)}
	default:
		return naming{}
	}
}

// reclaimPolicy returns the reclaim policy of a class, which is Delete by default.
func reclaimPolicy(class *storagev1.StorageClass) corev1.PersistentVolumeReclaimPolicy {
	if class.ReclaimPolicy == nil {
		return corev1.PersistentVolumeReclaimDelete
	}
	return *class.ReclaimPolicy
}
