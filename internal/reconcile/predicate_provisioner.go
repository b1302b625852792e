package reconcile

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// IgnoreCountUpdates passes all events of PavProvisioners except updates of the counts in their status, which change
// with every volume, stage, snapshot and node, and are only for people.
var IgnoreCountUpdates = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*pavv1.PavProvisioner)
	after, also := e.ObjectNew.(*pavv1.PavProvisioner)
	if !ok || !also || before.ResourceVersion == after.ResourceVersion { // equal objects are from a resync
		return true
	}
	return !reflect.DeepEqual(withoutCounts(before), withoutCounts(after))
}}

// withoutCounts returns a shallow copy, as caches share their objects.
func withoutCounts(p *pavv1.PavProvisioner) pavv1.PavProvisioner {
	rest := *p
	rest.ResourceVersion, rest.ManagedFields = "", nil // these change with every write
	rest.Status.Volumes, rest.Status.Stages, rest.Status.Snapshots, rest.Status.Failing, rest.Status.Nodes = nil, nil, nil, nil, nil
	return rest
}
