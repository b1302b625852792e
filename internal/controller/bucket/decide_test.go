package bucket

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const recordUID = types.UID("record")

// state is an observation that a test changes.
type state struct{ observation }

type edit = func(*state)

// requested returns a bucket that is requested, and nothing has been done.
func requested(edits ...edit) state {
	s := state{observation{now: noon}}
	s.record = &pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: "b-1", UID: recordUID, Finalizers: []string{pavv1.BucketFinalizer}}}
	s.record.Spec = pavv1.PavBucketSpec{Provisioner: "p", API: pavv1.BucketAPIClaim, BucketName: "photos-uid", ReclaimPolicy: pavv1.BucketDelete,
		ClaimRef: pavv1.ClaimReference{Namespace: "tenant", Name: "photos", UID: "claim"}}
	template := pavv1.Template{Raw: []byte(`{}`)}
	s.provisioner = &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 1}}
	s.provisioner.Spec.BucketCreation = &pavv1.BucketCreation{PodTemplate: &template}
	s.provisioner.Spec.BucketDeletion = &pavv1.BucketDeletion{PodTemplate: &template}
	s.provisioner.Status.Conditions = []metav1.Condition{{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionTrue}}
	return s.with(edits...)
}

func (s state) with(edits ...edit) state {
	for _, edit := range edits {
		edit(&s)
	}
	return s
}

// ready returns a bucket that was created.
func ready(edits ...edit) state {
	return requested(func(s *state) {
		s.record.Status = pavv1.PavBucketStatus{Phase: pavv1.BucketReady, RecordUID: recordUID, Attempt: 1, BucketID: "photos-uid", Created: true, Configured: configuration(s.record)}
	}).with(edits...)
}

// step records a pod of a step, with a UID; the pod exists only with thePod.
func step(name pavv1.BucketStep) edit {
	return func(s *state) {
		if s.record.Status.Phase == "" {
			s.record.Status.Phase, s.record.Status.RecordUID, s.record.Status.Attempt = pavv1.BucketPending, recordUID, 1
		}
		s.record.Status.Step, s.record.Status.Pods = name, 1
		s.record.Status.Pod = &pavv1.PodReference{Namespace: workflow.DefaultNamespace, Name: "pod", UID: "pod"}
	}
}

func intended(s *state) { s.record.Status.Pod.UID = "" }

// thePod gives the recorded pod a state.
func thePod(edits ...func(*corev1.Pod)) edit {
	return func(s *state) {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: workflow.DefaultNamespace, Name: "pod", UID: "pod", CreationTimestamp: metav1.NewTime(noon.Add(-time.Minute)),
			Labels: map[string]string{pavv1.WorkflowLabel: workflows[s.record.Status.Step]}, Annotations: map[string]string{pavv1.AttemptAnnotation: "1"}}}
		pod.Spec.Containers = []corev1.Container{{Name: "main"}}
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		for _, edit := range edits {
			edit(&pod)
		}
		s.Pods = []corev1.Pod{pod}
	}
}

func runs(pod *corev1.Pod) {
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, new(metav1.NewTime(noon.Add(-time.Second)))
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon.Add(-time.Second))}}}}
}

func ended(code int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodSucceeded
		if code != 0 {
			pod.Status.Phase = corev1.PodFailed
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, StartedAt: metav1.NewTime(noon.Add(-30 * time.Second)), FinishedAt: metav1.NewTime(noon.Add(-20 * time.Second))}}}}
	}
}

func result(text string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations[pavv1.ResultAnnotation] = text }
}

func released(s *state) { s.record.Spec.Released = true }

func chosen(s *state) { s.record.Spec.NameRequested = true }

func deletedByHand(s *state) { s.record.DeletionTimestamp = new(metav1.NewTime(noon)) }

// failed records that the third attempt has failed.
func failed(since time.Duration) edit {
	const attempts = 3
	return func(s *state) {
		s.record.Status.Phase, s.record.Status.RecordUID, s.record.Status.Attempt, s.record.Status.ProvisionerGeneration = pavv1.BucketPending, recordUID, attempts, 1
		failure := &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowBucketCreation, Reason: pavv1.FailurePodFailed}
		workflow.Date(failure, int(attempts), noon.Add(-since))
		s.record.Status.Failure = failure
	}
}

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		state  state
		want   rule.Step
		reason string
	}{
		"it is requested":                           {state: requested(), want: stepBegin},
		"its provisioner does not exist":            {state: requested(func(s *state) { s.provisioner = nil }), want: rule.Wait, reason: "NoProvisioner"},
		"its provisioner is being deleted":          {state: requested(func(s *state) { s.provisioner.DeletionTimestamp = new(metav1.NewTime(noon)) }), want: rule.Wait, reason: "ProvisionerDeleting"},
		"its provisioner is not checked":            {state: requested(func(s *state) { s.provisioner.Status.Conditions = nil }), want: rule.Wait, reason: "ProvisionerRefused"},
		"its provisioner has no buckets":            {state: requested(func(s *state) { s.provisioner.Spec.BucketCreation = nil }), want: rule.Wait, reason: "NoBuckets"},
		"another claim has its name":                {state: requested(chosen, func(s *state) { s.holder = "b-2" }), want: rule.Wait, reason: "BucketNameTaken"},
		"it exists already, and others use it, too": {state: requested(func(s *state) { s.record.Spec.ExistingBucketID, s.holder = "b", "b-2" }), want: stepBegin},
		"its last attempt failed just now":          {state: requested(failed(0)), want: rule.Done},
		"its last attempt failed long ago":          {state: requested(failed(time.Hour)), want: stepBegin},
		"its definition was changed since":          {state: requested(failed(0), func(s *state) { s.provisioner.Generation = 2 }), want: stepBegin},
		"a retry is requested":                      {state: requested(failed(time.Second), func(s *state) { s.retry = noon }), want: stepBegin},

		"the validation pod waits for a slot":             {state: requested(step(pavv1.BucketValidating), intended), want: rule.RunPod},
		"the validation pod runs":                         {state: requested(step(pavv1.BucketValidating), thePod(runs)), want: rule.Done},
		"the validation pod succeeded":                    {state: requested(step(pavv1.BucketValidating), thePod(ended(0))), want: stepCreate},
		"the validation pod failed":                       {state: requested(step(pavv1.BucketValidating), thePod(ended(1))), want: stepRecordFailure},
		"the validation pod is not needed any more":       {state: requested(step(pavv1.BucketValidating), intended, func(s *state) { s.holder = "b-2" }), want: stepDropPod},
		"the UID of the pod is not recorded":              {state: requested(step(pavv1.BucketCreating), thePod(runs), intended), want: stepRecordPod},
		"the creation pod runs":                           {state: requested(step(pavv1.BucketCreating), thePod(runs)), want: rule.Done},
		"the creation pod succeeded, and says nothing":    {state: requested(step(pavv1.BucketCreating), thePod(ended(0))), want: rule.Wait, reason: "PodReporting"},
		"the creation pod succeeded":                      {state: requested(step(pavv1.BucketCreating), thePod(ended(0), result("{}"))), want: stepRecordCreated},
		"the creation pod is ready, and goes on":          {state: requested(step(pavv1.BucketCreating), thePod(runs, result(`{"ready":true}`))), want: rule.Done},
		"the creation pod was ready, and failed":          {state: requested(step(pavv1.BucketCreating), thePod(ended(1), result(`{"ready":true}`))), want: stepRecordCreated},
		"the creation pod failed":                         {state: requested(step(pavv1.BucketCreating), thePod(ended(1), result("{}"))), want: stepRecordFailure},
		"the creation pod was removed":                    {state: requested(step(pavv1.BucketCreating)), want: stepRecordFailure},
		"the creation pod's definition is gone in time":   {state: requested(step(pavv1.BucketCreating), intended, func(s *state) { s.provisioner = nil }), want: stepDropPod},
		"a pod that is not recorded runs":                 {state: requested(func(s *state) { step(pavv1.BucketCreating)(s); thePod(runs)(s); s.record.Status.Pod = nil }), want: rule.Wait, reason: "PodStopping"},
		"the creation is being reverted":                  {state: requested(step(pavv1.BucketReverting), thePod(runs)), want: rule.Done},
		"the creation was reverted":                       {state: requested(step(pavv1.BucketReverting), thePod(ended(0))), want: stepReverted},
		"what is to be reverted is another's by now":      {state: requested(step(pavv1.BucketReverting), func(s *state) { s.record.Status.Pod, s.owner = nil, "b-2" }), want: stepReverted},
		"there is nothing to revert with":                 {state: requested(step(pavv1.BucketReverting), func(s *state) { s.record.Status.Pod, s.provisioner = nil, nil }), want: rule.Wait, reason: "NoProvisioner"},
		"the definition has no deletion pod for a revert": {state: requested(step(pavv1.BucketReverting), func(s *state) { s.record.Status.Pod, s.provisioner.Spec.BucketDeletion = nil, nil }), want: stepReverted},

		"it is ready": {state: ready(), want: rule.Done},
		"its claim asks for more, which has no effect":  {state: ready(asksForMore), want: rule.Done},
		"its claim asks for more":                       {state: ready(asksForMore, updatable), want: stepUpdate},
		"its update failed just now":                    {state: ready(asksForMore, updatable, failed(0), func(s *state) { s.record.Status.Phase = pavv1.BucketReady }), want: rule.Done},
		"the update pod succeeded":                      {state: ready(asksForMore, updatable, step(pavv1.BucketUpdating), thePod(ended(0))), want: stepRecordUpdated},
		"the update pod failed":                         {state: ready(asksForMore, updatable, step(pavv1.BucketUpdating), thePod(ended(1))), want: stepRecordFailure},
		"the claim wants what it had before after all":  {state: ready(updatable, step(pavv1.BucketUpdating), intended), want: stepDropPod},
		"its PavBucket is deleted by hand":              {state: ready(deletedByHand), want: rule.Wait, reason: "InUse"},
		"it was restored":                               {state: ready(func(s *state) { s.record.Status.RecordUID = "former" }), want: rule.Wait, reason: "Restored"},
		"it was restored, and its claim is gone":        {state: ready(released, func(s *state) { s.record.Status.RecordUID = "former" }), want: rule.Wait, reason: "Restored"},
		"it was restored, and its PavBucket is deleted": {state: ready(deletedByHand, func(s *state) { s.record.Status.RecordUID = "former" }), want: stepForget},

		"its claim goes before anything was done":           {state: requested(released), want: stepForget},
		"its claim goes while a pod waits":                  {state: requested(released, step(pavv1.BucketCreating), intended), want: stepDropPod},
		"its claim goes while the creation pod runs":        {state: requested(released, step(pavv1.BucketCreating), thePod(runs)), want: rule.StopPod},
		"its claim goes before the pod is reported":         {state: requested(released, step(pavv1.BucketCreating), thePod(ended(0))), want: rule.Wait, reason: "PodReporting"},
		"its claim goes after the creation pod":             {state: requested(released, step(pavv1.BucketCreating), thePod(ended(0), result("{}"))), want: stepRevert},
		"its claim goes, and it may exist":                  {state: requested(released, chosen, func(s *state) { s.record.Status.MayExist = true }), want: stepRetain},
		"its claim goes":                                    {state: ready(released), want: stepMarkDeleting},
		"its claim goes, and it is accessed":                {state: ready(released, func(s *state) { s.accesses = []string{"a-1"} }), want: rule.Wait, reason: "StillAccessed"},
		"its claim goes, and it is to be retained":          {state: ready(released, keeps), want: stepRetain},
		"its claim goes, and nobody proved whose it is":     {state: ready(released, chosen, func(s *state) { s.record.Status.Created = false }), want: stepRetain},
		"its claim goes, and it existed before":             {state: ready(released, func(s *state) { s.record.Spec.ExistingBucketID, s.record.Status.Created = "b", false }), want: stepForget},
		"it is to be deleted":                               {state: ready(released, dying), want: stepDelete},
		"it is to be deleted, and another has it":           {state: ready(released, dying, func(s *state) { s.owner = "b-2" }), want: rule.Wait, reason: "StillInUse"},
		"it is to be retained after all":                    {state: ready(released, dying, keeps), want: stepRetain},
		"it is to be retained, and another has it":          {state: ready(released, dying, keeps, func(s *state) { s.owner = "b-2" }), want: stepRetain},
		"it is to be retained, and its deletion failed":     {state: ready(released, dying, keeps, func(s *state) { s.record.Status.DeletionAttempt = 1 }), want: stepRetain},
		"it is to be retained while its deletion pod waits": {state: ready(released, dying, keeps, step(pavv1.BucketDeletingStep), intended), want: stepDropPod},
		"it is to be retained while its deletion pod runs":  {state: ready(released, dying, keeps, step(pavv1.BucketDeletingStep), thePod(runs)), want: rule.Done},
		"it is to be deleted, and is accessed after all":    {state: ready(released, dying, func(s *state) { s.accesses = []string{"a-1"} }), want: rule.Wait, reason: "StillAccessed"},
		"it is to be deleted without a provisioner":         {state: ready(released, dying, func(s *state) { s.provisioner = nil }), want: rule.Wait, reason: "NoProvisioner"},
		"it is to be deleted, and nothing deletes it":       {state: ready(released, dying, func(s *state) { s.provisioner.Spec.BucketDeletion = nil }), want: stepMarkDeleted},
		"the deletion pod runs":                             {state: ready(released, dying, step(pavv1.BucketDeletingStep), thePod(runs)), want: rule.Done},
		"the deletion pod succeeded":                        {state: ready(released, dying, step(pavv1.BucketDeletingStep), thePod(ended(0))), want: stepMarkDeleted},
		"the deletion pod failed":                           {state: ready(released, dying, step(pavv1.BucketDeletingStep), thePod(ended(1), result("{}"))), want: stepRecordFailure},
		"it is deleted":                                     {state: ready(released, dying, func(s *state) { s.record.Status.Step = pavv1.BucketDeletedStep }), want: stepForget},
		"it is retained, and its record is held":            {state: ready(released, func(s *state) { s.record.Status.Phase = pavv1.BucketRetained }), want: stepRelease},
		"it is retained":                                    {state: ready(released, func(s *state) { s.record.Status.Phase, s.record.Finalizers = pavv1.BucketRetained, nil }), want: rule.Done},
		"its claim goes while the update pod runs":          {state: ready(released, updatable, asksForMore, step(pavv1.BucketUpdating), thePod(runs)), want: rule.StopPod},
		"its claim goes while the update pod is stopped":    {state: ready(released, updatable, asksForMore, step(pavv1.BucketUpdating), thePod(ended(1))), want: stepMarkDeleting},
		"its claim goes while a validation pod has ended":   {state: requested(released, step(pavv1.BucketValidating), thePod(ended(0))), want: stepRevert},
		"the name is another's, and its claim goes":         {state: requested(released, chosen, func(s *state) { s.holder = "b-2" }), want: stepForget},
		"its claim goes, it may exist, and access is asked": {state: requested(released, func(s *state) { s.record.Status.MayExist, s.accesses = true, []string{"a"} }), want: rule.Wait, reason: "StillAccessed"},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(test.state.observation)
			if d.Step != test.want || d.Reason != test.reason {
				t.Errorf("decided %s (%s) by the rule %q; want %s (%s)", d.Step, d.Reason, d.Rule, test.want, test.reason)
			}
		})
	}
}

func asksForMore(s *state) { s.record.Spec.AdditionalConfig = map[string]string{"maxSize": "2Gi"} }

func updatable(s *state) {
	s.provisioner.Spec.BucketUpdate = &pavv1.BucketUpdate{PodTemplate: &pavv1.Template{Raw: []byte(`{}`)}}
}

func keeps(s *state) { s.record.Spec.ReclaimPolicy = pavv1.BucketRetain }

func dying(s *state) { s.record.Status.Phase = pavv1.BucketDeleting }

// Of two records of one bucket, one has it: the one whose bucket it is, or else the one that has begun, or else the older.
func TestHolderIn(t *testing.T) {
	bucket := func(name string, at time.Duration, edits ...func(*pavv1.PavBucket)) pavv1.PavBucket {
		b := pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon.Add(at))}}
		b.Spec.Provisioner, b.Spec.BucketName = "p", "photos"
		for _, edit := range edits {
			edit(&b)
		}
		return b
	}
	begun := func(b *pavv1.PavBucket) { b.Status.Attempt = 1 }
	in := func(phase pavv1.BucketPhase) func(*pavv1.PavBucket) {
		return func(b *pavv1.PavBucket) { b.Status.Phase, b.Status.BucketID = phase, "photos" }
	}
	reverted := func(b *pavv1.PavBucket) {
		b.Status.Phase, b.Status.Step, b.Status.BucketID = pavv1.BucketPending, pavv1.BucketReverting, "photos"
	}
	existing := func(b *pavv1.PavBucket) { b.Spec.ExistingBucketID = "photos" }
	for name, test := range map[string]struct {
		one, other pavv1.PavBucket
		want       bool // whether the other has the bucket
		owns       bool // whether this one's bucket must not be deleted, since it is the other's
	}{
		"the other is older":                          {bucket("b-1", time.Second), bucket("b-2", 0), true, false},
		"the other is younger":                        {bucket("b-1", 0), bucket("b-2", time.Second), false, false},
		"both are of the same second":                 {bucket("b-1", 0), bucket("b-2", 0), false, false},
		"the other is younger, and has begun":         {bucket("b-1", 0), bucket("b-2", time.Second, begun), true, false},
		"the other is older, and this one has begun":  {bucket("b-1", time.Second, begun), bucket("b-2", 0), false, false},
		"the other is retained":                       {bucket("b-1", 0), bucket("b-2", time.Second, in(pavv1.BucketRetained)), true, true},
		"the other has it, and this one has begun":    {bucket("b-1", 0, begun), bucket("b-2", time.Second, in(pavv1.BucketReady)), true, true},
		"the other is reverted, this one has begun":   {bucket("b-1", 0, begun), bucket("b-2", time.Second, reverted), true, true},
		"both have it, and the other is younger":      {bucket("b-1", 0, in(pavv1.BucketDeleting)), bucket("b-2", time.Second, in(pavv1.BucketReady)), false, true},
		"both are deleted, and the other is younger":  {bucket("b-1", 0, in(pavv1.BucketDeleting)), bucket("b-2", time.Second, in(pavv1.BucketDeleting)), false, false},
		"both are deleted, and the other is older":    {bucket("b-1", time.Second, in(pavv1.BucketDeleting)), bucket("b-2", 0, in(pavv1.BucketDeleting)), true, true},
		"both are reverted, and the other is younger": {bucket("b-1", 0, reverted), bucket("b-2", time.Second, reverted), false, false},
		"the other only uses it":                      {bucket("b-1", time.Second), bucket("b-2", 0, begun, existing), false, false},
		"the other is in another store":               {bucket("b-1", time.Second), bucket("b-2", 0, func(b *pavv1.PavBucket) { b.Spec.Store = "s" }), false, false},
		"the other has another bucket by now":         {bucket("b-1", time.Second), bucket("b-2", 0, func(b *pavv1.PavBucket) { b.Status.BucketID = "x" }), false, false},
		"the other chose a name, and has this bucket": {bucket("b-1", time.Second), bucket("b-2", 0, func(b *pavv1.PavBucket) { b.Spec.BucketName, b.Status.BucketID = "x", "photos" }), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			records := []pavv1.PavBucket{test.one, test.other}
			got := holderIn(records, reconcile.StorageOfBucket(&test.one), &test.one) != ""
			if got != test.want {
				t.Errorf("the other has it: %t", got)
			}
			if owns := ownerIn(records, reconcile.StorageOfBucket(&test.one), &test.one) != ""; owns != test.owns {
				t.Errorf("the other has it as well: %t", owns)
			}
			if back := holderIn(records, reconcile.StorageOfBucket(&test.other), &test.other) != ""; got && back {
				t.Error("each has it, so that none can begin")
			}
		})
	}
}

// A bucket is used by the accesses of all records of it, also of those that use it as one that existed before.
func TestRecordsOf(t *testing.T) {
	bucket := func(name, id, existing string) pavv1.PavBucket {
		b := pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: name}}
		b.Spec.Provisioner, b.Spec.BucketName, b.Spec.ExistingBucketID, b.Status.BucketID = "p", id, existing, id
		return b
	}
	records := []pavv1.PavBucket{bucket("b-1", "photos", ""), bucket("b-2", "photos", "photos"), bucket("b-3", "videos", "videos"), bucket("b-4", "photos", "")}
	for i, want := range [][]string{{"b-1", "b-2"}, {"b-2"}, {"b-3"}, {"b-4", "b-2"}} {
		got := recordsOf(records, reconcile.StorageOfBucket(&records[i]), &records[i])
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("of %s (-want +got):\n%s", records[i].Name, diff)
		}
	}
}
