package status

import (
	"strings"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

// copying lets the definition create volumes from both kinds of sources.
func copying(f *Facts) {
	f.Provisioner.Spec.VolumeCreation = &pavv1.VolumeCreation{DataSources: []pavv1.DataSourceKind{pavv1.DataSourceSnapshot, pavv1.DataSourceClaim}}
}

// restoring is a claim of the VolumeSnapshot apps/nightly, which is ready, and with which PaV has not begun.
func restoring() *world {
	return pendingClaim().with(copying).with(func(f *Facts) {
		f.Claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: new(snapshotv1.GroupName), Kind: protocol.KindSnapshot, Name: "nightly"}
		s := recorded(pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotReady, RecordUID: "r1", Handle: "sh"}).f.Snapshot
		s.Object.Status = &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: new("snapcontent-s1"), ReadyToUse: new(true)}
		s.Content.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: "apps", Name: "nightly", UID: "s1"}
		f.Source = &podplan.ClaimSource{Snapshot: s.Object, Content: s.Content, Record: s.Record}
	})
}

// cloning is a claim of the volume of the claim apps/original.
func cloning() *world {
	return pendingClaim().with(copying).with(func(f *Facts) {
		f.Claim.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: protocol.KindClaim, Name: "original"}
		of := bound().f
		of.Claim.Name, of.Claim.UID, of.PV.Spec.ClaimRef.UID = "original", "u2", "u2"
		of.Claim.Spec.VolumeName, of.PV.Name, of.Volume.Name = "pvc-u2", "pvc-u2", "pvc-u2"
		f.Source = &podplan.ClaimSource{Claim: of.Claim, PV: of.PV, Volume: of.Volume}
	})
}

// copied is the PavVolume of a claim that is created from the storage of a record.
func copied(name string, source pavv1.DataSource, phase pavv1.VolumePhase) pavv1.PavVolume {
	return pavv1.PavVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + name, Labels: map[string]string{pavv1.SourceLabel: workflow.Hash(source.Key())}},
		Spec:       pavv1.PavVolumeSpec{Provisioner: "demo", ClaimRef: pavv1.ClaimReference{Namespace: "apps", Name: name}, Source: &source},
		Status:     pavv1.PavVolumeStatus{Phase: phase},
	}
}

func TestDiagnose_OfAClaimWithASource(t *testing.T) {
	hidden := func(f *Facts) {
		f.Hidden = append(f.Hidden, hiddenProvisioners, hiddenVolumes, hiddenPVs, hiddenContents, hiddenRecords)
		f.Provisioner = nil
		if f.Source.Snapshot != nil {
			f.Source.Content, f.Source.Record = nil, nil
		} else {
			f.Source.PV, f.Source.Volume = nil, nil
		}
	}
	unready := func(f *Facts) { f.Source.Snapshot.Status.ReadyToUse = nil }
	for name, test := range map[string]sourceTest{
		"it can be restored":         {restoring(), "NotBegun", Working, "PaV is about to handle the claim", ""},
		"it can be cloned":           {cloning(), "NotBegun", Working, "PaV is about to handle the claim", ""},
		"the definition copies none": {restoring().with(func(f *Facts) { f.Provisioner.Spec.VolumeCreation = nil }), "SourceUnsupported", Failing, "dataSources lacks VolumeSnapshot", "kubectl edit pavprovisioner demo"},
		"its snapshot is missing":    {restoring().with(func(f *Facts) { f.Source = &podplan.ClaimSource{} }), "SourceMissing", Failing, `there is no VolumeSnapshot "apps/nightly", which the claim names`, "kubectl get volumesnapshot -n apps"},
		"the cluster has none":       {restoring().with(func(f *Facts) { f.Source = &podplan.ClaimSource{NoSnapshots: true} }), "SourceRefused", Failing, "no definitions of snapshots", ""},
		"its snapshot is deleted":    {restoring().with(func(f *Facts) { f.Source.Snapshot.DeletionTimestamp = at(0) }), "SourceDeleting", Failing, `"apps/nightly", is being deleted`, ""},
		"its snapshot is not ready":  {restoring().with(unready), "SourceNotReady", Waiting, `created from VolumeSnapshot "apps/nightly", which is not ready to use yet`, "kubectl pav describe volumesnapshot/nightly -n apps"},
		"its snapshot is larger":     {restoring().with(func(f *Facts) { f.Source.Record.Status.Size = new(resource.MustParse("2Gi")) }), "SourceRefused", Failing, "has a capacity of 2Gi, and the claim requests 1Gi", ""},
		"its claim is missing":       {cloning().with(func(f *Facts) { f.Source = &podplan.ClaimSource{} }), "SourceMissing", Failing, `there is no PersistentVolumeClaim "apps/original"`, "kubectl get pvc -n apps"},
		"its claim is not bound":     {cloning().with(func(f *Facts) { f.Source.Claim.Status.Phase = corev1.ClaimPending }), "SourceNotReady", Waiting, "is not bound yet: its phase is Pending", "kubectl pav describe pvc/original -n apps"},
		"no pod uses it yet":         {restoring().with(waitsForConsumer).with(unready), "WaitsForConsumer", Waiting, "", ""},
		"another namespace's": {cloning().with(func(f *Facts) { f.Claim.Spec.DataSourceRef.Namespace, f.Source = new("others"), nil }).event("PersistentVolumeClaim", "ProvisioningFailed", "no ReferenceGrant"),
			"ClaimRefused", Failing, "no ReferenceGrant", ""},
		"a populator's": {pendingClaim().with(func(f *Facts) {
			f.Claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: new("example.com"), Kind: "Image", Name: "base"}
		}), "WaitsForPopulator", Waiting, `from Image "base"`, ""},
		"a tenant sees that it is not ready":   {restoring().with(hidden).with(unready), "SourceNotReady", Waiting, "", "kubectl pav describe volumesnapshot/nightly -n apps"},
		"a tenant sees that it is ready":       {restoring().with(hidden), "Working", Working, "as far as you may see", ""},
		"a tenant sees that it is missing":     {restoring().with(hidden).with(func(f *Facts) { f.Source.Snapshot = nil }), "Working", Working, "as far as you may see", ""},
		"a tenant sees that it is not bound":   {cloning().with(hidden).with(func(f *Facts) { f.Source.Claim.Status.Phase = corev1.ClaimPending }), "SourceNotReady", Waiting, "", ""},
		"a tenant sees that it is bound":       {cloning().with(hidden), "Working", Working, "as far as you may see", ""},
		"someone may not read VolumeSnapshots": {restoring().with(func(f *Facts) { f.Hidden = []string{hiddenSnapshots}; f.Source = &podplan.ClaimSource{} }), "NotBegun", Working, "", ""},
	} {
		t.Run(name, test.run)
	}
}

type sourceTest struct {
	facts   *world
	code    string
	state   State
	summary string // a part of the summary or the reason
	next    string // a part of the first command
}

func (test sourceTest) run(t *testing.T) {
	t.Helper()
	found, next := Build(test.facts.f).Findings[0], ""
	if len(found.Next) > 0 {
		next = found.Next[0].Command
	}
	if found.Code != test.code || found.State != test.state || !strings.Contains(found.Summary+found.Reason, test.summary) || !strings.Contains(next, test.next) {
		t.Errorf("got %s, %s: %q, %q, next %q", found.Code, found.State, found.Summary, found.Reason, next)
	}
}

// What a volume waits for that PaV creates from its source.
func TestDiagnose_OfAVolumeWithASource(t *testing.T) {
	with := func(step pavv1.VolumeStep, reason string) *world {
		return making(step).with(func(f *Facts) {
			f.Volume.Spec.Source = &pavv1.DataSource{Kind: pavv1.DataSourceClaim, Namespace: "apps", Name: "original", VolumeName: "pvc-u2"}
			condition(f, pavv1.VolumeProvisioned, reason, "why")
		})
	}
	const see = "kubectl pav describe pvc/original -n apps"
	for name, test := range map[string]sourceTest{
		"its source is gone":                 {with("", "SourceGone"), "SourceGone", Failing, "cannot be created any more", "kubectl delete pvc -n apps data"},
		"it is gone after a failure":         {with("", "SourceGone").failure(pavv1.WorkflowCreation, "create-0", "no"), "SourceGone", Failing, "why", ""},
		"it cannot be withheld":              {with("", "Unsupported"), "Unsupported", Failing, `cannot be created from PersistentVolumeClaim "apps/original"`, "demo"},
		"it is not ready":                    {with("", "SourceNotReady"), "SourceNotReady", Waiting, "and waits", see},
		"it changes":                         {with("", "VolumeChanges"), "VolumeChanges", Waiting, "why", see},
		"it is staged":                       {with("", "StillStaged"), "StillStaged", Waiting, "why", see},
		"many read it":                       {with("", "VolumeBusy"), "VolumeBusy", Waiting, "why", see},
		"nodes write what they have":         {with(pavv1.StepCreating, "Syncing"), "Syncing", Waiting, "why", see},
		"the creation pod is about to start": {with(pavv1.StepCreating, "Queued"), "Queued", Waiting, "the creation pod waits for a slot", ""},
		"the creation pod runs":              {with(pavv1.StepCreating, "Syncing").pod("create-1", pavv1.WorkflowCreation, running), "Working", Working, "the creation pod runs", ""},
		"the creation pod is not seen":       {with(pavv1.StepCreating, "Syncing").with(func(f *Facts) { f.Hidden = []string{hiddenPods} }), "Working", Working, "runs or is about to run", ""},
		"a volume without a source":          {with("", "StillStaged").with(func(f *Facts) { f.Volume.Spec.Source = nil }), "Working", Working, "", ""},
	} {
		t.Run(name, test.run)
	}
}

// What others wait for until volumes are created from a volume or a snapshot.
func TestDiagnose_OfASource(t *testing.T) {
	deletes := func(s *pavv1.PavSnapshotStatus) {
		waitsFor(pavv1.SnapshotDeleted, "SourceOfVolumes")(s)
		s.Phase = pavv1.SnapshotDeleting
	}
	ofVolume, ofSnapshot := pavv1.DataSource{Kind: pavv1.DataSourceClaim, VolumeName: "pvc-u1", Handle: deleting().f.Volume.Status.Handle}, pavv1.DataSource{Kind: pavv1.DataSourceSnapshot, SnapshotName: "snapshot-s1", Handle: snapshotting("", deletes).f.Snapshot.Record.Status.Handle}
	needed := func(f *Facts) { condition(f, pavv1.VolumeDeleted, "SourceOfVolumes", "PavVolume pvc-copy") }
	copies := func(source pavv1.DataSource) func(*Facts) {
		return func(f *Facts) {
			f.Copies = []pavv1.PavVolume{copied("old", source, pavv1.VolumeReady), copied("copy", source, pavv1.VolumePending)}
		}
	}
	depends := func(f *Facts) {
		for i := range f.Copies {
			f.Copies[i].Status.DependsOnSource = true
		}
	}
	read := func(f *Facts) {
		f.Volume.Status.Readers = append(f.Volume.Status.Readers, pavv1.Reader{Kind: "PavVolume", Name: "pvc-copy"})
	}
	snapshotted := func(f *Facts) {
		f.Snapshots = []pavv1.PavSnapshot{*snapshotRecord(pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotPending})}
		f.Volume.Status.Readers = append(f.Volume.Status.Readers, pavv1.Reader{Kind: "PavSnapshot", Name: "snapshot-s1"})
	}
	const see = "kubectl pav describe pvc/copy -n apps"
	for name, test := range map[string]sourceTest{
		"deletion of a volume":                {deleting().with(needed).with(copies(ofVolume)), "SourceOfVolumes", Waiting, "is deleted after the volumes that are being created from it: claim apps/copy", see},
		"deletion of a volume that is read":   {deleting().with(needed).with(read).with(copies(ofVolume)), "SourceOfVolumes", Waiting, "claim apps/copy", see},
		"deletion of a volume for all copies": {deleting().with(needed).with(copies(ofVolume)).with(depends), "SourceOfVolumes", Waiting, "which cannot exist without it: claims apps/old, apps/copy", "pvc/old"},
		"deletion for copies not seen":        {deleting().with(needed), "SourceOfVolumes", Waiting, "PavVolume pvc-copy", ""},
		"deletion of a snapshot":              {snapshotting("", deletes).with(copies(ofSnapshot)), "SourceOfVolumes", Waiting, "the snapshot is deleted after the volumes that are being created from it: claim apps/copy", see},
		"deletion while it is read":           {deleting().with(read).with(copies(ofVolume)), "WaitsForCopy", Waiting, "not read any more for the copies for claim apps/copy", see},
		"deletion while someone reads it":     {deleting().with(read), "WaitsForCopy", Waiting, "the copies for claim pvc-copy", ""},
		"deletion while many read it":         {deleting().with(snapshotted).with(read).with(copies(ofVolume)), "WaitsForSnapshot", Waiting, "for snapshot apps/nightly and the copies for claim apps/copy", "volumesnapshot/nightly"},
	} {
		t.Run(name, test.run)
	}
}

func TestDetails_OfSources(t *testing.T) {
	ofVolume := pavv1.DataSource{Kind: pavv1.DataSourceClaim, VolumeName: "pvc-u1"}
	for name, test := range map[string]struct {
		facts *world
		want  Detail
	}{
		"of a claim": {restoring(), Detail{Name: "Source", Value: "VolumeSnapshot apps/nightly"}},
		"of a volume": {deleting().with(func(f *Facts) {
			f.Volume.Spec.Source = &pavv1.DataSource{Kind: pavv1.DataSourceSnapshot, Namespace: "apps", Name: "weekly"}
		}), Detail{Name: "Source", Value: "VolumeSnapshot apps/weekly"}},
		"a copy": {bound().with(func(f *Facts) { f.Copies = []pavv1.PavVolume{copied("copy", ofVolume, "")} }), Detail{Name: "Source of", Value: "claim apps/copy, Pending"}},
	} {
		found := false
		for _, d := range details(test.facts.f) {
			found = found || d == test.want
		}
		if !found {
			t.Errorf("%s: %+v is not in %+v", name, test.want, details(test.facts.f))
		}
	}
}

// What a claim names as its source is read with all that belongs to it, until PaV has begun.
func TestGather_Sources(t *testing.T) {
	restores, clones := restoring().f, cloning().f
	s := restores.Source
	f, err := Gather(t.Context(), builder(t).WithObjects(restores.Claim, restores.Class, restores.Provisioner, s.Snapshot, s.Content, s.Record).Build(), restores.Subject, atNoon)
	if err != nil || f.Source == nil || f.Source.Snapshot == nil || f.Source.Content == nil || f.Source.Record == nil {
		t.Errorf("of a snapshot: %+v, %v", f, err)
	}
	s = clones.Source
	f, err = Gather(t.Context(), builder(t).WithObjects(clones.Claim, clones.Class, clones.Provisioner, s.Claim, s.PV, s.Volume).Build(), clones.Subject, atNoon)
	if err != nil || f.Source == nil || f.Source.Claim == nil || f.Source.PV == nil || f.Source.Volume == nil {
		t.Errorf("of a claim: %+v, %v", f, err)
	}
	f, err = Gather(t.Context(), builder(t).WithObjects(restores.Claim, restores.Class, restores.Provisioner).WithInterceptorFuncs(noSnapshotKinds()).Build(), restores.Subject, atNoon)
	if err != nil || f.Source == nil || !f.Source.NoSnapshots {
		t.Errorf("without snapshots: %+v, %v", f, err)
	}
	begun := making(pavv1.StepCreating).f
	begun.Claim.Spec.DataSourceRef = restores.Claim.Spec.DataSourceRef
	f, err = Gather(t.Context(), builder(t).WithObjects(begun.Claim, begun.Volume).Build(), begun.Subject, atNoon)
	if err != nil || f.Source != nil {
		t.Errorf("after it has begun: %+v, %v", f, err)
	}
}

func TestGather_Copies(t *testing.T) {
	ofVolume, ofSnapshot := pavv1.DataSource{Kind: pavv1.DataSourceClaim, VolumeName: "pvc-u1", Handle: deleting().f.Volume.Status.Handle}, pavv1.DataSource{Kind: pavv1.DataSourceSnapshot, SnapshotName: "snapshot-s1", Handle: snapshotting("", func(*pavv1.PavSnapshotStatus) {}).f.Snapshot.Record.Status.Handle}
	copies := []pavv1.PavVolume{copied("a", ofVolume, pavv1.VolumePending), copied("b", ofSnapshot, pavv1.VolumePending)}
	volume := deleting().with(func(f *Facts) { condition(f, pavv1.VolumeDeleted, "SourceOfVolumes", "b") }).f
	reader := builder(t).WithObjects(volume.PV, volume.Volume, &copies[0], &copies[1]).Build()
	f, err := Gather(t.Context(), reader, Ref{PV, "", "pvc-u1"}, atNoon)
	if err != nil || len(f.Copies) != 1 || f.Copies[0].Name != "pvc-a" {
		t.Errorf("of a volume: %+v, %v", f, err)
	}
	snapshot := recorded(pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotDeleting, Conditions: []metav1.Condition{{Type: pavv1.SnapshotDeleted, Status: metav1.ConditionFalse, Reason: "SourceOfVolumes"}}}).f
	reader = builder(t).WithObjects(snapshot.Snapshot.Record, &copies[0], &copies[1]).Build()
	f, err = Gather(t.Context(), reader, Ref{PavSnapshot, "", "snapshot-s1"}, atNoon)
	if err != nil || len(f.Copies) != 1 || f.Copies[0].Name != "pvc-b" {
		t.Errorf("of a snapshot: %+v, %v", f, err)
	}
}
