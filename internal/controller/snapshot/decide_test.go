package snapshot

import (
	"strings"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/reading"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func ago(seconds int) metav1.Time {
	return metav1.NewTime(noon.Add(-time.Duration(seconds) * time.Second))
}

// state is an observation under construction.
type state struct{ observation }

// requested returns the observation of a snapshot of volume pvc-1 that was just requested.
func requested() *state {
	handle := "pvc-1"
	return &state{observation{
		now: noon,
		record: &pavv1.PavSnapshot{
			ObjectMeta: metav1.ObjectMeta{Name: "snapshot-1", UID: "u-record", Finalizers: []string{pavv1.SnapshotFinalizer}},
			Spec: pavv1.PavSnapshotSpec{
				Provisioner: "demo", ContentRef: pavv1.SnapshotContentReference{Name: "content", UID: "u-content"}, VolumeName: "pvc-1", VolumeHandle: "pvc-1",
				SnapshotRef: pavv1.SnapshotReference{Namespace: "default", Name: "s", UID: "1"}, DeletionPolicy: pavv1.SnapshotPolicyDelete,
			},
		},
		provisioner: &pavv1.PavProvisioner{
			ObjectMeta: metav1.ObjectMeta{Name: "demo", Generation: 1},
			Spec: pavv1.PavProvisionerSpec{
				SnapshotCreation: &pavv1.SnapshotCreation{PodTemplate: &apiextensionsv1.JSON{Raw: []byte(`{}`)}},
				SnapshotDeletion: &pavv1.SnapshotDeletion{PodTemplate: &apiextensionsv1.JSON{Raw: []byte(`{}`)}},
			},
		},
		content: &snapshotv1.VolumeSnapshotContent{
			ObjectMeta: metav1.ObjectMeta{Name: "content", UID: "u-content", Finalizers: []string{protocol.SnapshotContentFinalizer}},
			Spec:       snapshotv1.VolumeSnapshotContentSpec{DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete, Source: snapshotv1.VolumeSnapshotContentSource{VolumeHandle: &handle}},
		},
		pv:     &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}},
		volume: &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}, Status: pavv1.PavVolumeStatus{Phase: pavv1.VolumeReady}},
		nodes:  map[string]bool{"n1": true},
	}}
}

func (s *state) with(changes ...func(*state)) *state {
	for _, change := range changes {
		change(s)
	}
	return s
}

// intends records a pod that is not created.
func intends(step pavv1.SnapshotStep) func(*state) {
	return func(s *state) {
		status := &s.record.Status
		if status.Phase == "" {
			status.Phase, status.Attempt = pavv1.SnapshotPending, 1
		}
		status.Step, status.Pods, status.RecordUID = step, 1, s.record.UID
		status.Pod = &pavv1.PodReference{Namespace: "pav-pods", Name: "pod"}
	}
}

// reads makes the snapshot a reader of its volume.
func reads(s *state) {
	s.volume.Status.Readers = append(s.volume.Status.Readers, pavv1.Reader{Kind: kind, Name: s.record.Name, Unstaged: reading.WhileStaged(s.provisioner) == pavv1.SnapshotWait})
}

// pod creates the recorded pod.
func thePod(changes ...func(*corev1.Pod)) func(*state) {
	return func(s *state) {
		pod := corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "pav-pods", Name: "pod", UID: "u-pod", CreationTimestamp: ago(9), Labels: map[string]string{pavv1.WorkflowLabel: workflows[s.record.Status.Step]}},
			Spec:       corev1.PodSpec{NodeName: "n1", RestartPolicy: corev1.RestartPolicyNever},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
				Running: &corev1.ContainerStateRunning{StartedAt: ago(8)},
			}}}},
		}
		for _, change := range changes {
			change(&pod)
		}
		s.record.Status.Pod.UID, s.Pods = pod.UID, []corev1.Pod{pod}
	}
}

func ended(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		code := int32(0)
		if phase == corev1.PodFailed {
			code = 3
		}
		pod.Status.Phase = phase
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, StartedAt: ago(8), FinishedAt: ago(7)}}
	}
}

func reports(result string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations = map[string]string{pavv1.ResultAnnotation: result} }
}

func stopped(pod *corev1.Pod) {
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(ago(-30)), new(int64(30))
}

// being says in the VolumeSnapshotContent that something may run.
func being(s *state) {
	metav1.SetMetaDataAnnotation(&s.content.ObjectMeta, protocol.SnapshotBeingCreated, "yes")
}

func phase(p pavv1.SnapshotPhase) func(*state) {
	return func(s *state) {
		status := &s.record.Status
		status.Phase, status.Handle, status.RecordUID, status.Attempt = p, "h", s.record.UID, 1
	}
}

// shown makes the VolumeSnapshotContent say what is recorded.
func shown(s *state) {
	v := viewOf(s.observation)
	if v.beingCreated {
		being(s)
	}
	s.content.Status = &snapshotv1.VolumeSnapshotContentStatus{ReadyToUse: &v.ready, SnapshotHandle: orNil(v.handle), CreationTime: orNil(v.creationTime), RestoreSize: orNil(v.restoreSize)}
	if v.failure != "" {
		s.content.Status.Error = &snapshotv1.VolumeSnapshotError{Message: &v.failure}
	}
}

// unwanted deletes VolumeSnapshot and VolumeSnapshotContent.
func unwanted(s *state) { s.snapshotGone, s.content.DeletionTimestamp = true, new(ago(1)) }

func contentGone(s *state) { s.content, s.snapshotGone = nil, true }

func retained(s *state) {
	s.content.Spec.DeletionPolicy, s.record.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain, pavv1.SnapshotPolicyRetain
}

func failed(reason pavv1.FailureReason, seconds int) func(*state) {
	return func(s *state) {
		s.record.Status.Phase, s.record.Status.Attempt, s.record.Status.ProvisionerGeneration = pavv1.SnapshotPending, 3, 1
		s.record.Status.Failure = &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowSnapshotCreation, Reason: reason, Message: "m", Time: ago(seconds)}
	}
}

func policy(w pavv1.SnapshotWhileStaged) func(*state) {
	return func(s *state) { s.provisioner.Spec.SnapshotCreation.WhileStaged = w }
}

// staged adds the stage of a node.
func staged(s *state) {
	s.stages = append(s.stages, pavv1.PavStage{Spec: pavv1.PavStageSpec{NodeName: "n1"}, Status: pavv1.PavStageStatus{Phase: pavv1.StageStaged}})
}

// asked asks the nodes this many seconds ago; the annotation of the stage is written if written is true.
func asked(seconds int, written bool) func(*state) {
	return func(s *state) {
		at := metav1.NewMicroTime(ago(seconds).Time)
		s.record.Status.SyncRequestTime = &at
		for i := range s.stages {
			if written {
				metav1.SetMetaDataAnnotation(&s.stages[i].ObjectMeta, pavv1.SyncAnnotation, at.UTC().Format(pavv1.RetryFormat))
			}
		}
	}
}

// needed records a volume that is being created from the snapshot.
func needed(s *state) { s.volumes = []string{"pvc-2"} }

func synced(s *state) { s.stages[0].Status.SyncedTime = s.record.Status.SyncRequestTime }

// givenAway binds the PersistentVolume to another claim.
func givenAway(s *state) {
	s.record.Spec.ClaimUID, s.pv.Spec.ClaimRef = "u-claim", &corev1.ObjectReference{Namespace: "other", Name: "c", UID: "u-other"}
}

func noProvisioner(s *state) { s.provisioner = nil }

func preProvisioned(s *state) {
	s.record.Spec.SnapshotHandle, s.record.Spec.VolumeName, s.record.Spec.VolumeHandle = "h", "", ""
	s.content.Spec.Source = snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: new("h")}
	s.pv, s.volume = nil, nil
}

// unstarted makes the pod one whose containers have not started. neverBound makes it one that was deleted before it was bound to a node.
func unstarted(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodPending
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
}

func neverBound(pod *corev1.Pod) {
	pod.Spec.NodeName = ""
	stopped(pod)
}

// deletionFailed records that the deletion has failed some time ago: that of a pod, or before there was one.
func deletionFailed(pod string) func(*state) {
	return func(s *state) {
		s.record.Status.DeletionAttempt = 1
		s.record.Status.DeletionFailure = &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowSnapshotDeletion, Message: "m", Time: ago(600), PodName: pod}
	}
}

func TestDecide(t *testing.T) {
	creating, reverting, deleting := intends(pavv1.SnapshotCreating), intends(pavv1.SnapshotReverting), intends(pavv1.SnapshotDeletingStep)
	const succeeded, failure = corev1.PodSucceeded, corev1.PodFailed
	tests := map[string]struct {
		state   *state
		want    rule.Step
		message string
	}{
		// The request.
		"it is requested":                 {state: requested(), want: stepBegin},
		"there is no PavProvisioner":      {state: requested().with(noProvisioner), want: rule.Wait, message: `PavProvisioner "demo" does not exist`},
		"the definition has no snapshots": {state: requested().with(func(s *state) { s.provisioner.Spec.SnapshotCreation = nil }), want: rule.Wait, message: "has no spec.snapshotCreation"},
		"the volume is gone":              {state: requested().with(func(s *state) { s.pv = nil }), want: rule.Wait, message: `PersistentVolume "pvc-1"`},
		"the volume is being deleted":     {state: requested().with(func(s *state) { s.volume.Status.Phase = pavv1.VolumeDeleting }), want: rule.Wait, message: "is not in use"},
		"the volume grows":                {state: requested().with(func(s *state) { s.volume.Status.Step = pavv1.StepExpanding }), want: rule.Wait, message: "waiting for a pod that changes volume"},
		"its creation pod goes on":        {state: requested().with(func(s *state) { s.volume.Status.CreationPod = &pavv1.PodReference{} }), want: rule.Wait, message: "creation pod"},
		"a growth of the volume waits for others": {state: requested().with(func(s *state) {
			s.volume.Status.Conditions = []metav1.Condition{{Type: pavv1.VolumeExpanded, Status: metav1.ConditionFalse, Reason: pavv1.ReasonBeingRead}}
		}), want: rule.Wait, message: "waits for others that read it"},
		"a static volume": {state: requested().with(func(s *state) { s.volume = nil }), want: stepBegin},
		"a static volume, which must not be staged":  {state: requested().with(policy(pavv1.SnapshotWait), func(s *state) { s.volume = nil }), want: rule.Wait, message: "cannot keep nodes"},
		"the volume is staged":                       {state: requested().with(staged), want: stepBegin},
		"the volume is staged, and must not be":      {state: requested().with(policy(pavv1.SnapshotWait), staged), want: rule.Wait, message: "unstaged on node n1"},
		"it stays staged while the snapshot reads":   {state: requested().with(policy(pavv1.SnapshotWait), staged, reads), want: stepLeave},
		"an attempt failed a moment ago":             {state: requested().with(failed(pavv1.FailurePodFailed, 1), shown), want: rule.Done},
		"an attempt failed some time ago":            {state: requested().with(failed(pavv1.FailurePodFailed, 5), shown), want: stepBegin},
		"an infeasible attempt failed some time ago": {state: requested().with(failed(pavv1.FailureInfeasible, 500), shown), want: rule.Done},
		"an infeasible attempt, another definition":  {state: requested().with(failed(pavv1.FailureInfeasible, 500), shown, func(s *state) { s.provisioner.Generation = 2 }), want: stepBegin},
		"a retry is requested":                       {state: requested().with(failed(pavv1.FailureInfeasible, 500), shown, func(s *state) { s.retry = noon }), want: stepBegin},
		"the failure is not shown":                   {state: requested().with(failed(pavv1.FailurePodFailed, 5)), want: stepShow},
		"the reader of a failed attempt":             {state: requested().with(failed(pavv1.FailurePodFailed, 1), shown, reads), want: stepLeave},
		"the policy has changed":                     {state: requested().with(func(s *state) { s.content.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain }), want: stepAlign},

		// The creation pod.
		"the pod is recorded, and not announced":       {state: requested().with(creating, reads), want: stepShow},
		"the pod is recorded":                          {state: requested().with(creating, being, reads), want: rule.RunPod},
		"the PavProvisioner is gone before the pod":    {state: requested().with(creating, being, reads, noProvisioner), want: stepDropPod},
		"many others read the volume":                  {state: requested().with(func(s *state) { s.volume.Status.Readers = make([]pavv1.Reader, 16) }), want: rule.Wait, message: "waiting for others that read volume"},
		"another object has what is to be reverted":    {state: requested().with(failed(pavv1.FailurePodFailed, 1), func(s *state) { s.record.Status.Step = pavv1.SnapshotReverting; s.others = []string{"other"} }, shown), want: stepReverted},
		"a node stages the volume before the pod":      {state: requested().with(policy(pavv1.SnapshotWait), creating, being, reads, staged), want: stepDropPod},
		"a node is to be asked":                        {state: requested().with(policy(pavv1.SnapshotSync), creating, being, reads, staged, asked(0, false)), want: stepSync},
		"a node is asked":                              {state: requested().with(policy(pavv1.SnapshotSync), creating, being, reads, staged, asked(1, true)), want: rule.Done},
		"a node does not answer for some time":         {state: requested().with(policy(pavv1.SnapshotSync), creating, being, reads, staged, asked(60, true)), want: rule.Wait, message: "waiting for node n1 to write"},
		"a node does not answer":                       {state: requested().with(policy(pavv1.SnapshotSync), creating, being, reads, staged, asked(300, true)), want: stepGiveUpSync},
		"a node has answered":                          {state: requested().with(policy(pavv1.SnapshotSync), creating, being, reads, staged, asked(1, true), synced), want: rule.RunPod},
		"a node that does not answer is gone":          {state: requested().with(policy(pavv1.SnapshotSync), creating, being, reads, staged, asked(1, true), func(s *state) { s.nodes["n1"] = false }), want: rule.RunPod},
		"the pod runs":                                 {state: requested().with(creating, being, reads, thePod()), want: rule.Done},
		"the UID of the pod is not recorded":           {state: requested().with(creating, being, reads, thePod(), func(s *state) { s.record.Status.Pod.UID = "" }), want: stepRecordPod},
		"the pod has cut the snapshot, and goes on":    {state: requested().with(creating, being, reads, thePod(reports(`{"ready":true}`))), want: stepRecordCut},
		"the pod succeeded, and its files are unknown": {state: requested().with(creating, being, reads, thePod(ended(succeeded))), want: rule.Done},
		"the pod succeeded":                            {state: requested().with(creating, being, reads, thePod(ended(succeeded), reports(`{}`))), want: stepRecordCut},
		"the pod failed, and its files are unknown":    {state: requested().with(creating, being, reads, thePod(ended(failure))), want: rule.Done},
		"the pod failed, and its node is gone":         {state: requested().with(creating, being, reads, thePod(ended(failure)), func(s *state) { s.NodeGone = true }), want: stepRecordFailure},
		"the pod failed":                               {state: requested().with(creating, being, reads, thePod(ended(failure), reports(`{}`))), want: stepRecordFailure},
		"the pod is gone":                              {state: requested().with(creating, being, reads, func(s *state) { s.record.Status.Pod.UID = "u" }), want: stepRecordFailure},

		"the volume was given to another claim":  {state: requested().with(givenAway), want: rule.Wait, message: "is not bound any more to the claim"},
		"it was before the pod was created":      {state: requested().with(creating, being, reads, givenAway), want: stepDropPod},
		"it was while the pod runs":              {state: requested().with(creating, being, reads, thePod(), givenAway), want: rule.StopPod},
		"it was when the snapshot was cut":       {state: requested().with(phase(pavv1.SnapshotReady), shown, givenAway), want: rule.Done},
		"it was, and the record is an older one": {state: requested().with(givenAway, func(s *state) { s.record.Spec.ClaimUID = "" }), want: stepBegin},

		// What is reverted.
		"a creation is to be reverted": {state: requested().with(failed(pavv1.FailurePodFailed, 1), func(s *state) {
			s.record.Status.Step, s.record.Status.ProvisionerGeneration = pavv1.SnapshotReverting, 0
		}, shown), want: stepDelete},
		"there is nothing to revert with": {state: requested().with(failed(pavv1.FailurePodFailed, 1), func(s *state) {
			s.record.Status.Step = pavv1.SnapshotReverting
			s.provisioner.Spec.SnapshotDeletion = nil
		}, shown), want: stepReverted},
		"the deletion pod of it succeeded": {state: requested().with(reverting, being, thePod(ended(succeeded))), want: stepReverted},
		"the deletion pod of it failed":    {state: requested().with(reverting, being, thePod(ended(failure), reports(`{}`))), want: stepRecordFailure},

		// What is cut, and what is ready.
		"it is cut, and not shown":           {state: requested().with(phase(pavv1.SnapshotCut), creating, thePod(reports(`{"ready":true}`))), want: stepShow},
		"it is cut":                          {state: requested().with(phase(pavv1.SnapshotCut), creating, thePod(reports(`{"ready":true}`)), shown), want: rule.Done},
		"it is cut, and still a reader":      {state: requested().with(phase(pavv1.SnapshotCut), creating, thePod(reports(`{"ready":true}`)), shown, reads), want: stepLeave},
		"the pod of what is cut succeeded":   {state: requested().with(phase(pavv1.SnapshotCut), creating, thePod(ended(succeeded), reports(`{"ready":true}`)), shown), want: stepMarkReady},
		"the pod of what is cut failed":      {state: requested().with(phase(pavv1.SnapshotCut), creating, thePod(ended(failure), reports(`{"ready":true}`)), shown), want: stepRecordFailure},
		"what is cut is processed once more": {state: requested().with(phase(pavv1.SnapshotCut), shown), want: stepBegin},
		"nothing defines how to do that":     {state: requested().with(phase(pavv1.SnapshotCut), shown, noProvisioner), want: rule.Wait, message: "only it defines how to create snapshots"},
		"nothing defines it for its pod":     {state: requested().with(phase(pavv1.SnapshotCut), creating, shown, noProvisioner), want: stepDropPod},
		"its pod is to be created":           {state: requested().with(phase(pavv1.SnapshotCut), creating, shown), want: rule.RunPod},
		"it is ready, and not shown":         {state: requested().with(phase(pavv1.SnapshotReady)), want: stepShow},
		"it is ready":                        {state: requested().with(phase(pavv1.SnapshotReady), shown), want: rule.Done},
		"an administrator's":                 {state: requested().with(preProvisioned), want: stepTakeOver},
		"its record was lost":                {state: requested().with(func(s *state) { s.content.Status = &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: new("h")} }), want: stepTakeOver},

		// What nobody wants any more.
		"it is deleted before its first pod":       {state: requested().with(unwanted), want: stepRelease},
		"nothing is left of it":                    {state: requested().with(contentGone), want: stepForget},
		"it is deleted before its pod is created":  {state: requested().with(creating, being, reads, unwanted), want: stepDropPod},
		"it is deleted while its pod runs":         {state: requested().with(creating, being, reads, unwanted, thePod()), want: rule.StopPod},
		"its pod is being stopped":                 {state: requested().with(creating, being, reads, unwanted, thePod(stopped)), want: rule.Done},
		"its pod was stopped":                      {state: requested().with(creating, being, reads, unwanted, thePod(ended(failure), reports(`{}`))), want: stepRevert},
		"its pod was stopped, the files unknown":   {state: requested().with(creating, being, reads, unwanted, thePod(ended(failure))), want: rule.Done},
		"it is ready and deleted":                  {state: requested().with(phase(pavv1.SnapshotReady), unwanted), want: stepMarkDeleting},
		"it is cut and deleted while its pod runs": {state: requested().with(phase(pavv1.SnapshotCut), creating, thePod(reports(`{"ready":true}`)), unwanted), want: rule.StopPod},
		"it is ready and retained":                 {state: requested().with(phase(pavv1.SnapshotReady), retained, unwanted), want: stepRetain},
		"an administrator's is deleted":            {state: requested().with(preProvisioned, unwanted), want: stepMarkDeleting},
		"only its VolumeSnapshotContent is":        {state: requested().with(phase(pavv1.SnapshotReady), unwanted, func(s *state) { s.snapshotGone = false }), want: rule.Wait, message: "is deleted, and its VolumeSnapshot"},
		"only its VolumeSnapshotContent, a pod":    {state: requested().with(creating, reads, unwanted, func(s *state) { s.snapshotGone = false }, thePod(ended(succeeded), reports(`{}`))), want: stepRecordCut},
		"an administrator's content was removed":   {state: requested().with(preProvisioned, phase(pavv1.SnapshotReady), contentGone), want: stepRetain},
		"only its record is":                       {state: requested().with(phase(pavv1.SnapshotReady), shown, func(s *state) { s.record.DeletionTimestamp = new(ago(1)) }), want: rule.Wait, message: "still needs the snapshot"},
		"it was restored from a backup":            {state: requested().with(phase(pavv1.SnapshotReady), contentGone, func(s *state) { s.record.UID = "another" }), want: rule.Wait, message: "restored from a backup"},
		"a restored record is deleted":             {state: requested().with(phase(pavv1.SnapshotReady), contentGone, func(s *state) { s.record.UID = "another"; s.record.DeletionTimestamp = new(ago(1)) }), want: stepMarkDeleting},

		// The deletion.
		"it is to be deleted":                     {state: requested().with(phase(pavv1.SnapshotDeleting), unwanted), want: stepDelete},
		"another object has the snapshot":         {state: requested().with(phase(pavv1.SnapshotDeleting), unwanted, func(s *state) { s.others = []string{`PavSnapshot "other"`} }), want: rule.Wait, message: `PavSnapshot "other" has the same snapshot`},
		"a volume is created from it":             {state: requested().with(phase(pavv1.SnapshotDeleting), unwanted, needed), want: rule.Wait, message: `such as PavVolume "pvc-2"`},
		"one is, and there is nothing to delete":  {state: requested().with(phase(pavv1.SnapshotDeleting), unwanted, needed, func(s *state) { s.provisioner.Spec.SnapshotDeletion = nil }), want: rule.Wait, message: `such as PavVolume "pvc-2"`},
		"one is, and the deletion pod runs":       {state: requested().with(phase(pavv1.SnapshotDeleting), unwanted, deleting, thePod(), needed), want: rule.Done},
		"there is nothing to delete":              {state: requested().with(phase(pavv1.SnapshotDeleting), unwanted, func(s *state) { s.provisioner.Spec.SnapshotDeletion = nil }), want: stepMarkDeleted},
		"there is nothing to delete it with":      {state: requested().with(phase(pavv1.SnapshotDeleting), unwanted, noProvisioner), want: rule.Wait, message: "only it defines how to delete"},
		"its deletion pod is recorded":            {state: requested().with(phase(pavv1.SnapshotDeleting), unwanted, deleting), want: rule.RunPod},
		"its deletion pod runs":                   {state: requested().with(phase(pavv1.SnapshotDeleting), unwanted, deleting, thePod()), want: rule.Done},
		"its deletion pod succeeded":              {state: requested().with(phase(pavv1.SnapshotDeleting), unwanted, deleting, thePod(ended(succeeded))), want: stepMarkDeleted},
		"its deletion pod failed":                 {state: requested().with(phase(pavv1.SnapshotDeleting), unwanted, deleting, thePod(ended(failure), reports(`{}`))), want: stepRecordFailure},
		"its storage is deleted":                  {state: requested().with(phase(pavv1.SnapshotDeleting), unwanted, func(s *state) { s.record.Status.Step = pavv1.SnapshotDeletedStep }), want: stepRelease},
		"storage and content are deleted":         {state: requested().with(phase(pavv1.SnapshotDeleting), contentGone, func(s *state) { s.record.Status.Step = pavv1.SnapshotDeletedStep }), want: stepForget},
		"it is retained meanwhile":                {state: requested().with(phase(pavv1.SnapshotDeleting), retained, unwanted), want: stepRetain},
		"it is, and another object has it":        {state: requested().with(phase(pavv1.SnapshotDeleting), retained, unwanted, func(s *state) { s.others = []string{`PavSnapshot "other"`} }), want: stepRetain},
		"it is, and its pod is not created":       {state: requested().with(phase(pavv1.SnapshotDeleting), deleting, retained, unwanted), want: stepDropPod},
		"it is, and its pod has not started":      {state: requested().with(phase(pavv1.SnapshotDeleting), deleting, thePod(unstarted), retained, unwanted), want: rule.StopPod},
		"it is, and such a pod is being stopped":  {state: requested().with(phase(pavv1.SnapshotDeleting), deleting, thePod(unstarted, stopped), retained, unwanted), want: rule.Done},
		"it is, and its pod never ran":            {state: requested().with(phase(pavv1.SnapshotDeleting), deleting, thePod(unstarted, neverBound), retained, unwanted), want: stepDropPod},
		"it is, and a pod was refused":            {state: requested().with(phase(pavv1.SnapshotDeleting), deletionFailed(""), retained, unwanted), want: stepRetain},
		"it is retained too late, the pod runs":   {state: requested().with(phase(pavv1.SnapshotDeleting), deleting, thePod(), retained, unwanted), want: rule.Done},
		"it is retained too late, no pod is left": {state: requested().with(phase(pavv1.SnapshotDeleting), deleting, retained, unwanted, func(s *state) { s.record.Status.Pod.UID = "u" }), want: stepRecordFailure},
		"it is retained too late, a pod failed":   {state: requested().with(phase(pavv1.SnapshotDeleting), deletionFailed("pod"), retained, unwanted), want: stepDelete},

		// What is retained.
		"it is retained, and still held":          {state: requested().with(phase(pavv1.SnapshotRetained), retained, unwanted, func(s *state) { s.record.Finalizers = nil }), want: stepRelease},
		"it is retained":                          {state: requested().with(phase(pavv1.SnapshotRetained), retained, contentGone, func(s *state) { s.record.Finalizers = nil }), want: rule.Done},
		"it is retained, and has the finalizer":   {state: requested().with(phase(pavv1.SnapshotRetained), retained, contentGone), want: stepAlign},
		"a retained one is to be deleted":         {state: requested().with(phase(pavv1.SnapshotRetained), contentGone, func(s *state) { s.record.Finalizers = nil }), want: stepAlign},
		"a retained one is to be deleted, and is": {state: requested().with(phase(pavv1.SnapshotRetained), contentGone, func(s *state) { s.record.DeletionTimestamp = new(ago(1)) }), want: stepMarkDeleting},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := decide(test.state.observation)
			if d.Step != test.want {
				t.Errorf("got %s (%s, %q), want %s", d.Step, d.Rule, d.Message, test.want)
			}
			if !strings.Contains(d.Message, test.message) || (test.message == "") != (d.Message == "") {
				t.Errorf("got message %q, want it to contain %q", d.Message, test.message)
			}
		})
	}
}
