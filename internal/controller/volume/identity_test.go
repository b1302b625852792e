package volume

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
)

// says gives a pod a result.
func says(result string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations = map[string]string{pavv1.ResultAnnotation: result} }
}

// failedCreation returns a volume whose creation pod failed this many seconds ago. The failure is recorded.
func failedCreation(seconds int, changes ...func(*corev1.Pod)) *state {
	s := at(pavv1.StepCreating).pod(seconds+9, append([]func(*corev1.Pod){ended(corev1.PodFailed, seconds)}, changes...)...)
	status := &s.o.volume.Status
	status.Failure = s.o.attempt().Failure(pavv1.WorkflowCreation)
	status.Step, status.Pod = pavv1.StepReverting, nil
	return s
}

func nodeGone(o *observation) { o.nodeGone = true }

func planned17(o *observation) { o.volume.Status.Plan = &pavv1.VolumePlan{Handle: "17"} }

// neverMounted sets the final status that kubelet reports for a pod whose containers were waiting for its volumes.
func neverMounted(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown"},
	}}}
}

// given marks a pod that got /pav.
func given(pod *corev1.Pod) { pod.Annotations = map[string]string{pavv1.GivenAnnotation: "true"} }

// collected sets the status of a pod that the garbage collector of Kubernetes ended this many seconds ago.
func collected(seconds int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodFailed
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", LastTransitionTime: ago(seconds),
		})
	}
}

// unidentified removes the handle from a revert, as earlier versions recorded it.
func unidentified(o *observation) { o.volume.Status.Handle = "" }

func TestIdentity(t *testing.T) {
	const creating, succeeded, failed = pavv1.StepCreating, corev1.PodSucceeded, corev1.PodFailed
	tests := map[string]struct {
		state      *state
		want       string
		unreported bool
		never      bool
	}{
		"no attempt yet: the default":                                                 {state: fresh(), want: "pvc-u1"},
		"handle recorded":                                                             {state: recorded(), want: "h"},
		"handle in the plan":                                                          {state: at(creating).with(planned17).pod(9, runs), want: "17"},
		"handle in the plan and in /pav/handle: the plan's":                           {state: at(creating).with(planned17).pod(9, ended(failed, 1), says(`{"handle":"x"}`)), want: "17"},
		"handle in the plan, pod vanished":                                            {state: at(creating).with(planned17).with(vanishedPod), want: "17"},
		"creation pod runs: the default":                                              {state: at(creating).pod(9, runs), want: "pvc-u1"},
		"creation pod succeeded with a handle":                                        {state: at(creating).pod(9, ended(succeeded, 1), says(`{"handle":"x"}`)), want: "x"},
		"creation pod failed with a handle":                                           {state: at(creating).pod(9, ended(failed, 1), says(`{"handle":"x"}`)), want: "x"},
		"creation pod was deleted and wrote a handle":                                 {state: at(creating).pod(9, ended(failed, 1), deletedAgo(1), says(`{"handle":"x"}`)), want: "x"},
		"creation pod wrote no handle: the default":                                   {state: at(creating).pod(9, ended(succeeded, 1), reported), want: "pvc-u1"},
		"creation pod ended, not reported yet":                                        {state: at(creating).pod(99, ended(failed, 60)), unreported: true},
		"creation pod not reported, node gone: unknown":                               {state: at(creating).pod(99, ended(failed, 60)).with(nodeGone), never: true},
		"creation pod vanished: unknown":                                              {state: at(creating).with(vanishedPod), never: true},
		"unreadable handle: unknown":                                                  {state: at(creating).pod(9, ended(succeeded, 1), says(`{"unreadable":{"handle":"is a link"}}`)), never: true},
		"invalid handle: unknown":                                                     {state: at(creating).pod(9, ended(succeeded, 1), says(`{"handle":"a\nb"}`)), never: true},
		"unreadable result: unknown":                                                  {state: at(creating).pod(9, ended(succeeded, 1), says("nonsense")), never: true},
		"no container of the creation pod ran: the default":                           {state: at(creating).pod(9, func(p *corev1.Pod) { p.Status.Phase = failed }), want: "pvc-u1"},
		"/pav of the creation pod was never mounted: the default":                     {state: at(creating).pod(99, neverMounted), want: "pvc-u1"},
		"/pav of the creation pod was never mounted, claim gone: the default":         {state: at(creating).with(unclaimed).pod(99, neverMounted), want: "pvc-u1"},
		"/pav was given, though kubelet knows no container: not reported yet":         {state: at(creating).pod(99, neverMounted, given), unreported: true},
		"/pav was given, and its node is gone: unknown":                               {state: at(creating).pod(99, neverMounted, given).with(nodeGone), never: true},
		"creation pod ended by the garbage collector: not reported yet":               {state: at(creating).pod(99, collected(99)), unreported: true},
		"creation pod ended by the garbage collector, not reported for long: unknown": {state: at(creating).pod(999, collected(601)), never: true},
		"no container status, node gone: unknown":                                     {state: at(creating).pod(99, func(p *corev1.Pod) { p.Status.Phase = failed }).with(nodeGone), never: true},
		"reverting: the handle of the pod that failed":                                {state: failedCreation(9, says(`{"handle":"x"}`)), want: "x"},
		"reverting: the recorded handle":                                              {state: failedCreation(9, says(`{"handle":"x"}`)).with(func(o *observation) { o.volume.Status.Handle = "y" }), want: "y"},
		"reverting, failure of another workflow: unknown":                             {state: failedCreation(9, says(`{"handle":"x"}`)).with(func(o *observation) { o.volume.Status.Failure.Workflow = "validate" }), never: true},
		"after a conflict: the handle of the conflict":                                {state: conflicted("x"), want: "x"},
		"volume being deleted":                                                        {state: in(pavv1.VolumeDeleting, corev1.VolumeReleased, deletePolicy), want: "h"},
		"the bucket of a claim":                                                       {state: fresh().with(ofClaimedBucket), want: "h"},
		"its own bucket":                                                              {state: fresh().with(ofOwnBucket), want: "h"},
		"its own bucket, not recorded: the default":                                   {state: fresh().with(ofOwnBucket).with(onBucket(noBucket)), want: "pvc-u1"},
		"record of an earlier version":                                                {state: at(pavv1.StepReverting).with(unidentified), never: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := handleKnown
			if test.unreported {
				want = handleUntold
			} else if test.never {
				want = handleUnknown
			}
			if got, known := test.state.o.identity(); got != test.want || known != want {
				t.Errorf("got %q, %d, want %q, %d", got, known, test.want, want)
			}
		})
	}
}

// conflicted returns a volume whose last creation pod reported the handle of another object's storage.
func conflicted(handle string) *state {
	s := at(pavv1.StepCreating)
	status := &s.o.volume.Status
	status.Step, status.Pod, status.Plan = "", nil, nil
	status.Failure = &pavv1.WorkflowFailure{Workflow: "create", Reason: pavv1.FailureHandleInUse, PodName: "pod", Time: ago(60)}
	status.Conflict = &pavv1.StorageConflict{Handle: handle, Kind: reconcile.KindVolume, Name: "pvc-u0"}
	return s
}

// failedLater lets an attempt after the conflict fail.
func failedLater(o *observation) { o.volume.Status.Failure.Reason = pavv1.FailurePodFailed }

// Storage that another object uses is never reverted and never deleted.
func TestDecide_StorageOfOtherObjects(t *testing.T) {
	const creating, deleting = pavv1.StepCreating, pavv1.StepDeleting
	const succeeded, failed = corev1.PodSucceeded, corev1.PodFailed
	var (
		retainedVolume = holder(reconcile.KindVolume, "pvc-u0", pavv1.VolumeRetained)
		readyVolume    = holder(reconcile.KindVolume, "pvc-u0", pavv1.VolumeReady)
		dyingVolume    = holder(reconcile.KindVolume, "pvc-u0", pavv1.VolumeDeleting)
		makingVolume   = holder(reconcile.KindVolume, "pvc-u0", pavv1.VolumePending)
		laterVolume    = holder(reconcile.KindVolume, "pvc-u2", pavv1.VolumePending)
		staticPV       = holder(reconcile.KindPV, "static", "")
		foreign        = says(`{"handle":"h0"}`)
	)
	madeByPod := func() *state {
		return recorded().with(func(o *observation) { o.volume.Status.Plan = &pavv1.VolumePlan{} })
	}
	idle := func() *state {
		return at(deleting).with(func(o *observation) { o.volume.Status.Pod = nil })
	}
	tests := map[string]struct {
		state   *state
		want    step
		message string
		after   time.Duration
	}{
		// A creation pod reported the handle.
		"creation pod named the storage of a retained volume: conflict":                                    {state: at(creating).pod(9, ended(succeeded, 1), foreign).with(heldBy(retainedVolume)), want: stepRecordConflict},
		"creation pod named the storage of a volume in use: conflict":                                      {state: at(creating).pod(9, ended(succeeded, 1), foreign).with(heldBy(readyVolume)), want: stepRecordConflict},
		"creation pod named the storage of a volume being deleted: conflict":                               {state: at(creating).pod(9, ended(succeeded, 1), foreign).with(heldBy(dyingVolume)), want: stepRecordConflict},
		"creation pod named the storage of a pending volume: conflict":                                     {state: at(creating).pod(9, ended(succeeded, 1), foreign).with(heldBy(makingVolume)), want: stepRecordConflict},
		"creation pod named the storage of a static PersistentVolume: conflict":                            {state: at(creating).pod(9, ended(succeeded, 1), foreign).with(heldBy(staticPV)), want: stepRecordConflict},
		"creation pod named storage that is staged: conflict":                                              {state: at(creating).pod(9, ended(succeeded, 1), foreign).with(heldBy(stagedOn("n1")...)), want: stepRecordConflict},
		"creation pod failed and named the storage of a retained volume: conflict":                         {state: at(creating).pod(9, ended(failed, 1), foreign).with(heldBy(retainedVolume)), want: stepRecordConflict},
		"claim deleted while the creation pod ran, which named the storage of a retained volume: conflict": {state: at(creating).with(unclaimed).pod(9, ended(failed, 1), foreign, deletedAgo(2)).with(heldBy(retainedVolume)), want: stepRecordConflict},
		"claim deleted after the creation pod named the storage of a retained volume: conflict":            {state: at(creating).with(unclaimed).pod(9, ended(succeeded, 1), foreign).with(heldBy(retainedVolume)), want: stepRecordConflict},
		"reverting a creation pod that named the storage of a retained volume: conflict":                   {state: failedCreation(9, foreign).with(heldBy(retainedVolume)), want: stepRecordConflict},
		"reverting a creation pod that named the storage of a retained volume, provisioner gone: conflict": {state: failedCreation(9, foreign).with(heldBy(retainedVolume)).with(func(o *observation) { o.provisioner = nil }), want: stepRecordConflict},
		"after a conflict: wait":                                  {state: conflicted("h0").with(heldBy(retainedVolume)), want: stepWait, message: `is the storage of PavVolume "pvc-u0" (Retained)`},
		"after a conflict, the other object is gone: begin":       {state: conflicted("h0"), want: stepBegin},
		"after a conflict, definition edited: begin":              {state: conflicted("h0").with(heldBy(retainedVolume)).with(func(o *observation) { o.provisioner.Generation++ }), want: stepBegin},
		"after a conflict, retry requested: begin":                {state: conflicted("h0").with(heldBy(retainedVolume)).with(func(o *observation) { o.retry = noon }), want: stepBegin},
		"after a conflict, claim gone: delete only the PavVolume": {state: conflicted("h0").with(unclaimed).with(heldBy(retainedVolume)), want: stepForget},

		// The result of the creation pod is not known.
		"reverting, result not reported yet: wait":                                           {state: failedCreation(7), want: stepDone, after: 5 * time.Second},
		"reverting, result not reported for long: report it":                                 {state: failedCreation(60), want: stepWait, message: "to report what pod pav-pods/pod left in /pav"},
		"reverting, result cannot be reported: abandon the storage":                          {state: failedCreation(60).with(nodeGone), want: stepAbandon},
		"pod ended by the garbage collector, node is back: wait":                             {state: at(creating).with(unclaimed).pod(99, collected(99)), want: stepWait, after: 501 * time.Second, message: "to report what pod"},
		"pod ended by the garbage collector, clock behind: wait":                             {state: at(creating).with(unclaimed).pod(99, collected(-500)), want: stepWait, after: attempt.LongDelay, message: "to report what pod"},
		"pod ended by the garbage collector long ago: abandon the storage":                   {state: at(creating).with(unclaimed).pod(999, collected(601)), want: stepAbandon},
		"creation pod not reported, node gone, claim gone: abandon the storage":              {state: at(creating).with(unclaimed).pod(99, ended(failed, 60)).with(nodeGone), want: stepAbandon},
		"reverting, handle in the plan, node gone: revert":                                   {state: failedCreation(60).with(nodeGone).with(planned17), want: stepRevert},
		"reverting, definition without deletion pod: reverted":                               {state: failedCreation(60).with(nodeGone).with(func(o *observation) { o.provisioner.Spec.VolumeDeletion = nil }), want: stepReverted},
		"reverting, handle known: record it first":                                           {state: failedCreation(9, says(`{"handle":"x"}`)), want: stepRevert},
		"reverting deletion pod recorded, handle not: record the handle first":               {state: at(pavv1.StepReverting).with(planned17).with(unidentified), want: stepRevert},
		"reverting deletion pod waits for a slot, another object uses the storage: conflict": {state: at(pavv1.StepReverting).with(planned17).with(heldBy(staticPV)), want: stepRecordConflict},
		"reverting deletion pod runs, another object uses the storage: wait for the pod":     {state: at(pavv1.StepReverting).pod(9, runs).with(heldBy(staticPV)), want: stepDone, after: 21 * time.Second},

		// Two volumes have the same handle at the same time.
		"two pending volumes with one handle, this one sorts first: wait":                       {state: madeByPod().with(heldBy(laterVolume)), want: stepWait, message: `the handle "h" is also that of PavVolume "pvc-u2" (Pending)`},
		"two pending volumes with one handle, this one sorts second: conflict":                  {state: madeByPod().with(heldBy(makingVolume)), want: stepRecordConflict},
		"a later attempt failed for another reason: the next one":                               {state: conflicted("h").with(heldBy(readyVolume)).with(failedLater), want: stepBegin},
		"two pending volumes and a PersistentVolume with one handle: conflict":                  {state: madeByPod().with(heldBy(staticPV, laterVolume)), want: stepRecordConflict},
		"two pending volumes with one handle, claim gone: conflict":                             {state: madeByPod().with(heldBy(laterVolume)).with(unclaimed), want: stepRecordConflict},
		"no creation pod ran, another object uses the handle, claim gone: delete the PavVolume": {state: recorded().with(heldBy(laterVolume)).with(unclaimed), want: stepForget},

		// The record is older than its object, or its status is lost: a backup was restored.
		"restored from a backup: wait":                                               {state: restoredBefore(time.Hour, in(pavv1.VolumeReady, corev1.VolumeReleased, deletePolicy).with(withDeletionPod)), want: stepWait, message: "was restored from a backup"},
		"restored from a backup, PersistentVolume gone: wait":                        {state: restoredBefore(time.Hour, without(pavv1.VolumeReady, deletePolicy).with(withDeletionPod)), want: stepWait, message: "was restored from a backup"},
		"restored from a backup, deletion pod waits for a slot: wait":                {state: restoredBefore(time.Hour, at(deleting)), want: stepWait, message: "was restored from a backup"},
		"restored from a backup, PavVolume deleted: delete the storage":              {state: restoredBefore(time.Hour, in(pavv1.VolumeReady, corev1.VolumeReleased, deletePolicy).with(withDeletionPod)).deleted(), want: stepDelete},
		"condition minutes older than the object: delete the storage":                {state: restoredBefore(time.Minute, in(pavv1.VolumeReady, corev1.VolumeReleased, deletePolicy).with(withDeletionPod)), want: stepDelete},
		"restored from a backup, PersistentVolume bound: mark ready":                 {state: restoredBefore(time.Hour, in(pavv1.VolumeReady, corev1.VolumeBound, deletePolicy)), want: stepMarkReady},
		"restored without status, PersistentVolume released: wait":                   {state: in("", corev1.VolumeReleased, deletePolicy).with(statusLost).with(withDeletionPod), want: stepWait, message: "was restored from a backup"},
		"restored without status, PersistentVolume available: nothing to do":         {state: in("", corev1.VolumePending, deletePolicy).with(statusLost).with(withDeletionPod), want: stepDone},
		"restored without status, PersistentVolume bound: mark ready":                {state: in("", corev1.VolumeBound, deletePolicy).with(statusLost).with(withDeletionPod), want: stepMarkReady},
		"restored without status and claim: wait":                                    {state: fresh().with(statusLost).with(unclaimed), want: stepWait, message: "does not say whether the volume was provisioned"},
		"restored without status, claim lost its volume: wait":                       {state: fresh().with(statusLost).with(func(o *observation) { o.claim = claimBound }), want: stepWait, message: "restore the PersistentVolume too"},
		"restored without status, claim waits again: wait":                           {state: fresh().with(statusLost), want: stepWait, message: "restore the PersistentVolume too"},
		"restored without status and claim, PavVolume deleted: delete the PavVolume": {state: fresh().with(statusLost).with(unclaimed).deleted(), want: stepForget},

		"restored while it was created: wait":                                                     {state: restoredBefore(time.Hour, at(creating).with(vanishedPod)), want: stepWait, message: "restore the PersistentVolume too"},
		"restored while it was created, claim gone: wait":                                         {state: restoredBefore(time.Hour, madeByPod().with(unclaimed)), want: stepWait, message: "restore the PersistentVolume too"},
		"restored while it was reverted: wait":                                                    {state: restoredBefore(time.Hour, at(pavv1.StepReverting)), want: stepWait, message: "restore the PersistentVolume too"},
		"restored while it was reverted, PavVolume deleted: revert it":                            {state: restoredBefore(time.Hour, at(pavv1.StepReverting)).deleted(), want: stepRunPod},
		"restored before it was recorded as ready, PersistentVolume released: wait":               {state: restoredBefore(time.Hour, madeByPod().with(pvIs(corev1.VolumeReleased)).with(unclaimed).with(withDeletionPod)), want: stepWait, message: "does not delete the storage by itself"},
		"restored before it was recorded as ready, PersistentVolume not bound yet: nothing to do": {state: restoredBefore(time.Hour, madeByPod().with(pvIs(corev1.VolumePending))), want: stepDone},
		"restored while it was reverted, PersistentVolume released: wait":                         {state: restoredBefore(time.Hour, at(pavv1.StepReverting).with(pvIs(corev1.VolumeReleased))), want: stepWait, message: "does not delete the storage by itself"},
		"restored while it was reverted, PersistentVolume bound: mark ready":                      {state: restoredBefore(time.Hour, at(pavv1.StepReverting).with(noPod).with(deletionBegan).with(pvIs(corev1.VolumeBound))), want: stepMarkReady},
		"restored while it was reverted, PersistentVolume not bound yet: nothing to do":           {state: restoredBefore(time.Hour, at(pavv1.StepReverting).with(deletionBegan).with(pvIs(corev1.VolumePending))), want: stepDone},
		"restored while it was reverted, PersistentVolume retained: mark ready":                   {state: restoredBefore(time.Hour, at(pavv1.StepReverting).with(deletionBegan).with(pvIs(corev1.VolumeReleased)).with(retainsPV)), want: stepMarkReady},
		"restored, recorded with the UID of another object: wait":                                 {state: restoredBefore(time.Minute, madeByPod()).with(recordedFor("earlier")), want: stepWait, message: "to delete it, delete the PavVolume"},
		"older than its object by a clock, as it has its UID: go on":                              {state: restoredBefore(time.Hour, madeByPod()).with(recordedFor("v1")), want: stepWritePV},
		"released, older than its object by a clock, as it has its UID: delete the storage":       {state: restoredBefore(time.Hour, in(pavv1.VolumeDeleting, corev1.VolumeReleased, deletePolicy).with(withDeletionPod)).with(recordedFor("v1")), want: stepDelete},
		"released, recorded with the UID of another object: wait":                                 {state: in(pavv1.VolumeDeleting, corev1.VolumeReleased, deletePolicy).with(withDeletionPod).with(recordedFor("earlier")), want: stepWait, message: "was restored from a backup"},
		"restored while it was created, with its PersistentVolume: mark ready":                    {state: restoredBefore(time.Hour, madeByPod().with(pvIs(corev1.VolumeBound))), want: stepMarkReady},
		"created within a minute before its object: go on":                                        {state: restoredBefore(time.Minute, madeByPod()), want: stepWritePV},

		// A deletion.
		"released, a static PersistentVolume uses the storage: wait":              {state: idle().with(heldBy(staticPV)), want: stepWait, message: `PersistentVolume "static" uses the same storage, with the handle "h"`},
		"deletion pod recorded, a static PersistentVolume uses the storage: wait": {state: at(deleting).with(heldBy(staticPV)), want: stepWait, message: `PersistentVolume "static" uses the same storage`},
		"PersistentVolume removed by force, a static one uses the storage: wait":  {state: without(pavv1.VolumeDeleting, deletePolicy).with(withDeletionPod).with(heldBy(staticPV)), want: stepWait, message: "delete the object or, to keep the storage"},
		"released, another PavVolume uses the storage: wait":                      {state: idle().with(heldBy(retainedVolume)), want: stepWait, message: `PavVolume "pvc-u0" (Retained) uses the same storage`},
		"released, staged: wait":                                               {state: idle().with(heldBy(stagedOn("n1")...)), want: stepWait, message: "waiting for the volume to be unstaged on node n1"},
		"deletion pod recorded, staged: wait":                                  {state: at(deleting).with(heldBy(stagedOn("n1")...)), want: stepWait, message: "waiting for the volume to be unstaged on node n1"},
		"deletion pod runs, another object uses the storage: wait for the pod": {state: at(deleting).pod(9, runs).with(heldBy(staticPV)), want: stepDone, after: 21 * time.Second},
		"no other object uses the storage: record a deletion pod":              {state: idle(), want: stepDelete},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := decideIn(test.state.o)
			if got.Step != test.want || got.After != test.after {
				t.Errorf("got step %s (%s) after %s, want %s after %s", got.Step, got.Message, got.After, test.want, test.after)
			}
			if !strings.Contains(got.Message, test.message) || (test.message == "") != (got.Message == "") {
				t.Errorf("got message %q, want it to contain %q", got.Message, test.message)
			}
		})
	}
}

// restoredBefore changes a volume into one that was provisioned this long before its object was created.
func restoredBefore(d time.Duration, s *state) *state {
	return s.with(func(o *observation) {
		o.volume.CreationTimestamp = metav1.NewTime(noon)
		o.volume.Status.Conditions = []metav1.Condition{{Type: pavv1.VolumeProvisioned, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-d))}}
	})
}

// recordedFor records that the volume had this UID; it has the UID v1.
func recordedFor(uid types.UID) func(*observation) {
	return func(o *observation) { o.volume.UID, o.volume.Status.RecordUID = "v1", uid }
}

// statusLost changes a record into one that was restored without its status, and whose claim was bound.
func statusLost(o *observation) { o.volume.Status, o.wasBound = pavv1.PavVolumeStatus{}, true }

func TestOtherHolders(t *testing.T) {
	own := in(pavv1.VolumeReady, corev1.VolumeBound, deletePolicy)
	mine := []reconcile.Holder{{Kind: reconcile.KindPV, Name: "pvc-u1"}, {Kind: reconcile.KindVolume, Name: "pvc-u1"}}
	if got := own.o.besides("h", append([]reconcile.Holder{}, mine...)); len(got) != 0 {
		t.Errorf("its own PersistentVolume and record: got %v", got)
	}
	stranger := in(pavv1.VolumePending, corev1.VolumeBound, deletePolicy).with(func(o *observation) { o.pv.Spec.ClaimRef.UID = "u0"; o.pv.Annotations = nil })
	if got := stranger.o.besides("h", append([]reconcile.Holder{}, mine...)); len(got) != 1 || got[0].Kind != reconcile.KindPV {
		t.Errorf("a PersistentVolume of its name that is someone else's: got %v", got)
	}
	if got := own.o.besides("h", stagedOn("n1")); len(got) != 1 {
		t.Errorf("stages hold their volume's storage: got %v", got)
	}
	if got := own.o.besides("h", []reconcile.Holder{{Kind: reconcile.KindPV, Name: "pvc-u0"}}); len(got) != 1 {
		t.Errorf("another PersistentVolume: got %v", got)
	}
}

// An attacker with the token of a node agent can write PavStages with any handle. They are ignored if no node can have
// staged the storage.
func TestOtherHolders_PavStagesOfAPendingVolume(t *testing.T) {
	making := func() *state { return at(pavv1.StepCreating).pod(9, ended(corev1.PodSucceeded, 1), reported) }
	pv := reconcile.Holder{Kind: reconcile.KindPV, Name: "other"}
	for name, test := range map[string]struct {
		state  *state
		handle string
		others []reconcile.Holder
		want   int
	}{
		"pending, default handle: PavStages ignored":        {state: making(), handle: "pvc-u1"},
		"pending, chosen handle: PavStages count":           {state: making(), handle: "h", want: 1},
		"pending, PersistentVolume exists: PavStages count": {state: making(), handle: "pvc-u1", others: []reconcile.Holder{pv}, want: 2},
		"claim gone: PavStages count":                       {state: making().with(unclaimed), handle: "pvc-u1", want: 1},
		"provisioned: PavStages count":                      {state: in(pavv1.VolumeReady, corev1.VolumeBound, deletePolicy), handle: "pvc-u1", want: 1},
		"restored without status: PavStages count":          {state: at("").with(statusLost), handle: "pvc-u1", want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.state.o.besides(test.handle, append(stagedOn("n1"), test.others...)); len(got) != test.want {
				t.Errorf("got %v, want %d", got, test.want)
			}
		})
	}
}

// A node stages a volume as soon as its claim is bound. If the cache has the PavStage before the PersistentVolume, the volume
// itself must not be taken for another object that uses its storage: the next attempt would revert the creation.
func TestRecordConflict_WithItsOwnPersistentVolume_IsStale(t *testing.T) {
	o := in(pavv1.VolumePending, corev1.VolumeBound, deletePolicy).o
	o.volume.Name, o.pv.Name, o.volume.Status.Capacity = "pvc-u1", "pvc-u1", ptrQuantity("1Gi")
	live := reconciletest.Client(t, o.volume, o.pv)
	r := &Reconciler{Client: live, Live: live, holders: &reconcile.LiveReads{Reader: live}, Now: func() time.Time { return noon }}
	own := o.pv
	o.pv = nil

	if err := r.recordConflict(t.Context(), o, decision{}); !errors.Is(err, reconcile.ErrStale) {
		t.Errorf("got %v, want %v", err, reconcile.ErrStale)
	}
	if o.volume.Status.Handle != "h" || o.volume.Status.Conflict != nil {
		t.Errorf("the record is %+v", o.volume.Status)
	}
	o.pv = own
	if others, err := r.liveOthers(t.Context(), o, "h"); err != nil || len(others) != 0 {
		t.Errorf("the cache has it: got %v and others %v", err, others)
	}
}
