package volume

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/queue"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// expander returns a reconciler with the objects of an observation. Its PavVolume is the one of the API server.
func expander(t *testing.T, o *observation) *Reconciler {
	t.Helper()
	o.volume.Spec.StorageClass.Raw, o.volume.Spec.Claim.Raw = []byte(`{"metadata": {"name": "fast"}}`), []byte(`{}`)
	objects := []client.Object{o.volume, o.provisioner}
	if o.pv != nil {
		o.pv.Spec.ClaimRef.Namespace, o.pv.Spec.ClaimRef.Name = "apps", "data"
		objects = append(objects, o.pv)
	}
	if o.user != nil {
		o.user.Spec.VolumeName, o.user.Status.Phase = o.volume.Name, corev1.ClaimBound
		objects = append(objects, o.user)
	}
	c := reconciletest.Client(t, objects...)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o.volume), o.volume); err != nil {
		t.Fatal(err)
	}
	return &Reconciler{
		Client: c, Live: c, Runner: &workflow.Runner{Client: c}, Events: record.NewFakeRecorder(10), Now: func() time.Time { return noon },
		Templates: template.NewEvaluator(template.DefaultLimits()), holders: &reconcile.LiveReads{Reader: c},
		slots:      attempt.NewPool(queue.Limits{}).Of("volume", func(string) {}),
		rejections: workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute),
	}
}

// Whatever a pod has reached, the recorded capacity never becomes less.
func TestGrown_NeverLowersTheCapacity(t *testing.T) {
	for target, want := range map[string]string{"3Gi": "3Gi", "1Gi": "2Gi"} {
		o := growing().with(capacityIs("2Gi")).o
		r := expander(t, &o)
		q := resource.MustParse(target)
		if err := r.grown(t.Context(), o, nothing, q.Value()); err != nil {
			t.Fatal(err)
		}
		if got := o.volume.Status.Capacity.String(); got != want || o.volume.Status.Expansion != nil || o.volume.Status.Pod != nil {
			t.Errorf("expanded to %s, it has %s (%+v), want %s", target, got, o.volume.Status.Expansion, want)
		}
	}
}

// The PersistentVolume of a volume that has grown was released before the new capacity was written to it.
func TestMarkReady_KeepsWhatTheVolumeHasGrownTo(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*observation)
		want   string
	}{
		"retained, and bound again":      {change: func(o *observation) { o.volume.Status.Phase = pavv1.VolumeRetained }, want: "2Gi"},
		"a record that was restored":     {change: func(o *observation) { o.volume.Status.RecordUID = "another" }, want: "1Gi"},
		"a volume that never was in use": {change: func(o *observation) { o.volume.Status.Phase = pavv1.VolumePending }, want: "1Gi"},
		"a PersistentVolume of more size": {change: func(o *observation) {
			o.volume.Status.Phase = pavv1.VolumeRetained
			o.pv.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("3Gi")
		}, want: "3Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			o := growable("1Gi").with(recordedIs("2Gi")).with(test.change).o
			r := expander(t, &o)
			if err := r.markReady(t.Context(), o, decision{Step: stepMarkReady}); err != nil {
				t.Fatal(err)
			}
			if got := o.volume.Status.Capacity.String(); got != test.want {
				t.Errorf("it has %s, want %s", got, test.want)
			}
		})
	}
}

func TestFailExpansion_RecordsWhatIsNotKnown(t *testing.T) {
	podless := &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowExpansion, Reason: pavv1.FailureQuotaExceeded}
	for name, test := range map[string]struct {
		state   *state
		failure *pavv1.WorkflowFailure
		want    bool
	}{
		"the pod failed by itself":                              {state: growing().with(lostPod).pod(9, ended(corev1.PodFailed, 1), reported), want: false},
		"the pod is gone":                                       {state: growing().with(vanishedPod), want: true},
		"the pod was deleted":                                   {state: growing().pod(9, ended(corev1.PodFailed, 1), reported, deletedAgo(2)), want: true},
		"the pod was evicted":                                   {state: growing().pod(9, ended(corev1.PodFailed, 1), reported, func(p *corev1.Pod) { p.Status.Reason = "Evicted" }), want: true},
		"no other pod could be created":                         {state: growing(), failure: podless, want: false},
		"no other pod could be created, and one is gone":        {state: growing().with(lostPod), failure: podless, want: true},
		"the pod wrote a capacity that is too small, and ended": {state: growing().pod(9, ended(corev1.PodSucceeded, 1), reported), failure: &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowExpansion, PodName: "pod", Reason: pavv1.FailureOutputInvalid}, want: false},
		"the pod was evicted before it started":                 {state: growing().pod(9, func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" }), want: false},
		"someone has removed the record":                        {state: growing().with(vanishedPod).with(func(o *observation) { o.volume.Status.Expansion = nil }), want: false},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.state.o
			r := expander(t, &o)
			failure := test.failure
			if failure == nil {
				failure = o.attempt().Failure(pavv1.WorkflowExpansion)
			}
			if err := r.failChange(t.Context(), o, failure, nothing); err != nil {
				t.Fatal(err)
			}
			e := o.volume.Status.Expansion
			if got := e != nil && e.Uncertain; got != test.want || o.volume.Status.Pod != nil || o.volume.Status.Step != "" {
				t.Errorf("uncertain: %t, want %t; pod %v in the step %q", got, test.want, o.volume.Status.Pod, o.volume.Status.Step)
			}
		})
	}
}

// The definition is changed after the pod was recorded, and before it is created.
func TestRunPod_OfAnExpansion_RecordsTheCapacityOfItsDefinition(t *testing.T) {
	for name, test := range map[string]struct {
		recorded *resource.Quantity
		defined  *pavv1.Template
		want     string
	}{
		"another capacity": {recorded: ptrQuantity("4Gi"), defined: field(`"3Gi"`), want: "3Gi"},
		"no capacity":      {recorded: ptrQuantity("4Gi"), want: "<nil>"},
		"a capacity":       {defined: field(`"3Gi"`), want: "3Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			o := growing().with(func(o *observation) {
				o.volume.Status.Expansion.Capacity = test.recorded
				o.provisioner.Spec.VolumeExpansion = &pavv1.VolumeExpansion{Capacity: test.defined, PodTemplate: field(`{"spec": {"containers": [{"name": "main", "image": "none"}]}}`)}
			}).o
			r := expander(t, &o)
			if pod, _, err := r.preparePod(t.Context(), o); !errors.Is(err, reconcile.ErrStale) {
				t.Fatalf("got pod %v, error %v", pod, err)
			}
			if got := o.volume.Status.Expansion.Capacity.String(); got != test.want {
				t.Errorf("the recorded capacity is %s, want %s", got, test.want)
			}
			if pod, _, err := r.preparePod(t.Context(), o); err != nil || pod == nil {
				t.Errorf("the next pass makes no pod: %v", err)
			}
		})
	}
}

// A node may report what a pod left after the failure was recorded, with or without a text.
func TestRecordLateMessage_RecordsTheCapacity(t *testing.T) {
	for name, test := range map[string]struct{ result, want, says string }{
		"a capacity":                          {result: `{"capacity": "3Gi"}`, want: "3Gi"},
		"a capacity and a text":               {result: `{"capacity": "3Gi", "error": "no room"}`, want: "3Gi", says: "no room"},
		"a text":                              {result: `{"error": "no room"}`, want: "<nil>", says: "no room"},
		"no more than the volume has, anyway": {result: `{"capacity": "1Gi", "error": "no room"}`, want: "<nil>", says: "no room"},
	} {
		t.Run(name, func(t *testing.T) {
			o := growing().pod(9, ended(corev1.PodFailed, 6)).with(toldLate).o
			o.pods[0].Annotations[pavv1.ResultAnnotation] = test.result
			r := expander(t, &o)
			if err := r.recordLateMessage(t.Context(), o, decision{}); err != nil {
				t.Fatal(err)
			}
			status := &o.volume.Status
			if got := status.AttemptedCapacity.String(); got != test.want {
				t.Errorf("it may have %s, want %s", got, test.want)
			}
			if failure := status.Expansion.Failure; !strings.Contains(failure.Message, test.says) {
				t.Errorf("the failure says %q, want %q", failure.Message, test.says)
			}
			if o.isReportedLate() {
				t.Error("the next pass records it again")
			}
		})
	}
}

func TestExpanding_RecordsWhoAsked(t *testing.T) {
	o := growable("2Gi").o
	expanding(o, *o.requested())(&o.volume.Status)
	if got := o.volume.Status.Expansion.ClaimUID; got != "u1" {
		t.Errorf("an attempt is that of claim %q", got)
	}
	held := growable("2Gi").with(offline).with(shown).o
	r := expander(t, &held)
	if err := r.hold(t.Context(), held, decide(held)); err != nil {
		t.Fatal(err)
	}
	if e := held.volume.Status.Expansion; e == nil || e.ClaimUID != "u1" || !e.Offline {
		t.Errorf("the nodes leave the volume alone for %+v", e)
	}
}

// A volume that no pod can use until an expansion is completed says so.
func TestFailExpansion_SaysThatNodesLeaveTheVolumeAlone(t *testing.T) {
	for name, test := range map[string]struct {
		state *state
		want  bool
	}{
		"a pod was lost, and the next one cannot be made": {state: growable("2Gi").with(offline).with(held).with(lostPod), want: true},
		"no pod was lost": {state: growable("2Gi").with(offline).with(held)},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.state.o
			r := expander(t, &o)
			failure := &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowExpansion, Reason: pavv1.FailureRefused, Message: "spec.volumeExpansion.podTemplate: no image"}
			if err := r.failChange(t.Context(), o, failure, nothing); err != nil {
				t.Fatal(err)
			}
			c := meta.FindStatusCondition(o.volume.Status.Conditions, pavv1.VolumeExpanded)
			if c == nil || strings.Contains(c.Message, untilGrown) != test.want || o.volume.Status.Expansion.Offline != test.want {
				t.Errorf("the condition is %+v", c)
			}
		})
	}
}
