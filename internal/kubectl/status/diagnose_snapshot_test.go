package status

import (
	"strings"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// waitsFor lets the record say what it waits for.
func waitsFor(kind, reason string) func(*pavv1.PavSnapshotStatus) {
	return func(s *pavv1.PavSnapshotStatus) {
		s.Pod, s.Step = nil, ""
		s.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: "why"}}
	}
}

func snapshotFails(pod string, reason pavv1.FailureReason) func(*pavv1.PavSnapshotStatus) {
	return func(s *pavv1.PavSnapshotStatus) {
		s.Step, s.Pod, s.Failure = "", nil, snapshotFailure(pod, "no room")
		s.Failure.Reason = reason
	}
}

func deletionFails(s *pavv1.PavSnapshotStatus) {
	s.Phase, s.Step, s.Pod, s.DeletionAttempt = pavv1.SnapshotDeleting, pavv1.SnapshotDeletingStep, nil, 3
	s.DeletionFailure = snapshotFailure("snapshot-2", "busy")
}

func revertingWith(s *pavv1.PavSnapshotStatus) { s.Failure = snapshotFailure("snapshot-0", "no room") }

func revertFails(s *pavv1.PavSnapshotStatus) {
	revertingWith(s)
	s.Pod, s.DeletionAttempt, s.DeletionFailure = nil, 1, snapshotFailure("snapshot-1", "busy")
}

func old(f *Facts) {
	f.Snapshot.Object.CreationTimestamp = *at(-time.Hour)
	if f.Snapshot.Content != nil {
		f.Snapshot.Content.CreationTimestamp = *at(-time.Hour)
	}
}

func snapshotRefusal(message string) *snapshotv1.VolumeSnapshotError {
	return &snapshotv1.VolumeSnapshotError{Message: &message}
}

// foreignTenant may read only what is in the namespace.
func snapshotTenant(status *snapshotv1.VolumeSnapshotStatus) func(*Facts) {
	return func(f *Facts) {
		tenant(f)
		f.Snapshot.Class, f.Snapshot.Object.Status = nil, status
		f.Hidden = append(f.Hidden, hiddenContents, hiddenSnapshotClasses, hiddenRecords)
	}
}

func TestDiagnose_OfASnapshotThatHasNotBegun(t *testing.T) {
	for name, test := range map[string]snapshotTest{
		"nobody has seen it":          {snapshotted(), "NotBegun", Working, "the snapshot-controller is about to handle", ""},
		"nobody has seen it for long": {snapshotted().with(old), "NoSnapshotController", Failing, "snapshot-controller may not be running", "kubectl get pods -A"},
		"the snapshot-controller refuses it": {snapshotted().with(func(f *Facts) {
			f.Snapshot.Object.Status = &snapshotv1.VolumeSnapshotStatus{Error: snapshotRefusal("no")}
		}), "SnapshotRefused", Failing, "refuses", ""},
		"its class does not exist":              {snapshotted().with(func(f *Facts) { f.Snapshot.Class = nil }), "NoSnapshotClass", Failing, `no VolumeSnapshotClass "snap"`, "kubectl get volumesnapshotclasses"},
		"its class is of another driver":        {snapshotted().with(func(f *Facts) { f.Snapshot.Class.Driver = "other" }), "ClassOfAnotherDriver", Failing, `for the driver "other", and the volume has "demo"`, ""},
		"there is no default class":             {snapshotted().with(func(f *Facts) { f.Snapshot.Object.Spec.VolumeSnapshotClassName = nil }), "NoDefaultClass", Failing, `no default one with the driver "demo"`, ""},
		"the claim does not exist":              {snapshotted().with(func(f *Facts) { f.Claim, f.PV, f.Volume = nil, nil, nil }), "NoClaim", Failing, `no claim "data"`, ""},
		"the claim has no volume yet":           {snapshotted().with(func(f *Facts) { f.Claim.Status.Phase = corev1.ClaimPending }), "ClaimNotBound", Waiting, `when claim "data" has a volume`, "describe pvc/data -n apps"},
		"the volume is in-tree":                 {snapshotted().with(func(f *Facts) { f.PV.Spec.CSI, f.Provisioner = nil, nil }), NotPaV, Waiting, "no CSI driver", ""},
		"its volume is another driver's":        {snapshotted().with(func(f *Facts) { f.Provisioner, f.Volume, f.Driver = nil, nil, &storagev1.CSIDriver{} }), NotPaV, Waiting, "another driver", ""},
		"the definition makes no snapshots":     {snapshotted().with(func(f *Facts) { f.Provisioner.Spec.SnapshotCreation = nil }), "SnapshotsUnsupported", Failing, "no spec.snapshotCreation", "kubectl edit pavprovisioner demo"},
		"its content is not written yet":        {snapshotted().with(static), "NoContent", Failing, `no VolumeSnapshotContent "mine"`, ""},
		"PaV has not seen its content":          {contented(), "NotBegun", Working, "PaV is about to handle", ""},
		"PaV has not seen its content for long": {contented().with(old), "ControllerSilent", Failing, "its controller agent may not be running", "kubectl -n storage"},
		"PaV refuses its content": {contented().with(func(f *Facts) {
			f.Snapshot.Content.Status = &snapshotv1.VolumeSnapshotContentStatus{Error: snapshotRefusal("no")}
		}), "SnapshotRefused", Failing, "the snapshot is refused", ""},
		"it is deleted before anything was done": {contented().with(func(f *Facts) { f.Snapshot.Object.DeletionTimestamp = at(0) }), "Deleting", Working, "no record of it", ""},
		"a tenant sees nothing yet":              {snapshotted().with(snapshotTenant(nil)), "NotBegun", Working, "", ""},
		"a tenant sees that it is bound":         {snapshotted().with(snapshotTenant(&snapshotv1.VolumeSnapshotStatus{})), "Working", Working, "as far as you may see", ""},
		"a tenant sees that it fails":            {snapshotted().with(snapshotTenant(&snapshotv1.VolumeSnapshotStatus{Error: snapshotRefusal("no")})), "SnapshotFailed", Failing, "", ""},
		"a tenant sees that it is ready":         {snapshotted().with(snapshotTenant(&snapshotv1.VolumeSnapshotStatus{ReadyToUse: new(true)})), "Healthy", Healthy, "can be used", ""},
	} {
		t.Run(name, test.run)
	}
}

// static is a VolumeSnapshot of a VolumeSnapshotContent that an administrator is to write.
func static(f *Facts) {
	f.Snapshot.Object.Spec.Source = snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: new("mine")}
}

func TestDiagnose_OfASnapshot(t *testing.T) {
	ready := pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotReady, Handle: "sh", Size: new(resource.MustParse("1Gi")),
		Conditions: []metav1.Condition{{Type: pavv1.SnapshotCreated, Status: metav1.ConditionTrue, LastTransitionTime: *at(-time.Hour)}}}
	cut := func(s *pavv1.PavSnapshotStatus) { s.Phase = pavv1.SnapshotCut }
	deletes := func(s *pavv1.PavSnapshotStatus) { s.Phase = pavv1.SnapshotDeleting }
	creating := func(change func(*corev1.Pod)) *world {
		return snapshotting(pavv1.SnapshotCreating, nil).pod("snapshot-1", pavv1.WorkflowSnapshotCreation, change)
	}
	for name, test := range map[string]snapshotTest{
		"a pod is about to be created":     {snapshotting(pavv1.SnapshotCreating, nil), "Working", Working, "the snapshot creation pod is about to be created", ""},
		"a pod runs":                       {creating(running), "Working", Working, "the snapshot creation pod runs", ""},
		"a pod hangs":                      {creating(runningSince(-time.Hour)), "RunsLong", Failing, "runs (for 1h", "kubectl pav logs volumesnapshot/nightly -n apps -f"},
		"a pod fits no node":               {creating(notScheduled), "PodUnschedulable", Failing, "the snapshot creation pod fits no node", ""},
		"it waits for the volume":          {snapshotting("", waitsFor(pavv1.SnapshotCreated, "Staged")), "Staged", Waiting, "waits", ""},
		"it was restored":                  {snapshotting("", waitsFor(pavv1.SnapshotCreated, "Restored")), "Restored", Failing, "backup", ""},
		"nothing is said":                  {recorded(pavv1.PavSnapshotStatus{}), "Working", Working, "is being made", ""},
		"it failed":                        {snapshotting("", snapshotFails("snapshot-1", pavv1.FailurePodFailed)), "SnapshotFailed", Failing, "attempt 2 to create the snapshot failed; attempt 3 follows in 19s", "kubectl edit pavprovisioner demo"},
		"it failed, and is cut":            {snapshotting("", func(s *pavv1.PavSnapshotStatus) { snapshotFails("snapshot-1", pavv1.FailurePodFailed)(s); cut(s) }), "SnapshotFailed", Failing, "is cut; attempt 2 to complete it failed", ""},
		"it is infeasible":                 {snapshotting("", snapshotFails("snapshot-1", pavv1.FailureInfeasible)), "Infeasible", Failing, "infeasible", ""},
		"its handle is another's":          {snapshotting("", snapshotFails("snapshot-1", pavv1.FailureHandleInUse)), "HandleInUse", Failing, "another object uses the storage", ""},
		"no pod could be created":          {snapshotting("", snapshotFails("", pavv1.FailureRefused)), "SnapshotRefused", Failing, "cannot be created", ""},
		"the next attempt runs":            {snapshotting(pavv1.SnapshotCreating, revertingWith).pod("snapshot-1", pavv1.WorkflowSnapshotCreation, running), "SnapshotFailed", Failing, "attempt 1 to create the snapshot failed; now the snapshot creation pod runs", ""},
		"it is cut, and goes on":           {snapshotting(pavv1.SnapshotCreating, cut).pod("snapshot-1", pavv1.WorkflowSnapshotCreation, running), "Working", Working, "the snapshot is cut; the snapshot creation pod runs", ""},
		"its failure is being reverted":    {snapshotting(pavv1.SnapshotReverting, revertingWith), "SnapshotFailed", Failing, "is being reverted before the next one", ""},
		"it is reverted, as not needed":    {snapshotting(pavv1.SnapshotReverting, nil), "Working", Working, "the snapshot deletion pod is about to be created", ""},
		"its failure cannot be reverted":   {snapshotting(pavv1.SnapshotReverting, revertFails), "RevertFailed", Failing, "deletion attempt 1 failed", "kubectl edit pavprovisioner demo"},
		"the definition is gone":           {snapshotting(pavv1.SnapshotCreating, nil).with(func(f *Facts) { f.Provisioner = nil }), "NoProvisioner", Failing, "", ""},
		"snapshots were taken out of it":   {recorded(pavv1.PavSnapshotStatus{}).with(func(f *Facts) { f.Provisioner.Spec.SnapshotCreation = nil }), "SnapshotsUnsupported", Failing, "", ""},
		"it is ready":                      {recorded(ready).with(usable), "Healthy", Healthy, "have at least 1Gi", ""},
		"it is ready, and nobody is told":  {recorded(ready), "NoSnapshotController", Failing, "does not say so", ""},
		"it is ready without an object":    {recorded(ready).with(func(f *Facts) { f.Snapshot.Object = nil }), "Healthy", Healthy, "no VolumeSnapshot is bound to it", ""},
		"it is being deleted":              {snapshotting("", func(s *pavv1.PavSnapshotStatus) { deletes(s); s.Pod = nil }), "Deleting", Working, "", ""},
		"its deletion waits":               {snapshotting("", func(s *pavv1.PavSnapshotStatus) { waitsFor(pavv1.SnapshotDeleted, "InUse")(s); deletes(s) }), "InUse", Waiting, "is to be deleted, and waits", ""},
		"its deletion failed":              {snapshotting("", deletionFails), "DeletionFailed", Failing, "deletion attempt 3 failed; the next one follows in 19s", "kubectl edit pavprovisioner demo"},
		"a deletion pod runs":              {snapshotting(pavv1.SnapshotDeletingStep, deletes).pod("snapshot-1", pavv1.WorkflowSnapshotDeletion, running), "Working", Working, "the snapshot deletion pod runs", ""},
		"its record was restored too late": {snapshotting("", func(s *pavv1.PavSnapshotStatus) { waitsFor(pavv1.SnapshotDeleted, "Restored")(s); deletes(s) }), "Restored", Failing, "", ""},
		"it is retained":                   {recorded(pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotRetained}), "Retained", Waiting, "the administrator decides", "kubectl delete pavsnapshot snapshot-s1"},
	} {
		t.Run(name, test.run)
	}
}

type snapshotTest struct {
	facts   *world
	code    string
	state   State
	summary string
	next    string // a part of the first command
}

func (test snapshotTest) run(t *testing.T) {
	report := Build(test.facts.f)
	found := report.Findings[0]
	next := ""
	if len(found.Next) > 0 {
		next = found.Next[0].Command
		if next == "" && len(found.Next) > 1 {
			next = found.Next[1].Command
		}
	}
	if found.Code != test.code || found.State != test.state || !strings.Contains(found.Summary, test.summary) || !strings.Contains(next, test.next) {
		t.Errorf("got %s, %s: %q, next %q", found.Code, found.State, found.Summary, next)
	}
	if report.Snapshot != "nightly" || report.Namespace != "apps" {
		t.Errorf("the report is about %s/%s", report.Namespace, report.Snapshot)
	}
}

// What is done to a volume waits while a pod reads its storage for a snapshot.
func TestDiagnose_OfAVolumeWithSnapshots(t *testing.T) {
	with := func(w *world, status pavv1.PavSnapshotStatus) *world {
		return w.with(func(f *Facts) { f.Snapshots = []pavv1.PavSnapshot{*snapshotRecord(status)} })
	}
	read := func(f *Facts) {
		f.Volume.Status.Readers = []pavv1.Reader{{Kind: "PavSnapshot", Name: "snapshot-s1"}}
	}
	grows := func(f *Facts) {
		f.Claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		f.Claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	}
	held := func(f *Facts) {
		f.Claim.DeletionTimestamp = at(0)
		f.Unfinished = []snapshotv1.VolumeSnapshot{{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "broken"}}}
	}
	making := pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotPending, Step: pavv1.SnapshotCreating}
	failing := pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotPending, Failure: snapshotFailure("snapshot-1", "no room")}
	for name, test := range map[string]struct {
		facts        *world
		code         string
		state        State
		summary      string
		next, detail string
	}{
		"one is being made":              {with(bound(), making).with(read), "Healthy", Healthy, "", "", "apps/nightly, Pending, creating"},
		"one is ready":                   {with(bound(), pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotReady}), "Healthy", Healthy, "", "", ""},
		"one fails":                      {with(bound(), failing), "SnapshotFailing", Failing, "snapshot apps/nightly fails", "kubectl pav describe volumesnapshot/nightly -n apps", "apps/nightly, Pending"},
		"deletion waits for one":         {with(deleting(), making).with(read), "WaitsForSnapshot", Waiting, "the volume is deleted when the storage is not read any more for snapshot apps/nightly", "kubectl pav describe volumesnapshot/nightly -n apps", ""},
		"expansion waits for one":        {with(bound(), making).with(read).with(grows), "WaitsForSnapshot", Waiting, "and is expanded when", "", ""},
		"modification waits for one":     {with(bound(), making).with(read).with(wantsClass("gold")), "WaitsForSnapshot", Waiting, "and its volume is modified when", "", ""},
		"it waits for one not seen":      {deleting().with(read), "WaitsForSnapshot", Waiting, "for snapshot snapshot-s1", "", ""},
		"its snapshots depend on it":     {deleting().with(func(f *Facts) { condition(f, pavv1.VolumeDeleted, "SnapshotsExist", "a") }), "SnapshotsExist", Waiting, "after its snapshots", "kubectl pav get snapshots demo", ""},
		"another snapshot holds a claim": {bound().with(held), "ClaimDeleting", Waiting, "once it has finished VolumeSnapshot broken of it", "kubectl pav describe volumesnapshot/broken -n apps", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if test.facts.f.Provisioner != nil {
				test.facts.f.Provisioner.Spec.VolumeExpansion = &pavv1.VolumeExpansion{}
			}
			report := Build(test.facts.f)
			found, next, details := report.Findings[0], "", ""
			if len(found.Next) > 0 {
				next = found.Next[0].Command
			}
			for _, d := range report.Details {
				if d.Name == "Snapshot" {
					details += d.Value
				}
			}
			if found.Code != test.code || found.State != test.state || !strings.Contains(found.Summary, test.summary) || !strings.Contains(next, test.next) || !strings.Contains(details, test.detail) {
				t.Errorf("got %s, %s: %q, next %q, details %q", found.Code, found.State, found.Summary, next, details)
			}
		})
	}
}
