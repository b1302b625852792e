package volume

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// at is a volume whose pod of a step is recorded and not known to have been created.
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

// pod gives the volume its pod, of an age in seconds, as changes make it.
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

// pvIs gives the volume its PersistentVolume, of a phase.
func pvIs(phase corev1.PersistentVolumePhase) func(*snapshot) {
	return func(o *snapshot) { o.pv = in("", phase, deletePolicy).o.pv }
}

// hasBeenMade is for a volume that is reverted although its creation pod has succeeded.
func hasBeenMade(o *snapshot) { o.volume.Status.Capacity = ptrQuantity("1Gi") }

func retainsPV(o *snapshot) { o.pv.Spec.PersistentVolumeReclaimPolicy = retainPolicy }

func refusedDeletion(o *snapshot) {
	o.volume.Status.DeletionFailure = &pavv1.WorkflowFailure{Workflow: "delete", Time: ago(99)}
}

func noPod(o *snapshot) { o.volume.Status.Pod = nil }

func ago(seconds int) metav1.Time {
	return metav1.NewTime(noon.Add(-time.Duration(seconds) * time.Second))
}

// ended makes a pod end in a phase, so many seconds ago.
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

func told(pod *corev1.Pod) { pod.Annotations = map[string]string{pavv1.ResultAnnotation: "{}"} }

func runs(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

func pulls(pod *corev1.Pod) {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"},
	}}}
}

// hung makes a pod hang on its node, as a kubelet tells that cannot mount one of its volumes.
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

func vanishedPod(o *snapshot) { o.volume.Status.Pod.UID = "u-pod" }

func unclaimed(o *snapshot) { o.claim = claimGone }

func contended(o *snapshot) { o.contended = true }

// due makes the present pod due since so many seconds.
func due(seconds int) func(*snapshot) {
	return func(o *snapshot) { o.volume.Status.Pod.Due = new(ago(seconds)) }
}

func selected(o *snapshot) { o.selectedNode, o.volume.Status.SelectedNode = "n1", "n1" }

func TestDecideWithPods(t *testing.T) {
	const validating, creating, reverting, deleting = pavv1.StepValidating, pavv1.StepCreating, pavv1.StepReverting, pavv1.StepDeleting
	const succeeded, failed = corev1.PodSucceeded, corev1.PodFailed
	tests := map[string]struct {
		state   *state
		want    step
		message string
		after   time.Duration
	}{
		"an intended validation pod is run":         {state: at(validating), want: stepRunPod},
		"an intended creation pod is run":           {state: at(creating), want: stepRunPod},
		"an intended deletion pod is run":           {state: at(deleting), want: stepRunPod},
		"an intended reverting pod is run":          {state: at(reverting), want: stepRunPod},
		"reverting goes on without a claim":         {state: at(reverting).with(unclaimed), want: stepRunPod},
		"one that nobody wants is dropped":          {state: at(creating).with(unclaimed), want: stepDropPod},
		"a pod that exists is recorded first":       {state: at(creating).with(unclaimed).pod(1, runs).with(func(o *snapshot) { o.volume.Status.Pod.UID = "" }), want: stepRecordPod},
		"without provisioner nothing is run":        {state: at(deleting).with(func(o *snapshot) { o.provisioner = nil }), want: stepWait, message: `PavProvisioner "demo" does not exist`},
		"nor reverted":                              {state: at(reverting).with(func(o *snapshot) { o.provisioner = nil }), want: stepWait, message: `PavProvisioner "demo" does not exist`},
		"one in line is looked at again":            {state: at(creating).with(due(60)), want: stepRunPod, after: 9 * time.Minute},
		"one that is in line for long is told of":   {state: at(creating).with(due(600)), want: stepRunPod, message: "pod pav-pods/pod has waited for more than 10m0s for a slot"},
		"a running pod is waited for":               {state: at(creating).pod(60, runs), want: stepDone, after: 9 * time.Minute},
		"one that runs for long is told of":         {state: at(creating).pod(600, runs), want: stepWait, message: "it has run for more than 10m0s; see kubectl logs -n pav-pods pod"},
		"one that nobody wants is stopped":          {state: at(creating).with(unclaimed).pod(1, runs), want: stepStopPod},
		"a validation pod, too":                     {state: at(validating).with(unclaimed).pod(1, runs), want: stepStopPod},
		"but not a reverting one":                   {state: at(reverting).with(unclaimed).pod(1, runs), want: stepDone, after: 599 * time.Second},
		"a starting pod is given time":              {state: at(creating).pod(1), want: stepDone, after: 29 * time.Second},
		"a pod that cannot start is told of":        {state: at(creating).pod(5, pulls), want: stepWait, message: `waiting, as pod pav-pods/pod, container "main": ErrImagePull: no such image`, after: 10 * time.Second},
		"one that hangs is given up":                {state: at(creating).pod(300, hung), want: stepStopPod, message: `pod pav-pods/pod has not started on node "n1" within 5m0s and is given up; the next one prefers other nodes`},
		"but not where others wait for its place":   {state: at(creating).with(contended).pod(300, pulls), want: stepStopPod},
		"a node that does not take the pod":         {state: at(creating).with(selected).pod(15, unbound), want: stepStopPod},
		"without a selected node it is waited for":  {state: at(creating).pod(100, unbound), want: stepWait, message: "not scheduled", after: 200 * time.Second},
		"a stopping pod is waited for":              {state: at(creating).pod(9, runs, deletedAgo(1)), want: stepDone, after: 9 * time.Second},
		"and told of":                               {state: at(creating).pod(99, runs, deletedAgo(20)), want: stepWait, message: `waiting for kubelet on node "n1" to confirm that pod pav-pods/pod has ended`},
		"also where nobody wants it":                {state: at(creating).with(unclaimed).pod(99, runs, deletedAgo(1)), want: stepDone, after: 9 * time.Second},
		"what nobody wants must be told, too":       {state: at(creating).with(unclaimed).pod(99, ended(succeeded, 1)), want: stepDone, after: 5 * time.Second},
		"nor what was validated":                    {state: at(validating).with(unclaimed).pod(99, ended(failed, 1)), want: stepDropPod},
		"a claim that is bound has its volume":      {state: at(reverting).with(hasBeenMade).with(pvIs(corev1.VolumeBound)), want: stepMarkReady},
		"also before a pod is recorded":             {state: at(reverting).with(hasBeenMade).with(pvIs(corev1.VolumeBound)).with(noPod), want: stepMarkReady},
		"and one that is about to be bound":         {state: at(reverting).with(hasBeenMade).with(pvIs(corev1.VolumePending)).with(noPod), want: stepMarkReady},
		"also if its deletion pod was refused":      {state: at(reverting).with(hasBeenMade).with(pvIs(corev1.VolumeBound)).with(noPod).with(refusedDeletion), want: stepMarkReady},
		"what was bound and is to be retained is":   {state: at(reverting).with(hasBeenMade).with(pvIs(corev1.VolumeReleased)).with(retainsPV), want: stepMarkReady},
		"not what nobody has any more":              {state: at(reverting).with(hasBeenMade).with(pvIs(corev1.VolumeReleased)), want: stepRunPod},
		"nor what this attempt has not made":        {state: at(reverting).with(pvIs(corev1.VolumeBound)), want: stepRunPod},
		"a PersistentVolume does not stop a revert": {state: at(reverting).with(pvIs(corev1.VolumeBound)).pod(1, runs), want: stepDone, after: 599 * time.Second},
		"and goes when it has succeeded":            {state: at(reverting).with(pvIs(corev1.VolumeBound)).pod(1, ended(succeeded, 0)), want: stepDeletePV},
		"validated":                                 {state: at(validating).pod(9, ended(succeeded, 1)), want: stepCreate},
		"validated in vain":                         {state: at(validating).with(unclaimed).pod(9, ended(succeeded, 1)), want: stepDropPod},
		"refused":                                   {state: at(validating).pod(9, ended(failed, 1), told), want: stepRecordFailure},
		"but not for long":                          {state: at(validating).pod(9, ended(failed, 5)), want: stepRecordFailure},
		"refused in vain":                           {state: at(validating).with(unclaimed).pod(9, ended(failed, 5)), want: stepDropPod},
		"what a creation pod left is waited for":    {state: at(creating).pod(9, ended(succeeded, 1)), want: stepDone, after: 5 * time.Second},
		"for as long as it takes":                   {state: at(creating).pod(9999, ended(succeeded, 999)), want: stepWait, message: `waiting for the agent on node "n1" to report what pod pav-pods/pod left in /pav`},
		"created":                                   {state: at(creating).pod(9, ended(succeeded, 1), told), want: stepRecordCreated},
		"created in vain":                           {state: at(creating).with(unclaimed).pod(9, ended(succeeded, 1), told), want: stepRevert},
		"creation failed":                           {state: at(creating).pod(9, ended(failed, 1), told), want: stepRecordFailure},
		"creation failed in vain":                   {state: at(creating).with(unclaimed).pod(9, ended(failed, 1), told), want: stepRevert},
		"a creation pod that was stopped":           {state: at(creating).pod(9, ended(succeeded, 1), told, deletedAgo(3)), want: stepRecordFailure},
		"one that never got to a node":              {state: at(creating).pod(9, unbound, deletedAgo(3)), want: stepRecordFailure},
		"neither did it have to":                    {state: at(creating).with(unclaimed).pod(9, unbound, deletedAgo(3)), want: stepDropPod},
		"a creation pod removed by force":           {state: at(creating).with(vanishedPod), want: stepRecordFailure},
		"removed by force in vain":                  {state: at(creating).with(unclaimed).with(vanishedPod), want: stepAbandon},
		"another pod of its name is not it":         {state: at(creating).pod(9, ended(succeeded, 1), told).with(func(o *snapshot) { o.volume.Status.Pod.UID = "u-other" }), want: stepRecordFailure},
		"reverted":                                  {state: at(reverting).pod(9, ended(succeeded, 1)), want: stepReverted},
		"reverting failed":                          {state: at(reverting).pod(9, ended(failed, 9)), want: stepRecordFailure},
		"deleted":                                   {state: at(deleting).pod(9, ended(succeeded, 1)), want: stepMarkDeleted},
		"deletion failed":                           {state: at(deleting).pod(9, ended(failed, 9)), want: stepRecordFailure},
		"a deletion pod removed by force":           {state: at(deleting).with(vanishedPod), want: stepRecordFailure},
		"deletion is seen to its end under Retain":  {state: at(deleting).pod(9, runs).with(func(o *snapshot) { o.pv.Spec.PersistentVolumeReclaimPolicy = retainPolicy }), want: stepDone, after: 591 * time.Second},
		"one that cannot start is stopped under it": {state: at(deleting).pod(9, pulls).with(func(o *snapshot) { o.pv.Spec.PersistentVolumeReclaimPolicy = retainPolicy }), want: stepStopPod},
		"a deletion that waits is not run under it": {state: at(deleting).with(func(o *snapshot) { o.pv.Spec.PersistentVolumeReclaimPolicy = retainPolicy }), want: stepAlign},
		"nor where the volume is bound again":       {state: at(deleting).with(func(o *snapshot) { o.pv.Status.Phase = corev1.VolumeBound }), want: stepMarkReady},
		"what was told of it is taken back": {state: at(creating).pod(60, runs).with(func(o *snapshot) {
			o.volume.Status.Conditions = []metav1.Condition{{Type: pavv1.VolumeProvisioned, Status: metav1.ConditionFalse, Reason: "PodNotStarted"}}
		}), want: stepWait, message: "pod pav-pods/pod is creating the volume", after: 9 * time.Minute},
		"whoever asks for the volume again by then": {state: at(deleting).pod(9, runs).with(func(o *snapshot) { o.pv.Status.Phase = corev1.VolumeBound }), want: stepDone, after: 591 * time.Second},
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

func TestDecideAfterFailures(t *testing.T) {
	// failedAt is a volume whose last attempt failed so many seconds ago and has nothing left to revert.
	failedAt := func(attempt int32, workflow string, seconds int) *state {
		s := at(pavv1.StepValidating)
		status := &s.o.volume.Status
		status.Step, status.Pod, status.Attempt = "", nil, attempt
		status.Failure = &pavv1.WorkflowFailure{Workflow: workflow, PodName: "pod", Time: ago(seconds)}
		return s
	}
	// deletionFailed is a volume whose last deletion pod failed so many seconds ago.
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
	edited := func(o *snapshot) { o.provisioner.Generation++ }
	made := recorded().with(func(o *snapshot) { o.volume.Status.Plan = &pavv1.VolumePlan{} })
	tests := map[string]struct {
		state *state
		want  step
		after time.Duration
	}{
		"the next attempt waits":                    {state: failedAt(1, "create", 0), want: stepDone, after: time.Second},
		"and longer each time":                      {state: failedAt(4, "create", 3), want: stepDone, after: 5 * time.Second},
		"but not for ever":                          {state: failedAt(400, "create", 0), want: stepDone, after: 5 * time.Minute},
		"a clock that was set back is no reason":    {state: failedAt(4, "create", -3600), want: stepDone, after: 8 * time.Second},
		"a node that was given back is taken again": {state: failedAt(1, "create", 3).with(func(o *snapshot) { o.selectedNode = "n1" }), want: stepBegin},
		"then it begins":                            {state: failedAt(4, "create", 8), want: stepBegin},
		"at once where the definition was edited":   {state: failedAt(400, "create", 0).with(edited), want: stepBegin},
		"or is another one":                         {state: failedAt(400, "create", 0).with(func(o *snapshot) { o.provisioner.UID = "p2" }), want: stepBegin},
		"not where nobody wants it":                 {state: failedAt(4, "create", 8).with(unclaimed), want: stepForget},
		"a replaced class begins from the claim":    {state: failedAt(4, "create", 0).with(func(o *snapshot) { o.classReplaced = true }), want: stepForget},
		"it does not matter before a failure":       {state: fresh().with(func(o *snapshot) { o.classReplaced = true }), want: stepBegin},
		"the scheduler chooses again":               {state: failedAt(1, "create", 0).with(selected), want: stepReturnNode},
		"not after a validation":                    {state: failedAt(1, "validate", 0).with(selected), want: stepDone, after: time.Second},
		"until it has":                              {state: failedAt(1, "create", 0).with(selected).with(func(o *snapshot) { o.selectedNode, o.waitsForNode = "", true }), want: stepDone},
		"another node is not given back":            {state: failedAt(1, "create", 3).with(selected).with(func(o *snapshot) { o.selectedNode = "n2" }), want: stepBegin},
		"a volume that is made and not wanted":      {state: made.with(unclaimed), want: stepRevert},
		"also if a claim is bound to what is left":  {state: deletionRan().with(pvIs(corev1.VolumeBound)), want: stepDelete},
		"unless that is staged, or another's, too":  {state: deletionRan().with(pvIs(corev1.VolumeBound)).with(heldBy(holder("PavStage", "s1", ""))), want: stepWait},
		"reverting begins":                          {state: deletionFailed(pavv1.StepReverting, 0, 99), want: stepDelete},
		"reverting waits":                           {state: deletionFailed(pavv1.StepReverting, 3, 1), want: stepDone, after: 3 * time.Second},
		"an edited definition reverts at once":      {state: deletionFailed(pavv1.StepReverting, 9, 1).with(edited), want: stepDelete},
		"one without deletion pod reverts nothing":  {state: deletionFailed(pavv1.StepReverting, 9, 1).with(func(o *snapshot) { o.provisioner.Spec.VolumeDeletion = nil }), want: stepReverted},
		"none at all cannot":                        {state: deletionFailed(pavv1.StepReverting, 1, 99).with(func(o *snapshot) { o.provisioner = nil }), want: stepWait},
		"one under deletion can":                    {state: deletionFailed(pavv1.StepReverting, 1, 99).with(func(o *snapshot) { o.provisioner.DeletionTimestamp = new(metav1.Now()) }), want: stepDelete},
		"deletion waits":                            {state: deletionFailed(pavv1.StepDeleting, 2, 0), want: stepDone, after: 2 * time.Second},
		"deletion is tried again":                   {state: deletionFailed(pavv1.StepDeleting, 2, 2), want: stepDelete},
		"an edited definition deletes at once":      {state: deletionFailed(pavv1.StepDeleting, 9, 0).with(edited), want: stepDelete},
		"a stage that appeared meanwhile holds it":  {state: deletionFailed(pavv1.StepDeleting, 2, 2).with(func(o *snapshot) { o.others = stagedOn("n1") }), want: stepWait},
		"Retain between two attempts is honoured":   {state: deletionFailed(pavv1.StepDeleting, 2, 2).with(func(o *snapshot) { o.pv.Spec.PersistentVolumeReclaimPolicy = retainPolicy }), want: stepAlign},
		"after deletion the PersistentVolume goes": {state: deletionFailed(pavv1.StepDeleted, 0, 0).with(func(o *snapshot) {
			o.pv = in("Deleting", "Released", deletePolicy).o.pv
			o.volume.Status.Phase = "Deleting"
			o.volume.Status.Handle = "h"
		}), want: stepDeletePV},
		"also under Retain, as the storage is gone": {state: deletionFailed(pavv1.StepDeleted, 0, 0).with(func(o *snapshot) {
			o.pv = in("Deleting", "Released", retainPolicy).o.pv
			o.volume.Status.Phase = "Deleting"
			o.volume.Status.Handle = "h"
		}), want: stepDeletePV},
		"then the record":                      {state: deletionFailed(pavv1.StepDeleted, 0, 0).with(func(o *snapshot) { o.volume.Status.Phase = "Deleting" }), want: stepForget},
		"which never asks for the provisioner": {state: deletionFailed(pavv1.StepDeleted, 0, 0).with(func(o *snapshot) { o.provisioner = nil; o.volume.Status.Phase = "Deleting" }), want: stepForget},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := decide(test.state.o)
			if got.step != test.want || got.after != test.after {
				t.Errorf("got step %s (%s) after %s, want %s after %s", got.step, got.message, got.after, test.want, test.after)
			}
		})
	}
}

func TestKeeps(t *testing.T) {
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
		"a pod that succeeded":                   {pod: pod("create", "ok")},
		"the one that failed":                    {status: pavv1.PavVolumeStatus{Failure: failure("create")}, pod: pod("create", "failed"), want: true},
		"an earlier one":                         {status: pavv1.PavVolumeStatus{Failure: failure("create")}, pod: pod("create", "earlier")},
		"while its effects are reverted":         {status: pavv1.PavVolumeStatus{Failure: failure("create"), Step: "Reverting", Pod: running}, pod: pod("create", "failed"), want: true},
		"until the next attempt":                 {status: pavv1.PavVolumeStatus{Failure: failure("create"), Step: "Validating", Pod: running}, pod: pod("create", "failed")},
		"a deletion that failed":                 {status: pavv1.PavVolumeStatus{DeletionFailure: failure("delete"), Step: "Deleting"}, pod: pod("delete", "failed"), want: true},
		"until the next deletion":                {status: pavv1.PavVolumeStatus{DeletionFailure: failure("delete"), Step: "Deleting", Pod: running}, pod: pod("delete", "failed")},
		"a pod of its name in another directory": {status: pavv1.PavVolumeStatus{Failure: &pavv1.WorkflowFailure{PodNamespace: "other", PodName: "failed"}}, pod: pod("create", "failed")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := keeps(&test.status, test.pod); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
