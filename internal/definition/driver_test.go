package definition

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestIsForeignDriver(t *testing.T) {
	ours := func() *storagev1.CSIDriver {
		return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{
			Name: "demo", Labels: map[string]string{pavv1.ProvisionerLabel: "demo"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: pavv1.GroupVersion.String(), Kind: "PavProvisioner", Name: "demo", UID: "u0", Controller: new(true)}},
		}}
	}
	if IsForeignDriver(ours()) {
		t.Error("the driver of a deleted provisioner is taken for another's")
	}
	for name, spoil := range map[string]func(*storagev1.CSIDriver){
		"no label":     func(d *storagev1.CSIDriver) { d.Labels = nil },
		"no owner":     func(d *storagev1.CSIDriver) { d.OwnerReferences = nil },
		"another kind": func(d *storagev1.CSIDriver) { d.OwnerReferences[0].Kind = "Deployment" },
		"another name": func(d *storagev1.CSIDriver) { d.OwnerReferences[0].Name = "other" },
	} {
		driver := ours()
		spoil(driver)
		if !IsForeignDriver(driver) {
			t.Errorf("%s: taken for PaV's", name)
		}
	}
}
