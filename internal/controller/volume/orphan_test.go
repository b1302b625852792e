package volume

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
)

func TestDecideOrphan(t *testing.T) {
	deleted := func(pv *corev1.PersistentVolume) { pv.DeletionTimestamp = &metav1.Time{} }
	held := func(pv *corev1.PersistentVolume) {
		pv.Finalizers = []string{"kubernetes.io/pv-protection", pavv1.PVFinalizer}
	}
	retained := func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	in := func(phase corev1.PersistentVolumePhase) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) { pv.Status.Phase = phase }
	}
	type changes []func(*corev1.PersistentVolume)
	tests := map[string]struct {
		pv   changes
		want orphanFate
	}{
		"released":                               {pv: changes{in(corev1.VolumeReleased), held}, want: orphanReported},
		"released, without finalizer":            {pv: changes{in(corev1.VolumeReleased)}, want: orphanReported},
		"released, policy Retain":                {pv: changes{in(corev1.VolumeReleased), retained}, want: orphanKept},
		"bound":                                  {pv: changes{in(corev1.VolumeBound), held}, want: orphanKept},
		"being deleted":                          {pv: changes{in(corev1.VolumeReleased), held, deleted}, want: orphanReleased},
		"being deleted, never bound":             {pv: changes{in(corev1.VolumeAvailable), held, deleted}, want: orphanReleased},
		"being deleted, policy Retain":           {pv: changes{in(corev1.VolumeReleased), held, deleted, retained}, want: orphanReleased},
		"being deleted, bound":                   {pv: changes{in(corev1.VolumeBound), held, deleted}, want: orphanKept},
		"being deleted, without PaV's finalizer": {pv: changes{in(corev1.VolumeReleased), deleted}, want: orphanKept},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete}}
			for _, change := range test.pv {
				change(pv)
			}
			if got := decideOrphan(pv); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// Each change of the PersistentVolume, and of what shares its storage, brings a pass (seed 708000705 of the simulation).
func TestSettleOrphan_Repeated_IsReportedOncePerPeriod(t *testing.T) {
	tests := map[string]func(*corev1.PersistentVolume){
		"its storage cannot be deleted": func(*corev1.PersistentVolume) {},
		"it waits for a stage": func(pv *corev1.PersistentVolume) {
			pv.DeletionTimestamp, pv.Finalizers = &metav1.Time{Time: noon}, []string{pavv1.PVFinalizer}
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			pv, provisioner := orphan()
			change(pv)
			stage := &pavv1.PavStage{
				ObjectMeta: metav1.ObjectMeta{Name: "stage", Labels: map[string]string{pavv1.ProvisionerLabel: provisioner.Name}},
				Spec:       pavv1.PavStageSpec{Provisioner: provisioner.Name, VolumeHandle: "h", NodeName: "n1"},
			}
			cache, events, now := reconciletest.Client(t, provisioner, pv, stage), record.NewFakeRecorder(100), noon
			r := &Reconciler{
				Client: cache, Live: cache, holders: &reconcile.LiveReads{Reader: cache},
				Events: events, Now: func() time.Time { return now },
			}
			for range 40 { // ten minutes
				if err := r.settleOrphan(t.Context(), pv.Name); err != nil {
					t.Fatal(err)
				}
				now = now.Add(15 * time.Second)
			}
			if got, want := len(events.Events), 2; got != want {
				t.Errorf("%d events were given, want %d", got, want)
			}
		})
	}
}

// The latest event must be true: it may say that the storage can be deleted.
func TestSettleOrphan_WhatIsTrueAgain_IsSaidAgain(t *testing.T) {
	pv, provisioner := orphan()
	other := pv.DeepCopy()
	other.Name, other.UID, other.Annotations, other.Status.Phase = "static", "pv2", nil, corev1.VolumeBound
	cache, events, now := reconciletest.Client(t, provisioner, pv, other), record.NewFakeRecorder(100), noon
	r := &Reconciler{Client: cache, Live: cache, holders: &reconcile.LiveReads{Reader: cache}, Events: events, Now: func() time.Time { return now }}
	pass := func() (said string, wait time.Duration) {
		t.Helper()
		now = now.Add(30 * time.Second)
		err := r.settleOrphan(t.Context(), pv.Name)
		later, isLater := errors.AsType[*reconcile.Later](err)
		if err != nil && !isLater {
			t.Fatal(err)
		}
		if isLater {
			wait = later.After
		}
		select {
		case said = <-events.Events:
		default:
		}
		return said, wait
	}
	const shared = "but not the storage"
	if said, _ := pass(); !strings.Contains(said, shared) {
		t.Errorf("with another user of the storage, it said %q", said)
	}
	if err := cache.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if said, _ := pass(); said == "" || strings.Contains(said, shared) {
		t.Errorf("without another user of the storage, it said %q", said)
	}
	other.ResourceVersion = ""
	if err := cache.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	said, wait := pass()
	if said != "" || wait <= 0 {
		t.Errorf("with another user again, it said %q, and says the next in %s", said, wait)
	}
	now = now.Add(wait)
	if said, _ := pass(); !strings.Contains(said, shared) {
		t.Errorf("after that time, it said %q", said)
	}
}

// The last event is the only trace of the storage once the PersistentVolume is gone.
func TestReleaseOrphan_AfterManyEvents_StillSaysThatStorageIsLeft(t *testing.T) {
	pv, provisioner := orphan()
	pv.DeletionTimestamp, pv.Finalizers = &metav1.Time{Time: noon}, []string{pavv1.PVFinalizer}
	cache, events := reconciletest.Client(t, provisioner, pv), record.NewFakeRecorder(10)
	r := &Reconciler{
		Client: cache, Live: cache, holders: &reconcile.LiveReads{Reader: cache},
		Events: events, Now: func() time.Time { return noon },
	}
	for i := range 100 {
		r.orphans.Due(string(pv.UID), fmt.Sprint("waiting for ", i), noon)
	}
	if err := r.settleOrphan(t.Context(), pv.Name); err != nil {
		t.Fatal(err)
	}
	if len(events.Events) != 1 {
		t.Errorf("%d events were given, want 1", len(events.Events))
	}
}

// orphan returns a released PersistentVolume without a PavVolume, and its provisioner.
func orphan() (*corev1.PersistentVolume, *pavv1.PavProvisioner) {
	provisioner := fresh().o.provisioner.DeepCopy()
	provisioner.Status.Conditions = []metav1.Condition{{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionTrue}}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1", UID: "pv1", Annotations: map[string]string{protocol.ProvisionedBy: provisioner.Name}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: provisioner.Name, VolumeHandle: "h"}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased},
	}, provisioner
}
