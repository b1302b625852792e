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

// noon is when everything is observed.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// state builds what is observed of a volume.
type state struct{ o snapshot }

// fresh is a PavVolume as the claim's controller writes it.
func fresh() *state {
	return &state{snapshot{
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

// recorded is one whose handle is known.
func recorded() *state {
	s := fresh()
	s.o.volume.Status = pavv1.PavVolumeStatus{Phase: pavv1.VolumePending, Handle: "h", Capacity: ptrQuantity("1Gi")}
	return s
}

// in has a PersistentVolume of a phase and policy, to which finalizers and policies are aligned.
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

// without has had a PersistentVolume, which is gone.
func without(phase pavv1.VolumePhase, policy corev1.PersistentVolumeReclaimPolicy) *state {
	s := in(phase, "", policy)
	s.o.pv = nil
	return s
}

func (s *state) with(change func(*snapshot)) *state { change(&s.o); return s }

func (s *state) deleted() *state {
	return s.with(func(o *snapshot) { now := metav1.Now(); o.volume.DeletionTimestamp = &now })
}

func ptrQuantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

func field(text string) *pavv1.Template { return &apiextensionsv1.JSON{Raw: []byte(text)} }

func withDeletionPod(o *snapshot) {
	o.provisioner.Spec.VolumeDeletion = &pavv1.VolumeDeletion{PodTemplate: field(`{}`)}
}

// stagedOn are the stages of a volume on nodes.
func stagedOn(nodes ...string) (stages []reconcile.Holder) {
	for _, node := range nodes {
		stages = append(stages, reconcile.Holder{Kind: reconcile.KindStage, Name: "stage-" + node, Node: node})
	}
	return stages
}

// heldBy lets others hold the volume's storage.
func heldBy(others ...reconcile.Holder) func(*snapshot) {
	return func(o *snapshot) { o.others = others }
}

func holder(kind, name string, phase pavv1.VolumePhase) reconcile.Holder {
	return reconcile.Holder{Kind: kind, Name: name, Phase: phase}
}

func deletedStorage(o *snapshot) { o.volume.Status.Step = pavv1.StepDeleted }

// givenAway has given the PersistentVolume that PaV wrote to another claim.
func givenAway(o *snapshot) {
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
		// In the making.
		"a new volume is provisioned":                        {state: fresh(), want: stepBegin},
		"a recorded handle becomes a PersistentVolume":       {state: recorded(), want: stepWritePV},
		"the CSIDriver comes before the PersistentVolume":    {state: recorded().with(func(o *snapshot) { o.registered = false }), want: stepDone},
		"a claim deleted before provisioning":                {state: fresh().with(func(o *snapshot) { o.claim = claimGone }), want: stepForget},
		"a claim deleted before the PersistentVolume":        {state: recorded().with(func(o *snapshot) { o.claim = claimGone }), want: stepForget},
		"a retained class makes no difference to that":       {state: recorded().with(func(o *snapshot) { o.claim = claimGone; o.volume.Spec.ReclaimPolicy = retainPolicy }), want: stepForget},
		"a claim bound to another volume meanwhile":          {state: recorded().with(func(o *snapshot) { o.claim = claimElsewhere }), want: stepForget},
		"a PavVolume deleted by hand while in the making":    {state: recorded().deleted(), want: stepForget},
		"a provisioner that vanished":                        {state: fresh().with(func(o *snapshot) { o.provisioner = nil }), want: stepForget},
		"a provisioner under deletion":                       {state: fresh().with(func(o *snapshot) { o.provisioner.DeletionTimestamp = &now }), want: stepForget},
		"a PersistentVolume of another driver is in the way": {state: recorded().with(func(o *snapshot) { o.pv = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1"}} }), want: stepWait, message: `PersistentVolume "pvc-u1" exists and is not this claim's`},
		"a PersistentVolume of another claim is in the way":  {state: in(pavv1.VolumePending, bound, deletePolicy).with(func(o *snapshot) { o.claim = claimWaits; o.pv.Spec.ClaimRef.UID = "u0" }), want: stepWait, message: "is not this claim's"},
		"also before anything is done":                       {state: fresh().with(func(o *snapshot) { o.pv = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1"}} }), want: stepRefuse, message: "exists and is not this claim's"},
		"a definition that is not accepted": {state: fresh().with(func(o *snapshot) {
			o.provisioner.Status.Conditions = []metav1.Condition{{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionFalse, Message: "choose another name"}}
		}), want: stepRefuse, message: "it cannot be used: choose another name"},
		"a definition that is static by now":                   {state: fresh().with(func(o *snapshot) { o.provisioner.Spec.ProvisioningModes = []pavv1.ProvisioningMode{"Static"} }), want: stepRefuse, message: "spec.provisioningModes: is [Static], without Dynamic"},
		"the scheduler comes first":                            {state: fresh().with(func(o *snapshot) { o.waitsForNode = true }), want: stepDone},
		"a PersistentVolume written before a crash is adopted": {state: in(pavv1.VolumePending, available, deletePolicy), want: stepMarkReady},
		"also one that a populator has given to another claim": {state: in(pavv1.VolumePending, bound, deletePolicy).with(givenAway), want: stepMarkReady},
		"also where a creation pod made its storage":           {state: in(pavv1.VolumePending, bound, deletePolicy).with(givenAway).with(func(o *snapshot) { o.volume.Status.Plan = &pavv1.VolumePlan{} }), want: stepMarkReady},
		"also while the first claim is still there":            {state: in(pavv1.VolumePending, bound, deletePolicy).with(givenAway).with(func(o *snapshot) { o.claim = claimBound }), want: stepMarkReady},
		"also where the ledger lost the handle":                {state: in("", bound, deletePolicy).with(func(o *snapshot) { o.volume.Status = pavv1.PavVolumeStatus{} }), want: stepMarkReady},

		// In use.
		"a bound volume needs nothing":                       {state: in(ready, bound, deletePolicy), want: stepDone},
		"also when its provisioner is gone":                  {state: in(ready, bound, deletePolicy).with(func(o *snapshot) { o.provisioner = nil }), want: stepDone},
		"a changed reclaim policy is taken over":             {state: in(ready, bound, deletePolicy).with(func(o *snapshot) { o.pv.Spec.PersistentVolumeReclaimPolicy = retainPolicy }), want: stepAlign},
		"a missing finalizer is put back":                    {state: in(ready, bound, deletePolicy).with(func(o *snapshot) { o.volume.Finalizers = nil }), want: stepAlign},
		"a missing finalizer of the PV is put back":          {state: in(ready, bound, deletePolicy).with(func(o *snapshot) { o.pv.Finalizers = nil }), want: stepAlign},
		"a finalizer on a retained PV is taken away":         {state: in(ready, bound, retainPolicy).with(func(o *snapshot) { o.pv.Finalizers = []string{pavv1.PVFinalizer} }), want: stepAlign},
		"a PavVolume deleted by hand waits":                  {state: in(ready, bound, deletePolicy).deleted(), want: stepWait, message: `PersistentVolume "pvc-u1" is still in use`},
		"a PV deleted by hand while bound stays":             {state: in(ready, bound, deletePolicy).with(func(o *snapshot) { o.pv.DeletionTimestamp = &now }), want: stepDone},
		"a claim bound to the volume again makes it ready":   {state: in(deleting, bound, deletePolicy), want: stepMarkReady},
		"a retained volume that waits for a claim":           {state: in(retained, available, retainPolicy), want: stepDone},
		"a retained volume with a new claim is in use again": {state: in(retained, bound, retainPolicy).with(func(o *snapshot) { o.volume.Finalizers = []string{pavv1.VolumeFinalizer} }), want: stepMarkReady},
		"its finalizer comes first":                          {state: in(retained, bound, retainPolicy), want: stepAlign},

		// Released, Delete.
		"deletion is recorded first":                        {state: in(ready, released, deletePolicy), want: stepMarkDeleted},
		"then the PersistentVolume goes":                    {state: in(deleting, released, deletePolicy).with(deletedStorage), want: stepDeletePV},
		"and goes on going":                                 {state: in(deleting, released, deletePolicy).with(func(o *snapshot) { o.pv.DeletionTimestamp = &now }).with(deletedStorage), want: stepDeletePV},
		"then the PavVolume":                                {state: without(deleting, deletePolicy).with(deletedStorage), want: stepForget},
		"a PV deleted by hand before it was bound":          {state: in(ready, available, deletePolicy).with(func(o *snapshot) { o.pv.DeletionTimestamp = &now }), want: stepMarkDeleted},
		"a stage holds it":                                  {state: in(deleting, released, deletePolicy).with(func(o *snapshot) { o.others = stagedOn("n1") }), want: stepWait, message: "waiting for the volume to be unstaged on node n1"},
		"many stages are not all named":                     {state: in(deleting, released, deletePolicy).with(func(o *snapshot) { o.others = stagedOn("a", "b", "c", "d") }), want: stepWait, message: "nodes a, b, c and 1 more"},
		"a stage holds it when the PV was removed, too":     {state: without(deleting, deletePolicy).with(func(o *snapshot) { o.others = stagedOn("n1") }), want: stepWait, message: "node n1"},
		"without provisioner nothing is deleted":            {state: in(deleting, released, deletePolicy).with(func(o *snapshot) { o.provisioner = nil }), want: stepWait, message: `PavProvisioner "demo" does not exist`},
		"a deletion pod is never skipped":                   {state: in(deleting, released, deletePolicy).with(withDeletionPod), want: stepDelete},
		"a provisioner under deletion deletes its volumes":  {state: in(deleting, released, deletePolicy).with(func(o *snapshot) { o.provisioner.DeletionTimestamp = &now }), want: stepMarkDeleted},
		"a PV removed by force is deleted once unclaimed":   {state: without(ready, deletePolicy), want: stepMarkDeleted},
		"a PV removed by force waits for its claim":         {state: without(ready, deletePolicy).with(func(o *snapshot) { o.claim = claimBound }), want: stepWait, message: "removed by force"},
		"another's PV of the same name is not touched":      {state: in(deleting, released, deletePolicy).with(func(o *snapshot) { o.pv.Spec.CSI.VolumeHandle = "other" }).with(deletedStorage), want: stepForget},
		"a retained volume that is to be deleted after all": {state: in(retained, released, deletePolicy), want: stepMarkDeleted},
		"the record asks for it instead":                    {state: in(retained, released, retainPolicy).with(func(o *snapshot) { o.volume.Spec.ReclaimPolicy = deletePolicy }), want: stepAlign},
		"with its finalizer it waits to be deleted, too": {state: in(retained, released, retainPolicy).with(func(o *snapshot) {
			o.volume.Spec.ReclaimPolicy = deletePolicy
			o.volume.Finalizers = []string{pavv1.VolumeFinalizer}
		}), want: stepDone},
		"then the PV agrees": {state: in(retained, released, retainPolicy).with(func(o *snapshot) {
			o.volume.Spec.ReclaimPolicy = deletePolicy
			o.volume.Finalizers = []string{pavv1.VolumeFinalizer}
		}).deleted(), want: stepAlign},
		"its finalizer comes back before":                    {state: in(retained, released, deletePolicy).with(func(o *snapshot) { o.volume.Finalizers = nil }), want: stepAlign},
		"the same without PV, when the PavVolume is deleted": {state: without(retained, deletePolicy).deleted(), want: stepMarkDeleted},

		// Released, Retain.
		"a released volume is retained":             {state: in(ready, released, retainPolicy), want: stepRetain},
		"then its record holds nothing":             {state: in(retained, released, retainPolicy).with(func(o *snapshot) { o.volume.Finalizers = []string{pavv1.VolumeFinalizer} }), want: stepAlign},
		"and stays":                                 {state: in(retained, released, retainPolicy), want: stepDone},
		"a retained volume whose PV is gone":        {state: without(ready, retainPolicy), want: stepRetain},
		"and stays, too":                            {state: without(retained, retainPolicy), want: stepDone},
		"changed to Delete it waits to be deleted":  {state: without(retained, deletePolicy), want: stepDone},
		"a stage makes no difference to it":         {state: in(ready, released, retainPolicy).with(func(o *snapshot) { o.others = stagedOn("n1") }), want: stepRetain},
		"a retained PV deleted by hand is let go":   {state: in(ready, released, retainPolicy).with(func(o *snapshot) { o.pv.DeletionTimestamp = &now; o.pv.Finalizers = []string{pavv1.PVFinalizer} }), want: stepAlign},
		"changed to Retain while it waits to go":    {state: in(deleting, released, deletePolicy).with(func(o *snapshot) { o.pv.Spec.PersistentVolumeReclaimPolicy = retainPolicy }), want: stepAlign},
		"changed to Retain while deleting retained": {state: in(deleting, released, retainPolicy), want: stepRetain},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := decide(test.state.o)
			if got.step != test.want {
				t.Errorf("got step %s (%s), want %s", got.step, got.message, test.want)
			}
			if !strings.Contains(got.message, test.message) || (test.message == "") != (got.message == "") {
				t.Errorf("got message %q, want it to contain %q", got.message, test.message)
			}
		})
	}
}
