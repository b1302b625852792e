package bucket

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/queue"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/controller/turn"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// stray adds a creation pod that the record does not name, and nobody has let go.
func stray(edits ...func(*corev1.Pod)) edit {
	return func(s *state) {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: workflow.DefaultNamespace, Name: "stray", UID: "stray", CreationTimestamp: metav1.NewTime(noon.Add(-time.Minute)),
			Labels:          map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowBucketCreation, pavv1.ProvisionerLabel: "p"},
			Annotations:     map[string]string{pavv1.AttemptAnnotation: "1"},
			Finalizers:      []string{pavv1.PodFinalizer},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: pavv1.GroupVersion.String(), Kind: kind, Name: s.record.Name, UID: s.record.UID, Controller: new(true)}},
		}}
		pod.Spec.Containers, pod.Spec.RestartPolicy, pod.Spec.NodeName = []corev1.Container{{Name: "main"}}, corev1.RestartPolicyNever, "node"
		for _, edit := range edits {
			edit(&pod)
		}
		s.Pods = append(s.Pods, pod)
		s.record.Status.Pods = max(s.record.Status.Pods, 1)
	}
}

// ofClaim lets the name of the bucket say whose it is.
func ofClaim(s *state) { s.record.Spec.BucketName = "photos-claim" }

func planned(id string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations[pavv1.PlannedBucketAnnotation] = id }
}

func letGo(pod *corev1.Pod) { pod.Finalizers = nil }

func neverBound(pod *corev1.Pod) {
	pod.Spec.NodeName, pod.DeletionTimestamp = "", new(metav1.NewTime(noon))
}

func mayExist(s *state) { s.record.Status.MayExist, s.record.Status.MayExistID = true, "photos-uid" }

func failureOfStray(s *state) {
	failed(0)(s)
	s.record.Status.Failure.PodNamespace, s.record.Status.Failure.PodName = workflow.DefaultNamespace, "stray"
}

// A former leader that stalled creates a pod which the present one has removed from the record: nothing begins before it has ended and its
// bucket is recorded, and the record does not go.
func TestDecide_AboutAPodThatIsNotRecorded(t *testing.T) {
	for name, test := range map[string]struct {
		state  state
		want   rule.Step
		reason string
	}{
		"it runs":                                       {state: requested(stray(runs)), want: rule.Wait, reason: "PodStopping"},
		"it runs, and the claim goes":                   {state: requested(released, stray(runs)), want: rule.Wait, reason: "PodStopping"},
		"its node has to report":                        {state: requested(stray(ended(0))), want: rule.Wait, reason: "PodReporting"},
		"its node has to report, and the claim goes":    {state: requested(released, stray(ended(0))), want: rule.Wait, reason: "PodReporting"},
		"its node is gone":                              {state: requested(stray(ended(0)), func(s *state) { s.GoneNodes = []string{"node"} }), want: stepSettle},
		"it has ended":                                  {state: requested(stray(ended(0), result("{}"))), want: stepSettle},
		"it has failed":                                 {state: requested(stray(ended(1), result("{}"))), want: stepSettle},
		"it has ended, and the claim goes":              {state: requested(released, stray(ended(0), result("{}"))), want: stepSettle},
		"it has ended while another creation pod runs":  {state: requested(step(pavv1.BucketCreating), thePod(runs), stray(ended(0), result("{}"))), want: rule.Done},
		"it has ended while another one waits":          {state: requested(step(pavv1.BucketCreating), intended, stray(ended(0), result("{}"))), want: rule.RunPod},
		"its bucket is ready":                           {state: ready(stray(ended(0), result("{}"))), want: rule.Done},
		"another bucket is ready":                       {state: ready(stray(ended(0), result(`{"bucketId":"other"}`))), want: stepSettle},
		"another bucket was planned":                    {state: ready(stray(ended(0), result("{}"), planned("other"))), want: stepSettle},
		"its bucket may exist":                          {state: requested(failed(0), mayExist, stray(ended(0), result("{}"))), want: rule.Done},
		"another bucket may exist":                      {state: requested(failed(0), mayExist, stray(ended(0), result(`{"bucketId":"other"}`))), want: stepSettle},
		"its bucket may exist, and it says whose it is": {state: requested(failed(0), mayExist, stray(ended(0), result(`{"created":true}`))), want: stepSettle},
		"its bucket is the claim's, and is reverted":    {state: requested(ofClaim, step(pavv1.BucketReverting), thePod(runs), func(s *state) { s.record.Status.BucketID = "photos-claim" }, stray(ended(0), result("{}"))), want: rule.Done},
		"its bucket is to be deleted":                   {state: ready(released, dying, stray(ended(0), result("{}"))), want: stepDelete},
		"its bucket was deleted":                        {state: ready(released, dying, func(s *state) { s.record.Status.Step = pavv1.BucketDeletedStep }, stray(ended(0), result("{}"))), want: stepSettle},
		"it runs, and its bucket was deleted":           {state: ready(released, dying, func(s *state) { s.record.Status.Step = pavv1.BucketDeletedStep }, stray(runs)), want: rule.Wait, reason: "PodStopping"},
		"its failure is recorded":                       {state: requested(failureOfStray, stray(ended(1), result("{}"))), want: rule.Done},
		"it was let go":                                 {state: requested(stray(ended(0), result("{}"), letGo)), want: stepBegin},
		"it never ran":                                  {state: requested(stray(neverBound)), want: stepBegin},
		"it has changed nothing":                        {state: requested(stray(ended(1), result(`{"infeasible":"no"}`))), want: stepBegin},
		"it has deleted something":                      {state: requested(stray(ended(0), result("{}"), func(p *corev1.Pod) { p.Labels[pavv1.WorkflowLabel] = pavv1.WorkflowBucketDeletion })), want: stepBegin},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(test.state.observation)
			if d.Step != test.want || d.Reason != test.reason {
				t.Errorf("decided %s (%s) by the rule %q; want %s (%s)", d.Step, d.Reason, d.Rule, test.want, test.reason)
			}
			if d.Reason == "PodReporting" && (d.After == 0 || d.After > attempt.ResultDelay) {
				t.Errorf("the next look is after %s", d.After)
			}
		})
	}
}

// world is an API server with a bucket, and a reconciler of it.
type world struct {
	*Reconciler
	kube   client.Client
	events *record.FakeRecorder
	name   string
}

func newWorld(t *testing.T, s state, others ...client.Object) *world {
	t.Helper()
	objects := append([]client.Object{s.record, s.provisioner}, others...)
	for i := range s.Pods {
		objects = append(objects, &s.Pods[i])
	}
	s.record.Labels = map[string]string{pavv1.ProvisionerLabel: "p"}
	kube := reconciletest.Client(t, objects...)
	w := &world{kube: kube, events: record.NewFakeRecorder(100), name: s.record.Name}
	w.Reconciler = &Reconciler{
		Client: kube, Live: kube, Runner: &workflow.Runner{Client: kube}, Events: w.events, Now: func() time.Time { return noon },
		Templates: template.NewEvaluator(template.DefaultLimits()),
		Pool:      attempt.NewPool(queue.Limits{Overall: 10, PerProvisioner: 10}), Turns: turn.New(func(string) {}), AdoptOthers: func(context.Context) error { return nil },
	}
	w.prepare()
	return w
}

// pass lets the reconciler look at the bucket once.
func (w *world) pass(t *testing.T) {
	t.Helper()
	request := ctrl.Request{}
	request.Name = w.name
	if _, err := w.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
}

func (w *world) record(t *testing.T) *pavv1.PavBucket {
	t.Helper()
	record := &pavv1.PavBucket{}
	if err := w.kube.Get(t.Context(), client.ObjectKey{Name: w.name}, record); err != nil {
		t.Fatal(err)
	}
	return record
}

// isHeld reports whether the stray pod has its finalizer.
func (w *world) isHeld(t *testing.T) bool {
	t.Helper()
	pod := &corev1.Pod{}
	err := w.kube.Get(t.Context(), client.ObjectKey{Namespace: workflow.DefaultNamespace, Name: "stray"}, pod)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil && slices.Contains(pod.Finalizers, pavv1.PodFinalizer)
}

func (w *world) told(text string) bool {
	for {
		select {
		case event := <-w.events.Events:
			if strings.Contains(event, text) {
				return true
			}
		default:
			return false
		}
	}
}

// What the pod has made is recorded, and then the pod is let go.
func TestSettle(t *testing.T) {
	holder := &pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: "b-2", Labels: map[string]string{pavv1.ProvisionerLabel: "p"}}}
	holder.Spec.Provisioner, holder.Spec.BucketName, holder.Status.Phase, holder.Status.BucketID = "p", "photos-claim", pavv1.BucketReady, "photos-claim"
	reverting := func(s *pavv1.PavBucketStatus) bool {
		return s.Step == pavv1.BucketReverting && s.BucketID == "photos-claim" && s.Created
	}
	for name, test := range map[string]struct {
		state  state
		others []client.Object
		want   func(*pavv1.PavBucketStatus) bool
		event  string
	}{
		"its name says whose it is":     {state: requested(ofClaim, stray(ended(0), result("{}"))), want: reverting},
		"the claim is gone":             {state: requested(ofClaim, released, stray(ended(0), result("{}"))), want: reverting},
		"the pod says whose it is":      {state: requested(chosen, ofClaim, stray(ended(0), result(`{"created":true}`))), want: reverting},
		"the definition planned it":     {state: requested(stray(ended(0), result(`{"bucketId":"x"}`), planned("photos-claim"))), want: reverting},
		"the pod named it":              {state: requested(stray(ended(0), result(`{"bucketId":"photos-claim"}`))), want: reverting},
		"nobody knows whose it is":      {state: requested(chosen, stray(ended(0), result("{}"))), want: func(s *pavv1.PavBucketStatus) bool { return s.MayExist && s.MayExistID == "photos-uid" && s.Step == "" }},
		"another record has it":         {state: requested(ofClaim, stray(ended(0), result("{}"))), others: []client.Object{holder}, want: func(s *pavv1.PavBucketStatus) bool { return !s.MayExist && s.Step == "" }, event: `"photos-claim", which is PavBucket "b-2"'s`},
		"it is another than the record": {state: ready(stray(ended(0), result(`{"bucketId":"other"}`))), want: func(s *pavv1.PavBucketStatus) bool { return s.BucketID == "photos-uid" }, event: `bucket "other" may exist beside "photos-uid"`},
		"it was deleted before": {state: ready(released, dying, func(s *state) { s.record.Status.Step = pavv1.BucketDeletedStep }, stray(ended(0), result("{}"))),
			want: func(s *pavv1.PavBucketStatus) bool { return s.Phase == pavv1.BucketDeleting && s.Step == "" }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.state, test.others...)
			w.pass(t)
			if status := w.record(t).Status; !test.want(&status) {
				t.Errorf("the status is %+v", status)
			}
			if w.isHeld(t) {
				t.Error("the pod is not let go")
			}
			if test.event != "" && !w.told(test.event) {
				t.Error("there is no event")
			}
		})
	}
}

// A stray pod that runs is stopped, keeps its finalizer, and has its turn with the bucket meanwhile.
func TestReconcile_StopsAPodThatIsNotRecorded(t *testing.T) {
	s := requested(stray(runs))
	w := newWorld(t, s)
	w.pass(t)
	if !w.isHeld(t) {
		t.Error("the pod is let go")
	}
	if w.Turns.Take("another", keys(s.record)) {
		t.Error("another pod may work on the bucket")
	}
}

// The record is gone before the pod comes: nothing can delete its bucket, which the administrator is told of before the pod goes.
func TestReconcile_OfAPodWhoseRecordIsGone(t *testing.T) {
	for name, test := range map[string]struct {
		pod  edit
		want string // in the event, or "" for none
	}{
		"it named its bucket":       {pod: stray(ended(0), result(`{"bucketId":"made"}`)), want: `bucket "made" may exist`},
		"the definition planned it": {pod: stray(ended(1), planned("made")), want: `bucket "made" may exist`},
		"it told nothing":           {pod: stray(ended(1)), want: "of the claim with the UID 1, which does not exist any more: a bucket may exist"},
		"it never ran":              {pod: stray(neverBound)},
		"it was let go":             {pod: stray(ended(0), letGo)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, requested(test.pod))
			record := w.record(t)
			record.Finalizers = nil
			if err := w.kube.Update(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			if err := w.kube.Delete(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			w.pass(t)
			if w.isHeld(t) {
				t.Error("the pod is not let go")
			}
			if test.want != "" && !w.told(test.want) {
				t.Error("no event says so")
			} else if test.want == "" && w.told("may exist") {
				t.Error("an event says that a bucket may exist")
			}
		})
	}
}

// The cache is behind: there is a pod that it does not show. The record stays.
func TestForget_WhileAPodExistsThatTheCacheDoesNotHave(t *testing.T) {
	s := requested(released, func(s *state) { s.record.Status.Pods = 1 })
	late := s.with(stray(runs)).Pods[0]
	w := newWorld(t, s)
	w.Live = reconciletest.Client(t, w.record(t), s.provisioner, &late)
	w.runs.Live = w.Live
	request := ctrl.Request{}
	request.Name = w.name
	result, err := w.Reconcile(t.Context(), request)
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("got %+v, %v, want another look", result, err)
	}
	if len(w.record(t).Finalizers) == 0 {
		t.Error("the record is forgotten")
	}
}

// What a creation pod has made that tells nonsense is reverted: the claim may go before the next attempt.
func TestRecordCreated_OfAPodThatTellsNonsense(t *testing.T) {
	for name, test := range map[string]struct {
		edits []edit
		want  func(*pavv1.PavBucketStatus) bool
	}{
		"its name says whose it is": {edits: []edit{ofClaim}, want: func(s *pavv1.PavBucketStatus) bool {
			return s.Step == pavv1.BucketReverting && s.BucketID == "photos-claim"
		}},
		"nobody knows whose it is": {edits: []edit{chosen}, want: func(s *pavv1.PavBucketStatus) bool { return s.Step == "" && s.MayExist }},
	} {
		t.Run(name, func(t *testing.T) {
			edits := slices.Concat(test.edits, []edit{step(pavv1.BucketCreating), stray(ended(0), result(`{"bucketId":"no such name"}`)), func(s *state) {
				s.record.Status.Pod.Name, s.record.Status.Pod.UID = "stray", "stray"
			}})
			w := newWorld(t, requested(edits...))
			w.pass(t)
			if status := w.record(t).Status; !test.want(&status) || status.Failure == nil || status.Failure.Reason != pavv1.FailureOutputInvalid {
				t.Errorf("the status is %+v", status)
			}
		})
	}
}

// A bucket that another record has is not taken from it, however old this one is: nobody reverts what its pod did there.
func TestRecordCreated_OfTheBucketOfAnother(t *testing.T) {
	holder := &pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: "b-2", CreationTimestamp: metav1.NewTime(noon), Labels: map[string]string{pavv1.ProvisionerLabel: "p"}}}
	holder.Spec.Provisioner, holder.Status.Phase, holder.Status.BucketID = "p", pavv1.BucketReady, "photos"
	w := newWorld(t, requested(step(pavv1.BucketCreating), stray(ended(0), result(`{"bucketId":"photos","created":true}`)), func(s *state) {
		s.record.Status.Pod.Name, s.record.Status.Pod.UID = "stray", "stray"
	}), holder)
	w.pass(t)
	status := w.record(t).Status
	if status.Phase != pavv1.BucketPending || status.Step != "" || status.Failure == nil || status.Failure.Reason != pavv1.FailureHandleInUse {
		t.Errorf("the status is %+v", status)
	}
}
