package volume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
)

// static turns an observation into that of a volume that an administrator wrote, with a complete record.
func static(o *observation) {
	o.volume.Spec.Static, o.volume.Spec.ReclaimPolicy, o.volume.Finalizers = true, retainPolicy, []string{pavv1.VolumeFinalizer}
	o.volume.UID, o.volume.Status.RecordUID = "r1", "r1"
	o.provisioner.Spec.ProvisioningModes = append(o.provisioner.Spec.ProvisioningModes, pavv1.ProvisioningModeStatic)
	if o.pv != nil {
		o.pv.Finalizers = nil
	}
}

func TestDecide_OnStaticVolumes(t *testing.T) {
	tests := map[string]struct {
		state *state
		want  step
	}{
		"a new record": {state: growable("1Gi").with(static).with(func(o *observation) { o.volume.Status = pavv1.PavVolumeStatus{} }), want: stepRecordStatic},
		"a record that was restored from a backup":         {state: growable("1Gi").with(static).with(func(o *observation) { o.volume.Status.RecordUID = "r0" }), want: stepRecordStatic},
		"a volume that the administrator made larger":      {state: growable("1Gi").with(static).with(recordedIs("500Mi")), want: stepRecordStatic},
		"but not while a pod changes it":                   {state: growing().with(static).with(recordedIs("500Mi")), want: stepRunPod},
		"a volume as large as its claim requests":          {state: growable("1Gi").with(static).with(shown), want: stepDone},
		"a claim that requests more":                       {state: growable("2Gi").with(static).with(shown), want: stepExpand},
		"a pod whose UID is not recorded":                  {state: growing().with(static).pod(1).with(func(o *observation) { o.volume.Status.Pod.UID = "" }), want: stepRecordPod},
		"a failure whose text was reported late":           {state: growing().with(static).pod(9, ended(corev1.PodFailed, 6)).with(reportedLate), want: stepRecordLateMessage},
		"the claim is gone":                                {state: growable("1Gi").with(static).with(releasedPV), want: stepDropRecord},
		"another claim has the volume":                     {state: growable("1Gi").with(static).with(func(o *observation) { o.pv.Spec.ClaimRef.UID, o.user = "u2", nil }), want: stepDropRecord},
		"the PersistentVolume is gone":                     {state: growable("1Gi").with(static).with(func(o *observation) { o.pv, o.user = nil, nil }), want: stepDropRecord},
		"it has grown more than the PersistentVolume says": {state: growable("1Gi").with(static).with(recordedIs("2Gi")).with(releasedPV), want: stepUpdatePV},
		"its provisioner is being deleted":                 {state: growable("2Gi").with(static).with(func(o *observation) { o.provisioner.DeletionTimestamp = new(metav1.NewTime(noon)) }), want: stepDropRecord},
		"someone deletes the record":                       {state: growable("1Gi").with(static).with(deletedRecord), want: stepDropRecord},
		"but not while a pod changes the volume":           {state: growing().with(static).pod(1, runs).with(deletedRecord), want: stepDone},
		"a record without a finalizer":                     {state: growable("1Gi").with(static).with(func(o *observation) { o.volume.Finalizers = nil }), want: stepRecordStatic},
		"it was modified while its claim went":             {state: growable("1Gi").with(static).with(releasedPV).with(func(o *observation) { o.attributes = pavv1.VolumeAttributes{Class: "silver"} }), want: stepUpdatePV},
		"what was restored says nothing of that":           {state: growable("1Gi").with(static).with(releasedPV).with(recordedIs("2Gi")).with(func(o *observation) { o.volume.Status.RecordUID = "r0" }), want: stepDropRecord},
		"a retained volume has its handle": {state: growable("2Gi").with(static).with(shown).with(func(o *observation) {
			o.others = []reconcile.Holder{{Kind: reconcile.KindVolume, Name: "other", Phase: pavv1.VolumeRetained}}
		}), want: stepExpand},
		"another PersistentVolume has its handle":          {state: growable("2Gi").with(static).with(shown).with(func(o *observation) { o.others = []reconcile.Holder{{Kind: reconcile.KindPV, Name: "other"}} }), want: stepWait},
		"a node has it staged":                             {state: growable("2Gi").with(static).with(shown).with(stagedOnNode), want: stepExpand},
		"another volume has its name":                      {state: growable("1Gi").with(static).with(func(o *observation) { o.pv.Spec.CSI.VolumeHandle = "other" }), want: stepDropRecord},
		"it is read after the claim is gone":               {state: growable("1Gi").with(static).with(releasedPV).with(func(o *observation) { o.readers = []string{"PavSnapshot s"} }), want: stepDone},
		"the claim is gone after an expansion that failed": {state: growable("1Gi").with(static).with(releasedPV).with(attempted), want: stepDone},
		"another claim has the volume after that":          {state: growable("1Gi").with(static).with(attempted).with(func(o *observation) { o.pv.Spec.ClaimRef.UID, o.user = "u2", nil }), want: stepRecordStatic},
		"its provisioner is deleted after that": {state: growable("1Gi").with(static).with(attempted).with(func(o *observation) {
			o.provisioner.DeletionTimestamp = new(metav1.NewTime(noon))
		}), want: stepDropRecord},
		"the PersistentVolume goes after that": {state: growable("1Gi").with(static).with(attempted).with(func(o *observation) { o.pv, o.user = nil, nil }), want: stepDropRecord},
		"the claim is gone after a modification that failed": {state: growable("1Gi").with(static).with(releasedPV).with(func(o *observation) {
			o.volume.Status.Modification = &pavv1.VolumeModificationRecord{Partial: true}
		}), want: stepDone},
		"the claim is gone while a pod changes the volume": {state: growing().with(static).pod(1, runs).with(releasedPV), want: stepDone},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := decideIn(test.state.o); got.Step != test.want {
				t.Errorf("got %s by the rule %q, want %s", got.Step, got.Rule, test.want)
			}
		})
	}
}

// attempted records that an expansion that failed may have reached 2Gi.
func attempted(o *observation) { o.volume.Status.AttemptedCapacity = new(resource.MustParse("2Gi")) }

// reportedLate records the failure of the expansion pod, whose node has reported after that what the pod wrote to /pav/error.
func reportedLate(o *observation) {
	o.volume.Status.Expansion.Failure = o.attempt().Failure(pavv1.WorkflowExpansion)
	o.volume.Status.Step, o.volume.Status.Pod = "", nil
	o.pods[0].Annotations = map[string]string{pavv1.ResultAnnotation: `{"error": "no room"}`}
}

// Whatever becomes of a static volume and its objects, nothing deletes its storage or its PersistentVolume, or takes it for one that PaV
// made.
func TestDecide_NeverDeletesStaticVolumes(t *testing.T) {
	allowed := map[step]bool{
		stepDone: true, stepWait: true, stepRecordStatic: true, stepDropRecord: true, stepRecordPod: true, stepRecordLateMessage: true, stepRunPod: true, stepStopPod: true,
		stepDropPod: true, stepRecordFailure: true, stepRecordChanged: true, stepExpand: true, stepHold: true, stepModify: true, stepEndExpansion: true,
		stepEndModification: true, stepUpdatePV: true, stepShowClaim: true, stepDropReaders: true,
	}
	for _, phase := range []pavv1.VolumePhase{"", pavv1.VolumePending, pavv1.VolumeReady, pavv1.VolumeDeleting, pavv1.VolumeRetained} {
		for _, step := range []pavv1.VolumeStep{"", pavv1.StepValidating, pavv1.StepCreating, pavv1.StepReverting, pavv1.StepDeleting, pavv1.StepDeleted, pavv1.StepExpanding} {
			for _, pvPhase := range []corev1.PersistentVolumePhase{"", corev1.VolumeAvailable, corev1.VolumeBound, corev1.VolumeReleased, corev1.VolumeFailed} {
				for _, policy := range []corev1.PersistentVolumeReclaimPolicy{deletePolicy, retainPolicy} {
					for _, change := range []func(*observation){nothingMore, deletedRecord, deletedPV, withoutPV, withDeletionPod} {
						s := in(phase, pvPhase, policy).with(static).with(change)
						s.o.volume.Status.Step = step
						if step != "" && step != pavv1.StepDeleted {
							s.o.volume.Status.Pod = &pavv1.PodReference{Namespace: "pav-pods", Name: "pod"}
						}
						if got := decide(s.o); !allowed[got.Step] {
							t.Errorf("phase %q, step %q, PersistentVolume %q, policy %s: %s by the rule %q", phase, step, pvPhase, policy, got.Step, got.Rule)
						}
					}
				}
			}
		}
	}
}

func nothingMore(*observation) {}

func deletedRecord(o *observation) { o.volume.DeletionTimestamp = new(metav1.NewTime(noon)) }

func deletedPV(o *observation) { o.pv.DeletionTimestamp = new(metav1.NewTime(noon)) }

func withoutPV(o *observation) { o.pv = nil }

// Only volumes that can change, or be read, have records.
func TestKeepsRecord(t *testing.T) {
	accepted := []metav1.Condition{{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionTrue}}
	modes := []pavv1.ProvisioningMode{pavv1.ProvisioningModeStatic}
	tests := map[string]struct {
		spec   pavv1.PavProvisionerSpec
		status pavv1.PavProvisionerStatus
		want   bool
	}{
		"nothing changes them": {spec: pavv1.PavProvisionerSpec{ProvisioningModes: modes}, status: pavv1.PavProvisionerStatus{Conditions: accepted}},
		"they grow":            {spec: pavv1.PavProvisionerSpec{ProvisioningModes: modes, VolumeExpansion: &pavv1.VolumeExpansion{}}, status: pavv1.PavProvisionerStatus{Conditions: accepted}, want: true},
		"they have snapshots":  {spec: pavv1.PavProvisionerSpec{ProvisioningModes: modes, SnapshotCreation: &pavv1.SnapshotCreation{}}, status: pavv1.PavProvisionerStatus{Conditions: accepted}, want: true},
		"not accepted yet":     {spec: pavv1.PavProvisionerSpec{ProvisioningModes: modes, VolumeExpansion: &pavv1.VolumeExpansion{}}},
		"dynamic volumes only": {spec: pavv1.PavProvisionerSpec{VolumeExpansion: &pavv1.VolumeExpansion{}}, status: pavv1.PavProvisionerStatus{Conditions: accepted}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := keepsRecord(&pavv1.PavProvisioner{Spec: test.spec, Status: test.status}); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
