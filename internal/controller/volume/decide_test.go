package volume

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

const (
	deletePolicy = corev1.PersistentVolumeReclaimDelete
	retainPolicy = corev1.PersistentVolumeReclaimRetain
)

// noon is the time of all observations.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// state builds the observation of a volume.
type state struct{ o observation }

// fresh returns a PavVolume as the claim controller writes it.
func fresh() *state {
	return &state{observation{
		volume: &pavv1.PavVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1", Finalizers: []string{pavv1.VolumeFinalizer}},
			Spec: pavv1.PavVolumeSpec{Provisioner: "demo", ReclaimPolicy: deletePolicy,
				ClaimRef: pavv1.ClaimReference{Namespace: "apps", Name: "data", UID: "u1"}},
		},
		now: noon,
		provisioner: &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "demo", UID: "p1", Generation: 3},
			Spec: pavv1.PavProvisionerSpec{ProvisioningModes: []pavv1.ProvisioningMode{pavv1.ProvisioningModeDynamic}}},
		registered: true,
		claim:      claimWaits,
	}}
}

// recorded returns a PavVolume whose handle is recorded.
func recorded() *state {
	s := fresh()
	s.o.volume.Status = pavv1.PavVolumeStatus{Phase: pavv1.VolumePending, Handle: "h", Capacity: ptrQuantity("1Gi")}
	return s
}

// in returns a volume in a phase, with a PersistentVolume in a phase and with a reclaim policy. The finalizers and
// policies are aligned.
func in(phase pavv1.VolumePhase, pvPhase corev1.PersistentVolumePhase, policy corev1.PersistentVolumeReclaimPolicy) *state {
	s := recorded()
	s.o.volume.Status.Phase = phase
	s.o.volume.Spec.ReclaimPolicy = policy
	s.o.claim = claimGone
	s.o.pv = &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1"},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: policy,
			ClaimRef:                      &corev1.ObjectReference{UID: "u1"},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "demo", VolumeHandle: "h"}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: pvPhase},
	}
	if policy == deletePolicy {
		s.o.pv.Finalizers = []string{pavv1.PVFinalizer}
	}
	if phase == pavv1.VolumeRetained && policy == retainPolicy {
		s.o.volume.Finalizers = nil
	}
	return s
}

// without returns a volume whose PersistentVolume is gone.
func without(phase pavv1.VolumePhase, policy corev1.PersistentVolumeReclaimPolicy) *state {
	s := in(phase, "", policy)
	s.o.pv = nil
	return s
}

func (s *state) with(change func(*observation)) *state { change(&s.o); return s }

func (s *state) deleted() *state {
	return s.with(func(o *observation) { now := metav1.Now(); o.volume.DeletionTimestamp = &now })
}

func ptrQuantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

func field(text string) *pavv1.Template { return &apiextensionsv1.JSON{Raw: []byte(text)} }

func withDeletionPod(o *observation) {
	o.provisioner.Spec.VolumeDeletion = &pavv1.VolumeDeletion{PodTemplate: field(`{}`)}
}

// stagedOn returns the stages of a volume on these nodes.
func stagedOn(nodes ...string) (stages []reconcile.Holder) {
	for _, node := range nodes {
		stages = append(stages, reconcile.Holder{Kind: reconcile.KindStage, Name: "stage-" + node, Node: node})
	}
	return stages
}

// heldBy records that other objects use the volume's storage.
func heldBy(others ...reconcile.Holder) func(*observation) {
	return func(o *observation) { o.others = others }
}

func holder(kind, name string, phase pavv1.VolumePhase) reconcile.Holder {
	return reconcile.Holder{Kind: kind, Name: name, Phase: phase}
}

func deletedStorage(o *observation) { o.volume.Status.Step = pavv1.StepDeleted }

// givenAway binds the PersistentVolume that PaV wrote to another claim.
func givenAway(o *observation) {
	o.pv.Annotations = map[string]string{protocol.ProvisionedBy: "demo"}
	o.pv.Spec.ClaimRef.UID = "u0"
}

func TestDecide(t *testing.T) {
	now := metav1.Now()
	const ready, deleting, retained = pavv1.VolumeReady, pavv1.VolumeDeleting, pavv1.VolumeRetained
	const bound, released, available = corev1.VolumeBound, corev1.VolumeReleased, corev1.VolumeAvailable
	tests := map[string]struct {
		state   *state
		want    step
		message string
	}{
		// The volume is being provisioned.
		"new claim: begin an attempt":                                            {state: fresh(), want: stepBegin},
		"handle recorded: write the PersistentVolume":                            {state: recorded(), want: stepWritePV},
		"handle recorded, the driver is not registered on all nodes: wait":       {state: recorded().with(func(o *observation) { o.registeringFor = 3 * time.Second }), want: stepDone},
		"handle recorded, no CSIDriver yet: wait":                                {state: recorded().with(func(o *observation) { o.registered = false }), want: stepDone},
		"claim deleted before the first attempt: delete the PavVolume":           {state: fresh().with(func(o *observation) { o.claim = claimGone }), want: stepForget},
		"claim deleted after creation, no creation pod: delete the PavVolume":    {state: recorded().with(func(o *observation) { o.claim = claimGone }), want: stepForget},
		"claim deleted after creation, policy Retain: delete the PavVolume":      {state: recorded().with(func(o *observation) { o.claim = claimGone; o.volume.Spec.ReclaimPolicy = retainPolicy }), want: stepForget},
		"claim bound to another volume: delete the PavVolume":                    {state: recorded().with(func(o *observation) { o.claim = claimElsewhere }), want: stepForget},
		"PavVolume deleted by hand before it is provisioned":                     {state: recorded().deleted(), want: stepForget},
		"provisioner gone before the first attempt":                              {state: fresh().with(func(o *observation) { o.provisioner = nil }), want: stepForget},
		"provisioner being deleted before the first attempt":                     {state: fresh().with(func(o *observation) { o.provisioner.DeletionTimestamp = &now }), want: stepForget},
		"PersistentVolume of the name has another driver: report it":             {state: recorded().with(func(o *observation) { o.pv = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1"}} }), want: stepWait, message: `PersistentVolume "pvc-u1" exists and is not this claim's`},
		"PersistentVolume of the name has another claim: report it":              {state: in(pavv1.VolumePending, bound, deletePolicy).with(func(o *observation) { o.claim = claimWaits; o.pv.Spec.ClaimRef.UID = "u0" }), want: stepWait, message: "is not this claim's"},
		"PersistentVolume of the name has another claim, no attempt yet: refuse": {state: fresh().with(func(o *observation) { o.pv = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1"}} }), want: stepRefuse, message: "exists and is not this claim's"},
		"definition not accepted: refuse": {state: fresh().with(func(o *observation) {
			o.provisioner.Status.Conditions = []metav1.Condition{{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionFalse, Message: "choose another name"}}
		}), want: stepRefuse, message: "it cannot be used: choose another name"},
		"definition without dynamic provisioning: refuse":                                            {state: fresh().with(func(o *observation) { o.provisioner.Spec.ProvisioningModes = []pavv1.ProvisioningMode{"Static"} }), want: stepRefuse, message: "spec.provisioningModes: is [Static], without Dynamic"},
		"late binding, no node selected: wait":                                                       {state: fresh().with(func(o *observation) { o.waitsForNode = true }), want: stepDone},
		"PersistentVolume written before the agent was killed: mark ready":                           {state: in(pavv1.VolumePending, available, deletePolicy), want: stepMarkReady},
		"PersistentVolume written, and bound to another claim by a volume populator: mark ready":     {state: in(pavv1.VolumePending, bound, deletePolicy).with(givenAway), want: stepMarkReady},
		"PersistentVolume written and bound to another claim, storage of a creation pod: mark ready": {state: in(pavv1.VolumePending, bound, deletePolicy).with(givenAway).with(func(o *observation) { o.volume.Status.Plan = &pavv1.VolumePlan{} }), want: stepMarkReady},
		"PersistentVolume written and bound to another claim, first claim exists: mark ready":        {state: in(pavv1.VolumePending, bound, deletePolicy).with(givenAway).with(func(o *observation) { o.claim = claimBound }), want: stepMarkReady},
		"PersistentVolume written, then set to Retain and deleted before that was recorded: mark ready": {state: in(pavv1.VolumePending, corev1.VolumeReleased, deletePolicy).with(func(o *observation) {
			o.pv.Spec.PersistentVolumeReclaimPolicy, o.pv.DeletionTimestamp = retainPolicy, &metav1.Time{Time: noon}
		}), want: stepMarkReady},
		"PersistentVolume written and released before that was recorded: mark ready": {state: in(pavv1.VolumePending, corev1.VolumeReleased, deletePolicy), want: stepMarkReady},
		"PersistentVolume written, status lost: mark ready":                          {state: in("", bound, deletePolicy).with(func(o *observation) { o.volume.Status = pavv1.PavVolumeStatus{} }), want: stepMarkReady},

		// The volume is in use.
		"bound volume: nothing to do":                                       {state: in(ready, bound, deletePolicy), want: stepDone},
		"bound volume, provisioner gone: nothing to do":                     {state: in(ready, bound, deletePolicy).with(func(o *observation) { o.provisioner = nil }), want: stepDone},
		"reclaim policy of the PersistentVolume changed: align":             {state: in(ready, bound, deletePolicy).with(func(o *observation) { o.pv.Spec.PersistentVolumeReclaimPolicy = retainPolicy }), want: stepAlign},
		"finalizer of the PavVolume missing: align":                         {state: in(ready, bound, deletePolicy).with(func(o *observation) { o.volume.Finalizers = nil }), want: stepAlign},
		"finalizer of the PersistentVolume missing: align":                  {state: in(ready, bound, deletePolicy).with(func(o *observation) { o.pv.Finalizers = nil }), want: stepAlign},
		"policy Retain, PersistentVolume has the finalizer: align":          {state: in(ready, bound, retainPolicy).with(func(o *observation) { o.pv.Finalizers = []string{pavv1.PVFinalizer} }), want: stepAlign},
		"PavVolume of a bound volume deleted by hand: wait":                 {state: in(ready, bound, deletePolicy).deleted(), want: stepWait, message: `PersistentVolume "pvc-u1" is still in use`},
		"PersistentVolume of a bound volume deleted by hand: nothing to do": {state: in(ready, bound, deletePolicy).with(func(o *observation) { o.pv.DeletionTimestamp = &now }), want: stepDone},
		"being deleted, and a claim is bound again: mark ready":             {state: in(deleting, bound, deletePolicy), want: stepMarkReady},
		"retained, PersistentVolume available: nothing to do":               {state: in(retained, available, retainPolicy), want: stepDone},
		"retained, new claim bound: mark ready":                             {state: in(retained, bound, retainPolicy).with(func(o *observation) { o.volume.Finalizers = []string{pavv1.VolumeFinalizer} }), want: stepMarkReady},
		"retained, new claim bound, no finalizer: align first":              {state: in(retained, bound, retainPolicy), want: stepAlign},

		// Released, Delete.
		"released: record the deletion first":                                      {state: in(ready, released, deletePolicy), want: stepMarkDeleted},
		"storage deleted: delete the PersistentVolume":                             {state: in(deleting, released, deletePolicy).with(deletedStorage), want: stepDeletePV},
		"storage deleted, PersistentVolume being deleted: remove its finalizer":    {state: in(deleting, released, deletePolicy).with(func(o *observation) { o.pv.DeletionTimestamp = &now }).with(deletedStorage), want: stepDeletePV},
		"storage and PersistentVolume deleted: delete the PavVolume":               {state: without(deleting, deletePolicy).with(deletedStorage), want: stepForget},
		"PersistentVolume deleted by hand before it was bound: delete the storage": {state: in(ready, available, deletePolicy).with(func(o *observation) { o.pv.DeletionTimestamp = &now }), want: stepMarkDeleted},
		"released, staged on a node: wait":                                         {state: in(deleting, released, deletePolicy).with(func(o *observation) { o.others = stagedOn("n1") }), want: stepWait, message: "waiting for the volume to be unstaged on node n1"},
		"released, staged on many nodes: name three":                               {state: in(deleting, released, deletePolicy).with(func(o *observation) { o.others = stagedOn("a", "b", "c", "d") }), want: stepWait, message: "nodes a, b, c and 1 more"},
		"PersistentVolume removed by force, staged on a node: wait":                {state: without(deleting, deletePolicy).with(func(o *observation) { o.others = stagedOn("n1") }), want: stepWait, message: "node n1"},
		"released, provisioner gone: wait":                                         {state: in(deleting, released, deletePolicy).with(func(o *observation) { o.provisioner = nil }), want: stepWait, message: `PavProvisioner "demo" does not exist`},
		"released, definition has a deletion pod: record it":                       {state: in(deleting, released, deletePolicy).with(withDeletionPod), want: stepDelete},
		"released, Ready: record the deletion with the pod":                        {state: in(pavv1.VolumeReady, released, deletePolicy).with(withDeletionPod), want: stepDelete},
		"released, Ready, provisioner gone: record the deletion first":             {state: in(pavv1.VolumeReady, released, deletePolicy).with(func(o *observation) { o.provisioner = nil }), want: stepMarkDeleting},
		"released, Ready, without a handle: record the deletion first":             {state: in(pavv1.VolumeReady, released, deletePolicy).with(withDeletionPod).with(func(o *observation) { o.volume.Status.Handle = "" }).deleted(), want: stepMarkDeleting},
		"released, Retained: record the deletion first":                            {state: in(pavv1.VolumeRetained, released, deletePolicy).with(withDeletionPod), want: stepMarkDeleting},
		"released, Ready, creation pod goes on: record the deletion first":         {state: in(pavv1.VolumeReady, released, deletePolicy).with(withDeletionPod).with(func(o *observation) { o.volume.Status.CreationPod = &pavv1.PodReference{Name: "p"} }), want: stepMarkDeleting},
		"released, Ready, a pod recorded: record the deletion first":               {state: in(pavv1.VolumeReady, released, deletePolicy).with(withDeletionPod).with(func(o *observation) { o.volume.Status.Pod = &pavv1.PodReference{Name: "p"} }), want: stepMarkDeleting},
		"released, Ready, a step recorded: record the deletion first":              {state: in(pavv1.VolumeReady, released, deletePolicy).with(withDeletionPod).with(func(o *observation) { o.volume.Status.Step = pavv1.StepCreating }), want: stepMarkDeleting},
		"released, Ready, a pod that is not recorded: record the deletion first":   {state: in(pavv1.VolumeReady, released, deletePolicy).with(withDeletionPod).with(strayPod(runs)), want: stepMarkDeleting},
		"released, Ready, but staged: record the deletion first":                   {state: in(pavv1.VolumeReady, released, deletePolicy).with(withDeletionPod).with(heldBy(stagedOn("n1")...)), want: stepMarkDeleting},
		"released, provisioner being deleted: record the deletion":                 {state: in(deleting, released, deletePolicy).with(func(o *observation) { o.provisioner.DeletionTimestamp = &now }), want: stepMarkDeleted},
		"PersistentVolume removed by force, no claim: delete the storage":          {state: without(ready, deletePolicy), want: stepMarkDeleted},
		"PersistentVolume removed by force, claim still bound: wait":               {state: without(ready, deletePolicy).with(func(o *observation) { o.claim = claimBound }), want: stepWait, message: "removed by force"},
		"PersistentVolume of the name has another handle: leave it":                {state: in(deleting, released, deletePolicy).with(func(o *observation) { o.pv.Spec.CSI.VolumeHandle = "other" }).with(deletedStorage), want: stepForget},
		"retained, both policies changed to Delete: delete the storage":            {state: in(retained, released, deletePolicy), want: stepMarkDeleted},
		"retained, PavVolume changed to Delete: align":                             {state: in(retained, released, retainPolicy).with(func(o *observation) { o.volume.Spec.ReclaimPolicy = deletePolicy }), want: stepAlign},
		"retained, PavVolume changed to Delete, with finalizer: nothing to do until it is deleted": {state: in(retained, released, retainPolicy).with(func(o *observation) {
			o.volume.Spec.ReclaimPolicy = deletePolicy
			o.volume.Finalizers = []string{pavv1.VolumeFinalizer}
		}), want: stepDone},
		"retained, PavVolume changed to Delete and deleted: align": {state: in(retained, released, retainPolicy).with(func(o *observation) {
			o.volume.Spec.ReclaimPolicy = deletePolicy
			o.volume.Finalizers = []string{pavv1.VolumeFinalizer}
		}).deleted(), want: stepAlign},
		"retained, both policies Delete, no finalizer: align first":                        {state: in(retained, released, deletePolicy).with(func(o *observation) { o.volume.Finalizers = nil }), want: stepAlign},
		"retained without PersistentVolume, Delete, PavVolume deleted: delete the storage": {state: without(retained, deletePolicy).deleted(), want: stepMarkDeleted},

		// Released, Retain.
		"released with policy Retain: record it":                                                 {state: in(ready, released, retainPolicy), want: stepRetain},
		"retained, PavVolume has the finalizer: align":                                           {state: in(retained, released, retainPolicy).with(func(o *observation) { o.volume.Finalizers = []string{pavv1.VolumeFinalizer} }), want: stepAlign},
		"retained: nothing to do":                                                                {state: in(retained, released, retainPolicy), want: stepDone},
		"policy Retain, PersistentVolume gone: record it":                                        {state: without(ready, retainPolicy), want: stepRetain},
		"PersistentVolume gone, finalizer of the PavVolume missing: align":                       {state: without(ready, deletePolicy).with(func(o *observation) { o.volume.Finalizers = nil }), want: stepAlign},
		"retained, PersistentVolume gone: nothing to do":                                         {state: without(retained, retainPolicy), want: stepDone},
		"retained, PersistentVolume gone, changed to Delete: nothing to do until it is deleted":  {state: without(retained, deletePolicy), want: stepDone},
		"retained, PersistentVolume removed by force before its claim was bound: tell the claim": {state: without(retained, retainPolicy).with(func(o *observation) { o.claim = claimWaits }), want: stepWait, message: "removed by force before the claim was bound"},
		"policy Retain, staged on a node: retain it all the same":                                {state: in(ready, released, retainPolicy).with(func(o *observation) { o.others = stagedOn("n1") }), want: stepRetain},
		"policy Retain, PersistentVolume with finalizer deleted by hand: align":                  {state: in(ready, released, retainPolicy).with(func(o *observation) { o.pv.DeletionTimestamp = &now; o.pv.Finalizers = []string{pavv1.PVFinalizer} }), want: stepAlign},
		"changed to Retain before the deletion pod: align":                                       {state: in(deleting, released, deletePolicy).with(func(o *observation) { o.pv.Spec.PersistentVolumeReclaimPolicy = retainPolicy }), want: stepAlign},
		"policy Retain while being deleted, no deletion pod: retain":                             {state: in(deleting, released, retainPolicy), want: stepRetain},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := decideIn(test.state.o)
			if got.Step != test.want {
				t.Errorf("got step %s (%s), want %s", got.Step, got.Message, test.want)
			}
			if !strings.Contains(got.Message, test.message) || (test.message == "") != (got.Message == "") {
				t.Errorf("got message %q, want it to contain %q", got.Message, test.message)
			}
		})
	}
}

// A former leader must not return a node again and again, as long as it has yet to see that another one has recorded that.
func TestNeedsWhole_OfAStepThatAFormerLeaderWouldRepeat(t *testing.T) {
	if !needsWhole(stepReturnNode) {
		t.Errorf("%s is taken with a record that may be old", stepReturnNode)
	}
}
