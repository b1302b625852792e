package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

func budgetIn(namespace string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pav-staging"}}
}

// protects reports whether a budget keeps all staging pods of its namespace, whatever their number, but for those
// that are said to be evictable.
func protects(b *policyv1.PodDisruptionBudget) bool {
	if b.Spec.Selector == nil {
		return false
	}
	exceptions := b.Spec.Selector.MatchExpressions
	return len(exceptions) == 1 && exceptions[0].Key == pavv1.EvictableLabel && exceptions[0].Operator == metav1.LabelSelectorOpDoesNotExist &&
		b.Spec.MinAvailable != nil && b.Spec.MinAvailable.IntVal == 1<<31-1 && b.Spec.MaxUnavailable == nil &&
		b.Spec.Selector.MatchLabels[pavv1.WorkflowLabel] == pavv1.WorkflowStaging && len(b.Spec.Selector.MatchLabels) == 1
}

// openNamespace creates a namespace whose label AllowPodsLabel has a value. Nothing can delete a
// namespace here for good, so that its name must be new.
func openNamespace(t *testing.T, c *cluster, name, value string) *corev1.Namespace {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if value != "" {
		namespace.Labels = map[string]string{pavv1.AllowPodsLabel: value}
	}
	return mustCreate(t, c, namespace)
}

func setOpen(t *testing.T, c *cluster, namespace *corev1.Namespace, value string) {
	t.Helper()
	mustPatch(t, c, namespace, func(n *corev1.Namespace) {
		if value == "" {
			delete(n.Labels, pavv1.AllowPodsLabel)
			return
		}
		metav1.SetMetaDataLabel(&n.ObjectMeta, pavv1.AllowPodsLabel, value)
	})
}

// none checks that a namespace has no budget, now.
func none(t *testing.T, c *cluster, namespace string) {
	t.Helper()
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(budgetIn(namespace)), budgetIn(namespace)); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("namespace %s has a budget (%v)", namespace, err)
	}
}

func TestStagingPodsAreProtected_InOpenNamespacesOnly(t *testing.T) {
	c := start(t)
	run(t, c)
	openNamespace(t, c, "protected-never", "")
	openNamespace(t, c, "protected-no", "false")
	namespace := openNamespace(t, c, "protected", "true")
	budget := budgetIn(namespace.Name)
	driver := csiDriver(pavv1.Driver)
	exists(t, c, driver, "exists", func(d *storagev1.CSIDriver) bool { return d.GetUID() != "" })
	exists(t, c, budget, "is PaV's", func(b *policyv1.PodDisruptionBudget) bool {
		return protects(b) && metav1.IsControlledBy(b, driver) && b.OwnerReferences[0].BlockOwnerDeletion == nil
	})

	mustPatch(t, c, budget, func(b *policyv1.PodDisruptionBudget) {
		b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, new(intstr.FromInt32(1))
	})
	exists(t, c, budget, "is put right", protects)
	mustPatch(t, c, budget, func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector.MatchExpressions = nil }) // as in a former version
	exists(t, c, budget, "is updated", protects)
	mustDelete(t, c, budget)
	exists(t, c, budget, "is back", protects)
	setOpen(t, c, namespace, "")
	gone(t, c, budget)
	setOpen(t, c, namespace, "true")
	exists(t, c, budget, "is back again", protects)
	setOpen(t, c, namespace, "false")
	gone(t, c, budget)
	none(t, c, "protected-never")
	none(t, c, "protected-no")

	ofOthers := budgetIn(namespace.Name)
	ofOthers.Spec.MinAvailable = new(intstr.FromInt32(1))
	mustCreate(t, c, ofOthers)
	setOpen(t, c, namespace, "true")
	exists(t, c, budget, "is taken over", func(b *policyv1.PodDisruptionBudget) bool { return protects(b) && metav1.IsControlledBy(b, driver) })
	setOpen(t, c, namespace, "")
	gone(t, c, budget)
}

func TestProtectionOfPaVsOwnNamespace_IsPartOfTheInstallation(t *testing.T) {
	c := start(t)
	budget := budgetIn(workflow.DefaultNamespace)
	exists(t, c, budget, "is installed", func(b *policyv1.PodDisruptionBudget) bool { return protects(b) && len(b.OwnerReferences) == 0 })
	run(t, c)
	mustPatch(t, c, budget, func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = new(intstr.FromInt32(0)) })
	exists(t, c, budget, "is put right", func(b *policyv1.PodDisruptionBudget) bool { return protects(b) && len(b.OwnerReferences) == 0 })
	mustDelete(t, c, budget)
	exists(t, c, budget, "is back", protects)
}

// An uninstallation takes PaV's CSIDriver away first; the garbage collector, which does not run here, then
// takes the budgets away, while the controller agent still runs.
func TestProtectionGoesWithPaV(t *testing.T) {
	c := start(t)
	run(t, c)
	first, second := openNamespace(t, c, "protected-1", "true"), openNamespace(t, c, "protected-2", "true")
	budgets := []*policyv1.PodDisruptionBudget{budgetIn(first.Name), budgetIn(second.Name)}
	for _, budget := range budgets {
		exists(t, c, budget, "protects", protects)
	}
	driver := csiDriver(pavv1.Driver)
	exists(t, c, driver, "exists", func(d *storagev1.CSIDriver) bool { return d.GetUID() != "" })
	again := csiDriver(pavv1.Driver)
	again.Spec = *driver.Spec.DeepCopy()
	mustDelete(t, c, driver)
	gone(t, c, driver)
	installed := false
	t.Cleanup(func() {
		if !installed {
			_ = c.Admin.Create(lasting(t), again)
		}
	})
	mustDelete(t, c, budgets[0])
	// The change of a closed namespace shows that the controller has run since.
	setOpen(t, c, second, "")
	gone(t, c, budgets[1])
	none(t, c, first.Name)

	mustCreate(t, c, again)
	installed = true
	exists(t, c, budgets[0], "is back, with the new owner", func(b *policyv1.PodDisruptionBudget) bool { return protects(b) && metav1.IsControlledBy(b, again) })
	setOpen(t, c, first, "")
	gone(t, c, budgets[0])
}

func TestProtectionOfAClosedNamespaceGoesWithItsLastStagingPod(t *testing.T) {
	c := start(t)
	run(t, c)
	used, unused := openNamespace(t, c, "protected-used", "true"), openNamespace(t, c, "protected-unused", "true")
	for _, namespace := range []string{used.Name, unused.Name} {
		exists(t, c, budgetIn(namespace), "protects", protects)
	}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "protected-pv"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "protected"}},
	}}
	stage, agent := stageOf(pv, "stage-protected", "protected-node"), nodeAgent(t, c, "protected-node")
	stage.Finalizers = nil
	if err := agent.Create(t.Context(), stage); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustDeleteLasting(t, c, stage) })
	pod := stagingPodOf(stage)
	pod.Namespace, pod.Finalizers = used.Name, nil
	if err := agent.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	setOpen(t, c, used, "")
	setOpen(t, c, unused, "")
	gone(t, c, budgetIn(unused.Name))
	exists(t, c, budgetIn(used.Name), "still protects", protects)

	if err := c.Admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	gone(t, c, pod)
	// It also checks again by itself, after some time.
	mustPatch(t, c, budgetIn(used.Name), func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = new(intstr.FromInt32(1)) })
	gone(t, c, budgetIn(used.Name))
}
