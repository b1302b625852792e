package volume

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// at returns a volume in a step. The pod of the step is recorded, but not known to have been created.
func at(step pavv1.VolumeStep) *state {
	s := fresh()
	if step == pavv1.StepDeleting {
		s = in(pavv1.VolumeDeleting, corev1.VolumeReleased, deletePolicy)
	}
	status := &s.o.volume.Status
	if status.Phase == "" {
		status.Phase = pavv1.VolumePending
	}
	status.Step, status.Attempt, status.Pods = step, 1, 1
	status.Definition = &pavv1.VolumeDefinition{UID: "p1", Generation: 3}
	status.ProvisionerGeneration = 3
	status.Pod = &pavv1.PodReference{Namespace: "pav-pods", Name: "pod"}
	if step != pavv1.StepValidating {
		status.Plan = &pavv1.VolumePlan{}
	}
	if step == pavv1.StepReverting {
		status.Handle = "h"
	}
	return s.with(withDeletionPod)
}

// pod adds the pod of the volume, with an age in seconds and with changes.
func (s *state) pod(age int, changes ...func(*corev1.Pod)) *state {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pav-pods", Name: "pod", UID: "u-pod", CreationTimestamp: ago(age)},
		Spec:       corev1.PodSpec{NodeName: "n1"},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, change := range changes {
		change(&pod)
	}
	s.o.volume.Status.Pod.UID = pod.UID
	s.o.pods = []corev1.Pod{pod}
	return s
}

// strayPod adds a pod of the volume that is not recorded.
func strayPod(changes ...func(*corev1.Pod)) func(*observation) {
	return func(o *observation) {
		stray := at(pavv1.StepDeleting).pod(5, changes...).o.pods[0]
		stray.Name, stray.UID = "stray", "u-stray"
		o.pods = append(o.pods, stray)
	}
}

// pvIs adds the PersistentVolume of the volume, in a phase.
func pvIs(phase corev1.PersistentVolumePhase) func(*observation) {
	return func(o *observation) { o.pv = in("", phase, deletePolicy).o.pv }
}

// hasBeenMade changes a volume that is being reverted into one whose creation pod has succeeded.
func hasBeenMade(o *observation) { o.volume.Status.Capacity = ptrQuantity("1Gi") }

func retainsPV(o *observation) { o.pv.Spec.PersistentVolumeReclaimPolicy = retainPolicy }

func refusedDeletion(o *observation) {
	o.volume.Status.DeletionFailure = &pavv1.WorkflowFailure{Workflow: "delete", Time: ago(99)}
}

func deletionBegan(o *observation) { o.volume.Status.DeletionBegun = true }

func noPod(o *observation) { o.volume.Status.Pod = nil }

func ago(seconds int) metav1.Time {
	return metav1.NewTime(noon.Add(-time.Duration(seconds) * time.Second))
}

// ended puts a pod in a phase in which it has ended. Its container ended this many seconds ago.
func ended(phase corev1.PodPhase, seconds int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		code := int32(0)
		if phase == corev1.PodFailed {
			code = 3
		}
		pod.Status.Phase = phase
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: ago(seconds)},
		}}}
	}
}

func reported(pod *corev1.Pod) { pod.Annotations = map[string]string{pavv1.ResultAnnotation: "{}"} }

// infeasible makes a pod promise that it has changed nothing.
func infeasible(pod *corev1.Pod) {
	pod.Annotations = map[string]string{pavv1.ResultAnnotation: `{"infeasible": "too large"}`}
}

func runs(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

func pulls(pod *corev1.Pod) {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"},
	}}}
}

// hung sets the status of a pod whose kubelet cannot mount one of its volumes.
func hung(pod *corev1.Pod) { readyToStart(pod, corev1.ConditionFalse) }

func readyToStart(pod *corev1.Pod, status corev1.ConditionStatus) {
	pod.Status.StartTime = &pod.CreationTimestamp
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: status}}
}

func unbound(pod *corev1.Pod) {
	pod.Spec.NodeName = ""
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/2 nodes are available"}}
}

func deletedAgo(seconds int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.DeletionTimestamp = new(ago(seconds)) }
}

func vanishedPod(o *observation) { o.volume.Status.Pod.UID = "u-pod" }

func unclaimed(o *observation) { o.claim = claimGone }

func contended(o *observation) { o.contended = true }

// due records that the current pod has been due for this many seconds.
func due(seconds int) func(*observation) {
	return func(o *observation) { o.volume.Status.Pod.Due = new(ago(seconds)) }
}

func selected(o *observation) { o.selectedNode, o.volume.Status.SelectedNode = "n1", "n1" }

func TestDecideWithPods(t *testing.T) {
	const validating, creating, reverting, deleting = pavv1.StepValidating, pavv1.StepCreating, pavv1.StepReverting, pavv1.StepDeleting
	const succeeded, failed = corev1.PodSucceeded, corev1.PodFailed
	tests := map[string]struct {
		state   *state
		want    step
		message string
		after   time.Duration
	}{
		"validation pod recorded: create it":                                                   {state: at(validating), want: stepRunPod},
		"creation pod recorded: create it":                                                     {state: at(creating), want: stepRunPod},
		"deletion pod recorded: create it":                                                     {state: at(deleting), want: stepRunPod},
		"reverting deletion pod recorded: create it":                                           {state: at(reverting), want: stepRunPod},
		"reverting deletion pod recorded, claim gone: create it":                               {state: at(reverting).with(unclaimed), want: stepRunPod},
		"creation pod recorded, claim gone: drop it":                                           {state: at(creating).with(unclaimed), want: stepDropPod},
		"pod created but not recorded as such, claim gone: record it first":                    {state: at(creating).with(unclaimed).pod(1, runs).with(func(o *observation) { o.volume.Status.Pod.UID = "" }), want: stepRecordPod},
		"deletion pod recorded, provisioner gone: wait":                                        {state: at(deleting).with(func(o *observation) { o.provisioner = nil }), want: stepWait, message: `PavProvisioner "demo" does not exist`},
		"reverting deletion pod recorded, provisioner gone: wait":                              {state: at(reverting).with(func(o *observation) { o.provisioner = nil }), want: stepWait, message: `PavProvisioner "demo" does not exist`},
		"waiting for a slot: decide again before that is long":                                 {state: at(creating).with(due(60)), want: stepRunPod, after: 9 * time.Minute},
		"waiting for a slot for long: report it":                                               {state: at(creating).with(due(600)), want: stepRunPod, message: "pod pav-pods/pod has waited for more than 10m0s for a slot"},
		"creation pod runs: wait":                                                              {state: at(creating).pod(20, runs), want: stepDone, after: 10 * time.Second},
		"creation pod runs for long: say so":                                                   {state: at(creating).pod(60, runs), want: stepWait, message: "it has run for more than 30s", after: 9 * time.Minute},
		"creation pod runs for long: report it":                                                {state: at(creating).pod(600, runs), want: stepWait, message: "it has run for more than 10m0s; see kubectl logs -n pav-pods pod"},
		"creation pod runs, claim gone: stop it":                                               {state: at(creating).with(unclaimed).pod(1, runs), want: stepStopPod},
		"validation pod runs, claim gone: stop it":                                             {state: at(validating).with(unclaimed).pod(1, runs), want: stepStopPod},
		"reverting deletion pod runs, claim gone: wait":                                        {state: at(reverting).with(unclaimed).pod(1, runs), want: stepDone, after: 29 * time.Second},
		"pod starts: wait":                                                                     {state: at(creating).pod(1), want: stepDone, after: 29 * time.Second},
		"pod cannot start: report it":                                                          {state: at(creating).pod(5, pulls), want: stepWait, message: `waiting, as pod pav-pods/pod, container "main": ErrImagePull: no such image`, after: 10 * time.Second},
		"pod hangs on its node: stop it":                                                       {state: at(creating).pod(300, hung), want: stepStopPod, message: `pod pav-pods/pod has not started on node "n1" within 5m0s and is given up; the next one prefers other nodes`},
		"pod cannot start and others wait for its slot: stop it":                               {state: at(creating).with(contended).pod(300, pulls), want: stepStopPod},
		"pod does not fit on the selected node: stop it":                                       {state: at(creating).with(selected).pod(15, unbound), want: stepStopPod},
		"pod does not fit on any node: report it":                                              {state: at(creating).pod(100, unbound), want: stepWait, message: "not scheduled", after: 200 * time.Second},
		"deletion pod recorded, another one runs that is not: wait for it":                     {state: at(deleting).with(strayPod(runs)), want: stepWait, message: "waiting for pod pav-pods/stray"},
		"deletion pod recorded, another one is being deleted: wait for it":                     {state: at(deleting).with(strayPod(runs, deletedAgo(1))), want: stepDone, after: 9 * time.Second},
		"deletion pod recorded, another one does not end: report it":                           {state: at(deleting).with(strayPod(runs, deletedAgo(20))), want: stepWait, message: `waiting for kubelet on node "n1" to confirm that pod pav-pods/stray has ended`},
		"not needed any more, an unrecorded pod runs: wait for it":                             {state: fresh().with(unclaimed).with(strayPod(runs)), want: stepWait, message: "waiting for pod pav-pods/stray"},
		"deletion pod recorded, another one has failed: create it":                             {state: at(deleting).with(strayPod(ended(failed, 9))), want: stepRunPod},
		"no deletion pod recorded, another one runs: wait for it":                              {state: at(deleting).with(noPod).with(strayPod(runs)), want: stepWait, message: "waiting for pod pav-pods/stray"},
		"validation pod succeeded, another one runs: wait for it":                              {state: at(validating).pod(9, ended(succeeded, 1)).with(strayPod(runs)), want: stepWait, message: "waiting for pod pav-pods/stray"},
		"deletion pod succeeded, another one runs: record it":                                  {state: at(deleting).pod(9, ended(succeeded, 1)).with(strayPod(runs)), want: stepMarkDeleted},
		"pod being deleted: wait":                                                              {state: at(creating).pod(9, runs, deletedAgo(1)), want: stepDone, after: 9 * time.Second},
		"pod being deleted for long: report it":                                                {state: at(creating).pod(99, runs, deletedAgo(20)), want: stepWait, message: `waiting for kubelet on node "n1" to confirm that pod pav-pods/pod has ended`},
		"pod being deleted, claim gone: wait":                                                  {state: at(creating).with(unclaimed).pod(99, runs, deletedAgo(1)), want: stepDone, after: 9 * time.Second},
		"creation pod succeeded, not reported yet, claim gone: wait for the handle":            {state: at(creating).with(unclaimed).pod(99, ended(succeeded, 1)), want: stepDone, after: 5 * time.Second},
		"validation pod failed, not reported yet, claim gone: drop it":                         {state: at(validating).with(unclaimed).pod(99, ended(failed, 1)), want: stepDropPod},
		"reverting, but the volume exists and is bound: mark ready":                            {state: at(reverting).with(hasBeenMade).with(pvIs(corev1.VolumeBound)), want: stepMarkReady},
		"reverting, no pod recorded, the volume exists and is bound: mark ready":               {state: at(reverting).with(hasBeenMade).with(pvIs(corev1.VolumeBound)).with(noPod), want: stepMarkReady},
		"reverting, no pod recorded, the volume exists and is about to be bound: mark ready":   {state: at(reverting).with(hasBeenMade).with(pvIs(corev1.VolumePending)).with(noPod), want: stepMarkReady},
		"reverting, deletion pod was refused, the volume exists and is bound: mark ready":      {state: at(reverting).with(hasBeenMade).with(pvIs(corev1.VolumeBound)).with(noPod).with(refusedDeletion), want: stepMarkReady},
		"reverting, the volume exists and is released with policy Retain: mark ready":          {state: at(reverting).with(hasBeenMade).with(pvIs(corev1.VolumeReleased)).with(retainsPV), want: stepMarkReady},
		"reverting, the volume exists and is released: revert it":                              {state: at(reverting).with(hasBeenMade).with(pvIs(corev1.VolumeReleased)), want: stepRunPod},
		"reverting, the volume exists, is released, and a deletion pod was refused: revert it": {state: at(reverting).with(hasBeenMade).with(pvIs(corev1.VolumeReleased)).with(refusedDeletion), want: stepRunPod},
		"reverting, deletion pods were refused, the volume exists and is bound: mark ready":    {state: at(reverting).with(hasBeenMade).with(pvIs(corev1.VolumeBound)).with(noPod).with(refusedDeletion).with(func(o *observation) { o.volume.Status.DeletionAttempt = 3 }), want: stepMarkReady},
		"reverting, a deletion pod ran, another was refused, the volume is bound: go on":       {state: at(reverting).with(hasBeenMade).with(pvIs(corev1.VolumeBound)).with(refusedDeletion).with(deletionBegan), want: stepRunPod},
		"reverting, a deletion pod of an earlier version failed, the volume is bound: go on": {state: at(reverting).with(hasBeenMade).with(pvIs(corev1.VolumeBound)).with(func(o *observation) {
			o.volume.Status.DeletionFailure = &pavv1.WorkflowFailure{Workflow: "delete", PodName: "delete-1", Time: ago(99)}
		}), want: stepRunPod},
		"reverting, the creation pod failed, the volume is bound: wait":                      {state: at(reverting).with(pvIs(corev1.VolumeBound)), want: stepWait, message: `PersistentVolume "pvc-u1" exists for a claim`},
		"reverting, the creation pod failed, the volume is released: revert it":              {state: at(reverting).with(pvIs(corev1.VolumeReleased)), want: stepRunPod},
		"reverting, the creation pod failed, the volume is released with Retain: mark ready": {state: at(reverting).with(pvIs(corev1.VolumeReleased)).with(retainsPV), want: stepMarkReady},
		"reverting deletion pod runs, PersistentVolume bound: wait for the pod":              {state: at(reverting).with(pvIs(corev1.VolumeBound)).pod(1, runs), want: stepDone, after: 29 * time.Second},
		"reverted, PersistentVolume exists: delete it":                                       {state: at(reverting).with(pvIs(corev1.VolumeBound)).pod(1, ended(succeeded, 0)), want: stepDeletePV},
		"validation pod succeeded: create the volume":                                        {state: at(validating).pod(9, ended(succeeded, 1)), want: stepCreate},
		"validation pod succeeded, claim gone: drop it":                                      {state: at(validating).with(unclaimed).pod(9, ended(succeeded, 1)), want: stepDropPod},
		"validation pod failed: record it":                                                   {state: at(validating).pod(9, ended(failed, 1), reported), want: stepRecordFailure},
		"validation pod failed and its text is not reported in time: record it":              {state: at(validating).pod(9, ended(failed, 5)), want: stepRecordFailure},
		"validation pod failed, claim gone: drop it":                                         {state: at(validating).with(unclaimed).pod(9, ended(failed, 5)), want: stepDropPod},
		"creation pod succeeded, not reported yet: wait":                                     {state: at(creating).pod(9, ended(succeeded, 1)), want: stepDone, after: 5 * time.Second},
		"creation pod succeeded, not reported for long: report it":                           {state: at(creating).pod(9999, ended(succeeded, 999)), want: stepWait, message: `waiting for the agent on node "n1" to report what pod pav-pods/pod left in /pav`},
		"creation pod succeeded: record the volume":                                          {state: at(creating).pod(9, ended(succeeded, 1), reported), want: stepRecordCreated},
		"creation pod succeeded, claim gone: revert":                                         {state: at(creating).with(unclaimed).pod(9, ended(succeeded, 1), reported), want: stepRevert},
		"creation pod failed: record it":                                                     {state: at(creating).pod(9, ended(failed, 1), reported), want: stepRecordFailure},
		"creation pod failed, says that it created nothing, claim gone: drop it":             {state: at(creating).with(unclaimed).pod(9, ended(failed, 1), infeasible), want: stepDropPod},
		"creation pod evicted, says that it created nothing, claim gone: revert":             {state: at(creating).with(unclaimed).pod(9, ended(failed, 1), infeasible, func(pod *corev1.Pod) { pod.Status.Reason = "Evicted" }), want: stepRevert},
		"creation pod succeeded, says that it created nothing, claim gone: revert":           {state: at(creating).with(unclaimed).pod(9, ended(succeeded, 1), infeasible), want: stepRevert},
		"creation pod failed, claim gone: revert":                                            {state: at(creating).with(unclaimed).pod(9, ended(failed, 1), reported), want: stepRevert},
		"creation pod was deleted: record the failure":                                       {state: at(creating).pod(9, ended(succeeded, 1), reported, deletedAgo(3)), want: stepRecordFailure},
		"creation pod deleted before it was bound: record the failure":                       {state: at(creating).pod(9, unbound, deletedAgo(3)), want: stepRecordFailure},
		"creation pod deleted before it was bound, claim gone: drop it":                      {state: at(creating).with(unclaimed).pod(9, unbound, deletedAgo(3)), want: stepDropPod},
		"creation pod removed by force: record the failure":                                  {state: at(creating).with(vanishedPod), want: stepRecordFailure},
		"creation pod removed by force, claim gone: abandon the storage":                     {state: at(creating).with(unclaimed).with(vanishedPod), want: stepAbandon},
		"another pod has the recorded name: record the failure":                              {state: at(creating).pod(9, ended(succeeded, 1), reported).with(func(o *observation) { o.volume.Status.Pod.UID = "u-other" }), want: stepRecordFailure},
		"reverting deletion pod succeeded: reverted":                                         {state: at(reverting).pod(9, ended(succeeded, 1)), want: stepReverted},
		"reverting deletion pod failed: record it":                                           {state: at(reverting).pod(9, ended(failed, 9)), want: stepRecordFailure},
		"deletion pod succeeded: record it":                                                  {state: at(deleting).pod(9, ended(succeeded, 1)), want: stepMarkDeleted},
		"deletion pod failed: record it":                                                     {state: at(deleting).pod(9, ended(failed, 9)), want: stepRecordFailure},
		"deletion pod is being deleted: wait for its end":                                    {state: at(deleting).pod(9, runs, deletedAgo(1)), want: stepDone, after: 9 * time.Second},
		"deletion pod failed, nothing reported: wait for its node":                           {state: at(deleting).pod(9, ended(failed, 1)), want: stepDone, after: 5 * time.Second},
		"deletion pod removed by force: record the failure":                                  {state: at(deleting).with(vanishedPod), want: stepRecordFailure},
		"changed to Retain while the deletion pod runs: wait for the pod":                    {state: at(deleting).pod(9, runs).with(func(o *observation) { o.pv.Spec.PersistentVolumeReclaimPolicy = retainPolicy }), want: stepDone, after: 21 * time.Second},
		"changed to Retain while the deletion pod cannot start: stop it":                     {state: at(deleting).pod(9, pulls).with(func(o *observation) { o.pv.Spec.PersistentVolumeReclaimPolicy = retainPolicy }), want: stepStopPod},
		"changed to Retain before the deletion pod is created: align":                        {state: at(deleting).with(func(o *observation) { o.pv.Spec.PersistentVolumeReclaimPolicy = retainPolicy }), want: stepAlign},
		"bound again before the deletion pod is created: mark ready":                         {state: at(deleting).with(func(o *observation) { o.pv.Status.Phase = corev1.VolumeBound }), want: stepMarkReady},
		"pod runs that was reported as not started: report that it runs": {state: at(creating).pod(60, runs).with(func(o *observation) {
			o.volume.Status.Conditions = []metav1.Condition{{Type: pavv1.VolumeProvisioned, Status: metav1.ConditionFalse, Reason: "PodNotStarted"}}
		}), want: stepWait, message: "pod pav-pods/pod is creating the volume", after: 9 * time.Minute},
		"bound again while the deletion pod runs: wait for the pod": {state: at(deleting).pod(9, runs).with(func(o *observation) { o.pv.Status.Phase = corev1.VolumeBound }), want: stepDone, after: 21 * time.Second},
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

func TestDecideAfterFailures(t *testing.T) {
	// failedAt returns a volume whose last attempt failed this many seconds ago. Nothing is left to revert.
	failedAt := func(attempt int32, workflow string, seconds int) *state {
		s := at(pavv1.StepValidating)
		status := &s.o.volume.Status
		status.Step, status.Pod, status.Attempt = "", nil, attempt
		status.Failure = &pavv1.WorkflowFailure{Workflow: workflow, PodName: "pod", Time: ago(seconds)}
		return s
	}
	// deletionFailed returns a volume whose last deletion pod failed this many seconds ago.
	deletionFailed := func(step pavv1.VolumeStep, attempt int32, seconds int) *state {
		s := at(step)
		status := &s.o.volume.Status
		status.Pod, status.DeletionAttempt = nil, attempt
		status.DeletionFailure = &pavv1.WorkflowFailure{Workflow: "delete", Time: ago(seconds)}
		return s
	}
	deletionRan := func() *state {
		s := deletionFailed(pavv1.StepReverting, 1, 99).with(hasBeenMade)
		s.o.volume.Status.DeletionFailure.PodName = "delete-1"
		return s
	}
	edited := func(o *observation) { o.provisioner.Generation++ }
	isInfeasible := func(o *observation) {
		o.volume.Generation, o.volume.Status.AttemptGeneration = 5, 5
		o.volume.Status.Failure.Reason = pavv1.FailureInfeasible
	}
	claimChanged := func(o *observation) { o.volume.Generation++ }
	made := recorded().with(func(o *observation) { o.volume.Status.Plan = &pavv1.VolumePlan{} })
	tests := map[string]struct {
		state *state
		want  step
		after time.Duration
	}{
		"first attempt failed: wait one second":                              {state: failedAt(1, "create", 0), want: stepDone, after: time.Second},
		"fourth attempt failed: wait eight seconds":                          {state: failedAt(4, "create", 3), want: stepDone, after: 5 * time.Second},
		"many attempts failed: wait at most five minutes":                    {state: failedAt(400, "create", 0), want: stepDone, after: 5 * time.Minute},
		"infeasible: wait ten minutes":                                       {state: failedAt(1, "create", 1).with(isInfeasible), want: stepDone, after: 599 * time.Second},
		"infeasible, ten minutes are over: begin":                            {state: failedAt(1, "create", 600).with(isInfeasible), want: stepBegin},
		"infeasible, definition edited: begin at once":                       {state: failedAt(1, "create", 0).with(isInfeasible).with(edited), want: stepBegin},
		"infeasible, claim changed: begin after the usual delay":             {state: failedAt(4, "create", 8).with(isInfeasible).with(claimChanged), want: stepBegin},
		"infeasible, claim changes all the time: wait for the usual delay":   {state: failedAt(4, "create", 3).with(isInfeasible).with(claimChanged), want: stepDone, after: 5 * time.Second},
		"infeasible, another node selected: begin there":                     {state: failedAt(1, "validate", 3).with(isInfeasible).with(selected).with(func(o *observation) { o.selectedNode = "n2" }), want: stepBegin},
		"infeasible, validation of the node selected: wait ten minutes":      {state: failedAt(1, "validate", 0).with(isInfeasible).with(selected), want: stepDone, after: 10 * time.Minute},
		"failed, claim changed: wait as before":                              {state: failedAt(4, "create", 3).with(claimChanged), want: stepDone, after: 5 * time.Second},
		"clock set back: wait no longer than the delay":                      {state: failedAt(4, "create", -3600), want: stepDone, after: 8 * time.Second},
		"node returned to the scheduler and selected again: begin":           {state: failedAt(1, "create", 3).with(func(o *observation) { o.selectedNode = "n1" }), want: stepBegin},
		"delay over: begin":                                                  {state: failedAt(4, "create", 8), want: stepBegin},
		"definition edited after a failure: begin at once":                   {state: failedAt(400, "create", 0).with(edited), want: stepBegin},
		"provisioner replaced after a failure: begin at once":                {state: failedAt(400, "create", 0).with(func(o *observation) { o.provisioner.UID = "p2" }), want: stepBegin},
		"claim gone after a failure: delete the PavVolume":                   {state: failedAt(4, "create", 8).with(unclaimed), want: stepForget},
		"StorageClass replaced after a failure: delete the PavVolume":        {state: failedAt(4, "create", 0).with(func(o *observation) { o.classReplaced = true }), want: stepForget},
		"StorageClass replaced before a failure: begin":                      {state: fresh().with(func(o *observation) { o.classReplaced = true }), want: stepBegin},
		"creation failed on the selected node: return the node":              {state: failedAt(1, "create", 0).with(selected), want: stepReturnNode},
		"validation failed: keep the node, and wait":                         {state: failedAt(1, "validate", 0).with(selected), want: stepDone, after: time.Second},
		"node returned, none selected: wait":                                 {state: failedAt(1, "create", 0).with(selected).with(func(o *observation) { o.selectedNode, o.waitsForNode = "", true }), want: stepDone},
		"another node selected after the failure: begin there":               {state: failedAt(1, "create", 3).with(selected).with(func(o *observation) { o.selectedNode = "n2" }), want: stepBegin},
		"created, claim gone: revert":                                        {state: made.with(unclaimed), want: stepRevert},
		"deletion pod has run, PersistentVolume bound: revert again":         {state: deletionRan().with(pvIs(corev1.VolumeBound)), want: stepDelete},
		"deletion pod has run, PersistentVolume bound, staged: wait":         {state: deletionRan().with(pvIs(corev1.VolumeBound)).with(heldBy(holder("PavStage", "s1", ""))), want: stepWait},
		"reverting, no deletion pod yet: record one":                         {state: deletionFailed(pavv1.StepReverting, 0, 99), want: stepDelete},
		"reverting failed three times: wait four seconds":                    {state: deletionFailed(pavv1.StepReverting, 3, 1), want: stepDone, after: 3 * time.Second},
		"reverting failed, definition edited: record a deletion pod at once": {state: deletionFailed(pavv1.StepReverting, 9, 1).with(edited), want: stepDelete},
		"reverting, definition without deletion pod: reverted":               {state: deletionFailed(pavv1.StepReverting, 9, 1).with(func(o *observation) { o.provisioner.Spec.VolumeDeletion = nil }), want: stepReverted},
		"reverting, provisioner gone: wait":                                  {state: deletionFailed(pavv1.StepReverting, 1, 99).with(func(o *observation) { o.provisioner = nil }), want: stepWait},
		"reverting, provisioner being deleted: record a deletion pod":        {state: deletionFailed(pavv1.StepReverting, 1, 99).with(func(o *observation) { o.provisioner.DeletionTimestamp = new(metav1.Now()) }), want: stepDelete},
		"deletion failed twice: wait two seconds":                            {state: deletionFailed(pavv1.StepDeleting, 2, 0), want: stepDone, after: 2 * time.Second},
		"deletion failed, delay over: record a deletion pod":                 {state: deletionFailed(pavv1.StepDeleting, 2, 2), want: stepDelete},
		"deletion failed, definition edited: record a deletion pod at once":  {state: deletionFailed(pavv1.StepDeleting, 9, 0).with(edited), want: stepDelete},
		"deletion failed, staged since: wait":                                {state: deletionFailed(pavv1.StepDeleting, 2, 2).with(func(o *observation) { o.others = stagedOn("n1") }), want: stepWait},
		"changed to Retain between two deletion pods: align":                 {state: deletionFailed(pavv1.StepDeleting, 2, 2).with(func(o *observation) { o.pv.Spec.PersistentVolumeReclaimPolicy = retainPolicy }), want: stepAlign},
		"storage deleted: delete the PersistentVolume": {state: deletionFailed(pavv1.StepDeleted, 0, 0).with(func(o *observation) {
			o.pv = in("Deleting", "Released", deletePolicy).o.pv
			o.volume.Status.Phase = "Deleting"
			o.volume.Status.Handle = "h"
		}), want: stepDeletePV},
		"storage deleted, policy Retain: delete the PersistentVolume": {state: deletionFailed(pavv1.StepDeleted, 0, 0).with(func(o *observation) {
			o.pv = in("Deleting", "Released", retainPolicy).o.pv
			o.volume.Status.Phase = "Deleting"
			o.volume.Status.Handle = "h"
		}), want: stepDeletePV},
		"storage and PersistentVolume deleted: delete the PavVolume":                   {state: deletionFailed(pavv1.StepDeleted, 0, 0).with(func(o *observation) { o.volume.Status.Phase = "Deleting" }), want: stepForget},
		"storage and PersistentVolume deleted, provisioner gone: delete the PavVolume": {state: deletionFailed(pavv1.StepDeleted, 0, 0).with(func(o *observation) { o.provisioner = nil; o.volume.Status.Phase = "Deleting" }), want: stepForget},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := decideIn(test.state.o)
			if got.Step != test.want || got.After != test.after {
				t.Errorf("got step %s (%s) after %s, want %s after %s", got.Step, got.Message, got.After, test.want, test.after)
			}
		})
	}
}

func TestKeeps_ThePodThatFailedLast(t *testing.T) {
	pod := func(workflow, name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{pavv1.WorkflowLabel: workflow}}}
	}
	failure := func(workflow string) *pavv1.WorkflowFailure {
		return &pavv1.WorkflowFailure{Workflow: workflow, PodNamespace: "ns", PodName: "failed"}
	}
	running := &pavv1.PodReference{Namespace: "ns", Name: "next"}
	tests := map[string]struct {
		status pavv1.PavVolumeStatus
		pod    *corev1.Pod
		want   bool
	}{
		"pod that succeeded":                                         {pod: pod("create", "ok")},
		"last creation pod that failed":                              {status: pavv1.PavVolumeStatus{Failure: failure("create")}, pod: pod("create", "failed"), want: true},
		"earlier creation pod":                                       {status: pavv1.PavVolumeStatus{Failure: failure("create")}, pod: pod("create", "earlier")},
		"last creation pod that failed, while it is reverted":        {status: pavv1.PavVolumeStatus{Failure: failure("create"), Step: "Reverting", Pod: running}, pod: pod("create", "failed"), want: true},
		"last creation pod that failed, while the next attempt runs": {status: pavv1.PavVolumeStatus{Failure: failure("create"), Step: "Validating", Pod: running}, pod: pod("create", "failed")},
		"last deletion pod that failed":                              {status: pavv1.PavVolumeStatus{DeletionFailure: failure("delete"), Step: "Deleting"}, pod: pod("delete", "failed"), want: true},
		"last deletion pod that failed, while the next one runs":     {status: pavv1.PavVolumeStatus{DeletionFailure: failure("delete"), Step: "Deleting", Pod: running}, pod: pod("delete", "failed")},
		"pod of the name in another namespace":                       {status: pavv1.PavVolumeStatus{Failure: &pavv1.WorkflowFailure{PodNamespace: "other", PodName: "failed"}}, pod: pod("create", "failed")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := keeps(&test.status, test.pod); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
