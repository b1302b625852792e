package volume

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/reading"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
)

// fromSnapshot has the volume created from a snapshot that is ready.
func fromSnapshot(o *observation) {
	o.volume.Spec.Source = &pavv1.DataSource{Kind: pavv1.DataSourceSnapshot, Namespace: "apps", Name: "s", SnapshotName: "snapshot-1", Handle: "s1"}
	o.source = &source{snapshot: &pavv1.PavSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: "snapshot-1"}, Status: pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotReady, Handle: "s1"},
	}}
}

// fromVolume has the volume created from another one, which is in use.
func fromVolume(o *observation) {
	o.volume.Spec.Source = &pavv1.DataSource{Kind: pavv1.DataSourceClaim, Namespace: "apps", Name: "c", VolumeName: "pvc-u0", Handle: "h0", Capacity: ptrQuantity("1Gi")}
	o.volume.Status.SourceCapacity = ptrQuantity("1Gi")
	o.source = &source{
		volume: &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-u0"}, Status: pavv1.PavVolumeStatus{Phase: pavv1.VolumeReady, Handle: "h0", Capacity: ptrQuantity("1Gi")}},
		pv:     &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-u0"}},
		nodes:  map[string]bool{"n1": true},
	}
}

func onSource(change func(*source)) func(*observation) {
	return func(o *observation) { change(o.source) }
}

// readsIt makes the volume a reader of its source.
func readsIt(o *observation) {
	readers := &o.source.volume.Status.Readers
	*readers = append(*readers, pavv1.Reader{Kind: reading.KindVolume, Name: o.volume.Name, Unstaged: o.reading().WhileStaged == pavv1.SnapshotWait})
}

func whileStaged(policy pavv1.SnapshotWhileStaged) func(*observation) {
	return func(o *observation) {
		o.provisioner.Spec.SnapshotCreation = &pavv1.SnapshotCreation{WhileStaged: policy}
	}
}

// staged has node n1 stage the source.
func staged(o *observation) {
	o.source.stages = []pavv1.PavStage{{Spec: pavv1.PavStageSpec{NodeName: "n1"}, Status: pavv1.PavStageStatus{Phase: pavv1.StageStaged}}}
}

// asked records that nodes were asked some seconds ago to write what they have in memory, and whether they know.
func asked(seconds int, know bool) func(*observation) {
	return func(o *observation) {
		at := metav1.NewMicroTime(noon.Add(-time.Duration(seconds) * time.Second))
		o.volume.Status.SyncRequestTime = &at
		if know {
			metav1.SetMetaDataAnnotation(&o.source.stages[0].ObjectMeta, pavv1.SyncAnnotation, at.UTC().Format(pavv1.RetryFormat))
		}
	}
}

func answered(o *observation) { o.source.stages[0].Status.SyncedTime = o.volume.Status.SyncRequestTime }

func TestDecide_OnSources(t *testing.T) {
	snapshotIs := func(phase pavv1.SnapshotPhase, step pavv1.SnapshotStep, pod *pavv1.PodReference) func(*observation) {
		return onSource(func(s *source) {
			s.snapshot.Status.Phase, s.snapshot.Status.Step, s.snapshot.Status.Pod = phase, step, pod
		})
	}
	volumeIs := func(change func(*pavv1.PavVolumeStatus)) func(*observation) {
		return onSource(func(s *source) { change(&s.volume.Status) })
	}
	grown := volumeIs(func(s *pavv1.PavVolumeStatus) { s.Capacity = ptrQuantity("2Gi") })
	tests := map[string]struct {
		state     *state
		want      step
		condition string
		message   string
	}{
		// Snapshots.
		"a snapshot that is ready":                        {state: fresh().with(fromSnapshot), want: stepBegin},
		"a snapshot that is to be deleted waits for it":   {state: fresh().with(fromSnapshot).with(snapshotIs(pavv1.SnapshotDeleting, "", nil)), want: stepBegin},
		"a snapshot that is retained":                     {state: fresh().with(fromSnapshot).with(snapshotIs(pavv1.SnapshotRetained, "", nil)), want: stepBegin},
		"a snapshot whose deletion pod is recorded":       {state: fresh().with(fromSnapshot).with(snapshotIs(pavv1.SnapshotDeleting, pavv1.SnapshotDeletingStep, &pavv1.PodReference{})), want: stepWait, condition: pavv1.VolumeProvisioned, message: "is being deleted"},
		"a snapshot whose storage is deleted":             {state: fresh().with(fromSnapshot).with(snapshotIs(pavv1.SnapshotDeleting, pavv1.SnapshotDeletedStep, nil)), want: stepWait, condition: pavv1.VolumeProvisioned, message: "is being deleted"},
		"a snapshot that is gone":                         {state: fresh().with(fromSnapshot).with(onSource(func(s *source) { s.snapshot = nil })), want: stepWait, condition: pavv1.VolumeProvisioned, message: `VolumeSnapshot "apps/s" was deleted before`},
		"a snapshot that is gone, and the claim, too":     {state: fresh().with(fromSnapshot).with(onSource(func(s *source) { s.snapshot = nil })).with(func(o *observation) { o.claim = claimGone }), want: stepForget},
		"a snapshot that went before the pod was created": {state: at(pavv1.StepCreating).with(fromSnapshot).with(onSource(func(s *source) { s.snapshot = nil })), want: stepDropPod},
		"a snapshot that went while it was validated":     {state: at(pavv1.StepValidating).pod(9, ended(corev1.PodSucceeded, 5)).with(fromSnapshot).with(onSource(func(s *source) { s.snapshot = nil })), want: stepWait, condition: pavv1.VolumeProvisioned, message: "was deleted before"},
		"a snapshot that went while it was read":          {state: at(pavv1.StepCreating).pod(9, runs).with(fromSnapshot).with(onSource(func(s *source) { s.snapshot = nil })), want: stepDone},
		"the creation pod of a snapshot waits for a slot": {state: at(pavv1.StepCreating).with(fromSnapshot), want: stepRunPod},
		"nodes write nothing for a snapshot":              {state: at(pavv1.StepCreating).with(whileStaged(pavv1.SnapshotSync)).with(fromSnapshot), want: stepRunPod},
		"the volume of a snapshot that was validated":     {state: at(pavv1.StepValidating).pod(9, ended(corev1.PodSucceeded, 5)).with(fromSnapshot), want: stepCreate},

		// Volumes.
		"a volume": {state: fresh().with(fromVolume), want: stepBegin},
		"a volume that PaV has not provisioned": {state: fresh().with(fromVolume).with(onSource(func(s *source) {
			s.volume, s.pv.Spec.Capacity = nil, corev1.ResourceList{"storage": *ptrQuantity("1Gi")}
		})), want: stepBegin},
		"such a volume must not be staged": {state: fresh().with(fromVolume).with(onSource(func(s *source) {
			s.volume, s.pv.Spec.Capacity = nil, corev1.ResourceList{"storage": *ptrQuantity("1Gi")}
		})).with(whileStaged(pavv1.SnapshotWait)), want: stepWait, condition: pavv1.VolumeProvisioned, message: "cannot keep nodes from staging it"},
		"a volume that is gone":                         {state: fresh().with(fromVolume).with(onSource(func(s *source) { s.volume, s.pv = nil, nil })), want: stepWait, condition: pavv1.VolumeProvisioned, message: "was deleted before"},
		"a volume that is to be deleted waits for it":   {state: fresh().with(fromVolume).with(volumeIs(func(s *pavv1.PavVolumeStatus) { s.Phase = pavv1.VolumeDeleting })), want: stepBegin},
		"a volume whose deletion pod is recorded":       {state: fresh().with(fromVolume).with(volumeIs(func(s *pavv1.PavVolumeStatus) { s.Phase, s.Step = pavv1.VolumeDeleting, pavv1.StepDeleting })), want: stepWait, condition: pavv1.VolumeProvisioned, message: "is being deleted"},
		"a volume that is not provisioned":              {state: fresh().with(fromVolume).with(volumeIs(func(s *pavv1.PavVolumeStatus) { s.Phase = pavv1.VolumePending })), want: stepWait, condition: pavv1.VolumeProvisioned, message: "not provisioned yet"},
		"a volume that has grown since":                 {state: fresh().with(fromVolume).with(grown), want: stepBegin},
		"a volume that grew while it was validated":     {state: at(pavv1.StepValidating).pod(9, ended(corev1.PodSucceeded, 5)).with(fromVolume).with(grown), want: stepDropPod},
		"a volume that grew before the pod was created": {state: at(pavv1.StepCreating).with(fromVolume).with(grown), want: stepDropPod},
		"a volume that grew while it was read":          {state: at(pavv1.StepCreating).pod(9, runs).with(fromVolume).with(readsIt).with(grown), want: stepDone},
		"a volume whose expansion pod runs": {state: fresh().with(fromVolume).with(volumeIs(func(s *pavv1.PavVolumeStatus) {
			s.Step, s.Pod = pavv1.StepExpanding, &pavv1.PodReference{Name: "expand", UID: "u-expand"}
		})), want: stepWait, condition: pavv1.VolumeProvisioned, message: "waiting for a pod that changes volume"},
		"a volume that is given away while it is read": {state: at(pavv1.StepCreating).pod(9, runs).with(fromVolume).with(readsIt).with(onSource(func(s *source) { s.givenAway = true })), want: stepStopPod},
		"there is no provisioner any more":             {state: fresh().with(fromVolume).with(func(o *observation) { o.provisioner = nil }), want: stepWait, condition: pavv1.VolumeProvisioned, message: "create it again, or delete the claim"},
		"the provisioner is being deleted":             {state: fresh().with(fromSnapshot).with(func(o *observation) { o.provisioner.DeletionTimestamp = new(ago(1)) }), want: stepWait, condition: pavv1.VolumeProvisioned, message: "create it again, or delete the claim"},
		"there is no provisioner, and no claim":        {state: fresh().with(fromSnapshot).with(func(o *observation) { o.provisioner, o.claim = nil, claimGone }), want: stepForget},
		"a volume that was given to another claim":     {state: fresh().with(fromVolume).with(onSource(func(s *source) { s.givenAway = true })), want: stepWait, condition: pavv1.VolumeProvisioned, message: "is not the claim's any more"},
		"a volume of which a deletion pod has failed":  {state: fresh().with(fromVolume).with(volumeIs(func(s *pavv1.PavVolumeStatus) { s.Phase, s.DeletionBegun = pavv1.VolumeDeleting, true })), want: stepWait, condition: pavv1.VolumeProvisioned, message: "is being deleted"},
		"a restored volume whose StorageClass was replaced": {state: fresh().with(fromSnapshot).with(func(o *observation) {
			o.classReplaced, o.volume.Status.Failure = true, &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowCreation, Time: ago(900)}
		}), want: stepBegin},
		"a snapshot that many others read": {state: fresh().with(fromSnapshot).with(onSource(func(s *source) { s.snapshot.Status.Readers = make([]pavv1.Reader, 16) })), want: stepWait, condition: pavv1.VolumeProvisioned, message: "waiting for others that read snapshot"},
		"the restored storage is created": {state: recorded().with(fromSnapshot).with(func(o *observation) {
			o.source.snapshot.Status.Readers = []pavv1.Reader{{Kind: reading.KindVolume, Name: o.volume.Name}}
		}), want: stepLeaveSource},
		"a volume that grows": {state: fresh().with(fromVolume).with(volumeIs(func(s *pavv1.PavVolumeStatus) { s.Step = pavv1.StepExpanding })), want: stepWait, condition: pavv1.VolumeProvisioned, message: "waiting for a pod that changes volume"},
		"a volume whose growth waits for others": {state: fresh().with(fromVolume).with(volumeIs(func(s *pavv1.PavVolumeStatus) {
			s.Conditions = []metav1.Condition{{Type: pavv1.VolumeExpanded, Status: metav1.ConditionFalse, Reason: pavv1.ReasonBeingRead}}
		})), want: stepWait, condition: pavv1.VolumeProvisioned, message: "waits for others that read it"},
		"a volume whose deletion waits for it": {state: fresh().with(fromVolume).with(volumeIs(func(s *pavv1.PavVolumeStatus) {
			s.Conditions = []metav1.Condition{{Type: pavv1.VolumeDeleted, Status: metav1.ConditionFalse, Reason: pavv1.ReasonBeingRead}}
		})), want: stepBegin},
		"a volume that many others read":                    {state: fresh().with(fromVolume).with(volumeIs(func(s *pavv1.PavVolumeStatus) { s.Readers = make([]pavv1.Reader, 16) })), want: stepWait, condition: pavv1.VolumeProvisioned, message: "waiting for others that read volume"},
		"a volume that is staged":                           {state: fresh().with(fromVolume).with(staged), want: stepBegin},
		"a volume that is staged, and must not be":          {state: fresh().with(whileStaged(pavv1.SnapshotWait)).with(fromVolume).with(staged), want: stepWait, condition: pavv1.VolumeProvisioned, message: "to be unstaged on node n1"},
		"its creation pod waits for a slot":                 {state: at(pavv1.StepCreating).with(fromVolume).with(readsIt), want: stepRunPod},
		"it was staged before the creation pod was created": {state: at(pavv1.StepCreating).with(whileStaged(pavv1.SnapshotWait)).with(fromVolume).with(readsIt).with(staged), want: stepDropPod},
		"its record went before the creation pod was created": {state: at(pavv1.StepCreating).with(whileStaged(pavv1.SnapshotWait)).with(fromVolume).with(onSource(func(s *source) {
			s.volume, s.pv.Spec.Capacity = nil, corev1.ResourceList{"storage": *ptrQuantity("1Gi")}
		})), want: stepDropPod},
		"a node is to be asked":                {state: at(pavv1.StepCreating).with(whileStaged(pavv1.SnapshotSync)).with(fromVolume).with(readsIt).with(staged).with(asked(0, false)), want: stepSyncSource},
		"a node is asked":                      {state: at(pavv1.StepCreating).with(whileStaged(pavv1.SnapshotSync)).with(fromVolume).with(readsIt).with(staged).with(asked(1, true)), want: stepDone},
		"a node does not answer for some time": {state: at(pavv1.StepCreating).with(whileStaged(pavv1.SnapshotSync)).with(fromVolume).with(readsIt).with(staged).with(asked(60, true)), want: stepWait, condition: pavv1.VolumeProvisioned, message: "waiting for node n1 to write"},
		"a node does not answer":               {state: at(pavv1.StepCreating).with(whileStaged(pavv1.SnapshotSync)).with(fromVolume).with(readsIt).with(staged).with(asked(301, true)), want: stepGiveUpSync},
		"a node has answered":                  {state: at(pavv1.StepCreating).with(whileStaged(pavv1.SnapshotSync)).with(fromVolume).with(readsIt).with(staged).with(asked(9, true)).with(answered), want: stepRunPod},
		"the creation pod runs":                {state: at(pavv1.StepCreating).pod(9, runs).with(fromVolume).with(readsIt), want: stepDone},
		"the creation pod failed":              {state: at(pavv1.StepCreating).pod(9, ended(corev1.PodFailed, 5), reported).with(fromVolume).with(readsIt), want: stepRecordFailure},
		"the creation is reverted":             {state: at(pavv1.StepReverting).with(fromVolume).with(readsIt), want: stepLeaveSource},
		"the attempt failed, and the next one is not due": {state: fresh().with(fromVolume).with(readsIt).with(func(o *observation) {
			o.volume.Status.Attempt, o.volume.Status.Failure = 1, &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowCreation, Time: ago(0)}
			o.volume.Status.Definition = &pavv1.VolumeDefinition{UID: "p1", Generation: 3}
		}), want: stepLeaveSource},
		"the storage is created": {state: recorded().with(fromVolume).with(readsIt), want: stepLeaveSource},
		"it is validated":        {state: at(pavv1.StepValidating).with(fromVolume), want: stepRunPod},

		// What is deleted while volumes need it.
		"volumes are created from it":                               {state: in(pavv1.VolumeReady, corev1.VolumeReleased, deletePolicy).with(withDeletionPod).with(func(o *observation) { o.clones = []string{"pvc-u2"} }), want: stepWait, condition: pavv1.VolumeDeleted, message: `such as PavVolume "pvc-u2"`},
		"volumes are created from it, and there is no deletion pod": {state: in(pavv1.VolumeReady, corev1.VolumeReleased, deletePolicy).with(func(o *observation) { o.clones = []string{"pvc-u2"} }), want: stepWait, condition: pavv1.VolumeDeleted, message: `such as PavVolume "pvc-u2"`},
		"a deletion pod has failed, and a volume names it":          {state: in(pavv1.VolumeDeleting, corev1.VolumeReleased, deletePolicy).with(withDeletionPod).with(func(o *observation) { o.clones, o.volume.Status.DeletionBegun = []string{"pvc-u2"}, true }), want: stepDelete},
		"a growth waited for readers, and its claim is gone":        {state: in(pavv1.VolumeReady, corev1.VolumeReleased, deletePolicy).with(withDeletionPod).with(waitsForReaders).with(func(o *observation) { o.clones = []string{"pvc-u2"} }), want: stepDropReaders, condition: pavv1.VolumeDeleted},
		"volumes are created from it, and it is retained":           {state: in(pavv1.VolumeReady, corev1.VolumeReleased, retainPolicy).with(func(o *observation) { o.clones = []string{"pvc-u2"} }), want: stepRetain},
		"volumes are created from it, and it grows":                 {state: growable("2Gi").with(func(o *observation) { o.clones = []string{"pvc-u2"} }), want: stepExpand},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := decideIn(test.state.o)
			if d.Step != test.want || d.Condition != test.condition || !strings.Contains(d.Message, test.message) || (test.message == "") != (d.Message == "") {
				t.Errorf("got %s (%s, %s: %q), want %s, %s: %q", d.Step, d.Rule, d.Condition, d.Message, test.want, test.condition, test.message)
			}
		})
	}
}

// A clone reads its source as the definition says of snapshots; a volume that is created from a snapshot reads no volume.
func TestReading_IsOfClones(t *testing.T) {
	clone := fresh().with(whileStaged(pavv1.SnapshotWait)).with(fromVolume).with(readsIt).o
	if r := clone.reading(); !r.Holds() || !r.HoldsFor() || r.WhileStaged != pavv1.SnapshotWait || r.VolumeName != "pvc-u0" {
		t.Errorf("a clone reads %+v", r)
	}
	for name, o := range map[string]observation{"restored": fresh().with(whileStaged(pavv1.SnapshotWait)).with(fromSnapshot).o, "empty": fresh().with(whileStaged(pavv1.SnapshotWait)).o} {
		if r := o.reading(); r.Holds() || r.MustWait() || r.WhileStaged != pavv1.SnapshotAllow || reading.WhileStaged(o.provisioner) != pavv1.SnapshotWait {
			t.Errorf("a volume that is %s reads %+v", name, r)
		}
	}
}

// A creation pod that names the handle of its source has made nothing of its own, and what it names is never reverted.
func TestDecide_OnAHandleOfTheSource(t *testing.T) {
	tells := func(handle string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{pavv1.ResultAnnotation: `{"handle": "` + handle + `"}`}
		}
	}
	plans := func(o *observation) { o.volume.Status.Plan = &pavv1.VolumePlan{Handle: "s1"} }
	claimIsGone := func(o *observation) { o.claim = claimGone }
	made := func(handle string) *state {
		return at(pavv1.StepCreating).pod(9, ended(corev1.PodSucceeded, 5), tells(handle))
	}
	for name, test := range map[string]struct {
		state *state
		want  step
	}{
		"of a volume":                             {made("h0").with(fromVolume).with(readsIt), stepRecordConflict},
		"of a volume, and the claim is gone":      {made("h0").with(fromVolume).with(readsIt).with(claimIsGone), stepRecordConflict},
		"of a snapshot":                           {made("s1").with(fromSnapshot), stepRecordConflict},
		"of a snapshot, and the claim is gone":    {made("s1").with(fromSnapshot).with(claimIsGone), stepRecordConflict},
		"of a snapshot, chosen by the definition": {made("s1").with(fromSnapshot).with(plans), stepRecordCreated},
		"of its own":                              {made("h1").with(fromVolume).with(readsIt), stepRecordCreated},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.state.o
			handle, _ := o.identity()
			o.others = o.besides(handle, nil)
			if d := decide(o); d.Step != test.want {
				t.Errorf("got %s (%s), want %s", d.Step, d.Rule, test.want)
			}
		})
	}
}

// What an expansion pod may have reached is what copies of the volume need, until the volume has it.
func TestAttemptedCapacity(t *testing.T) {
	status := &pavv1.PavVolumeStatus{Capacity: ptrQuantity("1Gi")}
	want := func(when, want string) {
		t.Helper()
		if got := status.LargestCapacity().String(); got != want {
			t.Errorf("%s, it may have %s, want %s", when, got, want)
		}
	}
	want("before", "1Gi")
	setAttempted(status, *ptrQuantity("3Gi"))
	setAttempted(status, *ptrQuantity("2Gi"))
	want("after two failures", "3Gi")
	setAttempted(status, *ptrQuantity("1Mi"))
	want("after a failure to reach less", "3Gi")
	status.Capacity = ptrQuantity("4Gi")
	want("when it has more", "4Gi")
}

// The node that replaces the selected one reaches the source, can run pods, and is another one for each attempt.
func TestNodeIn(t *testing.T) {
	node := func(name, zone string, change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone}}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if change != nil {
			change(n)
		}
		return n
	}
	taint := func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}} }
	r := &Reconciler{Live: reconciletest.Client(t,
		node("a1", "a", taint), node("a2", "a", nil), node("a3", "a", nil), node("a4", "a", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
		node("a5", "a", func(n *corev1.Node) { n.Status.Conditions = nil }), node("b1", "b", taint), node("c1", "c", nil))}
	for name, test := range map[string]struct {
		zone    string
		attempt int32
		want    string
	}{
		"the first attempt":  {"a", 0, "a2"},
		"the second attempt": {"a", 1, "a3"},
		"the third attempt":  {"a", 2, "a2"},
		"only one, tainted":  {"b", 0, "b1"},
		"none":               {"d", 0, ""},
	} {
		if got, err := r.nodeIn(t.Context(), []pavv1.TopologyLabels{{"zone": test.zone}}, nil, test.attempt); err != nil || got != test.want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

// A pod that ran may have grown the volume as far as it told, or else as far as it was to.
func TestReached(t *testing.T) {
	for name, test := range map[string]struct {
		capacity *resource.Quantity
		result   string
		want     string
	}{
		"its target":                   {nil, `{}`, "2Gi"},
		"what the definition chose":    {ptrQuantity("3Gi"), `{}`, "3Gi"},
		"what the pod told":            {ptrQuantity("3Gi"), `{"capacity": "1Gi"}`, "1Gi"},
		"what the pod told is invalid": {nil, `{"capacity": "much"}`, "2Gi"},
	} {
		o := at(pavv1.StepExpanding).pod(9, ended(corev1.PodFailed, 5), func(pod *corev1.Pod) { pod.Annotations = map[string]string{pavv1.ResultAnnotation: test.result} }).o
		if got := o.reached(&pavv1.VolumeExpansionRecord{Target: *ptrQuantity("2Gi"), Capacity: test.capacity}); got.Cmp(*ptrQuantity(test.want)) != 0 {
			t.Errorf("%s: got %s, want %s", name, got.String(), test.want)
		}
	}
}
