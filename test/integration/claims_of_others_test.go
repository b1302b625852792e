package integration

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/kubelet"
)

// looksUp gives a provisioner volumes of the capacity of another claim, which the annotations of the claim name.
func looksUp(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
	p.Spec.AllowedClaimNamespaces = []string{}
	p.Spec.VolumeCreation.Capacity = field(`"{{ get_pvc(pvc.metadata.annotations.name, pvc.metadata.annotations.namespace).spec.resources.requests.storage }}"`)
}

// A tenant cannot make a definition read another tenant's claim, unless the definition allows it; and the
// administrator gets an event about both.
func TestLookupInTheNamespaceOfAnotherTenant(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner := driver(t, c, "looking", looksUp)
	class := classOf("looking")
	theirs := claimOf("none-of-ours", "theirs")
	theirs.Annotations = map[string]string{"secret": "s3cr3t"}
	mustCreate(t, c, theirs)
	t.Cleanup(func() { mustDeleteLasting(t, c, theirs) })

	namespace := mustCreate(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "tenant-"}})
	as := tenant(t, c, namespace.Name)
	claim := claimOf(class.Name, "data")
	claim.Namespace = namespace.Name
	claim.Annotations = map[string]string{"name": theirs.Name, "namespace": theirs.Namespace}
	if err := as.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed", `get_pvc(): "theirs" in namespace "default": spec.allowedClaimNamespaces does not allow`)
	volume := volumeOf(claim)
	exists(t, c, volume, "is there", func(*pavv1.PavVolume) bool { return true })
	wantEvent(t, c, volume, "Warning", "ForeignClaim", `for a claim of namespace "`+namespace.Name+`"`)

	mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) { p.Spec.AllowedClaimNamespaces = []string{"other", "default"} })
	pv, _ := bound(t, c, claim)
	if capacity := pv.Spec.Capacity[corev1.ResourceStorage]; capacity.String() != "1Gi" {
		t.Errorf("the volume has a capacity of %s", capacity.String())
	}
	wantEvent(t, c, volume, "Normal", "ForeignClaim", `get_pvc() read claim "theirs" in namespace "default"`)
}

// A claim names a volume that is bound to another claim: a volume is staged only if claim and volume are bound to each
// other.
func TestStaging_ClaimThatOnlyNamesTheVolume(t *testing.T) {
	n := newNode(t, workers(t, nil))
	a := n.run(t)
	defer a.Stop(t)
	v := n.volume(t, "of-another-tenant")
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: v.Name}}
	mustDelete(t, n.c, claim)
	gone(t, n.c, claim)
	imposter := claimOf("", v.Name)
	imposter.Spec.VolumeName = v.Name
	imposter.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1Mi")
	if err := tenant(t, n.c, "default").Create(t.Context(), imposter); err != nil {
		t.Fatal(err)
	}
	n.isRefused(t, v, "are not bound to each other")
	n.unstage(t, v) // as kubelet does
}

// Staging and unstaging see the claim as it was when the volume was created, whatever has changed since.
func TestStaging_SeesTheClaimOfWhichTheVolumeWasMade(t *testing.T) {
	const sees = `"annotations": {"sees": "{{ provisionedPvc.metadata.labels.owner }} {{ pvc.metadata.labels.owner }}", `
	template := strings.Replace(workerTemplate, `"annotations": {`, sees, 1)
	n := newNode(t, workers(t, nil), func(p *pavv1.PavProvisioner) {
		p.Spec.VolumeStaging.PodTemplate, p.Spec.VolumeUnstaging.PodTemplate = *field(template), field(template)
	})
	a := n.run(t)
	defer a.Stop(t)
	v := n.volume(t, "as-it-was")
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: v.Name}}
	mustPatch(t, n.c, claim, func(claim *corev1.PersistentVolumeClaim) { claim.Labels = map[string]string{"owner": "another"} })
	record := mustCreate(t, n.c, &pavv1.PavVolume{
		ObjectMeta: metav1.ObjectMeta{Name: v.Name},
		Spec: pavv1.PavVolumeSpec{
			Provisioner: v.Driver, ClaimRef: pavv1.ClaimReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			StorageClass: *field(`{}`), Claim: *field(`{"metadata": {"labels": {"owner": "another"}}}`), ReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		},
	})
	t.Cleanup(func() { mustDeleteLasting(t, n.c, record) })
	record.Status.Handle, record.Status.ProvisionedClaim = v.Handle, field(`{"metadata": {"labels": {"owner": "first"}}}`)
	if err := n.c.Admin.Status().Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}

	n.stage(t, v)
	stages := n.stages(t)
	if len(stages) != 1 || stages[0].Spec.ProvisionedClaim == nil || stages[0].Status.StagingPod == nil {
		t.Fatalf("got PavStages %+v", stages)
	}
	ref := stages[0].Status.StagingPod
	pod := &corev1.Pod{}
	if err := n.c.Admin.Get(t.Context(), client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, pod); err != nil {
		t.Fatal(err)
	}
	if got, want := pod.Annotations["sees"], "first another"; got != want {
		t.Errorf("the staging pod sees %q, want %q", got, want)
	}
	mustDelete(t, n.c, record) // unstaging does without it
	gone(t, n.c, record)
	n.unstage(t, v)
	n.wantRuns(t, v, runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging))
}

// A claim that has become too large is not copied to the PavStage.
func TestStaging_ClaimThatIsTooLarge(t *testing.T) {
	n := newNode(t, workers(t, nil))
	a := n.run(t)
	defer a.Stop(t)
	v := n.volume(t, "of-a-large-claim")
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: v.Name}}
	as := tenant(t, n.c, "default")
	annotate(t, as, claim, "large", strings.Repeat("x", 200<<10))
	n.isRefused(t, v, "shorten its labels or annotations")
	annotate(t, as, claim, "large", "")
	n.stage(t, v)
	n.unstage(t, v)
}

// isRefused waits until staging a volume fails with such words, and fails the test if anything was done.
func (n *node) isRefused(t *testing.T, v kubelet.Volume, words string) {
	t.Helper()
	eventually(t, "staging is refused", func(ctx context.Context) (bool, string) {
		err := n.Stage(ctx, v)
		if err == nil {
			t.Fatal("the volume was staged")
		}
		return strings.Contains(err.Error(), words), err.Error()
	})
	if stages := n.stages(t); len(stages) > 0 {
		t.Errorf("there is a PavStage: %s", stages[0].Name)
	}
	if ran := n.Journal.Of(v.Handle); len(ran) > 0 {
		t.Errorf("%d pods ran", len(ran))
	}
}
