package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the version of COSI that follows the one that drivers speak. A cluster has one of them.
var GroupVersion = schema.GroupVersion{Group: "objectstorage.k8s.io", Version: "v1alpha2"}

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&BucketClass{}, &BucketClassList{}, &BucketClaim{}, &BucketClaimList{}, &Bucket{}, &BucketList{},
		&BucketAccessClass{}, &BucketAccessClassList{}, &BucketAccess{}, &BucketAccessList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
