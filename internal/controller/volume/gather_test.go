package volume

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
	"github.com/albertofaria/pav/internal/workflow"
)

// A volume populator has given the volume to another claim, and its PersistentVolume was removed by force. The cache may not
// have that claim yet, or has the first claim, which waits again.
func TestConfirm_WithoutPersistentVolume_LooksForClaimsThatUseIt(t *testing.T) {
	claim := func(name, volume string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: name, UID: "u1"},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: volume},
			Status:     corev1.PersistentVolumeClaimStatus{Phase: phase},
		}
	}
	first := claim("data", "", corev1.ClaimPending)
	for name, test := range map[string]struct {
		volume *pavv1.PavVolume
		live   []client.Object
		want   error
	}{
		"no claim":                                   {volume: without(pavv1.VolumeDeleting, deletePolicy).o.volume},
		"another claim is bound to it":               {volume: without(pavv1.VolumeDeleting, deletePolicy).o.volume, live: []client.Object{claim("target", "pvc-u1", corev1.ClaimBound)}, want: reconcile.ErrStale},
		"another claim has lost it":                  {volume: without(pavv1.VolumeDeleting, deletePolicy).o.volume, live: []client.Object{claim("target", "pvc-u1", corev1.ClaimLost)}, want: reconcile.ErrStale},
		"the first claim waits, another has it":      {volume: without(pavv1.VolumeDeleting, deletePolicy).o.volume, live: []client.Object{first, claim("target", "pvc-u1", corev1.ClaimBound)}, want: reconcile.ErrStale},
		"a tenant has written the name":              {volume: without(pavv1.VolumeDeleting, deletePolicy).o.volume, live: []client.Object{claim("target", "pvc-u1", corev1.ClaimPending)}},
		"a claim is bound to another volume":         {volume: without(pavv1.VolumeDeleting, deletePolicy).o.volume, live: []client.Object{claim("target", "other", corev1.ClaimBound)}},
		"its storage is deleted: claims do not help": {volume: without(pavv1.VolumeDeleting, deletePolicy).with(deletedStorage).o.volume, live: []client.Object{claim("target", "pvc-u1", corev1.ClaimLost)}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Client: reconciletest.Client(t), Live: reconciletest.Client(t, append(test.live, fresh().o.provisioner)...)}
			o := observation{volume: test.volume, now: noon, provisioner: fresh().o.provisioner, claim: claimGone}
			if err := r.confirm(t.Context(), o, decide(o)); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// A former leader has written the PersistentVolume, and the cache does not have it yet. A creation pod would make storage
// again that a claim uses.
func TestCheckRunnable_OfACreationPod_AsksForThePersistentVolume(t *testing.T) {
	for name, test := range map[string]struct {
		step   pavv1.VolumeStep
		live   []client.Object
		cached bool
		want   error
	}{
		"there is none":                    {step: pavv1.StepCreating},
		"it is not in the cache":           {step: pavv1.StepCreating, live: []client.Object{in("", corev1.VolumeBound, deletePolicy).o.pv}, want: reconcile.ErrStale},
		"the decision has considered it":   {step: pavv1.StepCreating, live: []client.Object{in("", corev1.VolumeBound, deletePolicy).o.pv}, cached: true},
		"a validation pod creates nothing": {step: pavv1.StepValidating, live: []client.Object{in("", corev1.VolumeBound, deletePolicy).o.pv}},
	} {
		t.Run(name, func(t *testing.T) {
			live := reconciletest.Client(t, test.live...)
			r := &Reconciler{Client: live, Live: live, Runner: &workflow.Runner{Client: live}}
			o := at(test.step).o
			if test.cached {
				pvIs(corev1.VolumeBound)(&o)
			}
			if err := r.checkRunnable(t.Context(), o, decision{}); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// The cache does not have the failed creation pod, whose handle may still be reported.
func TestCheckUntold_AsksForTheCreationPod(t *testing.T) {
	o := failedCreation(9).o
	o.volume.UID = "v1"
	pod := o.pods[0].DeepCopy()
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: pavv1.GroupVersion.String(), Kind: "PavVolume", Name: o.volume.Name, UID: "v1", Controller: new(true)}}
	pod.Labels = map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowCreation}
	o.pods = nil
	for name, test := range map[string]struct {
		live []client.Object
		want error
	}{
		"it is gone":             {},
		"it is not in the cache": {live: []client.Object{pod}, want: reconcile.ErrStale},
	} {
		t.Run(name, func(t *testing.T) {
			live := reconciletest.Client(t, test.live...)
			r := &Reconciler{Client: live, Live: live, Runner: &workflow.Runner{Client: live}, Now: func() time.Time { return noon }}
			if err := r.checkUntold(t.Context(), o); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}
