package claim

import (
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

// A former leader must not replace a newer copy of a claim by the one that it has read.
func TestCopyPatch_ReplacesOnlyTheCopyThatTheCacheHas(t *testing.T) {
	withCopy := func(uid, claim string) *pavv1.PavVolume {
		return &pavv1.PavVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1", UID: types.UID(uid)},
			Spec:       pavv1.PavVolumeSpec{Provisioner: "demo", Claim: apiextensionsv1.JSON{Raw: []byte(claim)}},
		}
	}
	const first = `{"metadata":{"resourceVersion":"7","labels":{"a":"b"}}}`
	const second = `{"metadata":{"resourceVersion":"8"}}`
	tests := map[string]struct {
		cached, live *pavv1.PavVolume
		want         bool
	}{
		"it is the same":                 {withCopy("v1", first), withCopy("v1", first), true},
		"the cache keeps less of it":     {withCopy("v1", `{"metadata":{"resourceVersion":"7"}}`), withCopy("v1", first), true},
		"another process has copied it":  {withCopy("v1", first), withCopy("v1", `{"metadata":{"resourceVersion":"9"}}`), false},
		"it is another PavVolume":        {withCopy("v1", first), withCopy("v2", first), false},
		"the copy has no version at all": {withCopy("v1", `{}`), withCopy("v1", `{}`), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			patch, err := copyPatch(test.cached, apiextensionsv1.JSON{Raw: []byte(second)})
			if err != nil {
				t.Fatal(err)
			}
			text, err := patch.Data(nil)
			if err != nil {
				t.Fatal(err)
			}
			decoded, err := jsonpatch.DecodePatch(text)
			if err != nil {
				t.Fatal(err)
			}
			live, err := json.Marshal(test.live)
			if err != nil {
				t.Fatal(err)
			}
			patched, err := decoded.Apply(live)
			if (err == nil) != test.want {
				t.Fatalf("got %v, want it replaced: %t", err, test.want)
			}
			if err != nil {
				return
			}
			got := &pavv1.PavVolume{}
			if err := json.Unmarshal(patched, got); err != nil {
				t.Fatal(err)
			}
			if string(got.Spec.Claim.Raw) != second || got.Spec.Provisioner != "demo" {
				t.Errorf("got %s", patched)
			}
		})
	}
}

// By the label, the agent of the node stages the volume before kubelet calls.
func TestNewPavVolume_NamesTheNodeThatTheSchedulerHasChosen(t *testing.T) {
	plain := map[string]string{pavv1.ProvisionerLabel: "demo"}
	for name, test := range map[string]struct {
		node string
		mode storagev1.VolumeBindingMode
		want map[string]string
	}{
		"chosen":                          {"n1", storagev1.VolumeBindingWaitForFirstConsumer, map[string]string{pavv1.ProvisionerLabel: "demo", pavv1.NodeLabel: workflow.Hash("n1")}},
		"none":                            {"", storagev1.VolumeBindingImmediate, plain},
		"one that the tenant has written": {"n1", storagev1.VolumeBindingImmediate, plain},
	} {
		o := snapshot{
			claim:       &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", UID: "u"}},
			class:       &storagev1.StorageClass{VolumeBindingMode: &test.mode},
			provisioner: &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "demo"}},
		}
		if test.node != "" {
			o.claim.Annotations = map[string]string{protocol.SelectedNode: test.node}
		}
		volume, err := newPavVolume(o, &unstructured.Unstructured{}, &unstructured.Unstructured{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, volume.Labels); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
