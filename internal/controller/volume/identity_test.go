package volume

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/reconcile"
)

// says makes a pod leave a result.
func says(result string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations = map[string]string{pavv1.ResultAnnotation: result} }
}

// failedCreation is a volume whose creation pod failed some seconds ago, which is on record.
func failedCreation(seconds int, changes ...func(*corev1.Pod)) *state {
	s := at(pavv1.StepCreating).pod(seconds+9, append([]func(*corev1.Pod){ended(corev1.PodFailed, seconds)}, changes...)...)
	status := &s.o.volume.Status
	status.Failure = s.o.attempt().Failure(pavv1.WorkflowCreation)
	status.Step, status.Pod = pavv1.StepReverting, nil
	return s
}

func nodeGone(o *snapshot) { o.nodeGone = true }

func planned17(o *snapshot) { o.volume.Status.Plan = &pavv1.VolumePlan{Handle: "17"} }

// neverMounted is what kubelet says of a pod in the end whose containers waited for its volumes.
func neverMounted(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown"},
	}}}
}

// collected is what Kubernetes' garbage collector says of a pod that it ended so long ago.
func collected(seconds int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodFailed
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", LastTransitionTime: ago(seconds),
		})
	}
}

// unidentified is a revert as earlier versions recorded it.
func unidentified(o *snapshot) { o.volume.Status.Handle = "" }

func TestIdentity(t *testing.T) {
	const creating, succeeded, failed = pavv1.StepCreating, corev1.PodSucceeded, corev1.PodFailed
	tests := map[string]struct {
		state  *state
		want   string
		untold bool
		never  bool
	}{
		"before anything is done, the default":     {state: fresh(), want: "pvc-u1"},
		"a recorded handle":                        {state: recorded(), want: "h"},
		"what the definition says":                 {state: at(creating).with(planned17).pod(9, runs), want: "17"},
		"comes before what the pod says":           {state: at(creating).with(planned17).pod(9, ended(failed, 1), says(`{"handle":"x"}`)), want: "17"},
		"also where the pod vanished":              {state: at(creating).with(planned17).with(vanishedPod), want: "17"},
		"while the pod runs, the default":          {state: at(creating).pod(9, runs), want: "pvc-u1"},
		"what the pod wrote":                       {state: at(creating).pod(9, ended(succeeded, 1), says(`{"handle":"x"}`)), want: "x"},
		"what a pod that failed wrote":             {state: at(creating).pod(9, ended(failed, 1), says(`{"handle":"x"}`)), want: "x"},
		"what a pod that was stopped wrote":        {state: at(creating).pod(9, ended(failed, 1), deletedAgo(1), says(`{"handle":"x"}`)), want: "x"},
		"nothing written is the default":           {state: at(creating).pod(9, ended(succeeded, 1), told), want: "pvc-u1"},
		"what is yet to be told":                   {state: at(creating).pod(99, ended(failed, 60)), untold: true},
		"of a node that is gone nobody tells":      {state: at(creating).pod(99, ended(failed, 60)).with(nodeGone), never: true},
		"a pod that vanished tells nothing":        {state: at(creating).with(vanishedPod), never: true},
		"a handle that cannot be read":             {state: at(creating).pod(9, ended(succeeded, 1), says(`{"unreadable":{"handle":"is a link"}}`)), never: true},
		"a handle that cannot be one":              {state: at(creating).pod(9, ended(succeeded, 1), says(`{"handle":"a\nb"}`)), never: true},
		"a result that is none":                    {state: at(creating).pod(9, ended(succeeded, 1), says("nonsense")), never: true},
		"a pod that no kubelet started":            {state: at(creating).pod(9, func(p *corev1.Pod) { p.Status.Phase = failed }), want: "pvc-u1"},
		"one whose /pav was never mounted":         {state: at(creating).pod(99, neverMounted), want: "pvc-u1"},
		"also where nobody wants the volume":       {state: at(creating).with(unclaimed).pod(99, neverMounted), want: "pvc-u1"},
		"one that Kubernetes took for gone":        {state: at(creating).pod(99, collected(99)), untold: true},
		"and of which no node ever tells":          {state: at(creating).pod(999, collected(601)), never: true},
		"but not where its node is gone":           {state: at(creating).pod(99, func(p *corev1.Pod) { p.Status.Phase = failed }).with(nodeGone), never: true},
		"what is reverted, by the pod that failed": {state: failedCreation(9, says(`{"handle":"x"}`)), want: "x"},
		"what is reverted, when it is recorded":    {state: failedCreation(9, says(`{"handle":"x"}`)).with(func(o *snapshot) { o.volume.Status.Handle = "y" }), want: "y"},
		"another failure's pod says nothing of it": {state: failedCreation(9, says(`{"handle":"x"}`)).with(func(o *snapshot) { o.volume.Status.Failure.Workflow = "validate" }), never: true},
		"after a conflict, what that is about":     {state: conflicted("x"), want: "x"},
		"a volume that is to be deleted":           {state: in(pavv1.VolumeDeleting, corev1.VolumeReleased, deletePolicy), want: "h"},
		"the record of an earlier version":         {state: at(pavv1.StepReverting).with(unidentified), never: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := handleKnown
			if test.untold {
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

// conflicted is a volume whose last creation pod named storage that another object had.
func conflicted(handle string) *state {
	s := at(pavv1.StepCreating)
	status := &s.o.volume.Status
	status.Step, status.Pod, status.Plan = "", nil, nil
	status.Failure = &pavv1.WorkflowFailure{Workflow: "create", PodName: "pod", Time: ago(60)}
	status.Conflict = &pavv1.StorageConflict{Handle: handle, Kind: reconcile.KindVolume, Name: "pvc-u0"}
	return s
}

// Whose storage is it? What another object has is never reverted and never deleted.
func TestDecideAboutStorageOfOthers(t *testing.T) {
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
		return recorded().with(func(o *snapshot) { o.volume.Status.Plan = &pavv1.VolumePlan{} })
	}
	idle := func() *state {
		return at(deleting).with(func(o *snapshot) { o.volume.Status.Pod = nil })
	}
	tests := map[string]struct {
		state   *state
		want    step
		message string
		after   time.Duration
	}{
		// A creation pod named it.
		"that of a retained volume":                    {state: at(creating).pod(9, ended(succeeded, 1), foreign).with(heldBy(retainedVolume)), want: stepRecordConflict},
		"that of a volume in use":                      {state: at(creating).pod(9, ended(succeeded, 1), foreign).with(heldBy(readyVolume)), want: stepRecordConflict},
		"that of a volume that is being deleted":       {state: at(creating).pod(9, ended(succeeded, 1), foreign).with(heldBy(dyingVolume)), want: stepRecordConflict},
		"that of one that is in the making":            {state: at(creating).pod(9, ended(succeeded, 1), foreign).with(heldBy(makingVolume)), want: stepRecordConflict},
		"that of a static PersistentVolume":            {state: at(creating).pod(9, ended(succeeded, 1), foreign).with(heldBy(staticPV)), want: stepRecordConflict},
		"that of a stage whose volume is gone":         {state: at(creating).pod(9, ended(succeeded, 1), foreign).with(heldBy(stagedOn("n1")...)), want: stepRecordConflict},
		"and the pod failed":                           {state: at(creating).pod(9, ended(failed, 1), foreign).with(heldBy(retainedVolume)), want: stepRecordConflict},
		"and the claim went while it ran":              {state: at(creating).with(unclaimed).pod(9, ended(failed, 1), foreign, deletedAgo(2)).with(heldBy(retainedVolume)), want: stepRecordConflict},
		"and the claim went when it had succeeded":     {state: at(creating).with(unclaimed).pod(9, ended(succeeded, 1), foreign).with(heldBy(retainedVolume)), want: stepRecordConflict},
		"and its failure is on record":                 {state: failedCreation(9, foreign).with(heldBy(retainedVolume)), want: stepRecordConflict},
		"also without a provisioner":                   {state: failedCreation(9, foreign).with(heldBy(retainedVolume)).with(func(o *snapshot) { o.provisioner = nil }), want: stepRecordConflict},
		"another attempt is not begun":                 {state: conflicted("h0").with(heldBy(retainedVolume)), want: stepWait, message: `is the storage of PavVolume "pvc-u0" (Retained)`},
		"until the other is gone":                      {state: conflicted("h0"), want: stepBegin},
		"or the definition is another":                 {state: conflicted("h0").with(heldBy(retainedVolume)).with(func(o *snapshot) { o.provisioner.Generation++ }), want: stepBegin},
		"or somebody asks for it":                      {state: conflicted("h0").with(heldBy(retainedVolume)).with(func(o *snapshot) { o.retry = noon }), want: stepBegin},
		"without a claim the record goes, and no more": {state: conflicted("h0").with(unclaimed).with(heldBy(retainedVolume)), want: stepForget},

		// Its result is not known.
		"a revert waits for what the pod left":       {state: failedCreation(7), want: stepDone, after: 5 * time.Second},
		"and says so":                                {state: failedCreation(60), want: stepWait, message: "to report what pod pav-pods/pod left in /pav"},
		"what nobody will tell is not reverted":      {state: failedCreation(60).with(nodeGone), want: stepAbandon},
		"a node that is back may tell yet":           {state: at(creating).with(unclaimed).pod(99, collected(99)), want: stepWait, after: 501 * time.Second, message: "to report what pod"},
		"also if the clock is behind":                {state: at(creating).with(unclaimed).pod(99, collected(-500)), want: stepWait, after: attempt.LongDelay, message: "to report what pod"},
		"but not for ever":                           {state: at(creating).with(unclaimed).pod(999, collected(601)), want: stepAbandon},
		"nor where nobody wants it":                  {state: at(creating).with(unclaimed).pod(99, ended(failed, 60)).with(nodeGone), want: stepAbandon},
		"the definition's own handle is known":       {state: failedCreation(60).with(nodeGone).with(planned17), want: stepRevert},
		"where nothing deletes, nothing is reverted": {state: failedCreation(60).with(nodeGone).with(func(o *snapshot) { o.provisioner.Spec.VolumeDeletion = nil }), want: stepReverted},
		"what is known is recorded first":            {state: failedCreation(9, says(`{"handle":"x"}`)), want: stepRevert},
		"also where its deletion pod is in line":     {state: at(pavv1.StepReverting).with(planned17).with(unidentified), want: stepRevert},
		"a pod in line is not run for another's":     {state: at(pavv1.StepReverting).with(planned17).with(heldBy(staticPV)), want: stepRecordConflict},
		"what runs is seen to its end":               {state: at(pavv1.StepReverting).pod(9, runs).with(heldBy(staticPV)), want: stepDone, after: 591 * time.Second},

		// Two report one handle at the same time.
		"the first by name waits for the second":  {state: madeByPod().with(heldBy(laterVolume)), want: stepWait, message: `the handle "h" is also that of PavVolume "pvc-u2" (Pending)`},
		"the second by name gives way":            {state: madeByPod().with(heldBy(makingVolume)), want: stepRecordConflict},
		"both give way to a PersistentVolume":     {state: madeByPod().with(heldBy(staticPV, laterVolume)), want: stepRecordConflict},
		"it is nobody's if nobody wants it":       {state: madeByPod().with(heldBy(laterVolume)).with(unclaimed), want: stepRecordConflict},
		"without a creation pod nothing was done": {state: recorded().with(heldBy(laterVolume)).with(unclaimed), want: stepForget},

		// The record is older than its object, or its status is lost: a backup was restored.
		"a restored volume is not deleted":       {state: restoredBefore(time.Hour, in(pavv1.VolumeReady, corev1.VolumeReleased, deletePolicy).with(withDeletionPod)), want: stepWait, message: "was restored from a backup"},
		"also where its PersistentVolume is not": {state: restoredBefore(time.Hour, without(pavv1.VolumeReady, deletePolicy).with(withDeletionPod)), want: stepWait, message: "was restored from a backup"},
		"nor by a pod in line":                   {state: restoredBefore(time.Hour, at(deleting)), want: stepWait, message: "was restored from a backup"},
		"until its PavVolume is deleted":         {state: restoredBefore(time.Hour, in(pavv1.VolumeReady, corev1.VolumeReleased, deletePolicy).with(withDeletionPod)).deleted(), want: stepMarkDeleting},
		"clocks may differ by minutes":           {state: restoredBefore(time.Minute, in(pavv1.VolumeReady, corev1.VolumeReleased, deletePolicy).with(withDeletionPod)), want: stepMarkDeleting},
		"one that is in use is as good as new":   {state: restoredBefore(time.Hour, in(pavv1.VolumeReady, corev1.VolumeBound, deletePolicy)), want: stepMarkReady},
		"one without a status is not deleted":    {state: in("", corev1.VolumeReleased, deletePolicy).with(statusLost).with(withDeletionPod), want: stepWait, message: "was restored from a backup"},
		"nor taken for one that is ready":        {state: in("", corev1.VolumePending, deletePolicy).with(statusLost).with(withDeletionPod), want: stepDone},
		"until its PersistentVolume is bound":    {state: in("", corev1.VolumeBound, deletePolicy).with(statusLost).with(withDeletionPod), want: stepMarkReady},
		"one without a status is not forgotten":  {state: fresh().with(statusLost).with(unclaimed), want: stepWait, message: "restored from a backup without its status and without its claim"},
		"unless it is deleted":                   {state: fresh().with(statusLost).with(unclaimed).deleted(), want: stepForget},

		// A deletion.
		"a static PersistentVolume has it, too":   {state: idle().with(heldBy(staticPV)), want: stepWait, message: `PersistentVolume "static" uses the same storage, with the handle "h"`},
		"and a pod in line is not run":            {state: at(deleting).with(heldBy(staticPV)), want: stepWait, message: `PersistentVolume "static" uses the same storage`},
		"nor where the PersistentVolume was lost": {state: without(pavv1.VolumeDeleting, deletePolicy).with(withDeletionPod).with(heldBy(staticPV)), want: stepWait, message: "delete the object or, to keep the storage"},
		"another record has it, too":              {state: idle().with(heldBy(retainedVolume)), want: stepWait, message: `PavVolume "pvc-u0" (Retained) uses the same storage`},
		"a stage of the other has it":             {state: idle().with(heldBy(stagedOn("n1")...)), want: stepWait, message: "waiting for the volume to be unstaged on node n1"},
		"a pod in line waits for a stage":         {state: at(deleting).with(heldBy(stagedOn("n1")...)), want: stepWait, message: "waiting for the volume to be unstaged on node n1"},
		"a pod that runs is seen to its end":      {state: at(deleting).pod(9, runs).with(heldBy(staticPV)), want: stepDone, after: 591 * time.Second},
		"nobody has it any more":                  {state: idle(), want: stepDelete},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := decide(test.state.o)
			if got.step != test.want || got.after != test.after {
				t.Errorf("got step %s (%s) after %s, want %s after %s", got.step, got.message, got.after, test.want, test.after)
			}
			if !strings.Contains(got.message, test.message) || (test.message == "") != (got.message == "") {
				t.Errorf("got message %q, want it to contain %q", got.message, test.message)
			}
		})
	}
}

// restoredBefore is a volume whose record says that it was made so long before its object was.
func restoredBefore(d time.Duration, s *state) *state {
	return s.with(func(o *snapshot) {
		o.volume.CreationTimestamp = metav1.NewTime(noon)
		o.volume.Status.Conditions = []metav1.Condition{{Type: pavv1.VolumeProvisioned, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-d))}}
	})
}

// statusLost is a record that was written back without its status, while its claim was bound.
func statusLost(o *snapshot) { o.volume.Status, o.wasBound = pavv1.PavVolumeStatus{}, true }

func TestBesides(t *testing.T) {
	own := in(pavv1.VolumeReady, corev1.VolumeBound, deletePolicy)
	mine := []reconcile.Holder{{Kind: reconcile.KindPV, Name: "pvc-u1"}, {Kind: reconcile.KindVolume, Name: "pvc-u1"}}
	if got := own.o.besides("h", append([]reconcile.Holder{}, mine...)); len(got) != 0 {
		t.Errorf("its own PersistentVolume and record: got %v", got)
	}
	stranger := in(pavv1.VolumePending, corev1.VolumeBound, deletePolicy).with(func(o *snapshot) { o.pv.Spec.ClaimRef.UID = "u0"; o.pv.Annotations = nil })
	if got := stranger.o.besides("h", append([]reconcile.Holder{}, mine...)); len(got) != 1 || got[0].Kind != reconcile.KindPV {
		t.Errorf("a PersistentVolume of its name that is somebody else's: got %v", got)
	}
	if got := own.o.besides("h", stagedOn("n1")); len(got) != 1 {
		t.Errorf("stages hold their volume's storage: got %v", got)
	}
	if got := own.o.besides("h", []reconcile.Holder{{Kind: reconcile.KindPV, Name: "pvc-u0"}}); len(got) != 1 {
		t.Errorf("another PersistentVolume: got %v", got)
	}
}

// With a node agent's token anybody can write a stage of any handle. What no node can have staged is not held by it.
func TestBesides_StagesOfAVolumeInTheMaking(t *testing.T) {
	making := func() *state { return at(pavv1.StepCreating).pod(9, ended(corev1.PodSucceeded, 1), told) }
	pv := reconcile.Holder{Kind: reconcile.KindPV, Name: "other"}
	for name, test := range map[string]struct {
		state  *state
		handle string
		others []reconcile.Holder
		want   int
	}{
		"the default handle":                       {state: making(), handle: "pvc-u1"},
		"a handle that the pod chose":              {state: making(), handle: "h", want: 1},
		"there is a PersistentVolume":              {state: making(), handle: "pvc-u1", others: []reconcile.Holder{pv}, want: 2},
		"what is to be deleted is looked at twice": {state: making().with(unclaimed), handle: "pvc-u1", want: 1},
		"a volume that was made":                   {state: in(pavv1.VolumeReady, corev1.VolumeBound, deletePolicy), handle: "pvc-u1", want: 1},
		"a record that lost what it said":          {state: at("").with(statusLost), handle: "pvc-u1", want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.state.o.besides(test.handle, append(stagedOn("n1"), test.others...)); len(got) != test.want {
				t.Errorf("got %v, want %d", got, test.want)
			}
		})
	}
}
