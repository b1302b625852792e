package reconcile

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestMoreThanCounts(t *testing.T) {
	before := &pavv1.PavProvisioner{
		ObjectMeta: metav1.ObjectMeta{
			Name: "demo", UID: "u1", ResourceVersion: "1", Generation: 1, Finalizers: []string{pavv1.ProvisionerFinalizer},
		},
		Spec: pavv1.PavProvisionerSpec{VolumeStaging: pavv1.VolumeStaging{PodTemplate: pavv1.Template{Raw: []byte(`{"spec": {}}`)}}},
		Status: pavv1.PavProvisionerStatus{
			StagingScope: pavv1.StagingScopeNode,
			Volumes:      &pavv1.ProvisionerCount{Total: 1}, Stages: &pavv1.ProvisionerCount{}, Nodes: &pavv1.ProvisionerNodes{Wanted: 1},
			Conditions: []metav1.Condition{{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionTrue, Reason: "Accepted"}},
		},
	}
	condition := func(p *pavv1.PavProvisioner) *metav1.Condition { return &p.Status.Conditions[0] }
	tests := map[string]struct {
		change func(*pavv1.PavProvisioner)
		want   bool
	}{
		"volumes are counted":         {change: func(p *pavv1.PavProvisioner) { p.Status.Volumes.Total++ }},
		"failing ones are counted":    {change: func(p *pavv1.PavProvisioner) { p.Status.Volumes.Failing++ }},
		"the failing are counted":     {change: func(p *pavv1.PavProvisioner) { p.Status.Failing = new(int32(2)) }},
		"stages are counted":          {change: func(p *pavv1.PavProvisioner) { p.Status.Stages.Total++ }},
		"snapshots are counted":       {change: func(p *pavv1.PavProvisioner) { p.Status.Snapshots = &pavv1.ProvisionerCount{Total: 1} }},
		"nodes are counted":           {change: func(p *pavv1.PavProvisioner) { p.Status.Nodes.Registered++ }},
		"counts come":                 {change: func(p *pavv1.PavProvisioner) { p.Status.Volumes = nil }},
		"a write's author":            {change: func(p *pavv1.PavProvisioner) { p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "pav"}} }},
		"a resync":                    {change: func(p *pavv1.PavProvisioner) { p.ResourceVersion = "1" }, want: true},
		"the definition":              {change: func(p *pavv1.PavProvisioner) { p.Spec.VolumeStaging.PodTemplate.Raw = []byte(`{}`) }, want: true},
		"the generation":              {change: func(p *pavv1.PavProvisioner) { p.Generation++ }, want: true},
		"another of the name":         {change: func(p *pavv1.PavProvisioner) { p.UID = "u2" }, want: true},
		"deletion":                    {change: func(p *pavv1.PavProvisioner) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, want: true},
		"a finalizer":                 {change: func(p *pavv1.PavProvisioner) { p.Finalizers = nil }, want: true},
		"a label":                     {change: func(p *pavv1.PavProvisioner) { p.Labels = map[string]string{"a": "b"} }, want: true},
		"an annotation":               {change: func(p *pavv1.PavProvisioner) { p.Annotations = map[string]string{"a": "b"} }, want: true},
		"the scope":                   {change: func(p *pavv1.PavProvisioner) { p.Status.StagingScope = pavv1.StagingScopePod }, want: true},
		"the generation that is seen": {change: func(p *pavv1.PavProvisioner) { p.Status.ObservedGeneration++ }, want: true},
		"a condition's status":        {change: func(p *pavv1.PavProvisioner) { condition(p).Status = metav1.ConditionFalse }, want: true},
		"a condition's reason":        {change: func(p *pavv1.PavProvisioner) { condition(p).Reason = "InvalidName" }, want: true},
		"counts and a condition": {change: func(p *pavv1.PavProvisioner) {
			p.Status.Volumes.Total++
			condition(p).Message = "new"
		}, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			after.ResourceVersion = "2"
			test.change(after)
			given := after.DeepCopy()
			if got := IgnoreCountUpdates.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
				t.Errorf("got %t", got)
			}
			if after.ResourceVersion != given.ResourceVersion || (after.Status.Stages == nil) != (given.Status.Stages == nil) {
				t.Error("an object that a cache shares was changed")
			}
		})
	}
	if !IgnoreCountUpdates.Create(event.CreateEvent{Object: before}) || !IgnoreCountUpdates.Delete(event.DeleteEvent{Object: before}) {
		t.Error("a PavProvisioner that comes or goes is held back")
	}
}
