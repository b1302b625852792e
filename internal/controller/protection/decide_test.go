package protection

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

func TestDecide(t *testing.T) {
	now := metav1.Now()
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: pavv1.Driver, UID: "d1"}}
	open := func(namespace string) observed {
		return observed{namespace: namespace, open: true, driver: driver, budget: budgetIn(namespace, driver)}
	}
	const theirs = "theirs"
	tests := map[string]struct {
		namespace string
		spoil     func(*observed)
		want      action
	}{
		"all is as it should be":                    {theirs, func(*observed) {}, nothing},
		"there is none yet":                         {theirs, func(o *observed) { o.budget = nil }, create},
		"it was edited by hand":                     {theirs, func(o *observed) { o.budget.Spec.MinAvailable = new(intstr.FromInt32(0)) }, update},
		"its selector was":                          {theirs, func(o *observed) { o.budget.Spec.Selector.MatchLabels["a"] = "b" }, update},
		"it is of a former version":                 {theirs, func(o *observed) { o.budget.Spec.Selector.MatchExpressions = nil }, update},
		"somebody else's has its name":              {theirs, func(o *observed) { o.budget.OwnerReferences = nil }, update},
		"it is of a former installation":            {theirs, func(o *observed) { o.budget.OwnerReferences[0].UID = "d0" }, update},
		"labels of its own are nobody's business":   {theirs, func(o *observed) { o.budget.Labels = map[string]string{"a": "b"} }, nothing},
		"the namespace was closed":                  {theirs, func(o *observed) { o.open = false }, remove},
		"and PaV is uninstalled":                    {theirs, func(o *observed) { o.open, o.driver = false, nil }, remove},
		"and it is of a former installation":        {theirs, func(o *observed) { o.open = false; o.budget.OwnerReferences[0].UID = "d0" }, remove},
		"somebody else's in a closed namespace":     {theirs, func(o *observed) { o.open = false; o.budget.OwnerReferences = nil }, nothing},
		"another owner's in a closed namespace":     {theirs, func(o *observed) { o.open = false; o.budget.OwnerReferences[0].Kind = "Helm" }, nothing},
		"none in a closed namespace":                {theirs, func(o *observed) { o.open, o.budget = false, nil }, nothing},
		"PaV is being uninstalled":                  {theirs, func(o *observed) { o.budget, o.driver = nil, driver.DeepCopy(); o.driver.DeletionTimestamp = &now }, nothing},
		"PaV is uninstalled":                        {theirs, func(o *observed) { o.budget, o.driver = nil, nil }, nothing},
		"it goes already":                           {theirs, func(o *observed) { o.budget.DeletionTimestamp = &now }, nothing},
		"the namespace goes":                        {theirs, func(o *observed) { o.budget, o.leaving = nil, true }, nothing},
		"PaV's namespace: as it should be":          {workflow.DefaultNamespace, func(*observed) {}, nothing},
		"PaV's namespace: it has no owner":          {workflow.DefaultNamespace, func(o *observed) { o.budget.OwnerReferences = nil }, nothing},
		"PaV's namespace: it was edited by hand":    {workflow.DefaultNamespace, func(o *observed) { o.budget.Spec = policyv1.PodDisruptionBudgetSpec{} }, update},
		"PaV's namespace: it was deleted by hand":   {workflow.DefaultNamespace, func(o *observed) { o.budget = nil }, create},
		"PaV's namespace: PaV is being uninstalled": {workflow.DefaultNamespace, func(o *observed) { o.budget, o.driver = nil, nil }, nothing},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := open(test.namespace)
			test.spoil(&o)
			if got := decide(o); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
