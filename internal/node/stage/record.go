package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/workflow"
)

// provisionedBy is the annotation with the provisioner of a dynamically provisioned volume.
const provisionedBy = "pv.kubernetes.io/provisioned-by"

// record writes the subject's PavStage on this node, before anything is done. The node's own record is written first:
// a record without a PavStage is removed, while a PavStage without a record would have to be searched for.
func (t *task) record(ctx context.Context, attempt int32) error {
	stage, err := t.newStage(ctx)
	if err != nil || stage == nil {
		return err // The creation pod has ended meanwhile: observe it again.
	}
	if free, err := t.checkOthers(ctx, stage); err != nil || !free {
		return err // Another node has unstaged the volume: observe it again.
	}
	if err := t.keepRecord(ctx, stage); err != nil {
		return err
	}
	err = t.client.Create(ctx, stage)
	if apierrors.IsAlreadyExists(err) {
		return t.contend(ctx, stage)
	}
	if err != nil {
		return fmt.Errorf("creating PavStage %q: %w", stage.Name, err)
	}
	t.stage = stage
	if attempt > 1 {
		return t.begin(ctx, attempt) // Nobody else knows how many there were.
	}
	// The next step writes it, if it writes the status. Otherwise it is as if the call had ended here.
	t.setBegun(&stage.Status, attempt)
	t.written = true
	return nil
}

// begin writes the first status of a stage. The call that created the stage may have ended before that.
func (t *task) begin(ctx context.Context, attempt int32) error {
	err := t.update(ctx, func(status *pavv1.PavStageStatus) { t.setBegun(status, attempt) })
	t.written = err == nil
	return err
}

func (t *task) setBegun(status *pavv1.PavStageStatus, attempt int32) {
	status.Attempt = attempt
	t.noteBoot(status)
	status.Validated = !needsValidation(t.stage)
	t.setReady(t.stage, metav1.ConditionFalse, "Staging", "the volume is about to be staged")
}

// keepRecord writes the node's own record of a stage.
func (s *Stager) keepRecord(ctx context.Context, stage *pavv1.PavStage) error {
	volume := &corev1.PersistentVolume{}
	if err := json.Unmarshal(stage.Spec.Volume.Raw, volume); err != nil {
		return fmt.Errorf("reading the persistent volume of PavStage %q: %w", stage.Name, err)
	}
	spec := &stage.Spec
	record := pavdir.Stage{
		Driver: spec.Provisioner, Handle: spec.VolumeHandle, VolumeName: spec.VolumeName,
		Mode: spec.VolumeMode, Scope: string(spec.Scope), ReadOnly: spec.ReadOnly, Exclusive: spec.Exclusive,
		Capacity:       volume.Spec.Capacity.Storage().Value(),
		Restaging:      stage.Status.Restaging && !isCovering(&stage.Status),
		ClaimNamespace: spec.ClaimRef.Namespace, ClaimName: spec.ClaimRef.Name, ClaimUID: spec.ClaimRef.UID,
		Boot: s.boot,
	}
	if c := spec.Client; c != nil {
		record.Client = &pavdir.Client{Namespace: c.Namespace, Name: c.Name, UID: c.UID, Target: c.Target}
	}
	return s.dirs.Record(ctx, stage.Name, record)
}

// repairRecord writes the node's own record of a stage again if it is lost or torn. The caller must have locked the
// stage.
func (s *Stager) repairRecord(ctx context.Context, stage *pavv1.PavStage) error {
	if has, err := s.hasRecord(ctx, stage.Name); err != nil || has {
		return err
	}
	return s.keepRecord(ctx, stage)
}

// hasRecord reports whether the node has a readable record of a stage.
func (s *Stager) hasRecord(ctx context.Context, stage string) (bool, error) {
	record, err := s.dirs.Recorded(ctx, stage)
	if errors.Is(err, pavdir.ErrTorn) {
		return false, nil
	}
	return record != nil, err
}

// RestoreRecord is repairRecord for a stage that is Staged, between calls for it. It does nothing during a call,
// whose end the monitor sees.
func (s *Stager) RestoreRecord(ctx context.Context, stage *pavv1.PavStage) error {
	if stage == nil || stage.Status.Phase != pavv1.StageStaged {
		return nil
	}
	if has, err := s.hasRecord(ctx, stage.Name); err != nil || has {
		return err
	}
	of := Subject{Volume: Volume{Driver: stage.Spec.Provisioner, Handle: stage.Spec.VolumeHandle}}
	if stage.Spec.Client != nil {
		of.Target = stage.Spec.Client.Target
	}
	release, err := s.Lock(of)
	if err != nil {
		return nil
	}
	defer release()
	now, err := s.stageOf(ctx, of)
	if err != nil || now == nil || now.UID != stage.UID || now.Status.Phase != pavv1.StageStaged {
		return err
	}
	return s.repairRecord(ctx, now)
}

// newStage returns the subject's new PavStage; nil if it has waited, so that what it has read may be old. The error is
// ErrRefused if the volume cannot be staged.
func (t *task) newStage(ctx context.Context) (*pavv1.PavStage, error) {
	rawVolume, volume, err := t.findVolume(ctx)
	if err != nil {
		return nil, err
	}
	provisioner, err := t.checkVolume(ctx, rawVolume, volume)
	if err != nil {
		if errors.Is(err, ErrRefused) {
			t.reportToClaimOf(volume, err)
		}
		return nil, err
	}
	var rawClaim apiextensionsv1.JSON
	var claim *corev1.PersistentVolumeClaim
	var record *pavv1.PavVolume
	err = t.together(ctx,
		func(ctx context.Context) (err error) {
			rawClaim, claim, err = t.findClaim(ctx, volume)
			return err
		},
		func(ctx context.Context) (err error) {
			record, err = t.recordOf(ctx, volume)
			return err
		})
	if err != nil {
		return nil, err
	}
	if record != nil && record.Status.CreationPod != nil {
		return nil, t.awaitCreation(ctx, record)
	}
	if withheldTo(record) != "" {
		return nil, t.awaitRelease(ctx, record)
	}
	provisioned := podplan.ProvisionedClaim(record, t.Driver, t.Handle)
	if err := checkProvisionedClaim(volume.Name, provisioned); err != nil {
		return nil, err
	}
	scope := provisioner.Scope()
	if t.ofClient() {
		holder, err := t.holder(ctx)
		if err != nil {
			return nil, err
		}
		scope = holder.Spec.Scope
	}
	stage := &pavv1.PavStage{ObjectMeta: t.metaOf(volume), Spec: podplan.StageSpec(volume, claim, t.node)}
	stage.Spec.Scope, stage.Spec.Volume, stage.Spec.Claim, stage.Spec.ProvisionedClaim = scope, rawVolume, rawClaim, provisioned
	stage.Spec.Bucket = podplan.BucketOf(record, t.Driver, t.Handle)
	stage.Spec.ReadOnly = stage.Spec.ReadOnly || t.ofClient() && t.readOnly
	if t.ofClient() {
		stage.Spec.Client = &pavv1.StageClient{Namespace: t.user.Namespace, Name: t.user.Name, UID: t.user.UID, Target: t.Target}
	}
	return stage, nil
}

func (t *task) metaOf(volume *corev1.PersistentVolume) metav1.ObjectMeta {
	name := podplan.StageName(volume, t.node)
	if t.ofClient() {
		name = t.clientName(t.Volume, t.Target)
	}
	return metav1.ObjectMeta{
		Name:       name,
		Finalizers: []string{pavv1.StageFinalizer},
		Labels: map[string]string{
			pavv1.ProvisionerLabel: t.Driver,
			pavv1.NodeLabel:        workflow.Hash(t.node),
			pavv1.VolumeLabel:      workflow.Hash(volume.Name),
		},
		// It has no owner: a foreground deletion of the PersistentVolume would delete the pods while clients run.
	}
}

// findVolume returns the PersistentVolume with the driver and handle of the call.
func (t *task) findVolume(ctx context.Context) (apiextensionsv1.JSON, *corev1.PersistentVolume, error) {
	volume := &corev1.PersistentVolume{}
	names, err := t.catalogue.VolumeNames(ctx, t.Driver, t.Handle)
	if err != nil {
		return apiextensionsv1.JSON{}, nil, err
	}
	unknown := fmt.Errorf("%w: provisioner %q, handle %q", ErrUnknownVolume, t.Driver, t.Handle)
	switch len(names) {
	case 0:
		return apiextensionsv1.JSON{}, nil, unknown
	case 1:
	default:
		return apiextensionsv1.JSON{}, nil, t.rejectDuplicatePVs(ctx, t.Volume, names)
	}
	raw, err := t.read(ctx, "PersistentVolume", client.ObjectKey{Name: names[0]}, volume)
	if apierrors.IsNotFound(err) || err == nil && !isOf(volume, t.Volume) {
		return raw, nil, unknown
	}
	return raw, volume, err
}

// isOf reports whether a PersistentVolume has the driver and handle.
func isOf(volume *corev1.PersistentVolume, v Volume) bool {
	return volume.Spec.CSI != nil && volume.Spec.CSI.Driver == v.Driver && volume.Spec.CSI.VolumeHandle == v.Handle
}

func isDynamic(volume *corev1.PersistentVolume, driver string) bool {
	return volume.Annotations[provisionedBy] == driver
}

// findClaim returns the claim that the volume is bound to. Both objects must refer to each other, so that no claim
// can get the volume of another.
func (t *task) findClaim(ctx context.Context, volume *corev1.PersistentVolume) (apiextensionsv1.JSON, *corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	ref := volume.Spec.ClaimRef
	if ref == nil {
		return apiextensionsv1.JSON{}, nil, refused("persistent volume %q is bound to no claim", volume.Name)
	}
	raw, err := t.read(ctx, "PersistentVolumeClaim", client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, claim)
	if apierrors.IsNotFound(err) || err == nil && (claim.UID != ref.UID || claim.Spec.VolumeName != volume.Name) {
		return raw, nil, refused("persistent volume %q and claim %s/%s are not bound to each other", volume.Name, ref.Namespace, ref.Name)
	}
	if size := len(raw.Raw); size > pavv1.MaxClaimCopy {
		err := refused("claim %s/%s has %d bytes, and may have %d for PaV to keep a copy of it: shorten its labels or annotations", ref.Namespace, ref.Name, size, pavv1.MaxClaimCopy)
		t.reportToClaimOf(volume, err)
		return raw, nil, err
	}
	return raw, claim, err
}

// awaitCreation waits until the creation pod of a volume has ended: it may go on after it has created /pav/ready, and no
// other pod of the volume runs meanwhile.
func (t *task) awaitCreation(ctx context.Context, record *pavv1.PavVolume) error {
	err := await(ctx, t.client, &pavv1.PavVolumeList{}, record.Name, &pavv1.PavVolume{}, func(now *pavv1.PavVolume) bool {
		return now.UID != record.UID || now.Status.CreationPod == nil
	})
	if err != nil {
		pod := record.Status.CreationPod
		return fmt.Errorf("%w: provisioner %q: waiting for the end of pod %s/%s, which has created volume %q: %w", ErrPending, t.Driver, pod.Namespace, pod.Name, record.Name, err)
	}
	return nil
}

// checkProvisionedClaim returns an error if the claim that a PavVolume has recorded is too large for a PavStage. Only
// earlier versions of the controller agent recorded such claims.
func checkProvisionedClaim(volume string, claim *apiextensionsv1.JSON) error {
	if claim == nil || len(claim.Raw) <= pavv1.MaxClaimCopy {
		return nil
	}
	return refused("PavVolume %q: status.provisionedClaim has %d bytes, and may have %d for PaV to keep a copy of it: shorten the labels or annotations in it", volume, len(claim.Raw), pavv1.MaxClaimCopy)
}

// read reads an object as JSON from the API server, and into a typed object.
func (s *Stager) read(ctx context.Context, kind string, key client.ObjectKey, into client.Object) (apiextensionsv1.JSON, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("v1")
	object.SetKind(kind)
	if err := s.client.Get(ctx, key, object); err != nil {
		return apiextensionsv1.JSON{}, fmt.Errorf("getting %s %q: %w", kind, key, err)
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	if into != nil {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
			return apiextensionsv1.JSON{}, fmt.Errorf("reading %s %q: %w", kind, key, err)
		}
	}
	raw, err := json.Marshal(object.Object)
	if err != nil {
		return apiextensionsv1.JSON{}, fmt.Errorf("encoding %s %q: %w", kind, key, err)
	}
	return apiextensionsv1.JSON{Raw: raw}, nil
}
