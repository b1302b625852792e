package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of every kind, and the prefix of every label, annotation and finalizer.
const Group = "pav.albertofaria.github.io"

// GroupVersion is the only version that PaV serves.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&PavProvisioner{}, &PavProvisionerList{},
		&PavVolume{}, &PavVolumeList{},
		&PavStage{}, &PavStageList{},
		&PavSnapshot{}, &PavSnapshotList{},
		&PavBucket{}, &PavBucketList{},
		&PavBucketAccess{}, &PavBucketAccessList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
