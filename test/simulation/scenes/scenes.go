package scenes

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

// All has all scenes.
var All = []Scene{
	{Name: "life", Play: with(corev1.PersistentVolumeReclaimDelete, life)},
	{Name: "without-pods", Play: with(corev1.PersistentVolumeReclaimDelete, lifeWithoutPods, withoutPods)},
	{Name: "creation-fails", Play: with(corev1.PersistentVolumeReclaimDelete, creationFails)},
	{Name: "deletion-fails", Play: with(corev1.PersistentVolumeReclaimDelete, deletionFails)},
	{Name: "retained", Play: with(corev1.PersistentVolumeReclaimRetain, retained)},
	{Name: "policy-changed", Play: with(corev1.PersistentVolumeReclaimDelete, policyChanged)},
	{Name: "claim-deleted", Play: with(corev1.PersistentVolumeReclaimDelete, claimDeleted)},
	{Name: "handle-taken", Play: with(corev1.PersistentVolumeReclaimDelete, handleTaken)},
	{Name: "static", Play: with(corev1.PersistentVolumeReclaimDelete, static)},
	{Name: "volume-deleted", Play: with(corev1.PersistentVolumeReclaimDelete, volumeDeleted)},
	{Name: "provisioner-deleted", Play: with(corev1.PersistentVolumeReclaimDelete, provisionerDeleted)},
}

func template(text string) *pavv1.Template { return &apiextensionsv1.JSON{Raw: []byte(text)} }

// with returns a Play that creates the provisioner, the class and the node of a scene, plays it, and deletes them. The
// provisioner has a creation and a deletion pod, unless changes take them away.
func with(policy corev1.PersistentVolumeReclaimPolicy, play func(context.Context, *Hands) error, changes ...func(*pavv1.PavProvisionerSpec)) func(context.Context, *Hands) error {
	return func(ctx context.Context, h *Hands) error {
		const least = `{"spec": {"containers": [{"name": "main", "image": "none"}]}}`
		name := driverOf(h.Scene)
		spec := pavv1.PavProvisionerSpec{
			ProvisioningModes: []pavv1.ProvisioningMode{pavv1.ProvisioningModeDynamic, pavv1.ProvisioningModeStatic},
			VolumeCreation:    &pavv1.VolumeCreation{Capacity: template(`"{{ requestedMinCapacity }}"`), PodTemplate: template(least)},
			VolumeDeletion:    &pavv1.VolumeDeletion{PodTemplate: template(least)},
			VolumeStaging:     pavv1.VolumeStaging{PodTemplate: *template(least)},
		}
		for _, change := range changes {
			change(&spec)
		}
		made := []client.Object{
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: h.Node}},
			&pavv1.PavProvisioner{ObjectMeta: objectMeta(name), Spec: spec},
			&storagev1.StorageClass{ObjectMeta: objectMeta(name), Provisioner: name, ReclaimPolicy: new(policy), VolumeBindingMode: new(storagev1.VolumeBindingImmediate)},
		}
		for _, object := range made {
			if err := h.Kube.Create(ctx, object); err != nil {
				return err
			}
		}
		if err := play(ctx, h); err != nil {
			return err
		}
		if err := h.look(ctx, "in the end"); err != nil {
			return err
		}
		for _, object := range made {
			if err := client.IgnoreNotFound(h.Kube.Delete(ctx, object)); err != nil {
				return err
			}
		}
		return h.gone(ctx, made...)
	}
}

func quantity(text string) *resource.Quantity { return new(resource.MustParse(text)) }

func (h *Hands) newClaim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "scene-" + h.Scene + "-" + name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(driverOf(h.Scene)), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *quantity("1Gi")}},
		},
	}
}

// claimAndMake creates a claim and makes its creation pod succeed. Most scenes begin with it.
func claimAndMake(ctx context.Context, h *Hands, result workflow.Result) (*corev1.PersistentVolumeClaim, error) {
	claim, err := h.claim(ctx, "data")
	if err != nil {
		return nil, err
	}
	return claim, h.made(ctx, claim, result)
}

// one runs the steps in order until one of them fails, and returns its error.
func one(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func life(ctx context.Context, h *Hands) error {
	claim, err := h.claim(ctx, "data")
	if err != nil {
		return err
	}
	return one(
		func() error { return h.look(ctx, "a creation pod is made") },
		func() error { return h.made(ctx, claim, workflow.Result{Handle: "h", Capacity: "2Gi"}) },
		func() error { return h.look(ctx, "the claim is bound") },
		func() error { return h.Kube.Delete(ctx, claim) },
		func() error { return h.gone(ctx, claim) },
		func() error { return h.look(ctx, "a deletion pod is made") },
		func() error { return h.deleted(ctx, claim) },
	)
}

// withoutPods takes the pods of a provisioner away.
func withoutPods(spec *pavv1.PavProvisionerSpec) {
	spec.VolumeCreation.PodTemplate, spec.VolumeDeletion = nil, nil
}

func lifeWithoutPods(ctx context.Context, h *Hands) error {
	claim, err := h.claim(ctx, "data")
	if err != nil {
		return err
	}
	return one(
		func() error { return h.bound(ctx, claim) },
		func() error { return h.look(ctx, "the claim is bound") },
		func() error { return h.Kube.Delete(ctx, claim) },
		func() error { return h.gone(ctx, claim, pvOf(claim), volumeOf(claim)) },
	)
}

func creationFails(ctx context.Context, h *Hands) error {
	claim, err := h.claim(ctx, "data")
	if err != nil {
		return err
	}
	return one(
		func() error { return h.end(ctx, claim, pavv1.WorkflowCreation, 3, workflow.Result{Error: "no room"}) },
		func() error { return h.look(ctx, "it is reverted") },
		func() error { return h.end(ctx, claim, pavv1.WorkflowDeletion, 0, workflow.Result{}) },
		func() error { return h.made(ctx, claim, workflow.Result{}) },
		func() error { return h.look(ctx, "it was made after all") },
		func() error { return h.Kube.Delete(ctx, claim) },
		func() error { return h.deleted(ctx, claim) },
	)
}

func deletionFails(ctx context.Context, h *Hands) error {
	claim, err := claimAndMake(ctx, h, workflow.Result{})
	return errors.Join(err, one(
		func() error { return h.Kube.Delete(ctx, claim) },
		func() error { return h.end(ctx, claim, pavv1.WorkflowDeletion, 4, workflow.Result{Error: "in use"}) },
		func() error { _, err := h.pod(ctx, claim, pavv1.WorkflowDeletion); return err },
		func() error { return h.look(ctx, "it is tried again") },
		func() error { return h.deleted(ctx, claim) },
	))
}

func retained(ctx context.Context, h *Hands) error {
	claim, err := claimAndMake(ctx, h, workflow.Result{Handle: "h"})
	if err != nil {
		return err
	}
	pv, volume := pvOf(claim), volumeOf(claim)
	return one(
		func() error { return h.Kube.Delete(ctx, claim) },
		func() error { return h.gone(ctx, claim) },
		func() error { return h.look(ctx, "the volume is released") },
		func() error { return h.Kube.Delete(ctx, pv) },
		func() error { return h.gone(ctx, pv) },
		func() error { return h.look(ctx, "a record is retained") },
		func() error {
			return change(ctx, h, volume, func(v *pavv1.PavVolume) { v.Spec.ReclaimPolicy = corev1.PersistentVolumeReclaimDelete })
		},
		func() error { return h.look(ctx, "the record is to be deleted with its storage") },
		func() error { return h.Kube.Delete(ctx, volume) },
		func() error { return h.deleted(ctx, claim) },
	)
}

func policyChanged(ctx context.Context, h *Hands) error {
	claim, err := claimAndMake(ctx, h, workflow.Result{})
	if err != nil {
		return err
	}
	pv := pvOf(claim)
	return one(
		func() error {
			return change(ctx, h, pv, func(p *corev1.PersistentVolume) {
				p.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			})
		},
		func() error { return h.Kube.Delete(ctx, claim) },
		func() error { return h.gone(ctx, claim) },
		func() error { return h.look(ctx, "the volume is kept") },
		func() error {
			return change(ctx, h, pv, func(p *corev1.PersistentVolume) {
				p.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
			})
		},
		func() error { return h.deleted(ctx, claim) },
	)
}

func claimDeleted(ctx context.Context, h *Hands) error {
	claim, err := h.claim(ctx, "data")
	if err != nil {
		return err
	}
	return one(
		func() error { _, err := h.pod(ctx, claim, pavv1.WorkflowCreation); return err },
		func() error { return h.Kube.Delete(ctx, claim) },
		func() error { return h.gone(ctx, claim, volumeOf(claim)) },
	)
}

func handleTaken(ctx context.Context, h *Hands) error {
	claim, err := claimAndMake(ctx, h, workflow.Result{Handle: "taken"})
	if err != nil {
		return err
	}
	other, err := h.claim(ctx, "other")
	if err != nil {
		return err
	}
	return one(
		func() error { return h.end(ctx, other, pavv1.WorkflowCreation, 0, workflow.Result{Handle: "taken"}) },
		func() error { return h.look(ctx, "the other claim is refused") },
		func() error { return h.Kube.Delete(ctx, other) },
		func() error { return h.gone(ctx, other, volumeOf(other)) },
		func() error { return h.Kube.Delete(ctx, claim) },
		func() error { return h.deleted(ctx, claim) },
	)
}

// staticVolume returns a PersistentVolume for an administrator's storage, and a claim that asks for it.
func (h *Hands) staticVolume() (*corev1.PersistentVolume, *corev1.PersistentVolumeClaim) {
	claim := h.newClaim("data")
	pv := &corev1.PersistentVolume{ObjectMeta: objectMeta("scene-" + h.Scene), Spec: corev1.PersistentVolumeSpec{
		Capacity: corev1.ResourceList{corev1.ResourceStorage: *quantity("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		VolumeMode: new(corev1.PersistentVolumeFilesystem), StorageClassName: driverOf(h.Scene), PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		ClaimRef:               &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driverOf(h.Scene), VolumeHandle: "own"}},
	}}
	claim.Spec.VolumeName = pv.Name
	return pv, claim
}

func static(ctx context.Context, h *Hands) error {
	pv, claim := h.staticVolume()
	if err := h.Kube.Create(ctx, pv); err != nil {
		return err
	}
	return one(
		func() error { return h.Kube.Create(ctx, claim) },
		func() error {
			h.claims = map[string]string{string(claim.UID): "data"}
			return until(ctx, "the claim is bound", func() (bool, error) {
				err := h.Kube.Get(ctx, client.ObjectKeyFromObject(claim), claim)
				return claim.Status.Phase == corev1.ClaimBound, err
			})
		},
		func() error { return h.look(ctx, "the claim is bound") },
		func() error { return h.Kube.Delete(ctx, claim) },
		func() error { return h.gone(ctx, claim) },
		func() error { return h.look(ctx, "the volume is released") },
		func() error { return h.Kube.Delete(ctx, pv) },
		func() error { return h.gone(ctx, pv) },
	)
}

func volumeDeleted(ctx context.Context, h *Hands) error {
	claim, err := claimAndMake(ctx, h, workflow.Result{})
	if err != nil {
		return err
	}
	return one(
		func() error { return h.Kube.Delete(ctx, pvOf(claim)) },
		func() error { return h.look(ctx, "the PersistentVolume is deleted while it is bound") },
		func() error { return h.Kube.Delete(ctx, claim) },
		func() error { return h.gone(ctx, claim) },
		func() error { return h.deleted(ctx, claim) },
	)
}

func provisionerDeleted(ctx context.Context, h *Hands) error {
	claim, err := claimAndMake(ctx, h, workflow.Result{})
	if err != nil {
		return err
	}
	provisioner := &pavv1.PavProvisioner{ObjectMeta: objectMeta(driverOf(h.Scene))}
	return one(
		func() error { return h.Kube.Delete(ctx, provisioner) },
		func() error {
			return until(ctx, "it says that it is deleted", func() (bool, error) {
				err := h.Kube.Get(ctx, client.ObjectKeyFromObject(provisioner), provisioner)
				return provisioner.DeletionTimestamp != nil && protocol.VolumeName(claim.UID) != "", err
			})
		},
		func() error { return h.look(ctx, "the volume is there") },
		func() error { return h.Kube.Delete(ctx, claim) },
		func() error { return h.deleted(ctx, claim) },
		func() error { return h.gone(ctx, provisioner) },
	)
}
