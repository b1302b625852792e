package provisioner

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// registered returns a provisioner that has everything it needs, for tests to change.
func registered() snapshot {
	p := &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "demo", UID: "u1", Finalizers: []string{pavv1.ProvisionerFinalizer}}}
	return snapshot{provisioner: p, driver: driverFor(p)}
}

// onlyBuckets has the provisioner serve buckets, and no volumes.
func onlyBuckets(o *snapshot) { o.provisioner.Spec.BucketCreation = &pavv1.BucketCreation{} }

func TestDecide(t *testing.T) {
	now := metav1.Now()
	deleting := func(o *snapshot) { o.provisioner.DeletionTimestamp = &now }
	tests := map[string]struct {
		spoil      func(*snapshot)
		want       action
		conditions []string
		message    string
	}{
		"all is as it should be":                         {spoil: func(*snapshot) {}, want: nothing, conditions: []string{"Accepted=True", "Ready=True"}},
		"the finalizer comes first":                      {spoil: func(o *snapshot) { o.provisioner.Finalizers, o.driver = nil, nil }, want: addFinalizer},
		"then the CSIDriver":                             {spoil: func(o *snapshot) { o.driver = nil }, want: createDriver},
		"a changed CSIDriver is put right":               {spoil: func(o *snapshot) { o.driver.Spec.PodInfoOnMount = new(false) }, want: updateDriver},
		"a former provisioner's CSIDriver goes":          {spoil: func(o *snapshot) { o.driver.OwnerReferences[0].UID = "u0" }, want: replaceDriver},
		"a CSIDriver under deletion is waited for":       {spoil: func(o *snapshot) { o.driver.DeletionTimestamp = &now }, want: nothing, conditions: []string{"Accepted=True", "Ready=False"}, message: "is being deleted"},
		"a CSIDriver without owner is not touched":       {spoil: func(o *snapshot) { o.driver.OwnerReferences = nil }, want: nothing, conditions: []string{"Accepted=False", "Ready=False"}, message: "choose another name"},
		"a CSIDriver without label is not touched":       {spoil: func(o *snapshot) { o.driver.Labels = nil }, want: nothing, conditions: []string{"Accepted=False", "Ready=False"}, message: "choose another name"},
		"a CSIDriver of another kind's owner, too":       {spoil: func(o *snapshot) { o.driver.OwnerReferences[0].UID = "u0"; o.driver.OwnerReferences[0].Kind = "Helm" }, want: nothing, conditions: []string{"Accepted=False", "Ready=False"}, message: "choose another name"},
		"PaV's own driver name is refused":               {spoil: func(o *snapshot) { o.provisioner.Name = pavv1.Driver }, want: nothing, conditions: []string{"Accepted=False", "Ready=False"}, message: "PaV's own CSI driver"},
		"a name that is no DNS label is refused":         {spoil: func(o *snapshot) { o.provisioner.Name = "a.b" }, want: nothing, conditions: []string{"Accepted=False", "Ready=False"}, message: "must be a DNS label"},
		"without volumes there is no CSIDriver":          {spoil: func(o *snapshot) { onlyBuckets(o); o.driver = nil }, want: nothing, conditions: []string{"Accepted=True", "Ready=True"}, message: "it has no volumes and no CSIDriver"},
		"a CSIDriver without volumes goes":               {spoil: onlyBuckets, want: deleteDriver},
		"unless volumes are left":                        {spoil: func(o *snapshot) { onlyBuckets(o); o.held.volumes = []string{"v1"} }, want: nothing, conditions: []string{"Accepted=True", "Ready=True"}},
		"or stages":                                      {spoil: func(o *snapshot) { onlyBuckets(o); o.held.stages, o.driver = []string{"s1"}, nil }, want: createDriver},
		"one without volumes that goes is waited for":    {spoil: func(o *snapshot) { onlyBuckets(o); o.driver.DeletionTimestamp = &now }, want: nothing, conditions: []string{"Accepted=True", "Ready=True"}},
		"a foreign CSIDriver stays without volumes, too": {spoil: func(o *snapshot) { onlyBuckets(o); o.driver.Labels = nil }, want: nothing, conditions: []string{"Accepted=False", "Ready=False"}, message: "choose another name"},
		"deletion waits for volumes":                     {spoil: func(o *snapshot) { deleting(o); o.held.volumes = []string{"v2", "v1"} }, want: nothing, conditions: []string{"Ready=False", "Deleting=True"}, message: `waiting for 2 PavVolume(s), for example "v1": `},
		"deletion waits for stages":                      {spoil: func(o *snapshot) { deleting(o); o.held.stages = []string{"s1"} }, want: nothing, conditions: []string{"Ready=False", "Deleting=True"}, message: `waiting for 1 PavStage(s), for example "s1": `},
		"deletion waits for buckets":                     {spoil: func(o *snapshot) { deleting(o); o.held.buckets, o.held.accesses = []string{"b1"}, []string{"a1"} }, want: nothing, conditions: []string{"Ready=False", "Deleting=True"}, message: `waiting for 1 PavBucket(s), for example "b1", and for 1 PavBucketAccess(s), for example "a1": delete the claims and pods that use them, and the claims of buckets and accesses to them`},
		"deletion waits for snapshots":                   {spoil: func(o *snapshot) { deleting(o); o.held.snapshots = []string{"s1"} }, want: nothing, conditions: []string{"Ready=False", "Deleting=True"}, message: `waiting for 1 PavSnapshot(s), for example "s1": delete the claims and pods that use them, and the VolumeSnapshots`},
		"deletion waits for both":                        {spoil: func(o *snapshot) { deleting(o); o.held.volumes = []string{"v1"}; o.held.stages = []string{"s1"} }, want: nothing, conditions: []string{"Ready=False", "Deleting=True"}, message: `"v1", and for 1 PavStage`},
		"the CSIDriver goes first":                       {spoil: deleting, want: deleteDriver},
		"then the provisioner":                           {spoil: func(o *snapshot) { deleting(o); o.driver = nil }, want: release},
		"a foreign CSIDriver stays":                      {spoil: func(o *snapshot) { deleting(o); o.driver.Labels = nil }, want: release},
		"without a finalizer there is nothing to do":     {spoil: func(o *snapshot) { deleting(o); o.provisioner.Finalizers = []string{"other"} }, want: nothing},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := registered()
			test.spoil(&o)
			got := decide(o)
			var conditions []string
			for _, c := range got.conditions {
				conditions = append(conditions, c.Type+"="+string(c.Status))
			}
			if got.action != test.want {
				t.Errorf("got action %s, want %s", got.action, test.want)
			}
			if diff := cmp.Diff(test.conditions, conditions); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if n := len(got.conditions); test.message != "" && !strings.Contains(got.conditions[n-1].Message, test.message) {
				t.Errorf("got message %q, want it to contain %q", got.conditions[n-1].Message, test.message)
			}
		})
	}
}

func TestUpToDate_NoticesEveryField(t *testing.T) {
	spoils := map[string]func(*storagev1.CSIDriverSpec){
		"attachRequired":       func(s *storagev1.CSIDriverSpec) { s.AttachRequired = nil },
		"podInfoOnMount":       func(s *storagev1.CSIDriverSpec) { s.PodInfoOnMount = nil },
		"volumeLifecycleModes": func(s *storagev1.CSIDriverSpec) { s.VolumeLifecycleModes = append(s.VolumeLifecycleModes, "Ephemeral") },
		"fsGroupPolicy":        func(s *storagev1.CSIDriverSpec) { s.FSGroupPolicy = new(storagev1.NoneFSGroupPolicy) },
		"storageCapacity":      func(s *storagev1.CSIDriverSpec) { s.StorageCapacity = new(true) },
		"requiresRepublish":    func(s *storagev1.CSIDriverSpec) { s.RequiresRepublish = new(true) },
		"seLinuxMount":         func(s *storagev1.CSIDriverSpec) { s.SELinuxMount = new(true) },
	}
	for name, spoil := range spoils {
		t.Run(name, func(t *testing.T) {
			o := registered()
			if !upToDate(&o.driver.Spec, o.provisioner) {
				t.Fatal("a new CSIDriver is not up to date")
			}
			spoil(&o.driver.Spec)
			if upToDate(&o.driver.Spec, o.provisioner) {
				t.Error("the change went unnoticed")
			}
		})
	}
}

func TestFSGroupPolicy(t *testing.T) {
	for policy, want := range map[storagev1.FSGroupPolicy]storagev1.FSGroupPolicy{
		"":                          storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy,
		storagev1.FileFSGroupPolicy: storagev1.FileFSGroupPolicy,
		storagev1.NoneFSGroupPolicy: storagev1.NoneFSGroupPolicy,
		"ReadWriteOnceWithFSType":   storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy,
	} {
		o := registered()
		edited := o.provisioner.DeepCopy()
		edited.Spec.VolumeStaging.FSGroupPolicy = policy
		if got := *driverFor(edited).Spec.FSGroupPolicy; got != want {
			t.Errorf("%q: got %s", policy, got)
		}
		o.provisioner = edited
		wanted := nothing
		if want != storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy {
			wanted = updateDriver
		}
		if got := decide(o).action; got != wanted {
			t.Errorf("edited to %q: got action %s, want %s", policy, got, wanted)
		}
	}
}

func TestScope(t *testing.T) {
	const node, pod = pavv1.StagingScopeNode, pavv1.StagingScopePod
	stages := []string{"stage-1"}
	tests := map[string]struct {
		spec, status pavv1.StagingScope
		stages       []string
		deleting     bool
		want         pavv1.StagingScope
		pending      bool
	}{
		"a definition without the field":           {want: node},
		"a new one":                                {spec: pod, want: pod},
		"a new one that has stages already":        {spec: pod, stages: stages, want: pod},
		"nothing has changed":                      {spec: pod, status: pod, stages: stages, want: pod},
		"edited, and there are no stages":          {spec: pod, status: node, want: pod},
		"edited, and there are stages":             {spec: pod, status: node, stages: stages, want: node, pending: true},
		"edited the other way":                     {spec: node, status: pod, stages: stages, want: pod, pending: true},
		"taken away, and there are stages":         {status: pod, stages: stages, want: pod, pending: true},
		"edited back":                              {spec: node, status: node, stages: stages, want: node},
		"a provisioner under deletion keeps its":   {spec: pod, status: node, stages: stages, deleting: true},
		"also when the last of its stages is gone": {spec: pod, status: node, deleting: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := registered()
			o.held.stages = test.stages
			o.provisioner.Spec.VolumeStaging.Scope, o.provisioner.Status.StagingScope = test.spec, test.status
			if test.deleting {
				o.provisioner.DeletionTimestamp = new(metav1.Now())
			}
			got := decide(o)
			if got.scope != test.want {
				t.Errorf("got scope %q, want %q", got.scope, test.want)
			}
			accepted := meta.FindStatusCondition(got.conditions, pavv1.ProvisionerAccepted)
			if test.deleting != (accepted == nil) {
				t.Fatalf("got condition %v", accepted)
			}
			if accepted != nil && (accepted.Status != metav1.ConditionTrue || (accepted.Reason == "ScopePending") != test.pending) {
				t.Errorf("got condition %+v", accepted)
			}
		})
	}
}
