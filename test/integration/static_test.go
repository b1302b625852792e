package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// An administrator created a static volume of a provisioner with creation and deletion pods: these never run for it,
// whatever its reclaim policy. A dynamically provisioned volume shows that they do run.
func TestStaticVolume_RunsNoCreationOrDeletionPod(t *testing.T) {
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete} {
		t.Run(string(policy), func(t *testing.T) {
			const name = "static"
			c := start(t)
			run(t, c)
			driver(t, c, name, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
				withAllPods(p)
				p.Spec.ProvisioningModes = []pavv1.ProvisioningMode{pavv1.ProvisioningModeDynamic, pavv1.ProvisioningModeStatic}
			})
			h := runFakeKubelets(t, c, func(string, int) int32 { return 0 })
			claim := claimOf("", "static")
			claim.Spec.VolumeName = "static-volume"
			mustCreate(t, c, claim)
			pv := mustCreate(t, c, &corev1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName},
				Spec: corev1.PersistentVolumeSpec{
					Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, PersistentVolumeReclaimPolicy: policy,
					PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: name, VolumeHandle: "made by an administrator"}},
				},
			})
			awaitBound(t, c, claim)
			mustDelete(t, c, claim)
			gone(t, c, claim)
			exists(t, c, pv, "is let go", func(pv *corev1.PersistentVolume) bool {
				return pv.Status.Phase == corev1.VolumeReleased || pv.Status.Phase == corev1.VolumeFailed
			})

			other := mustCreate(t, c, claimOf(name, "dynamic"))
			_, volume := bound(t, c, other)
			mustDelete(t, c, other)
			gone(t, c, volume)
			isKept(t, c, pv)
			if diff := cmp.Diff(map[string]int{"validate": 1, "create": 1, "delete": 1}, h.rest()); diff != "" {
				t.Errorf("pods of all volumes (-want +got):\n%s", diff)
			}
		})
	}
}
