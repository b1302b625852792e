package definition

import (
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// IsForeignDriver reports whether no PavProvisioner wrote a CSIDriver, neither one that exists nor one that is deleted:
// then no PavProvisioner can have its name. The label alone can be a copy of another object's, and the owner alone an
// administrator's idea of tidiness: only PaV writes both.
func IsForeignDriver(driver *storagev1.CSIDriver) bool {
	owner := metav1.GetControllerOf(driver)
	return owner == nil || driver.Labels[pavv1.ProvisionerLabel] != driver.Name ||
		owner.Kind != "PavProvisioner" || owner.Name != driver.Name || owner.APIVersion != pavv1.GroupVersion.String()
}
