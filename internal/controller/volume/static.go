package volume

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/reading"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/podplan/topology"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// staticTable is for the record of a volume that an administrator wrote. It has no step that deletes storage or writes more to the
// PersistentVolume than its capacity and attributes: both belong to the administrator.
var staticTable = table{
	{Name: "it is not recorded what the static volume is", When: func(o observation) bool { return o.lacksStatic() && !o.deleting() }, Then: to(stepRecordStatic)},
	{Name: "the UID of the pod of the static volume is not recorded", When: func(o observation) bool { return o.attempt().IsUnrecorded() }, Then: to(stepRecordPod)},
	{Name: "what a failed pod of the static volume left is not recorded", When: observation.isReportedLate, Then: to(stepRecordLateMessage)},
	{Name: "a pod that changes the static volume is recorded", When: observation.changing, Then: changePodTable.Decide},
	{Name: "a pod reads the static volume whose record is not needed", When: func(o observation) bool { return o.isUnneeded() && len(o.readers) > 0 }, Then: to(stepDone)},
	// A later claim must not be told what the storage was before.
	{Name: "the static volume changed while its claim went", When: func(o observation) bool { return o.isUnneeded() && o.isAheadOfPV() }, Then: to(stepUpdatePV)},
	{Name: "another claim has a static volume that a failed pod may have changed", When: func(o observation) bool { return o.remembers() && o.hasStaticOfAny() }, Then: to(stepRecordStatic)},
	{Name: "no claim has a static volume that a failed pod may have changed", When: observation.remembers, Then: to(stepDone)},
	{Name: "the record of the static volume is not needed", When: observation.isUnneeded, Then: to(stepDropRecord)},
	{Name: "the static volume is in use", When: always, Then: decideStaticUse},
}

// hasStatic reports whether the claim of the record has the static volume, and hasStaticOfAny whether a claim has it.
func (o observation) hasStatic() bool {
	return o.hasStaticOfAny() && o.pv.Spec.ClaimRef.UID == o.volume.Spec.ClaimRef.UID
}

func (o observation) hasStaticOfAny() bool {
	pv := o.ownPV()
	return pv != nil && reconcile.IsStatic(pv) && pv.Status.Phase == corev1.VolumeBound && pv.Spec.ClaimRef != nil
}

// knowsStatic reports whether the record says what the static volume is, whose PersistentVolume exists.
func (o observation) knowsStatic() bool {
	pv, status := o.ownPV(), &o.volume.Status
	return pv != nil && reconcile.IsStatic(pv) && status.RecordUID == o.volume.UID && status.Capacity != nil
}

// remembers reports whether the record is kept for the next claim: a pod that failed may have made the static volume larger, or
// changed its attributes.
func (o observation) remembers() bool {
	if !o.isUnneeded() || o.deleting() || o.lacksProvisioner() || !o.knowsStatic() {
		return false
	}
	status := &o.volume.Status
	expansion := status.Expansion
	return status.LargestCapacity().Cmp(*status.Capacity) > 0 || expansion != nil && expansion.Uncertain || status.Modification.HasEffects()
}

// isUnneeded reports whether the record of a static volume is to be deleted: its claim does not have the volume any more, its
// provisioner is deleted, or someone has deleted it. One that is needed nevertheless is written again.
func (o observation) isUnneeded() bool { return o.deleting() || o.lacksProvisioner() || !o.hasStatic() }

// isAheadOfPV reports whether the static volume has more than its PersistentVolume says, or other attributes.
func (o observation) isAheadOfPV() bool { return o.knowsStatic() && o.pvBehind() }

// decideStaticUse is decideUse for a static volume. Nothing tells which of several PersistentVolumes with one handle may change the
// storage.
func decideStaticUse(o observation) decision {
	d := decideUse(o)
	shared := slices.IndexFunc(o.others, func(h reconcile.Holder) bool { return h.Kind != reconcile.KindStage && h.Phase != pavv1.VolumeRetained })
	condition, begins := map[step]string{stepHold: pavv1.VolumeExpanded, stepExpand: pavv1.VolumeExpanded, stepModify: pavv1.VolumeModified}[d.Step]
	if shared < 0 || !begins {
		return d
	}
	other := rule.Waiting(condition, "HandleInUse", fmt.Sprintf("the handle %q is also that of %s %q: nothing changes storage that several objects have", o.volume.Status.Handle, o.others[shared].Kind, o.others[shared].Name), true)
	other.Rule = d.Rule
	return other
}

// lacksStatic reports whether the record of a static volume in use does not say what the volume is: it is new, or was restored from a
// backup, or the administrator has made the PersistentVolume larger.
func (o observation) lacksStatic() bool {
	status := &o.volume.Status
	if !o.hasStatic() {
		return false
	}
	if o.pending() || status.RecordUID != o.volume.UID || status.Capacity == nil || !controllerutil.ContainsFinalizer(o.volume, pavv1.VolumeFinalizer) {
		return true
	}
	return !o.changing() && status.Capacity.Cmp(o.pv.Spec.Capacity[corev1.ResourceStorage]) < 0
}

// recordStatic records what a static volume is, from the PersistentVolume that the API server has.
func (r *Reconciler) recordStatic(ctx context.Context, o observation, d decision) error {
	live, err := r.confirmed(ctx, o, d)
	if err != nil {
		return err
	}
	pv := live.pv
	if o.volume.Spec.ClaimRef.UID != pv.Spec.ClaimRef.UID {
		changed := o.volume.DeepCopy()
		changed.Spec.ClaimRef = claimReference(pv)
		return r.patchVolume(ctx, o.volume, changed)
	}
	within, known := topology.OfAffinity(pv.Spec.NodeAffinity)
	if !known {
		return r.reportPlace(pv)
	}
	if protected := o.volume.DeepCopy(); controllerutil.AddFinalizer(protected, pavv1.VolumeFinalizer) {
		return r.patchVolume(ctx, o.volume, protected) // and the next pass records the rest
	}
	var readers []pavv1.Reader
	if o.volume.Status.RecordUID != o.volume.UID {
		if readers, err = r.readersOfStatic(ctx, live, pv.Spec.CSI.VolumeHandle); err != nil {
			return err
		}
	}
	attributes := o.volume.Status.Attributes
	if attributes == nil || o.volume.Status.RecordUID != o.volume.UID {
		if attributes, err = r.attributesOfStatic(ctx, pv); err != nil {
			return err
		}
	}
	return r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		if status.RecordUID != o.volume.UID { // nothing is known of pods of another record
			*status = pavv1.PavVolumeStatus{Pods: status.Pods, Readers: readers}
		}
		capacity := pv.Spec.Capacity[corev1.ResourceStorage]
		status.Phase, status.RecordUID, status.Handle = pavv1.VolumeReady, o.volume.UID, pv.Spec.CSI.VolumeHandle
		status.Capacity, status.AccessibleTopology = &capacity, within
		status.Attributes = attributes
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: pavv1.VolumeProvisioned, Status: metav1.ConditionTrue,
			Reason: "Static", Message: "an administrator wrote the PersistentVolume", ObservedGeneration: o.volume.Generation})
	})
}

// attributesOfStatic returns the attributes of the class that a PersistentVolume names, or nil. They have no parameters if there is no
// such class.
func (r *Reconciler) attributesOfStatic(ctx context.Context, pv *corev1.PersistentVolume) (*pavv1.VolumeAttributes, error) {
	named := pv.Spec.VolumeAttributesClassName
	if named == nil || *named == "" {
		return nil, nil
	}
	attributes := &pavv1.VolumeAttributes{Class: *named}
	class, err := reconcile.AttributesClass(ctx, r.Live, *named)
	if class != nil {
		attributes.Parameters = class.Parameters
	}
	return attributes, err
}

// claimReference returns the claim that a PersistentVolume is bound to.
func claimReference(pv *corev1.PersistentVolume) pavv1.ClaimReference {
	return pavv1.ClaimReference{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name, UID: pv.Spec.ClaimRef.UID}
}

// readersOfStatic asks the API server for the snapshots and volumes whose creation pods may read a static volume that had no record when
// they were recorded.
func (r *Reconciler) readersOfStatic(ctx context.Context, o observation, handle string) ([]pavv1.Reader, error) {
	var readers []pavv1.Reader
	volume, unstaged := o.volume, reading.WhileStaged(o.provisioner) == pavv1.SnapshotWait
	snapshots, provisioner := &pavv1.PavSnapshotList{}, volume.Spec.Provisioner
	if err := r.Live.List(ctx, snapshots, client.MatchingLabels{pavv1.ProvisionerLabel: provisioner, pavv1.VolumeLabel: workflow.Hash(volume.Name)}); err != nil {
		return nil, fmt.Errorf("asking for the snapshots of volume %q: %w", volume.Name, err)
	}
	for i := range snapshots.Items {
		if s := &snapshots.Items[i]; s.Spec.VolumeName == volume.Name && s.Spec.VolumeHandle == handle && s.Status.Step == pavv1.SnapshotCreating && s.Status.Pod != nil && s.Status.Handle == "" {
			readers = append(readers, pavv1.Reader{Kind: reading.KindSnapshot, Name: s.Name, Unstaged: unstaged})
		}
	}
	copies, key := &pavv1.PavVolumeList{}, pavv1.SourceVolume(handle)
	if err := r.Live.List(ctx, copies, client.MatchingLabels{pavv1.ProvisionerLabel: provisioner, pavv1.SourceLabel: workflow.Hash(key)}); err != nil {
		return nil, fmt.Errorf("asking for the volumes that are created from %s: %w", key, err)
	}
	for i := range copies.Items {
		if v := &copies.Items[i]; v.IsFrom(provisioner, key) && v.IsInTheMaking() && v.Status.Step == pavv1.StepCreating && v.Status.Pod != nil {
			readers = append(readers, pavv1.Reader{Kind: reading.KindVolume, Name: v.Name, Unstaged: unstaged})
		}
	}
	return readers, nil
}

// dropRecord deletes the record of a static volume. The storage is the administrator's.
func (r *Reconciler) dropRecord(ctx context.Context, o observation, d decision) error {
	if err := r.confirm(ctx, o, d); err != nil {
		return err
	}
	_, err := r.remove(ctx, o.volume)
	return err
}

// keepsRecord reports whether volumes that administrators write get a record: something may change them, or read them.
func keepsRecord(p *pavv1.PavProvisioner) bool {
	spec := &p.Spec
	return p.IsAccepted() && p.DeletionTimestamp == nil && p.Supports(pavv1.ProvisioningModeStatic) &&
		(spec.VolumeExpansion != nil || spec.VolumeModification != nil || spec.SnapshotCreation != nil || podplan.CanCreateFrom(spec.VolumeCreation, pavv1.DataSourceClaim))
}

// settleStatic writes the record of a static volume that has none, if it needs one.
func (r *Reconciler) settleStatic(ctx context.Context, name string) error {
	if pv, err := r.unrecorded(ctx, r.Client, name); err != nil || pv == nil {
		return err
	}
	pv, err := r.unrecorded(ctx, r.Live, name)
	if err != nil || pv == nil {
		return err
	}
	if _, known := topology.OfAffinity(pv.Spec.NodeAffinity); !known {
		return r.reportPlace(pv)
	}
	nothing := apiextensionsv1.JSON{Raw: []byte("{}")}
	volume := &pavv1.PavVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{pavv1.ProvisionerLabel: pv.Spec.CSI.Driver}, Finalizers: []string{pavv1.VolumeFinalizer}},
		Spec: pavv1.PavVolumeSpec{
			Provisioner: pv.Spec.CSI.Driver, Static: true, ReclaimPolicy: corev1.PersistentVolumeReclaimRetain, StorageClass: nothing, Claim: nothing,
			ClaimRef: claimReference(pv),
		},
	}
	if err := r.Client.Create(ctx, volume); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("writing PavVolume %q: %w", name, err)
	}
	return nil
}

// unrecorded returns the PersistentVolume of a name if it is a static volume that gets a record, or nil.
func (r *Reconciler) unrecorded(ctx context.Context, reader client.Reader, name string) (*corev1.PersistentVolume, error) {
	pv, err := reconcile.Optional(ctx, reader, types.NamespacedName{Name: name}, &corev1.PersistentVolume{})
	if err != nil || pv == nil || !reconcile.IsStaticInUse(pv) {
		return nil, err
	}
	provisioner, err := reconcile.Optional(ctx, reader, types.NamespacedName{Name: pv.Spec.CSI.Driver}, &pavv1.PavProvisioner{})
	if err != nil || provisioner == nil || !keepsRecord(provisioner) {
		return nil, err
	}
	return pv, nil
}

// reportPlace records an event on a static PersistentVolume of which PaV cannot tell from which nodes it can be used: pods that change
// or read it could run elsewhere.
func (r *Reconciler) reportPlace(pv *corev1.PersistentVolume) error {
	const message = "spec.nodeAffinity: only matchExpressions with the operator In are supported for volumes that are to grow, be modified, be cloned or have snapshots: none of this is done"
	return r.tellOfOrphan(pv, message, func() { r.Events.Event(pv, corev1.EventTypeWarning, protocol.VolumeExpansionUnsupported, message) })
}

// staticOf returns requests for the static volumes of a provisioner: its definition may have changed, so that they get records now.
func (r *Reconciler) staticOf(ctx context.Context, object client.Object) []ctrl.Request {
	if p, ok := object.(*pavv1.PavProvisioner); !ok || !keepsRecord(p) {
		return nil
	}
	return r.pvsBy(ctx, reconcile.StaticPVsByDriver, object.GetName())
}
