package eviction

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

func TestDecideBudget(t *testing.T) {
	now := metav1.Now()
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: pavv1.Driver, UID: "d1"}}
	open := func(namespace string) budgetSnapshot {
		return budgetSnapshot{namespace: namespace, open: true, driver: driver, budget: budgetIn(namespace, driver)}
	}
	const theirs = "theirs"
	tests := map[string]struct {
		namespace string
		spoil     func(*budgetSnapshot)
		want      budgetAction
	}{
		"all is as it should be":                  {theirs, func(*budgetSnapshot) {}, keepBudget},
		"there is none yet":                       {theirs, func(o *budgetSnapshot) { o.budget = nil }, createBudget},
		"it was edited by hand":                   {theirs, func(o *budgetSnapshot) { o.budget.Spec.MinAvailable = new(intstr.FromInt32(0)) }, updateBudget},
		"its selector was":                        {theirs, func(o *budgetSnapshot) { o.budget.Spec.Selector.MatchLabels["a"] = "b" }, updateBudget},
		"it is of a former version":               {theirs, func(o *budgetSnapshot) { o.budget.Spec.Selector.MatchExpressions = nil }, updateBudget},
		"someone else's has its name":             {theirs, func(o *budgetSnapshot) { o.budget.OwnerReferences = nil }, updateBudget},
		"it is of a former installation":          {theirs, func(o *budgetSnapshot) { o.budget.OwnerReferences[0].UID = "d0" }, updateBudget},
		"labels of its own are nobody's business": {theirs, func(o *budgetSnapshot) { o.budget.Labels = map[string]string{"a": "b"} }, keepBudget},
		"the namespace was closed":                {theirs, func(o *budgetSnapshot) { o.open = false }, removeBudget},
		"and PaV is uninstalled":                  {theirs, func(o *budgetSnapshot) { o.open, o.driver = false, nil }, removeBudget},
		"and it is of a former installation":      {theirs, func(o *budgetSnapshot) { o.open = false; o.budget.OwnerReferences[0].UID = "d0" }, removeBudget},
		"someone else's in a closed namespace":    {theirs, func(o *budgetSnapshot) { o.open = false; o.budget.OwnerReferences = nil }, keepBudget},
		"another owner's in a closed namespace":   {theirs, func(o *budgetSnapshot) { o.open = false; o.budget.OwnerReferences[0].Kind = "Helm" }, keepBudget},
		"none in a closed namespace":              {theirs, func(o *budgetSnapshot) { o.open, o.budget = false, nil }, keepBudget},
		"PaV is being uninstalled": {theirs, func(o *budgetSnapshot) {
			o.budget, o.driver = nil, driver.DeepCopy()
			o.driver.DeletionTimestamp = &now
		}, keepBudget},
		"PaV is uninstalled":                        {theirs, func(o *budgetSnapshot) { o.budget, o.driver = nil, nil }, keepBudget},
		"it goes already":                           {theirs, func(o *budgetSnapshot) { o.budget.DeletionTimestamp = &now }, keepBudget},
		"the namespace goes":                        {theirs, func(o *budgetSnapshot) { o.budget, o.leaving = nil, true }, keepBudget},
		"PaV's namespace: as it should be":          {workflow.DefaultNamespace, func(*budgetSnapshot) {}, keepBudget},
		"PaV's namespace: it has no owner":          {workflow.DefaultNamespace, func(o *budgetSnapshot) { o.budget.OwnerReferences = nil }, keepBudget},
		"PaV's namespace: it was edited by hand":    {workflow.DefaultNamespace, func(o *budgetSnapshot) { o.budget.Spec = policyv1.PodDisruptionBudgetSpec{} }, updateBudget},
		"PaV's namespace: it was deleted by hand":   {workflow.DefaultNamespace, func(o *budgetSnapshot) { o.budget = nil }, createBudget},
		"PaV's namespace: PaV is being uninstalled": {workflow.DefaultNamespace, func(o *budgetSnapshot) { o.budget, o.driver = nil, nil }, keepBudget},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := open(test.namespace)
			test.spoil(&o)
			if got := decideBudget(o); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
