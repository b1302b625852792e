package volume

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
	"github.com/albertofaria/pav/internal/workflow"
)

// An administrator may create a PersistentVolume for the storage after the check of the API server, and before the
// deletion pod is created.
func TestStart_OfADeletionPod_LooksForNewHolders(t *testing.T) {
	for name, test := range map[string]struct {
		step   pavv1.VolumeStep
		handle string
		want   error
	}{
		"a PersistentVolume of the storage": {step: pavv1.StepDeleting, handle: "h", want: reconcile.ErrStale},
		"of other storage":                  {step: pavv1.StepDeleting, handle: "other"},
		"while the creation is reverted":    {step: pavv1.StepReverting, handle: "h", want: reconcile.ErrStale},
		"a pod that deletes nothing":        {step: pavv1.StepValidating, handle: "h"},
	} {
		t.Run(name, func(t *testing.T) {
			o := in(pavv1.VolumeReady, corev1.VolumeReleased, deletePolicy).o
			o.volume.Status.Step, o.volume.Status.Handle = test.step, "h"
			o.volume.Status.Pod = &pavv1.PodReference{Namespace: workflow.DefaultNamespace, Name: "p"}
			static := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "static"}}
			static.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: o.volume.Spec.Provisioner, VolumeHandle: test.handle}
			cache := reconciletest.Client(t, o.volume, static)
			r := &Reconciler{Client: cache, Runner: &workflow.Runner{Client: cache}, Now: func() time.Time { return noon }}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: workflow.DefaultNamespace, Name: "p"}}

			if err := r.start(t.Context(), o, pod, 1); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			err := cache.Get(t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{})
			if exists := err == nil; exists != (test.want == nil) {
				t.Errorf("the pod exists: %t: %v", exists, err)
			}
			if err := cache.Get(t.Context(), client.ObjectKeyFromObject(o.volume), o.volume); err != nil {
				t.Fatal(err)
			}
			if begun := o.volume.Status.DeletionBegun; begun != (test.want == nil && test.step == pavv1.StepDeleting) {
				t.Errorf("it is recorded that a deletion pod was created: %t", begun)
			}
		})
	}
}

// Another leader has removed a pod from the record, and this one has created it.
func TestStart_OfAPodThatIsNotRecordedAnyMore_StopsIt(t *testing.T) {
	for name, test := range map[string]struct {
		live   func(*pavv1.PavVolume)
		exists bool
	}{
		"still recorded, another field has changed": {live: func(v *pavv1.PavVolume) { v.Status.Attempt++ }, exists: true},
		"its failure is recorded": {live: func(v *pavv1.PavVolume) {
			v.Status.Pod, v.Status.DeletionFailure = nil, &pavv1.WorkflowFailure{PodNamespace: workflow.DefaultNamespace, PodName: "p"}
		}, exists: true},
		"not recorded any more":   {live: func(v *pavv1.PavVolume) { v.Status.Pod = nil }},
		"another pod is recorded": {live: func(v *pavv1.PavVolume) { v.Status.Pod.Name = "p2" }},
	} {
		t.Run(name, func(t *testing.T) {
			o := at(pavv1.StepDeleting).o
			o.volume.Status.Pod = &pavv1.PodReference{Namespace: workflow.DefaultNamespace, Name: "p"}
			cache := reconciletest.Client(t, o.volume)
			r := &Reconciler{Client: cache, Live: cache, Runner: &workflow.Runner{Client: cache}, Now: func() time.Time { return noon }}
			if err := cache.Get(t.Context(), client.ObjectKeyFromObject(o.volume), o.volume); err != nil {
				t.Fatal(err)
			}
			newer := o.volume.DeepCopy()
			test.live(newer)
			if err := cache.Status().Update(t.Context(), newer); err != nil {
				t.Fatal(err)
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: workflow.DefaultNamespace, Name: "p"}}
			if err := r.start(t.Context(), o, pod, 1); !errors.Is(err, reconcile.ErrStale) {
				t.Errorf("got %v, want %v", err, reconcile.ErrStale)
			}
			err := cache.Get(t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{})
			if exists := err == nil; exists != test.exists {
				t.Errorf("the pod exists: %t: %v", exists, err)
			}
		})
	}
}

// Nothing records what a pod has done that runs and is not recorded.
func TestSweep_OfAPodThatIsNotRecorded_ReportsIt(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		kind   string
		want   int
	}{
		"a creation pod runs":       {change: runs, kind: pavv1.WorkflowCreation, want: 3},
		"a deletion pod runs":       {change: runs, kind: pavv1.WorkflowDeletion, want: 3},
		"a validation pod runs":     {change: runs, kind: pavv1.WorkflowValidation},
		"a pod has not started":     {change: pulls, kind: pavv1.WorkflowCreation},
		"a pod ended some time ago": {change: ended(corev1.PodFailed, 99), kind: pavv1.WorkflowCreation},
	} {
		t.Run(name, func(t *testing.T) {
			o := fresh().with(strayPod(test.change)).o
			o.pods[0].Labels = map[string]string{pavv1.WorkflowLabel: test.kind}
			cache := reconciletest.Client(t, &o.pods[0])
			events := record.NewFakeRecorder(10)
			r := &Reconciler{Client: cache, Live: cache, Runner: &workflow.Runner{Client: cache}, Events: events, Now: func() time.Time { return noon }}
			for range 2 {
				if err := r.sweep(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			if len(events.Events) != test.want {
				t.Errorf("got %d events, want %d", len(events.Events), test.want)
			}
		})
	}
}
