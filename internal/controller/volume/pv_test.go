package volume

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			got, fsType, err := parameters(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Parameters: test.in})
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
	volume := recorded().o.volume
	volume.Spec.Claim = *field(`{"spec":{"accessModes":["ReadWriteMany"],"volumeMode":"Filesystem"}}`)
	volume.Spec.StorageClass = *field(`{"metadata":{"name":"fast"},"mountOptions":["noatime"],"parameters":{"pool":"gold","csi.storage.k8s.io/fstype":"xfs"}}`)
	got, err := persistentVolume(volume)
	if err != nil {
		t.Fatal(err)
	}
	filesystem := corev1.PersistentVolumeFilesystem
	want := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "pvc-u1",
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "demo"},
			Finalizers:  []string{"external-provisioner.volume.kubernetes.io/finalizer"},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: *ptrQuantity("1Gi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			VolumeMode:                    &filesystem,
			MountOptions:                  []string{"noatime"},
			StorageClassName:              "fast",
			PersistentVolumeReclaimPolicy: deletePolicy,
			ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "apps", Name: "data", UID: "u1"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "demo", VolumeHandle: "h", FSType: "xfs", VolumeAttributes: map[string]string{"pool": "gold"},
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	volume.Spec.ReclaimPolicy = retainPolicy
	if got, err = persistentVolume(volume); err != nil || len(got.Finalizers) > 0 {
		t.Errorf("a retained PersistentVolume has finalizers %v (%v)", got.Finalizers, err)
	}
}

func TestHandles(t *testing.T) {
	h := &handles{}
	if got := h.take("x", "a"); got != "a" {
		t.Errorf("the first to take a handle: got %q", got)
	}
	if got := h.take("x", "b"); got != "a" {
		t.Errorf("another volume: got %q", got)
	}
	if got := h.take("x", "a"); got != "a" {
		t.Errorf("the same volume again: got %q", got)
	}
	h.release("a")
	if got := h.take("x", "b"); got != "b" {
		t.Errorf("after the release: got %q", got)
	}
}
