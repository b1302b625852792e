package access

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/queue"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/controller/turn"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// stray adds a pod of account 1 that the record does not name, and nobody has let go.
func stray(of string, edits ...func(*corev1.Pod)) edit {
	return func(s *state) {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: workflow.DefaultNamespace, Name: "stray", UID: "stray", CreationTimestamp: metav1.NewTime(noon.Add(-time.Minute)),
			Labels:          map[string]string{pavv1.WorkflowLabel: of, pavv1.ProvisionerLabel: "p"},
			Annotations:     map[string]string{pavv1.AttemptAnnotation: "2", pavv1.AccountAnnotation: "1"},
			Finalizers:      []string{pavv1.PodFinalizer},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: pavv1.GroupVersion.String(), Kind: kind, Name: s.record.Name, UID: s.record.UID, Controller: new(true)}},
		}}
		pod.Spec.Containers, pod.Spec.RestartPolicy, pod.Spec.NodeName = []corev1.Container{{Name: "main"}}, corev1.RestartPolicyNever, "node"
		for _, edit := range edits {
			edit(&pod)
		}
		s.Pods, s.record.Status.Pods = append(s.Pods, pod), 2
	}
}

func letGo(pod *corev1.Pod) { pod.Finalizers = nil }

func neverBound(pod *corev1.Pod) {
	pod.Spec.NodeName, pod.DeletionTimestamp = "", new(metav1.NewTime(noon))
}

func failure(s *state) {
	failed(0)(s)
	s.record.Status.Failure.PodNamespace, s.record.Status.Failure.PodName = workflow.DefaultNamespace, "stray"
}

// A former leader that stalled creates a pod which the present one has removed from the record: no attempt begins before it has ended and
// its account is recorded, and the record does not go.
func TestDecide_AboutAPodThatIsNotRecorded(t *testing.T) {
	const grant, revocation = pavv1.WorkflowGrant, pavv1.WorkflowRevocation
	reported := result(`{"accountId":"made"}`)
	for name, test := range map[string]struct {
		state  state
		want   rule.Step
		reason string
	}{
		"it runs, and access is requested":              {state: requested(stray(grant, runs)), want: rule.Wait, reason: "PodStopping"},
		"it runs, and clients have access":              {state: granted(stray(grant, runs)), want: rule.Done},
		"it runs, and the access is not wanted":         {state: requested(released, stray(grant, runs)), want: rule.Wait, reason: "PodStopping"},
		"its node has to report":                        {state: requested(stray(grant, ended(0))), want: rule.Wait, reason: "PodReporting"},
		"its node has to report before the record goes": {state: requested(released, stray(grant, ended(1))), want: rule.Wait, reason: "PodReporting"},
		"its node is gone":                              {state: requested(stray(grant, ended(1)), func(s *state) { s.GoneNodes = []string{"node"} }), want: stepSettle},
		"it has ended":                                  {state: requested(stray(grant, ended(0), reported)), want: stepSettle},
		"it has failed":                                 {state: requested(stray(grant, ended(1), reported)), want: stepSettle},
		"it has ended, and clients have access":         {state: granted(stray(grant, ended(0), reported)), want: stepSettle},
		"it has ended, and the access is not wanted":    {state: requested(released, stray(grant, ended(0), reported)), want: stepSettle},
		"it has ended while another grant pod waits":    {state: requested(granting, intended, func(s *state) { s.record.Status.Granting.Number = 2 }, stray(grant, ended(0), reported)), want: stepSettle},
		"it has ended while a revocation pod runs":      {state: granted(revoking, thePod(runs), func(s *state) { s.record.Status.Former[0].Number = 2 }, stray(grant, ended(0), reported)), want: stepSettle},
		"its account is recorded":                       {state: requested(stray(grant, ended(0), reported), former(account(1, neverGranted))), want: stepRevoke},
		"its account is that of clients":                {state: granted(stray(grant, ended(0), reported), func(s *state) { s.record.Status.Current.Number = 1 }), want: rule.Done},
		"its failure is recorded":                       {state: requested(stray(grant, ended(1), reported), failure), want: rule.Done},
		"it was let go":                                 {state: requested(stray(grant, ended(0), reported, letGo)), want: stepGrant},
		"it never ran":                                  {state: requested(stray(grant, neverBound)), want: stepGrant},
		"it has changed nothing":                        {state: requested(stray(grant, ended(1), result(`{"infeasible":"no"}`))), want: stepGrant},
		"it does not say which account it is about":     {state: requested(stray(grant, ended(0), reported, func(p *corev1.Pod) { delete(p.Annotations, pavv1.AccountAnnotation) })), want: stepGrant},
		"a revocation pod of an account that is gone":   {state: granted(stray(revocation, runs)), want: stepSettle},
		"a revocation pod of an account that is there":  {state: granted(stray(revocation, runs), former(account(1, neverGranted))), want: rule.Wait, reason: "PodStopping"},
		"a revocation pod that has ended":               {state: granted(stray(revocation, ended(0))), want: rule.Done},
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

// world is an API server with an access, and a reconciler of it.
type world struct {
	*Reconciler
	kube   client.Client
	events *record.FakeRecorder
	name   string
}

// requesterOf is the object that asks for access.
func requesterOf(uid types.UID) *objectbucketv1.ObjectBucketClaim {
	return &objectbucketv1.ObjectBucketClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "photos", UID: uid}}
}

func newWorld(t *testing.T, s state, others ...client.Object) *world {
	t.Helper()
	objects := append([]client.Object{s.record}, others...)
	if !s.requesterGone {
		objects = append(objects, requesterOf(s.record.Spec.Requester.UID))
	}
	for i := range s.Pods {
		objects = append(objects, &s.Pods[i])
	}
	for _, bucket := range s.buckets {
		objects = append(objects, bucket)
	}
	kube := reconciletest.Client(t, append(objects, s.provisioner)...)
	w := &world{kube: kube, events: record.NewFakeRecorder(100), name: s.record.Name}
	w.Reconciler = &Reconciler{
		Client: kube, Live: kube, Secrets: answersDryRuns(kube), Runner: &workflow.Runner{Client: kube}, Events: w.events, Now: func() time.Time { return noon },
		Templates: template.NewEvaluator(template.DefaultLimits()),
		Pool:      attempt.NewPool(queue.Limits{Overall: 10, PerProvisioner: 10}), Turns: turn.New(func(string) {}), AdoptOthers: func(context.Context) error { return nil },
	}
	w.prepare()
	return w
}

// pass lets the reconciler look at the access once.
func (w *world) pass(t *testing.T) {
	t.Helper()
	request := ctrl.Request{}
	request.Name = w.name
	if _, err := w.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
}

func (w *world) pod(t *testing.T) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	err := w.kube.Get(t.Context(), client.ObjectKey{Namespace: workflow.DefaultNamespace, Name: "stray"}, pod)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func (w *world) record(t *testing.T) *pavv1.PavBucketAccess {
	t.Helper()
	record := &pavv1.PavBucketAccess{}
	if err := w.kube.Get(t.Context(), client.ObjectKey{Name: w.name}, record); err != nil {
		t.Fatal(err)
	}
	return record
}

// told reports whether an event has a text.
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

// The account is recorded before the pod goes, and its key goes as well.
func TestSettle_RecordsTheAccountBeforeThePodGoes(t *testing.T) {
	for name, test := range map[string]struct {
		told string
		want string // the account that is revoked
	}{
		"the pod told its account":       {told: `{"accountId":"made"}`, want: "made"},
		"the pod told nothing":           {told: `{}`, want: "ba-u-1"},
		"the pod told another's account": {told: `{"accountId":"other"}`, want: "ba-u-1"},
	} {
		t.Run(name, func(t *testing.T) {
			other := accessTo("a-other", pavv1.AccessReadWrite, new(account(0, called("other"))), nil, "b")
			other.Spec.Provisioner, other.Labels = "p", map[string]string{pavv1.ProvisionerLabel: "p"}
			key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: pavv1.CredentialsNamespace, Name: "seal-record-2"}}
			w := newWorld(t, granted(stray(pavv1.WorkflowGrant, ended(0), result(test.told))), &other, key)
			w.pass(t)
			former := w.record(t).Status.Former
			if len(former) != 1 || former[0].Number != 1 || idOf(&former[0]) != test.want || former[0].GrantedAt != nil || former[0].RevokeAfter.After(noon) {
				t.Fatalf("the former accounts are %+v", former)
			}
			if accounts := w.record(t).Status.Accounts; accounts != 2 {
				t.Errorf("%d accounts were recorded", accounts)
			}
			if w.pod(t) == nil {
				t.Error("the pod is gone already")
			}
			if err := w.kube.Get(t.Context(), client.ObjectKeyFromObject(key), key); !apierrors.IsNotFound(err) {
				t.Errorf("its key is left: %v", err)
			}
			if !w.told(test.want) {
				t.Error("there is no event")
			}
			o, err := w.gather(t.Context(), w.record(t))
			if err == nil {
				err = w.runs.Sweep(t.Context(), o.record, o.Found)
			}
			if err != nil || w.pod(t) != nil {
				t.Errorf("the pod is left: %v", err)
			}
		})
	}
}

// A stray pod that runs is stopped, keeps its finalizer, and has its turn with the buckets meanwhile.
func TestReconcile_StopsAPodThatIsNotRecorded(t *testing.T) {
	s := granted(stray(pavv1.WorkflowGrant, runs))
	w := newWorld(t, s)
	w.pass(t)
	pod := w.pod(t)
	if pod == nil || pod.DeletionTimestamp == nil || !slices.Contains(pod.Finalizers, pavv1.PodFinalizer) {
		t.Errorf("the pod is %+v", pod)
	}
	if w.Turns.Take("another", keys(s.buckets)) {
		t.Error("another pod may work on the bucket")
	}
}

// The cache is behind: there is a pod that it does not show. The record stays.
func TestForget_WhileAPodExistsThatTheCacheDoesNotHave(t *testing.T) {
	s := requested(released, func(s *state) { s.record.Status.Pods = 1 })
	late := s.with(stray(pavv1.WorkflowGrant, runs)).Pods[0]
	w := newWorld(t, s.with(func(s *state) { s.Pods = nil }))
	behind := w.kube
	w.Live = reconciletest.Client(t, w.record(t), s.provisioner, &late)
	w.runs.Live = w.Live
	request := ctrl.Request{}
	request.Name = w.name
	result, err := w.Reconcile(t.Context(), request)
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("got %+v, %v, want another look", result, err)
	}
	record := &pavv1.PavBucketAccess{}
	if err := behind.Get(t.Context(), client.ObjectKey{Name: w.name}, record); err != nil || len(record.Finalizers) == 0 {
		t.Errorf("the record is forgotten: %v", err)
	}
}

// The record is gone before the pod comes: nothing can revoke its account, which the administrator is told of before the pod goes.
func TestReconcile_OfAPodWhoseRecordIsGone(t *testing.T) {
	for name, test := range map[string]struct {
		pod  edit
		want string // the account that the event names, or "" for no event
	}{
		"it told its account":  {pod: stray(pavv1.WorkflowGrant, ended(0), result(`{"accountId":"made"}`)), want: `account "made" may exist`},
		"it told nothing":      {pod: stray(pavv1.WorkflowGrant, ended(1)), want: `account "ba-u-1" may exist`},
		"it never ran":         {pod: stray(pavv1.WorkflowGrant, neverBound)},
		"it was let go":        {pod: stray(pavv1.WorkflowGrant, ended(0), letGo)},
		"it revoked something": {pod: stray(pavv1.WorkflowRevocation, ended(0))},
	} {
		t.Run(name, func(t *testing.T) {
			s := requested(test.pod)
			w := newWorld(t, s)
			record := w.record(t)
			record.Finalizers = nil
			if err := w.kube.Update(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			if err := w.kube.Delete(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			w.pass(t)
			if w.pod(t) != nil {
				t.Error("the pod is left")
			}
			if test.want != "" && !w.told(test.want) {
				t.Error("no event says so")
			} else if test.want == "" && w.told("may exist") {
				t.Error("an event says that an account may exist")
			}
		})
	}
}
