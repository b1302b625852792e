package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// provisionedBy names the provisioner of a dynamically provisioned volume.
const provisionedBy = "pv.kubernetes.io/provisioned-by"

// record writes the PavStage of the volume on this node, with nothing done yet.
func (t *task) record(ctx context.Context, attempt int32) error {
	stage, err := t.newStage(ctx)
	if err != nil {
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
	return t.update(ctx, func(status *pavv1.PavStageStatus) {
		status.Attempt = attempt
		status.BootID = t.bootID
		setReady(stage, metav1.ConditionFalse, "Staging", "the volume is about to be staged")
	})
}

// contend answers where the PavStage that is to be created exists: the volume is another node's, or
// the record of a failed attempt of another node, which holds nothing, is in the way.
func (t *task) contend(ctx context.Context, want *pavv1.PavStage) error {
	found := &pavv1.PavStage{}
	if err := t.client.Get(ctx, client.ObjectKey{Name: want.Name}, found); err != nil {
		return fmt.Errorf("getting PavStage %q: %w", want.Name, err)
	}
	if found.Spec.NodeName == t.node {
		return nil // It has come in between: the next look finds it.
	}
	if going(found) {
		t.stage = found
		return t.yield(ctx)
	}
	if found.Status.Phase == pavv1.StageFailed && !slices.Contains(found.Finalizers, pavv1.StageFinalizer) {
		err := t.client.Delete(ctx, found, client.Preconditions{UID: &found.UID, ResourceVersion: &found.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting PavStage %q of a failed attempt: %w", found.Name, err)
		}
		return nil
	}
	t.stage = want
	t.eventf(corev1.EventTypeWarning, "FailedMount", "volume %s may be on one node at a time, and is still on node %s (PavStage %s); waiting until that node has unstaged it",
		want.Spec.VolumeName, found.Spec.NodeName, found.Name)
	t.stage = nil
	return fmt.Errorf("%w: volume %q of provisioner %q may be on one node at a time, and is still on node %q", ErrHeld, want.Spec.VolumeName, t.volume.Driver, found.Spec.NodeName)
}

func (t *task) newStage(ctx context.Context) (*pavv1.PavStage, error) {
	rawVolume, volume, err := t.findVolume(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.checkVolume(ctx, volume); err != nil {
		return nil, err
	}
	rawClaim, claim, err := t.findClaim(ctx, volume)
	if err != nil {
		return nil, err
	}

	exclusive := isExclusive(volume.Spec.AccessModes)
	sharedName, exclusiveName := t.names(t.volume)
	name := sharedName
	if exclusive {
		name = exclusiveName
	}
	return &pavv1.PavStage{
		ObjectMeta: metav1.ObjectMeta{
			Name:       name,
			Finalizers: []string{pavv1.StageFinalizer},
			Labels: map[string]string{
				pavv1.ProvisionerLabel: t.volume.Driver,
				pavv1.NodeLabel:        workflow.Hash(t.node),
				pavv1.VolumeLabel:      workflow.Hash(volume.Name),
			},
			// The record of a failed attempt goes with its volume.
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "PersistentVolume", Name: volume.Name, UID: volume.UID}},
		},
		Spec: pavv1.PavStageSpec{
			Provisioner:  t.volume.Driver,
			VolumeName:   volume.Name,
			VolumeHandle: t.volume.Handle,
			NodeName:     t.node,
			ClaimRef:     pavv1.ClaimReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			VolumeMode:   corev1.PersistentVolumeFilesystem,
			ReadOnly:     volume.Spec.CSI.ReadOnly || slices.Equal(claim.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}),
			Exclusive:    exclusive,
			Volume:       rawVolume,
			Claim:        rawClaim,
		},
	}, nil
}

// findVolume returns the persistent volume with the driver and handle of the call.
func (t *task) findVolume(ctx context.Context) (apiextensionsv1.JSON, *corev1.PersistentVolume, error) {
	volume := &corev1.PersistentVolume{}
	names, err := t.catalogue.VolumeNames(ctx, t.volume.Driver, t.volume.Handle)
	if err != nil {
		return apiextensionsv1.JSON{}, nil, err
	}
	switch len(names) {
	case 0:
		return apiextensionsv1.JSON{}, nil, fmt.Errorf("%w: provisioner %q, handle %q", ErrUnknownVolume, t.volume.Driver, t.volume.Handle)
	case 1:
	default:
		slices.Sort(names)
		return apiextensionsv1.JSON{}, nil, refused("persistent volumes %q have the same driver %q and handle; a volume can have but one: delete the others", names, t.volume.Driver)
	}
	raw, err := t.read(ctx, "PersistentVolume", client.ObjectKey{Name: names[0]}, volume)
	if apierrors.IsNotFound(err) || err == nil && (volume.Spec.CSI == nil || volume.Spec.CSI.Driver != t.volume.Driver || volume.Spec.CSI.VolumeHandle != t.volume.Handle) {
		return raw, nil, fmt.Errorf("%w: provisioner %q, handle %q", ErrUnknownVolume, t.volume.Driver, t.volume.Handle)
	}
	return raw, volume, err
}

func (t *task) checkVolume(ctx context.Context, volume *corev1.PersistentVolume) error {
	provisioner, err := t.catalogue.Provisioner(ctx, t.volume.Driver)
	if err != nil {
		return err
	}
	if provisioner == nil {
		return refused("PavProvisioner %q does not exist", t.volume.Driver)
	}
	if volume.Annotations[provisionedBy] != t.volume.Driver && !provisioner.Supports(pavv1.ProvisioningModeStatic) {
		return refused("persistent volume %q is statically provisioned, but spec.provisioningModes of PavProvisioner %q has no Static", volume.Name, t.volume.Driver)
	}
	if mode := volume.Spec.VolumeMode; mode != nil && *mode == corev1.PersistentVolumeBlock {
		return refused("persistent volume %q has the volume mode Block, which PaV does not stage yet", volume.Name)
	}
	return nil
}

// findClaim returns the claim that the volume is bound to, checked both ways, so that no claim can
// pass itself off as another.
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
	return raw, claim, err
}

// read reads an object as the API server returns it, and into a typed one.
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

// isExclusive says whether a volume may be on one node at a time. With attachRequired: false, nothing
// else in Kubernetes sees to that.
func isExclusive(modes []corev1.PersistentVolumeAccessMode) bool {
	return len(modes) > 0 && !slices.ContainsFunc(modes, func(mode corev1.PersistentVolumeAccessMode) bool {
		return mode != corev1.ReadWriteOnce && mode != corev1.ReadWriteOncePod
	})
}
