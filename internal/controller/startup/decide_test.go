package startup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestDecide(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	drivers := []string{"nfs", "luks"}
	tests := map[string]struct {
		age        time.Duration
		registered []string
		want       decision
	}{
		"kubelet has yet to make the CSINode":           {want: decision{missing: []string{pavv1.Driver, "nfs", "luks"}}},
		"the node agent does not run, even after a day": {age: 24 * time.Hour, registered: []string{"other"}, want: decision{missing: []string{pavv1.Driver, "nfs", "luks"}}},
		"drivers are being registered":                  {age: time.Minute, registered: []string{pavv1.Driver, "nfs"}, want: decision{missing: []string{"luks"}, after: 4 * time.Minute}},
		"the clock is behind":                           {age: -time.Hour, registered: []string{pavv1.Driver, "nfs"}, want: decision{missing: []string{"luks"}, after: 5 * time.Minute}},
		"a driver cannot be registered":                 {age: 5 * time.Minute, registered: []string{pavv1.Driver, "luks"}, want: decision{remove: true, missing: []string{"nfs"}}},
		"all drivers are registered":                    {age: time.Second, registered: []string{pavv1.Driver, "luks", "nfs", "other"}, want: decision{remove: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon.Add(-test.age))}}
			csi := &storagev1.CSINode{}
			for _, driver := range test.registered {
				csi.Spec.Drivers = append(csi.Spec.Drivers, storagev1.CSINodeDriver{Name: driver})
			}
			if diff := cmp.Diff(test.want, decide(node, csi, drivers, noon), cmp.AllowUnexported(decision{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestUsable(t *testing.T) {
	provisioner := func(name string, status ...metav1.ConditionStatus) pavv1.PavProvisioner {
		p := pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, s := range status {
			p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: pavv1.ProvisionerReady, Status: s})
		}
		return p
	}
	got := usable([]pavv1.PavProvisioner{
		provisioner("ready", metav1.ConditionTrue), provisioner("refused", metav1.ConditionFalse), provisioner("new"),
	})
	if diff := cmp.Diff([]string{"ready", "new"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
