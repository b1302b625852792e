package proposal

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the only version of the proposal.
var GroupVersion = schema.GroupVersion{Group: "cosi.io", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Bucket{}, &BucketList{}, &BucketContent{}, &BucketContentList{}, &BucketClass{}, &BucketClassList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
