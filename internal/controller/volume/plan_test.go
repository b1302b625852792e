package volume

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

func claimFor(mode string, accessModes []any, request, limit string) map[string]any {
	resources := map[string]any{"requests": map[string]any{"storage": request}}
	if limit != "" {
		resources["limits"] = map[string]any{"storage": limit}
	}
	return map[string]any{
		"metadata": map[string]any{"name": "data", "namespace": "apps", "uid": "u1"},
		"spec":     map[string]any{"volumeMode": mode, "accessModes": accessModes, "resources": resources},
	}
}

func TestMakePlan(t *testing.T) {
	once := []any{"ReadWriteOnce"}
	capacity := &pavv1.VolumeCreation{Capacity: field(`"{{ requestedMinCapacity }}"`)}
	creation := func(handle, capacity string) *pavv1.VolumeCreation {
		return &pavv1.VolumeCreation{Handle: field(handle), Capacity: field(capacity)}
	}
	tests := map[string]struct {
		validation *pavv1.VolumeValidation
		creation   *pavv1.VolumeCreation
		claim      map[string]any
		want       plan
		err        string
	}{
		"defaults":                           {creation: capacity, claim: claimFor("Filesystem", once, "1Gi", ""), want: plan{"pvc-u1", 1 << 30}},
		"handle and capacity are evaluated":  {creation: creation(`"{{ params.pool }}/{{ pvc.metadata.name }}"`, `"2Gi"`), claim: claimFor("Filesystem", once, "1Gi", ""), want: plan{"gold/data", 2 << 30}},
		"a capacity may be a number":         {creation: creation(`null`, `1073741824`), claim: claimFor("Filesystem", once, "1Gi", ""), want: plan{"pvc-u1", 1 << 30}},
		"the default handle can be used":     {creation: creation(`"x-{{ defaultHandle }}"`, `"1Gi"`), claim: claimFor("Filesystem", once, "1Gi", ""), want: plan{"x-pvc-u1", 1 << 30}},
		"no volumeCreation":                  {claim: claimFor("Filesystem", once, "1Gi", ""), err: "spec.volumeCreation.capacity: is required, as there is no creation pod that could write /pav/capacity"},
		"a capacity below the request":       {creation: creation(`null`, `"512Mi"`), claim: claimFor("Filesystem", once, "1Gi", ""), err: "spec.volumeCreation.capacity: the volume would have a capacity of 512Mi, but the claim requests 1Gi"},
		"a capacity that is none":            {creation: creation(`null`, `"big"`), claim: claimFor("Filesystem", once, "1Gi", ""), err: "spec.volumeCreation.capacity: "},
		"an empty handle":                    {creation: creation(`""`, `"1Gi"`), claim: claimFor("Filesystem", once, "1Gi", ""), err: "spec.volumeCreation.handle: the handle is empty"},
		"a long handle":                      {creation: creation(`"`+strings.Repeat("x", 129)+`"`, `"1Gi"`), claim: claimFor("Filesystem", once, "1Gi", ""), err: "spec.volumeCreation.handle: the handle is 129 bytes long, and may have 128 at most"},
		"a handle of 128 bytes":              {creation: creation(`"`+strings.Repeat("x", 128)+`"`, `"1Gi"`), claim: claimFor("Filesystem", once, "1Gi", ""), want: plan{strings.Repeat("x", 128), 1 << 30}},
		"a handle with a newline":            {creation: creation(`"a\nb"`, `"1Gi"`), claim: claimFor("Filesystem", once, "1Gi", ""), err: `spec.volumeCreation.handle: the handle "a\nb" has control characters`},
		"a handle that is a list":            {creation: creation(`["a"]`, `"1Gi"`), claim: claimFor("Filesystem", once, "1Gi", ""), err: "spec.volumeCreation.handle: must be a string, not a list"},
		"a template that fails names itself": {creation: creation(`"{{ nope.nope }}"`, `"1Gi"`), claim: claimFor("Filesystem", once, "1Gi", ""), err: "spec.volumeCreation.handle: "},
		"a block volume is not supported":    {creation: capacity, claim: claimFor("Block", once, "1Gi", ""), err: "the claim asks for volume mode Block, but the provisioner supports only Filesystem"},
		"or not yet":                         {validation: &pavv1.VolumeValidation{VolumeModes: field(`["Block"]`)}, creation: capacity, claim: claimFor("Block", once, "1Gi", ""), err: "the claim asks for volume mode Block, but this version of PaV does not support block volumes yet"},
		"a mode that is none":                {validation: &pavv1.VolumeValidation{VolumeModes: field(`["Tape"]`)}, creation: capacity, claim: claimFor("Filesystem", once, "1Gi", ""), err: `spec.volumeValidation.volumeModes[0]: "Tape" is none of Filesystem, Block`},
		"all access modes by default":        {creation: capacity, claim: claimFor("Filesystem", []any{"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"}, "1Gi", ""), want: plan{"pvc-u1", 1 << 30}},
		"an access mode is not supported":    {validation: &pavv1.VolumeValidation{AccessModes: field(`["ReadWriteOnce", "ReadOnlyMany"]`)}, creation: capacity, claim: claimFor("Filesystem", []any{"ReadWriteMany"}, "1Gi", ""), err: "the claim asks for access mode ReadWriteMany, but the provisioner supports only ReadWriteOnce, ReadOnlyMany"},
		"one pod where one node is":          {validation: &pavv1.VolumeValidation{AccessModes: field(`["ReadWriteOnce"]`)}, creation: capacity, claim: claimFor("Filesystem", []any{"ReadWriteOncePod"}, "1Gi", ""), want: plan{"pvc-u1", 1 << 30}},
		"one pod where one node is not":      {validation: &pavv1.VolumeValidation{AccessModes: field(`["ReadOnlyMany"]`)}, creation: capacity, claim: claimFor("Filesystem", []any{"ReadWriteOncePod"}, "1Gi", ""), err: "access mode ReadWriteOncePod"},
		"a list may be a template":           {validation: &pavv1.VolumeValidation{AccessModes: field(`"{% set yaml = true %}[ReadWriteOnce]"`)}, creation: capacity, claim: claimFor("Filesystem", once, "1Gi", ""), want: plan{"pvc-u1", 1 << 30}},
		"a limit below the least capacity":   {validation: &pavv1.VolumeValidation{MinCapacity: field(`"10Gi"`)}, creation: capacity, claim: claimFor("Filesystem", once, "1Gi", "2Gi"), err: "the claim limits its capacity to 2Gi, but the provisioner's volumes have at least 10Gi"},
		"no limit":                           {validation: &pavv1.VolumeValidation{MinCapacity: field(`"10Gi"`)}, creation: capacity, claim: claimFor("Filesystem", once, "1Gi", ""), want: plan{"pvc-u1", 1 << 30}},
		"a limit of the least capacity":      {validation: &pavv1.VolumeValidation{MinCapacity: field(`"2Gi"`)}, creation: capacity, claim: claimFor("Filesystem", once, "1Gi", "2Gi"), want: plan{"pvc-u1", 1 << 30}},
		"a request above the most capacity":  {validation: &pavv1.VolumeValidation{MaxCapacity: field(`"1Gi"`)}, creation: capacity, claim: claimFor("Filesystem", once, "2Gi", ""), err: "the claim requests a capacity of 2Gi, but the provisioner's volumes have at most 1Gi"},
		"a request of the most capacity":     {validation: &pavv1.VolumeValidation{MaxCapacity: field(`"1Gi"`)}, creation: capacity, claim: claimFor("Filesystem", once, "1Gi", ""), want: plan{"pvc-u1", 1 << 30}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := makePlan(t.Context(), request{
				provisioner: &pavv1.PavProvisioner{Spec: pavv1.PavProvisionerSpec{VolumeValidation: test.validation, VolumeCreation: test.creation}},
				claim:       test.claim,
				class:       map[string]any{"parameters": map[string]any{"pool": "gold"}},
				templates:   template.NewEvaluator(template.DefaultLimits()),
				getPVC:      func(context.Context, string, string) (map[string]any, error) { return nil, errors.New("not found") },
			})
			if text := fmt.Sprint(err); (err == nil) != (test.err == "") || !strings.Contains(text, test.err) && err != nil {
				t.Fatalf("got error %v, want %q", err, test.err)
			}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

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
