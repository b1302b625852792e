package volume

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/queue"
)

// If a claim has become too large to copy since the previous attempt, the next attempt is refused, and no copy is
// recorded.
func TestBegin_WithAClaimThatHasGrown_IsRefused(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(pavv1.AddToScheme(scheme), corev1.AddToScheme(scheme), storagev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	claim := &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim", UID: "claim-uid"},
	}
	encoded := func(object any) apiextensionsv1.JSON {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return apiextensionsv1.JSON{Raw: text}
	}
	before := encoded(claim)
	volume := &pavv1.PavVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-claim-uid", UID: "uid"},
		Spec: pavv1.PavVolumeSpec{Provisioner: "p", ClaimRef: pavv1.ClaimReference{Namespace: "default", Name: "claim", UID: "claim-uid"},
			Claim: before, StorageClass: encoded(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}})},
		Status: pavv1.PavVolumeStatus{Attempt: 1, ProvisionedClaim: &before},
	}
	claim.Annotations = map[string]string{"large": strings.Repeat("x", pavv1.MaxClaimCopy)}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(volume).WithObjects(volume, claim).Build()
	events := record.NewFakeRecorder(10)
	r := &Reconciler{Client: kube, Live: kube, Events: events, slots: attempt.NewPool(queue.Limits{}).Of("volume", func(string) {}), Now: time.Now}
	provisioner := &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p-uid"}}
	if err := r.begin(t.Context(), observation{volume: volume, provisioner: provisioner}, decision{}); err != nil {
		t.Fatal(err)
	}
	status := &volume.Status
	want := fmt.Sprintf("and may have %d for PaV to keep a copy of it: shorten its labels or annotations", pavv1.MaxClaimCopy)
	if status.Attempt != 2 || status.Failure == nil || !strings.Contains(status.Failure.Message, want) {
		t.Errorf("attempt %d ended with %v, want attempt 2 to say %q", status.Attempt, status.Failure, want)
	}
	if got := string(status.ProvisionedClaim.Raw); strings.Contains(got, "large") {
		t.Errorf("%d bytes were recorded of the claim, want what it was before", len(got))
	}
	select {
	case event := <-events.Events:
		if !strings.Contains(event, want) {
			t.Errorf("the claim was told %q", event)
		}
	default:
		t.Error("the claim was told nothing")
	}
}
