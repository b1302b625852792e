package definition

import (
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// IsForeignDriver reports whether a CSIDriver was written by something other than PaV. Then no PavProvisioner can
// have its name. PaV writes both the label and the owner reference. One of them alone proves nothing: the label may
// be copied from another object, and an administrator may have set the owner reference.
func IsForeignDriver(driver *storagev1.CSIDriver) bool {
	owner := metav1.GetControllerOf(driver)
	return owner == nil || driver.Labels[pavv1.ProvisionerLabel] != driver.Name ||
		owner.Kind != "PavProvisioner" || owner.Name != driver.Name || owner.APIVersion != pavv1.GroupVersion.String()
}
