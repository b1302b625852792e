package volume

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
	"github.com/albertofaria/pav/internal/workflow"
)

// ready adds the result that was reported of a pod because it had created /pav/ready.
func ready(pod *corev1.Pod) {
	pod.Annotations = map[string]string{pavv1.ResultAnnotation: `{"ready": true, "handle": "h", "capacity": "1Gi"}`}
}

// goingOn returns a volume that was created, and whose creation pod goes on after /pav/ready.
func goingOn(changes ...func(*corev1.Pod)) *state {
	s := at(pavv1.StepCreating).pod(9, append([]func(*corev1.Pod){runs, ready}, changes...)...)
	status := &s.o.volume.Status
	status.CreationPod, status.Pod, status.Step, status.Handle = status.Pod, nil, "", "h"
	status.CreationPod.Due = new(ago(10))
	return s
}

func TestDecide_OfACreationPodThatIsReady(t *testing.T) {
	const creating = pavv1.StepCreating
	shared := func(o *observation) { o.others = []reconcile.Holder{{Kind: reconcile.KindPV, Name: "other"}} }
	bound := func(o *observation) {
		o.volume.Status.Phase, o.claim = pavv1.VolumeReady, claimBound
		o.pv = in(pavv1.VolumeReady, corev1.VolumeBound, deletePolicy).o.pv
	}
	since := func(seconds int) func(*observation) {
		return func(o *observation) { o.volume.Status.CreationPod.Due = new(ago(seconds)) }
	}
	for name, test := range map[string]struct {
		state *state
		want  step
		after time.Duration
	}{
		"it runs":                                    {state: at(creating).pod(9, runs, ready), want: stepRecordCreated},
		"it runs, and the claim is gone":             {state: at(creating).with(unclaimed).pod(9, runs, ready), want: stepStopPod},
		"it runs, and named another's storage":       {state: at(creating).pod(9, runs, ready).with(shared), want: stepDone},
		"it is being deleted":                        {state: at(creating).pod(9, runs, ready, deletedAgo(1)), want: stepDone},
		"it has failed since":                        {state: at(creating).pod(9, ended(corev1.PodFailed, 1), ready), want: stepRecordCreated},
		"it was deleted, and has ended":              {state: at(creating).pod(9, ended(corev1.PodFailed, 1), ready, deletedAgo(1)), want: stepRecordCreated},
		"it has failed, and the claim is gone":       {state: at(creating).with(unclaimed).pod(9, ended(corev1.PodFailed, 1), ready), want: stepRevert},
		"a deletion pod creates /pav/ready":          {state: at(pavv1.StepDeleting).pod(9, runs, ready), want: stepDone},
		"created, and it goes on":                    {state: goingOn(), want: stepWritePV},
		"created, and it has ended":                  {state: goingOn(ended(corev1.PodSucceeded, 1)), want: stepEndCreation},
		"created, and it is gone":                    {state: goingOn().with(func(o *observation) { o.pods = nil }), want: stepEndCreation},
		"created, it goes on, and the claim is gone": {state: goingOn().with(unclaimed), want: stepRevert},
		"in use, it goes on":                         {state: goingOn().with(bound), want: stepDone, after: 50 * time.Second},
		"in use, it goes on for long":                {state: goingOn().with(bound).with(since(60)), want: stepStopCreation},
		"in use, it is being deleted":                {state: goingOn(deletedAgo(1)).with(bound), want: stepDone, after: 9 * time.Second},
		"in use, its node is lost":                   {state: goingOn(deletedAgo(99)).with(bound), want: stepWait},
		"reverted, and it goes on": {state: goingOn().with(unclaimed).with(func(o *observation) {
			o.volume.Status.Step, o.volume.Status.Phase = pavv1.StepReverting, pavv1.VolumePending
		}), want: stepWait},
	} {
		t.Run(name, func(t *testing.T) {
			got := decideIn(test.state.o)
			if got.Step != test.want || test.after > 0 && got.After != test.after {
				t.Errorf("got step %s by %q (%s) after %s, want %s after %s", got.Step, got.Rule, got.Message, got.After, test.want, test.after)
			}
		})
	}
}

// A creation pod that has ended by its containers keeps nothing waiting, although kubelet has yet to say so.
func TestDecide_OfAPodWhosePhaseIsYetToCome(t *testing.T) {
	over := func(code int32) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			ended(corev1.PodRunning, 1)(pod)
			pod.Status.ContainerStatuses[0].State.Terminated.ExitCode = code
			pod.Spec.RestartPolicy, pod.Spec.Containers = corev1.RestartPolicyNever, []corev1.Container{{Name: "main"}}
		}
	}
	for name, test := range map[string]struct {
		state *state
		want  step
	}{
		"a creation pod succeeded":            {state: at(pavv1.StepCreating).pod(9, over(0), reported), want: stepRecordCreated},
		"a creation pod failed":               {state: at(pavv1.StepCreating).pod(9, over(1), reported), want: stepRecordFailure},
		"a deletion pod succeeded":            {state: at(pavv1.StepDeleting).pod(9, over(0)), want: stepDone},
		"a deletion pod failed":               {state: at(pavv1.StepDeleting).pod(9, over(1), reported), want: stepRecordFailure},
		"a pod that is not recorded is over":  {state: at(pavv1.StepDeleting).with(strayPod(over(0))), want: stepRunPod},
		"a creation pod is not reported yet":  {state: at(pavv1.StepCreating).pod(9, over(0)), want: stepDone},
		"a creation pod is deleted meanwhile": {state: at(pavv1.StepCreating).pod(9, over(0), reported, deletedAgo(1)), want: stepDone},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decideIn(test.state.o); got.Step != test.want {
				t.Errorf("got step %s by %q (%s), want %s", got.Step, got.Rule, got.Message, test.want)
			}
		})
	}
}

func TestSweep_OfACreationPodThatIsReady(t *testing.T) {
	failedAs := func(o *observation) {
		status := &o.volume.Status
		status.Failure = &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowCreation, PodNamespace: "pav-pods", PodName: "pod"}
		status.Handle, status.Step = "", pavv1.StepReverting
	}
	phase := func(phase pavv1.VolumePhase) func(*observation) {
		return func(o *observation) { o.volume.Status.Phase = phase }
	}
	for name, test := range map[string]struct {
		state *state
		stops bool
	}{
		"the volume is to be claimed": {state: goingOn()},
		"the volume is in use":        {state: goingOn().with(phase(pavv1.VolumeReady))},
		"the volume is retained":      {state: goingOn().with(phase(pavv1.VolumeRetained)), stops: true},
		"the volume is deleted":       {state: goingOn().with(phase(pavv1.VolumeDeleting)), stops: true},
		"the claim is gone":           {state: goingOn().with(unclaimed), stops: true},
		"its result was refused":      {state: goingOn().with(failedAs), stops: true},
		"it has ended":                {state: goingOn(ended(corev1.PodSucceeded, 1)).with(phase(pavv1.VolumeDeleting))},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.state.o
			pod := o.pods[0].DeepCopy()
			cache := reconciletest.Client(t, pod)
			r := &Reconciler{Client: cache, Live: cache, Runner: &workflow.Runner{Client: cache}, Now: func() time.Time { return noon }}
			if err := r.sweep(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			err := cache.Get(t.Context(), client.ObjectKeyFromObject(pod), pod)
			if stops := err != nil; stops != test.stops {
				t.Errorf("the pod is stopped: %t, want %t", stops, test.stops)
			}
		})
	}
}

// A pod that ended well, and was deleted before its phase said so, may be released only then.
func TestSweep_WaitsForThePhase(t *testing.T) {
	over := func(pod *corev1.Pod) {
		ended(corev1.PodRunning, 1)(pod)
		pod.Finalizers = []string{pavv1.PodFinalizer}
		pod.Spec.RestartPolicy, pod.Spec.Containers = corev1.RestartPolicyNever, []corev1.Container{{Name: "main"}}
	}
	for _, phase := range []corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded} {
		s := at(pavv1.StepCreating).pod(9, over)
		s.o.volume.Status.Pod, s.o.volume.Status.Step = nil, ""
		s.o.pods[0].Status.Phase = phase
		cache := reconciletest.Client(t, s.o.pods[0].DeepCopy())
		r := &Reconciler{Client: cache, Live: cache, Runner: &workflow.Runner{Client: cache}, Now: func() time.Time { return noon }}
		pod := s.o.pods[0].DeepCopy()
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		must(cache.Get(t.Context(), client.ObjectKeyFromObject(pod), &s.o.pods[0]))
		must(r.sweep(t.Context(), s.o))
		err := cache.Get(t.Context(), client.ObjectKeyFromObject(pod), pod)
		if gone := err != nil; gone != (phase == corev1.PodSucceeded) {
			t.Errorf("a pod with the phase %s is released: %t", phase, gone)
		}
	}
}

func TestReady_KeepsItsRecordAndItsSlot(t *testing.T) {
	o := goingOn().o
	if a := o.slot(); a.Ref == nil || a.Progress() != attempt.Running {
		t.Errorf("the slot is of %+v", a)
	}
	if !names(&o.volume.Status, &o.pods[0]) {
		t.Error("the record does not name the pod that goes on")
	}
	ready := at(pavv1.StepCreating).pod(9, runs, ready).o
	status := &pavv1.PavVolumeStatus{}
	ready.goesOn(&ready.pods[0])(status)
	if status.CreationPod == nil || status.CreationPod.UID != ready.pods[0].UID {
		t.Errorf("the record of the pod is %+v", status.CreationPod)
	}
	over := at(pavv1.StepCreating).pod(9, ended(corev1.PodSucceeded, 1), reported).o
	if over.goesOn(&over.pods[0])(status); over.progress() != attempt.Succeeded {
		t.Errorf("the pod that is over is %s", over.progress())
	}
}
