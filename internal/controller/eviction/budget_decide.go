package eviction

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

// BudgetName is the name of PaV's PodDisruptionBudgets.
const BudgetName = "pav-staging"

// budgetSnapshot has everything that the decision about a namespace depends on.
type budgetSnapshot struct {
	namespace string

	// open says that workflow pods may run in the namespace, and leaving that it is being deleted.
	open, leaving bool

	// driver is PaV's own CSIDriver, which is deleted first when PaV is uninstalled; nil if there is none.
	driver *storagev1.CSIDriver

	// budget is the namespace's PodDisruptionBudget of PaV's name; nil if there is none.
	budget *policyv1.PodDisruptionBudget
}

type budgetAction string

const (
	keepBudget   budgetAction = "Nothing"
	createBudget budgetAction = "Create"
	updateBudget budgetAction = "Update"
	removeBudget budgetAction = "Remove"
)

// decideBudget is pure: it does no I/O and reads no clock.
func decideBudget(o budgetSnapshot) budgetAction {
	installed := o.driver != nil && o.driver.DeletionTimestamp == nil
	switch {
	case o.leaving || o.budget != nil && o.budget.DeletionTimestamp != nil:
		return keepBudget
	case !o.open && o.budget != nil && isOurs(o.budget):
		return removeBudget
	case !o.open || !installed:
		return keepBudget
	case o.budget == nil:
		return createBudget
	}
	right := o.budget.DeepCopy()
	correct(right, o.driver)
	if apiequality.Semantic.DeepEqual(o.budget, right) {
		return keepBudget
	}
	return updateBudget
}

// isOurs reports whether PaV wrote the budget, even with an earlier CSIDriver of its own as the owner.
func isOurs(budget *policyv1.PodDisruptionBudget) bool {
	owner := metav1.GetControllerOf(budget)
	return owner != nil && owner.Kind == "CSIDriver" && owner.Name == pavv1.Driver
}

func budgetIn(namespace string, driver *storagev1.CSIDriver) *policyv1.PodDisruptionBudget {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: BudgetName}}
	correct(budget, driver)
	return budget
}

// correct sets the fields of a budget. The budget of PaV's own namespace is part of the installation, and is deleted
// with it; all others are deleted with PaV's CSIDriver.
func correct(budget *policyv1.PodDisruptionBudget, driver *storagev1.CSIDriver) {
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
