package protection

import (
	"math"

	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// Name is the name of PaV's PodDisruptionBudgets.
const Name = "pav-staging"

// observed is all that the decision about a namespace depends on.
type observed struct {
	namespace string

	// open says that workflow pods may run in the namespace, and leaving that it is under deletion.
	open, leaving bool

	// driver is PaV's own CSIDriver, which goes first when PaV is uninstalled; nil if there is none.
	driver *storagev1.CSIDriver

	// budget is the namespace's PodDisruptionBudget of PaV's name; nil if there is none.
	budget *policyv1.PodDisruptionBudget
}

type action string

const (
	nothing action = "Nothing"
	create  action = "Create"
	update  action = "Update"
	remove  action = "Remove"
)

// decide is pure: it does no I/O and reads no clock.
func decide(o observed) action {
	installed := o.driver != nil && o.driver.DeletionTimestamp == nil
	switch {
	case o.leaving || o.budget != nil && o.budget.DeletionTimestamp != nil:
		return nothing
	case !o.open && o.budget != nil && ours(o.budget):
		return remove
	case !o.open || !installed:
		return nothing
	case o.budget == nil:
		return create
	}
	right := o.budget.DeepCopy()
	putRight(right, o.driver)
	if apiequality.Semantic.DeepEqual(o.budget, right) {
		return nothing
	}
	return update
}

// ours says whether PaV wrote the budget, on behalf of any CSIDriver of its own that there ever was.
func ours(budget *policyv1.PodDisruptionBudget) bool {
	owner := metav1.GetControllerOf(budget)
	return owner != nil && owner.Kind == "CSIDriver" && owner.Name == pavv1.Driver
}

func budgetIn(namespace string, driver *storagev1.CSIDriver) *policyv1.PodDisruptionBudget {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name}}
	putRight(budget, driver)
	return budget
}

// putRight makes a budget what it is to be. That of PaV's own namespace is part of the installation,
// and goes with it; all others go with PaV's CSIDriver.
func putRight(budget *policyv1.PodDisruptionBudget, driver *storagev1.CSIDriver) {
	budget.Spec = policyv1.PodDisruptionBudgetSpec{
		// Not maxUnavailable: 0, which works only for pods of controllers that can be scaled.
		MinAvailable: new(intstr.FromInt32(math.MaxInt32)),
		Selector: &metav1.LabelSelector{
			MatchLabels:      map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowStaging},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: pavv1.EvictableLabel, Operator: metav1.LabelSelectorOpDoesNotExist}},
		},
	}
	if budget.Namespace == workflow.DefaultNamespace {
		return
	}
	budget.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: storagev1.SchemeGroupVersion.String(), Kind: "CSIDriver", Name: driver.Name, UID: driver.UID, Controller: new(true),
	}}
}
