package kubernetes_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/test/simulation/kubernetes"
	"github.com/albertofaria/pav/test/simulation/world"
)

// TestEvict_ObeysBudgets checks that an eviction leaves as many running pods as a PodDisruptionBudget demands, and that
// a budget does not protect pods that are not running.
func TestEvict_ObeysBudgets(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "budget"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"kept": "yes"}}},
	}
	pod := func(namespace, name, kept string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"kept": kept}},
			Spec:       corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{Phase: phase},
		}
	}
	tests := map[string]struct {
		evicted *corev1.Pod
		others  []client.Object
		refused bool
	}{
		"the only one":                {pod("a", "p", "yes", corev1.PodRunning), nil, true},
		"one of two":                  {pod("a", "p", "yes", corev1.PodRunning), []client.Object{pod("a", "q", "yes", corev1.PodRunning)}, false},
		"the other is not running":    {pod("a", "p", "yes", corev1.PodRunning), []client.Object{pod("a", "q", "yes", corev1.PodPending)}, true},
		"the other does not match":    {pod("a", "p", "yes", corev1.PodRunning), []client.Object{pod("a", "q", "no", corev1.PodRunning)}, true},
		"the other is somewhere else": {pod("a", "p", "yes", corev1.PodRunning), []client.Object{pod("b", "q", "yes", corev1.PodRunning)}, true},
		"it is not running":           {pod("a", "p", "yes", corev1.PodPending), nil, false},
		"it has ended":                {pod("a", "p", "yes", corev1.PodFailed), nil, false},
		"it does not match":           {pod("a", "p", "no", corev1.PodRunning), nil, false},
		"it is in another namespace":  {pod("b", "p", "yes", corev1.PodRunning), nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			store := kubernetes.NewStore()
			w := world.New(1, store)
			for _, object := range append(test.others, budget.DeepCopy(), test.evicted) {
				if err := store.Create("test", object.DeepCopyObject().(client.Object)); err != nil {
					t.Fatal(err)
				}
			}
			setPhases(t, store, append(test.others, test.evicted))
			p := world.Object[*corev1.Pod](store, test.evicted.Namespace, "p")
			if refused := kubernetes.Evict(w, "test", p); refused != test.refused {
				t.Errorf("refused: %v, want %v", refused, test.refused)
			}
			left := world.Object[*corev1.Pod](store, test.evicted.Namespace, "p")
			if deleted := left == nil || left.DeletionTimestamp != nil; deleted == test.refused {
				t.Errorf("deleted: %v, although refused: %v", deleted, test.refused)
			}
		})
	}
}

// setPhases gives the pods the phases that they should have: a new pod is always pending.
func setPhases(t *testing.T, store *world.Store, pods []client.Object) {
	t.Helper()
	for _, object := range pods {
		wanted := object.(*corev1.Pod).Status.Phase
		found := world.Object[*corev1.Pod](store, object.GetNamespace(), object.GetName())
		if err := world.Change(store, "test", found, func(p *corev1.Pod) { p.Status.Phase = wanted }); err != nil {
			t.Fatal(err)
		}
	}
}
