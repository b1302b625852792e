package status

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestProvisionerReport(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, message string) func(*pavv1.PavProvisioner) {
		return func(p *pavv1.PavProvisioner) {
			p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: kind, Status: status, Message: message})
		}
	}
	deleted := func(p *pavv1.PavProvisioner) { p.DeletionTimestamp = at(0) }
	ready := condition(pavv1.ProvisionerReady, metav1.ConditionTrue, "")
	fails := VolumeRow{Namespace: "apps", Claim: "data", PV: "pvc-1", Failure: "no room"}
	snapshot := *snapshotRecord(pavv1.PavSnapshotStatus{Failure: snapshotFailure("snapshot-1", "no room for it")})
	bucket := *bucketRecord(pavv1.PavBucketStatus{Failure: bucketFailure(pavv1.WorkflowBucketCreation, "p", "no room for it")})
	access := *webRecord(pavv1.PavBucketAccessStatus{RevocationFailure: bucketFailure(pavv1.WorkflowRevocation, "p", "still there")})
	dead := VolumeRow{PV: "static", Nodes: []VolumeNode{{Name: "n1"}, {Name: "n2", Degraded: "VolumeDead"}}}
	for name, test := range map[string]struct {
		changes  []func(*pavv1.PavProvisioner)
		volumes  []VolumeRow
		fails    []pavv1.PavSnapshot
		buckets  []pavv1.PavBucket
		accesses []pavv1.PavBucketAccess
		state    State
		code     string
		text     string // a part of the summary, reason or first command
	}{
		"ready":                       {changes: []func(*pavv1.PavProvisioner){ready}, volumes: []VolumeRow{{PV: "pvc-1"}}, state: Healthy, code: "Healthy", text: "has 1 volume"},
		"not checked yet":             {state: Working, code: "ControllerSilent", text: "about to check"},
		"not checked for long":        {changes: []func(*pavv1.PavProvisioner){func(p *pavv1.PavProvisioner) { p.CreationTimestamp = *at(-time.Hour) }}, state: Failing, code: "ControllerSilent", text: "has not checked the definition for 1h"},
		"not accepted":                {changes: []func(*pavv1.PavProvisioner){condition(pavv1.ProvisionerAccepted, metav1.ConditionFalse, "choose another name")}, state: Failing, code: "ProvisionerNotAccepted", text: "choose another name"},
		"another driver has the name": {changes: []func(*pavv1.PavProvisioner){condition(pavv1.ProvisionerReady, metav1.ConditionFalse, "CSIDriver exists")}, state: Failing, code: "ProvisionerNotReady", text: "kubectl describe csidriver demo"},
		"registered on some nodes": {changes: []func(*pavv1.PavProvisioner){ready, func(p *pavv1.PavProvisioner) {
			p.Status.Nodes = &pavv1.ProvisionerNodes{Registered: 1, Wanted: 2}
		}}, state: Waiting, code: "DriverNotRegistered", text: "on 1 of 2 nodes kubectl -n storage get pods"},
		"being deleted, with volumes":       {changes: []func(*pavv1.PavProvisioner){ready, deleted, condition(pavv1.ProvisionerDeleting, metav1.ConditionTrue, "it has a volume")}, state: Waiting, code: "ProvisionerDeleting", text: "it has a volume"},
		"being deleted":                     {changes: []func(*pavv1.PavProvisioner){ready, deleted}, state: Working, code: "ProvisionerDeleting", text: "provisions no more volumes"},
		"a volume fails":                    {changes: []func(*pavv1.PavProvisioner){ready}, volumes: []VolumeRow{{PV: "pvc-0"}, fails}, state: Failing, code: "VolumeFailing", text: "kubectl pav describe pvc/data -n apps"},
		"a snapshot fails":                  {changes: []func(*pavv1.PavProvisioner){ready}, fails: []pavv1.PavSnapshot{snapshot}, state: Failing, code: "SnapshotFailing", text: "no room for it kubectl pav describe volumesnapshot/nightly -n apps"},
		"it has buckets":                    {changes: []func(*pavv1.PavProvisioner){ready}, buckets: []pavv1.PavBucket{*bucketRecord(readyBucket())}, state: Healthy, code: "Healthy", text: "has 0 volumes and 1 bucket"},
		"a bucket fails":                    {changes: []func(*pavv1.PavProvisioner){ready}, buckets: []pavv1.PavBucket{bucket}, state: Failing, code: "BucketFailing", text: "bucket photos-u1 fails no room for it kubectl pav describe obc/photos -n apps"},
		"an access fails":                   {changes: []func(*pavv1.PavProvisioner){ready}, accesses: []pavv1.PavBucketAccess{access}, state: Failing, code: "AccessFailing", text: "access apps/web fails still there kubectl pav describe bucketaccess/web -n apps"},
		"a static volume is dead":           {changes: []func(*pavv1.PavProvisioner){ready}, volumes: []VolumeRow{dead}, state: Failing, code: "VolumeFailing", text: "volume static fails on node n2"},
		"being deleted, and a volume fails": {changes: []func(*pavv1.PavProvisioner){ready, deleted}, volumes: []VolumeRow{fails}, state: Failing, code: "VolumeFailing", text: "no room"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "demo", CreationTimestamp: *at(-time.Second)}}
			for _, change := range test.changes {
				change(p)
			}
			r := provisionerReport(p, holdings{test.volumes, test.fails, test.buckets, test.accesses}, "storage", noon)
			first := r.Findings[0]
			text := strings.TrimSpace(first.Summary + " " + first.Reason)
			for _, step := range first.Next {
				text += " " + step.Command
			}
			if r.State != test.state || first.Code != test.code || !strings.Contains(text, test.text) {
				t.Errorf("got %s, %s: %q, want %s, %s: %q", r.State, first.Code, text, test.state, test.code, test.text)
			}
		})
	}
	p := &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: *at(0)}}
	r := provisionerReport(p, holdings{volumes: []VolumeRow{fails, fails, fails, fails, fails, fails, fails}}, "storage", noon)
	if last := r.Findings[5]; len(r.Findings) != 7 || last.Summary != "2 more volumes fail" {
		t.Errorf("seven volumes fail: %+v", r.Findings)
	}
}
