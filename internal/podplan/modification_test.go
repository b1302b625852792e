package podplan_test

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
)

func TestCheckAttributes(t *testing.T) {
	known := &pavv1.VolumeModification{Parameters: []string{"iops", "tier"}}
	for name, test := range map[string]struct {
		modification *pavv1.VolumeModification
		driver       string
		parameters   map[string]string
		want         string
	}{
		"known parameters":    {known, "demo", map[string]string{"tier": "gold"}, ""},
		"no parameters":       {&pavv1.VolumeModification{}, "demo", nil, ""},
		"another driver":      {known, "other", nil, `VolumeAttributesClass "c" is for volumes of the driver "other", not of PavProvisioner "demo"`},
		"no modification":     {nil, "demo", nil, `PavProvisioner "demo" has no spec.volumeModification, so that its volumes cannot have the attributes of VolumeAttributesClass "c"`},
		"an unknown one":      {known, "demo", map[string]string{"tier": "gold", "size": "1"}, `VolumeAttributesClass "c": parameters[size]: spec.volumeModification.parameters of PavProvisioner "demo" has only iops, tier`},
		"where none is known": {&pavv1.VolumeModification{}, "demo", map[string]string{"tier": "gold"}, `VolumeAttributesClass "c": parameters[tier]: spec.volumeModification.parameters of PavProvisioner "demo" has none`},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Spec: pavv1.PavProvisionerSpec{VolumeModification: test.modification}}
			class := &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}, DriverName: test.driver, Parameters: test.parameters}
			got := ""
			if err := podplan.CheckAttributes(p, class); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
