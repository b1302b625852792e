package provisioner

import (
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/definition"
)

// driverFor returns the CSIDriver of a provisioner.
func driverFor(p *pavv1.PavProvisioner) *storagev1.CSIDriver {
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{
		Name:   p.Name,
		Labels: map[string]string{pavv1.ProvisionerLabel: p.Name},
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(p, pavv1.GroupVersion.WithKind("PavProvisioner")),
		},
	}}
	setSpec(&driver.Spec, p)
	return driver
}

// setSpec sets the fields that PaV relies on and leaves the others to Kubernetes.
func setSpec(spec *storagev1.CSIDriverSpec, p *pavv1.PavProvisioner) {
	spec.AttachRequired = new(false) // PaV reserves a volume for a node with its PavStage, not with a VolumeAttachment
	spec.PodInfoOnMount = new(true)  // the node agent needs the client pod
	spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	spec.FSGroupPolicy = new(fsGroupPolicy(p))
	spec.StorageCapacity = new(false)
	spec.RequiresRepublish = new(false)
	spec.SELinuxMount = new(false)
}

// upToDate reports whether a CSIDriver has all that PaV relies on.
func upToDate(spec *storagev1.CSIDriverSpec, p *pavv1.PavProvisioner) bool {
	return !ptr.Deref(spec.AttachRequired, true) &&
		ptr.Deref(spec.PodInfoOnMount, false) &&
		slices.Equal(spec.VolumeLifecycleModes, []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}) &&
		ptr.Equal(spec.FSGroupPolicy, new(fsGroupPolicy(p))) &&
		!ptr.Deref(spec.StorageCapacity, false) &&
		!ptr.Deref(spec.RequiresRepublish, false) &&
		!ptr.Deref(spec.SELinuxMount, false)
}

// fsGroupPolicy returns when kubelet is to change the owner of files: Kubernetes' own default, unless the definition
// says otherwise.
func fsGroupPolicy(p *pavv1.PavProvisioner) storagev1.FSGroupPolicy {
	if policy := p.Spec.VolumeStaging.FSGroupPolicy; policy != "" {
		return policy
	}
	return storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy
}

// origin says which object a CSIDriver belongs to.
type origin int

const (
	foreign  origin = iota // another driver
	ours                   // this provisioner's
	previous               // a deleted provisioner of the same name
)

// originOf returns the origin of a CSIDriver.
func originOf(driver *storagev1.CSIDriver, p *pavv1.PavProvisioner) origin {
	owner := metav1.GetControllerOf(driver)
	switch {
	case driver.Labels[pavv1.ProvisionerLabel] == p.Name && owner != nil && owner.UID == p.UID:
		return ours
	case driver.Name == p.Name && !definition.IsForeignDriver(driver):
		return previous
	default:
		return foreign
	}
}
