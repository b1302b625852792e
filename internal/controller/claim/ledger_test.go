package claim

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
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
		volume, err := newPavVolume(o, copied{claim: &unstructured.Unstructured{}, class: &unstructured.Unstructured{}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, volume.Labels); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The copy outlives the claim: a deletion pod is made from it. So it must be of this claim, from before its deletion, and a
// patch that the API server refuses is an error unless another agent was faster.
func TestCopyClaim(t *testing.T) {
	invalid := apierrors.NewInvalid(pavv1.GroupVersion.WithKind("PavVolume").GroupKind(), "pvc-u1", nil)
	errTimeout := errors.New("timeout")
	deleted := func(c *corev1.PersistentVolumeClaim) {
		c.DeletionTimestamp, c.Finalizers = new(metav1.Now()), []string{"kubernetes.io/pvc-protection"}
	}
	for name, test := range map[string]struct {
		claim  func(*corev1.PersistentVolumeClaim)
		volume func(*pavv1.PavVolume)
		answer error
		copied bool
		want   error
	}{
		"the claim has changed":                     {copied: true},
		"the claim was replaced":                    {claim: func(c *corev1.PersistentVolumeClaim) { c.UID = "u2" }},
		"the claim is being deleted":                {claim: deleted},
		"the API server refuses the copy":           {answer: invalid, want: invalid},
		"another agent has copied the claim":        {answer: invalid, volume: func(v *pavv1.PavVolume) { v.Spec.Claim.Raw = []byte(`{"metadata":{"resourceVersion":"8"}}`) }, want: reconcile.ErrStale},
		"the API server does not answer":            {answer: errTimeout, volume: func(v *pavv1.PavVolume) { v.UID = "v2" }, want: errTimeout},
		"the PavVolume was replaced":                {answer: invalid, volume: func(v *pavv1.PavVolume) { v.UID = "v2" }, want: reconcile.ErrStale},
		"the PavVolume is gone":                     {answer: invalid, volume: func(v *pavv1.PavVolume) { v.Name = "another" }, want: reconcile.ErrStale},
		"the PavVolume was deleted before the copy": {answer: apierrors.NewNotFound(schema.GroupResource{}, "pvc-u1")},
	} {
		t.Run(name, func(t *testing.T) {
			o := provisionable()
			withVolume(&o, `{"metadata":{"resourceVersion":"6"}}`)
			o.volume.Name, o.volume.UID = "pvc-u1", "v1"
			claim, volume := o.claim.DeepCopy(), o.volume.DeepCopy()
			claim.ResourceVersion = ""
			if test.claim != nil {
				test.claim(claim)
			}
			if test.volume != nil {
				test.volume(volume)
			}
			var patched string
			kube := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(claim, volume).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
					data, err := patch.Data(object)
					patched = string(data)
					return errors.Join(err, test.answer)
				},
			}).Build()
			r := &Reconciler{Client: kube, Live: kube, Now: time.Now}
			if err := r.copyClaim(t.Context(), o); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if copied := patched != "" && test.answer == nil; copied != test.copied {
				t.Errorf("the claim was copied: %t, want %t", copied, test.copied)
			}
		})
	}
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{pavv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}
