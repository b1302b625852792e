package kubernetes

import (
	"errors"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/simulation/world"
)

// NewStore returns an empty API server with all kinds that PaV's agents use.
func NewStore() *world.Store {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), snapshotv1.AddToScheme(scheme), pavv1.AddToScheme(scheme)); err != nil {
		panic(err)
	}
	store := world.NewStore(scheme, &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}, &corev1.Pod{}, &corev1.Node{}, &corev1.Namespace{}, &corev1.ServiceAccount{},
		&storagev1.StorageClass{}, &storagev1.VolumeAttributesClass{}, &storagev1.CSIDriver{}, &storagev1.CSINode{}, &storagev1.VolumeAttachment{}, &policyv1.PodDisruptionBudget{},
		&admissionregistrationv1.ValidatingAdmissionPolicy{},
		&snapshotv1.VolumeSnapshot{}, &snapshotv1.VolumeSnapshotContent{}, &snapshotv1.VolumeSnapshotClass{},
		&pavv1.PavProvisioner{}, &pavv1.PavVolume{}, &pavv1.PavStage{}, &pavv1.PavSnapshot{},
		&pavv1.PavBucket{}, &pavv1.PavBucketAccess{},
		&apiextensionsv1.CustomResourceDefinition{}) // PaV does not look for snapshots without the one of VolumeSnapshotContents
	store.Hook(Admit)
	return store
}
