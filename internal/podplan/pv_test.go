package podplan

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestParameters(t *testing.T) {
	tests := map[string]struct {
		in, want map[string]string
		fsType   string
		err      string
	}{
		"none":                  {want: map[string]string{}},
		"the provisioner's own": {in: map[string]string{"pool": "gold", "fstype": "mine"}, want: map[string]string{"pool": "gold", "fstype": "mine"}},
		"a file system type":    {in: map[string]string{"csi.storage.k8s.io/fstype": "xfs", "a": "b"}, want: map[string]string{"a": "b"}, fsType: "xfs"},
		"a reserved one with a secret": {in: map[string]string{"csi.storage.k8s.io/node-stage-secret-name": "s3cr3t"},
			err: `StorageClass "fast": parameters[csi.storage.k8s.io/node-stage-secret-name]: PaV does not support this reserved parameter`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, fsType, err := Parameters(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Parameters: test.in})
			if text := fmt.Sprint(err); (err == nil) != (test.err == "") || err != nil && text != test.err {
				t.Fatalf("got error %v, want %q", err, test.err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || fsType != test.fsType {
				t.Errorf("file system type %q, -want +got:\n%s", fsType, diff)
			}
		})
	}
}

func TestPersistentVolume(t *testing.T) {
	volume := &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1", UID: "v1"}}
	volume.Spec.Provisioner, volume.Spec.ReclaimPolicy = "demo", corev1.PersistentVolumeReclaimDelete
	volume.Spec.ClaimRef = pavv1.ClaimReference{Namespace: "apps", Name: "data", UID: "u1"}
	volume.Status.Handle, volume.Status.Capacity = "h", resource.NewQuantity(1<<30, resource.BinarySI)
	volume.Spec.Claim = *field(`{"spec":{"accessModes":["ReadWriteMany"],"volumeMode":"Filesystem"}}`)
	volume.Spec.StorageClass = *field(`{"metadata":{"name":"fast"},"mountOptions":["noatime"],"parameters":{"pool":"gold","csi.storage.k8s.io/fstype":"xfs"}}`)
	got, err := PersistentVolume(volume)
	if err != nil {
		t.Fatal(err)
	}
	filesystem := corev1.PersistentVolumeFilesystem
	want := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "pvc-u1",
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "demo"},
			Labels:      map[string]string{"pav.albertofaria.github.io/provisioner": "demo", "pav.albertofaria.github.io/storage": "d9c3dbaae4f934da6f4b"},
			Finalizers:  []string{"external-provisioner.volume.kubernetes.io/finalizer"},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(1<<30, resource.BinarySI)},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			VolumeMode:                    &filesystem,
			MountOptions:                  []string{"noatime"},
			StorageClassName:              "fast",
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "apps", Name: "data", UID: "u1"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "demo", VolumeHandle: "h", FSType: "xfs", VolumeAttributes: map[string]string{"pool": "gold"},
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	volume.Spec.ReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	want.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	if got, err = PersistentVolume(volume); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("with Retain, -want +got:\n%s", diff)
	}
}
