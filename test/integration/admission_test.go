package integration

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/admission"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// The certificate and its authority are renewed repeatedly while requests are sent; none fails.
func TestWebhook_CertificateIsRenewedUnderRequests(t *testing.T) {
	c := start(t)
	w := serveWebhook(t, c)
	// They are renewed after a few seconds and are valid for much longer, so none expires, however slow a replica is.
	const ahead = 10 * time.Minute
	lifetimes := admission.Lifetimes{CA: ahead + 8*time.Second, Server: ahead + 3*time.Second, Ahead: ahead}
	replicas := []*replica{w.launch(t, lifetimes), w.launch(t, lifetimes)}
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: admission.ConfigurationName}}
	served, authorities := map[string]bool{}, map[string]bool{}
	asked := 0
	eventually(t, "certificate and authority were renewed", func(ctx context.Context) (bool, string) {
		if err := w.try(ctx, provisionerOf("asked")); err != nil {
			t.Errorf("request %d fails: %v", asked, err)
		}
		asked++
		exists(t, c, configuration, "is there", func(*admissionregistrationv1.ValidatingWebhookConfiguration) bool { return true }) //nolint:contextcheck // it has its own deadline
		for _, r := range replicas {
			certificate, err := r.certificate(ctx, configuration.Webhooks[0].ClientConfig.CABundle)
			if err != nil { // The authority may have been replaced since the bundle was read.
				exists(t, c, configuration, "is there", func(*admissionregistrationv1.ValidatingWebhookConfiguration) bool { return true }) //nolint:contextcheck // it has its own deadline
				certificate, err = r.certificate(ctx, configuration.Webhooks[0].ClientConfig.CABundle)
			}
			if err != nil {
				t.Errorf("a replica is not trusted after %d requests: %v", asked, err)
				continue
			}
			served[string(certificate.Raw)] = true
			authorities[string(certificate.AuthorityKeyId)] = true
		}
		return len(served) >= 4 && len(authorities) >= 2 || t.Failed(), ""
	})
	t.Logf("%d requests, %d certificates of %d authorities", asked, len(served), len(authorities))
	for _, r := range replicas {
		if ready, answer := r.ready(t.Context()); !ready {
			t.Errorf("a replica is not ready: %s", answer)
		}
	}
}

// In a rolling update from a version without the webhook, the leader does not know the webhook, and runs until another
// replica is ready.
func TestWebhook_IsReady_WithOrWithoutTheLease(t *testing.T) {
	c := start(t)
	w := serveWebhook(t, c)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pav-controller"}}
	if err := c.Admin.Delete(t.Context(), lease.DeepCopy()); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	now := metav1.NowMicro()
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: new("former"), LeaseDurationSeconds: new(int32(3600)), AcquireTime: &now, RenewTime: &now}
	mustCreate(t, c, lease)
	t.Cleanup(func() {
		if err := c.Admin.Delete(lasting(t), lease); err != nil {
			t.Error(err)
		}
	})
	w.launch(t, admission.DefaultLifetimes())
	if err := w.try(t.Context(), provisionerOf("asked")); err != nil {
		t.Errorf("a replica that does not lead does not serve: %v", err)
	}
	exists(t, c, lease, "is still the former leader's", func(l *coordinationv1.Lease) bool { return *l.Spec.HolderIdentity == "former" })
}

// One replica is enough, leader or not. Without any, definitions cannot be written, but everything else works.
func TestWebhook_FailsClosed_AndOnlyForDefinitions(t *testing.T) {
	c := start(t)
	w := serveWebhook(t, c)
	first := w.launch(t, admission.DefaultLifetimes())
	second := w.launch(t, admission.DefaultLifetimes())
	provisioner := mustCreate(t, c, provisionerOf("judged"))
	exists(t, c, provisioner, "is accepted", func(p *pavv1.PavProvisioner) bool {
		return meta.IsStatusConditionTrue(p.Status.Conditions, pavv1.ProvisionerAccepted)
	})
	first.Stop(t)
	if err := w.try(t.Context(), provisionerOf("other")); err != nil {
		t.Errorf("the other replica does not serve: %v", err)
	}
	exists(t, c, provisioner, "is there", func(*pavv1.PavProvisioner) bool { return true })
	// A foreign object of the name is refused by both the leader and the others.
	mustCreate(t, c, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "taken"}})
	t.Cleanup(func() { _ = c.Admin.Delete(lasting(t), csiDriver("taken")) })
	if err := w.try(t.Context(), provisionerOf("taken")); err == nil || !strings.Contains(err.Error(), "choose another name") {
		t.Errorf("the name of a foreign CSIDriver: got %v", err)
	}
	second.Stop(t)

	err := w.try(t.Context(), provisionerOf("other"))
	if err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("without replicas: got %v", err)
	}
	changed := provisioner.DeepCopy()
	changed.Spec.ProvisioningModes = append(changed.Spec.ProvisioningModes, pavv1.ProvisioningModeStatic)
	if err := c.Admin.Update(t.Context(), changed); err == nil {
		t.Error("without replicas, a changed spec is taken")
	}
	mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) { p.Annotations = map[string]string{"note": "text"} })
	mustDelete(t, c, provisioner)
	mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) { p.Finalizers = nil })
	gone(t, c, provisioner)
	if err := c.Admin.Delete(t.Context(), csiDriver("judged")); err != nil { // no garbage collector runs here
		t.Error(err)
	}
	checkNothingLeft(t, c)
}

func TestWebhook_ReportsAllMistakesAtOnce(t *testing.T) {
	c := start(t)
	w := serveWebhook(t, c)
	w.launch(t, admission.DefaultLifetimes())
	wrong := provisionerOf("wrong")
	wrong.Spec.VolumeCreation.Capacity = field(`"{{ requestedMinCapacty }}"`)
	wrong.Spec.VolumeStaging.PodTemplate = *field(`{"spec": {"containers": [{"name": "Stage", "image": "busybox:1.37.0", "volumeMounts": [{"name": "none", "mountPath": "/none"}]}]}}`)
	// The schema must not speak before the webhook.
	nested := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"volumeCreation": map[string]any{"hndle": "h", "volumeStaging": map[string]any{"podTemplate": map[string]any{}}},
	}}}
	nested.SetGroupVersionKind(pavv1.GroupVersion.WithKind("PavProvisioner"))
	nested.SetName("nested")
	for name, test := range map[string]struct {
		object client.Object
		fields []string
		says   string
	}{
		"in templates": {wrong, []string{"spec.volumeCreation.capacity", "spec.volumeStaging.podTemplate.spec.containers[0].name", "spec.volumeStaging.podTemplate.spec.containers[0].volumeMounts[0].name"},
			"requestedMinCapacity"},
		"in the structure": {nested, []string{"spec.provisioningModes", "spec.volumeCreation.hndle", "spec.volumeCreation.volumeStaging", "spec.volumeStaging"},
			"it belongs in spec: check the indentation"},
	} {
		t.Run(name, func(t *testing.T) {
			err := w.try(t.Context(), test.object)
			var status apierrors.APIStatus
			if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
				t.Fatalf("got %v", err)
			}
			var fields []string
			for _, cause := range status.Status().Details.Causes {
				fields = append(fields, cause.Field)
			}
			slices.Sort(fields)
			if diff := cmp.Diff(test.fields, fields); diff != "" || !strings.Contains(err.Error(), test.says) {
				t.Errorf("fields (-want +got):\n%s%v", diff, err)
			}
		})
	}
}
