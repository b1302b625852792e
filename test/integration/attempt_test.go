package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// tenant returns a client of a user who may write claims of one namespace, and nothing else.
func tenant(t *testing.T, c *cluster, namespace string) client.Client {
	t.Helper()
	user, err := c.Environment.AddUser(envtest.User{Name: "tenant-of-" + namespace}, &rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	name := metav1.ObjectMeta{Namespace: namespace, Name: "tenant"}
	role := mustCreate(t, c, &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"*"},
	}}})
	binding := mustCreate(t, c, &rbacv1.RoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "tenant-of-" + namespace}},
	})
	t.Cleanup(func() { _, _ = c.Admin.Delete(lasting(t), binding), c.Admin.Delete(lasting(t), role) })
	config := rest.CopyConfig(user.Config())
	config.QPS = -1
	as, err := client.New(config, client.Options{Scheme: c.Admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	// The API server's authorizer has to see the role first.
	eventually(t, "the tenant may write claims", func(ctx context.Context) (bool, string) {
		err := client.NewDryRunClient(as).Create(ctx, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "try-"}, Spec: claimOf("none", "try").Spec,
		})
		return err == nil, fmt.Sprint(err)
	})
	return as
}

// annotate changes an annotation of a claim, as its tenant.
func annotate(t *testing.T, as client.Client, claim *corev1.PersistentVolumeClaim, key, value string) {
	t.Helper()
	changed := &corev1.PersistentVolumeClaim{}
	if err := as.Get(t.Context(), client.ObjectKeyFromObject(claim), changed); err != nil {
		t.Fatal(err)
	}
	before := changed.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, key, value)
	if err := as.Patch(t.Context(), changed, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// tellsShare gives a provisioner validation, creation and deletion pods with annotations of what their templates see.
func tellsShare(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
	const pod = `{"metadata": {"annotations": {"sees": "%s"}}, "spec": {"containers": [{"name": "main", "image": "none"}]}}`
	sees := field(fmt.Sprintf(pod, "{{ pvc.metadata.annotations.share }}"))
	p.Spec.VolumeValidation = &pavv1.VolumeValidation{PodTemplate: sees}
	p.Spec.VolumeCreation.PodTemplate = sees
	p.Spec.VolumeDeletion = &pavv1.VolumeDeletion{PodTemplate: field(fmt.Sprintf(pod, "{{ pvc.metadata.annotations.share|default('none') }} {{ provisionedPvc.metadata.annotations.share }}"))}
}

// sharing returns a claim with an annotation that validation and creation pods act on.
func sharing(class, share string) *corev1.PersistentVolumeClaim {
	claim := claimOf(class, "data")
	claim.Annotations = map[string]string{"share": share}
	return claim
}

// A tenant who changes the claim while its validation pod runs gets no volume that was not validated.
func TestClaimChangedWhileItIsValidated_IsValidatedAgain(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "validated", tellsShare)
	as := tenant(t, c, "default")
	claim := sharing("validated", "mine")
	if err := as.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	first, volume := podOf(t, c, claim, pavv1.WorkflowValidation)
	if got := first.Annotations["sees"]; got != "mine" {
		t.Fatalf("the validation pod sees %q", got)
	}
	annotate(t, as, claim, "share", "theirs")
	end(t, c, first, workflow.Result{}, 0)

	exists(t, c, volume, "is validated again", func(v *pavv1.PavVolume) bool {
		if v.Status.Step == pavv1.StepCreating {
			t.Fatal("a creation pod follows the validation of another claim")
		}
		return v.Status.Attempt == 2 && v.Status.Pod != nil && v.Status.Pod.UID != ""
	})
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed", "the claim's metadata.annotations changed after it was validated; it is validated again")
	second, _ := podOf(t, c, claim, pavv1.WorkflowValidation)
	if got := second.Annotations["sees"]; got != "theirs" || second.Name == first.Name {
		t.Errorf("the second validation pod, %s, sees %q", second.Name, got)
	}
	end(t, c, second, workflow.Result{Error: "not yours"}, 1)
	exists(t, c, volume, "is refused", func(v *pavv1.PavVolume) bool {
		return v.Status.Failure != nil && strings.Contains(v.Status.Failure.Message, "not yours")
	})

	annotate(t, as, claim, "share", "mine")
	third, _ := nextPod(t, c, claim, second, pavv1.WorkflowValidation)
	end(t, c, third, workflow.Result{}, 0)
	creation, _ := podOf(t, c, claim, pavv1.WorkflowCreation)
	if got := creation.Annotations["sees"]; got != "mine" {
		t.Errorf("the creation pod sees %q", got)
	}

	// Deletion sees the claim as it was at creation, whatever the tenant writes since.
	annotate(t, as, claim, "share", "theirs")
	end(t, c, creation, workflow.Result{}, 0)
	bound(t, c, claim)
	exists(t, c, volume, "has a copy of the claim as it is", func(v *pavv1.PavVolume) bool { return copyOf(t, v).Annotations["share"] == "theirs" })
	if err := as.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	deletion, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
	if got := deletion.Annotations["sees"]; got != "theirs mine" {
		t.Errorf("the deletion pod sees %q of the claim and of what it was", got)
	}
	end(t, c, deletion, workflow.Result{}, 0)
	gone(t, c, volume)
}

// nextPod is podOf for the pod after another one of its kind.
func nextPod(t *testing.T, c *cluster, claim *corev1.PersistentVolumeClaim, previous *corev1.Pod, kind string) (*corev1.Pod, *pavv1.PavVolume) {
	t.Helper()
	exists(t, c, volumeOf(claim), "has another pod", func(v *pavv1.PavVolume) bool {
		return v.Status.Pod != nil && v.Status.Pod.UID != "" && v.Status.Pod.UID != previous.UID
	})
	return podOf(t, c, claim, kind)
}

// timesReported returns how often the agents have reported events on an object, and what.
func timesReported(t *testing.T, c *cluster, object client.Object) (n int32, what string) {
	t.Helper()
	for _, e := range eventsOf(t.Context(), t, c, object) {
		n += e.Count
		what += fmt.Sprintf("%d of %s %s: %s\n", e.Count, e.Type, e.Reason, e.Message)
	}
	return n, what
}

// reconcileErrors returns how many passes of a controller have failed.
func reconcileErrors(t *testing.T, controller string) (n float64) {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_errors_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "controller" && label.GetValue() == controller {
					n += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

// The recorder passes 25 events of one object, and then one every five minutes: an attempt that is refused repeatedly must
// leave some of them for later events.
func TestRefusedClaim_KeepsItsEvents(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner := driver(t, c, "refusing")
	as := tenant(t, c, "default")
	claim := claimOf("refusing", "data")
	claim.Spec.Selector = &metav1.LabelSelector{}
	if err := as.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	const message = "dynamic provisioning cannot honour a selector"
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed", message)
	errorsBefore := reconcileErrors(t, "claim")
	for i := range 100 {
		annotate(t, as, claim, "round", fmt.Sprint(i))
	}
	mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) {
		p.Spec.ProvisioningModes, p.Spec.VolumeCreation = []pavv1.ProvisioningMode{pavv1.ProvisioningModeStatic}, nil
	})
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed", "does not provision dynamically")
	if n, what := timesReported(t, c, claim); n > 2 {
		t.Errorf("after 100 changes of a refused claim, %d events were reported:\n%s", n, what)
	}
	if failed := reconcileErrors(t, "claim") - errorsBefore; failed > 0 {
		t.Errorf("%v passes over a refused claim count as failures of PaV", failed)
	}
}

func TestRefusedAttempts_KeepTheEventsOfTheClaim(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner := driver(t, c, "mistaken", func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.VolumeCreation.Handle = field(`"{{ nope.nope }}"`)
	})
	claim := mustCreate(t, c, claimOf("mistaken", "data"))
	volume := volumeOf(claim)
	const rounds = 90
	for i := range int32(rounds) {
		exists(t, c, volume, fmt.Sprintf("has failed %d times", i+1), func(v *pavv1.PavVolume) bool {
			return v.Status.Attempt > i && v.Status.Failure != nil
		})
		// A definition that has changed is tried at once.
		mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) {
			p.Spec.VolumeCreation.Capacity = field(fmt.Sprintf(`"{{ requestedMinCapacity + %d }}"`, i))
		})
	}
	if n, what := timesReported(t, c, claim); n > 2 {
		t.Errorf("%d attempts that were refused in the same words were reported %d times:\n%s", volume.Status.Attempt, n, what)
	}
	mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) { p.Spec.VolumeCreation.Handle = nil })
	bound(t, c, claim)
	wantEvent(t, c, claim, "Normal", "ProvisioningSucceeded", volume.Name)
}

// A tenant can neither make PaV's record of a volume large, nor make PaV write it often.
func TestCopiesOfClaims_AreSmallAndRare(t *testing.T) {
	c := start(t)
	a := run(t, c)
	driver(t, c, "copied", withDeletionPod, inPool)
	as := tenant(t, c, "default")
	large := strings.Repeat("x", 200<<10)

	refused := claimOf("copied", "large")
	refused.Annotations = map[string]string{"large": large}
	if err := as.Create(t.Context(), refused); err != nil {
		t.Fatal(err)
	}
	wantEvent(t, c, refused, "Warning", "ProvisioningFailed", "and may have 32768 for PaV to keep a copy of it")
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(volumeOf(refused)), &pavv1.PavVolume{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("a claim that is too large has a PavVolume (%v)", err)
	}
	if err := as.Delete(t.Context(), refused); err != nil {
		t.Fatal(err)
	}

	claim := ownedClaim("copied", "me")
	if err := as.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	pv, volume := bound(t, c, claim)
	began, written := time.Now(), copiesWritten(a.Line.Writes(), volume.Name)
	const rounds = 60
	for i := range rounds {
		annotate(t, as, claim, "round", fmt.Sprint(i))
	}
	exists(t, c, volume, "follows the claim", func(v *pavv1.PavVolume) bool {
		return strings.Contains(string(v.Spec.Claim.Raw), fmt.Sprintf(`"round":"%d"`, rounds-1))
	})
	// A write counts once the agent has the answer, which may be after the watch shows it here.
	copies := func() int { return copiesWritten(a.Line.Writes(), volume.Name) - written }
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, deadline, true, func(context.Context) (bool, error) { return copies() > 0, nil }); err != nil {
		t.Error("the copy of the claim was not written by the agent")
	}
	if n, most := copies(), int(time.Since(began)/time.Second)+2; n > most {
		t.Errorf("%d changes of a claim in %s were copied %d times, want %d at most", rounds, time.Since(began), n, most)
	}

	annotate(t, as, claim, "large", large)
	wantEvent(t, c, claim, "Warning", "Provisioning", "the volume will be deleted by what the claim was before")
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(volume), volume); err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(volume.Spec.Claim); err != nil || len(text) > pavv1.MaxClaimCopy || !strings.Contains(string(text), `"owner":"me"`) {
		t.Errorf("the copy of a claim of %d bytes has %d (%v)", len(large), len(text), err)
	}
	if err := as.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	gone(t, c, claim)
	pod, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
	if got, want := pod.Annotations["sees"], "me gold "+pv.Name; got != want {
		t.Errorf("the deletion pod sees %q, want %q", got, want)
	}
	end(t, c, pod, workflow.Result{}, 0)
	gone(t, c, volume)
}

// copiesWritten counts the writes of a PavVolume that are not of its status.
func copiesWritten(writes []string, volume string) (n int) {
	for _, write := range writes {
		if strings.HasPrefix(write, "PATCH ") && strings.HasSuffix(write, "/pavvolumes/"+volume) {
			n++
		}
	}
	return n
}
