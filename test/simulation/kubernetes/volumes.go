package kubernetes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/test/simulation/world"
)

const (
	claimProtection = "kubernetes.io/pvc-protection"
	pvProtection    = "kubernetes.io/pv-protection"

	bindCompleted     = "pv.kubernetes.io/bind-completed"
	boundByController = "pv.kubernetes.io/bound-by-controller"

	by = "kubernetes"
)

// Volumes stands for Kubernetes' controllers of claims and PersistentVolumes: it binds, releases and protects them.
type Volumes struct{ World *world.World }

// Admit sets the finalizers and defaults of new claims, PersistentVolumes and pods, as the API server and its admission
// plugins do.
func Admit(_ string, before, after client.Object) error {
	if before != nil {
		return nil
	}
	switch o := after.(type) {
	case *corev1.PersistentVolumeClaim:
		o.Finalizers = append(o.Finalizers, claimProtection)
		o.Status.Phase = corev1.ClaimPending
		if o.Spec.VolumeMode == nil {
			o.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem)
		}
	case *corev1.PersistentVolume:
		o.Finalizers = append(o.Finalizers, pvProtection)
		if o.Spec.PersistentVolumeReclaimPolicy == "" {
			o.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}
		o.Status.Phase, o.Status.LastPhaseTransitionTime = corev1.VolumePending, new(metav1.Now())
		if o.Spec.VolumeMode == nil {
			o.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem)
		}
	case *corev1.Pod:
		o.Status.Phase = corev1.PodPending
		if o.Spec.TerminationGracePeriodSeconds == nil {
			o.Spec.TerminationGracePeriodSeconds = ptr.To(int64(corev1.DefaultTerminationGracePeriodSeconds))
		}
	}
	return nil
}

// Choices implements world.Actor.
func (v *Volumes) Choices(add func(world.Choice)) {
	for _, claim := range world.Objects[*corev1.PersistentVolumeClaim](v.World.Store) {
		if what, do := v.claim(claim); do != nil {
			add(world.Choice{What: "kubernetes " + what + " " + claim.Namespace + "/" + claim.Name, Weight: 3, Do: do})
		}
	}
	for _, pv := range world.Objects[*corev1.PersistentVolume](v.World.Store) {
		if what, do := v.volume(pv); do != nil {
			add(world.Choice{What: "kubernetes " + what + " " + pv.Name, Weight: 3, Do: do})
		}
	}
}

// change returns an action that changes an object in the store.
func change[T client.Object](w *world.World, object T, apply func(T)) func() {
	return func() { _ = world.Change(w.Store, by, object, apply) } // the object may be gone by then
}

// claim returns the next action for a claim.
func (v *Volumes) claim(claim *corev1.PersistentVolumeClaim) (string, func()) {
	if claim.DeletionTimestamp != nil {
		if world.HasFinalizer(claim, claimProtection) && !v.inUse(claim) {
			return "releases claim", change(v.World, claim, func(c *corev1.PersistentVolumeClaim) { withoutFinalizer(c, claimProtection) })
		}
		return "", nil
	}
	bound := func(pv *corev1.PersistentVolume) func() {
		if pv.Status.Phase != corev1.VolumeBound {
			return v.setPhase(pv, corev1.VolumeBound)
		}
		return change(v.World, claim, func(c *corev1.PersistentVolumeClaim) { bind(c, pv) })
	}
	if claim.Spec.VolumeName == "" {
		if pv := v.reservedFor(claim); pv != nil {
			return "binds claim", bound(pv)
		}
		if pv := v.available(claim); pv != nil {
			return "reserves for claim", change(v.World, pv, func(p *corev1.PersistentVolume) { reserve(p, claim) })
		}
		return v.provision(claim)
	}
	pv := world.Object[*corev1.PersistentVolume](v.World.Store, "", claim.Spec.VolumeName)
	switch {
	case claim.Status.Phase == corev1.ClaimBound && (pv == nil || !isFor(pv, claim)),
		claim.Status.Phase == corev1.ClaimPending && pv == nil && claim.Annotations[bindCompleted] != "": // lost between two steps of its binding
		return "loses claim", change(v.World, claim, func(c *corev1.PersistentVolumeClaim) {
			c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimLost}
		})
	case claim.Status.Phase == corev1.ClaimPending && pv != nil && isFor(pv, claim):
		return "binds claim", bound(pv)
	case claim.Status.Phase == corev1.ClaimPending && pv != nil && (pv.Spec.ClaimRef == nil || isKeptFor(pv, claim)):
		return "reserves for claim", change(v.World, pv, func(p *corev1.PersistentVolume) { reserve(p, claim) })
	}
	return "", nil
}

// bind takes the next step of binding a claim to its PersistentVolume. The last step sets the status of the claim.
func bind(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
	if claim.Spec.VolumeName == "" {
		claim.Spec.VolumeName = pv.Name
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, boundByController, "yes")
	}
	if !metav1.HasAnnotation(claim.ObjectMeta, bindCompleted) {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, bindCompleted, "yes")
		return
	}
	claim.Status = corev1.PersistentVolumeClaimStatus{
		Phase: corev1.ClaimBound, AccessModes: pv.Spec.AccessModes, Capacity: pv.Spec.Capacity, CurrentVolumeAttributesClassName: pv.Spec.VolumeAttributesClassName,
	}
}

// reserve sets the claimRef of a PersistentVolume to a claim.
func reserve(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	if !isKeptFor(pv, claim) {
		metav1.SetMetaDataAnnotation(&pv.ObjectMeta, boundByController, "yes")
	}
	pv.Spec.ClaimRef = refOf(claim)
}

// provision returns the action that asks for a volume: it writes the name of the provisioner to the claim.
func (v *Volumes) provision(claim *corev1.PersistentVolumeClaim) (string, func()) {
	class := v.classOf(claim)
	if class == nil || claim.Annotations[protocol.StorageProvisioner] == class.Provisioner {
		return "", nil
	}
	if waits(class) && claim.Annotations[protocol.SelectedNode] == "" {
		return "", nil
	}
	return "asks for the volume of claim", change(v.World, claim, func(c *corev1.PersistentVolumeClaim) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, protocol.StorageProvisioner, class.Provisioner)
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, protocol.BetaStorageProvisioner, class.Provisioner)
	})
}

func (v *Volumes) classOf(claim *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	if claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName == "" {
		return nil
	}
	return world.Object[*storagev1.StorageClass](v.World.Store, "", *claim.Spec.StorageClassName)
}

func waits(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// volume returns the next action for a PersistentVolume.
func (v *Volumes) volume(pv *corev1.PersistentVolume) (string, func()) {
	phase := v.phaseOf(pv)
	if phase != pv.Status.Phase {
		return "finds PersistentVolume " + string(phase), v.setPhase(pv, phase)
	}
	if pv.DeletionTimestamp != nil && world.HasFinalizer(pv, pvProtection) && pv.Status.Phase != corev1.VolumeBound {
		return "releases PersistentVolume", change(v.World, pv, func(p *corev1.PersistentVolume) { withoutFinalizer(p, pvProtection) })
	}
	return "", nil
}

func (v *Volumes) setPhase(pv *corev1.PersistentVolume, phase corev1.PersistentVolumePhase) func() {
	return change(v.World, pv, func(p *corev1.PersistentVolume) {
		p.Status.Phase, p.Status.LastPhaseTransitionTime = phase, new(metav1.Now())
	})
}

func (v *Volumes) phaseOf(pv *corev1.PersistentVolume) corev1.PersistentVolumePhase {
	ref := pv.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return corev1.VolumeAvailable
	}
	claim := world.Object[*corev1.PersistentVolumeClaim](v.World.Store, ref.Namespace, ref.Name)
	switch {
	case claim == nil || claim.UID != ref.UID:
		return corev1.VolumeReleased
	case claim.Spec.VolumeName == pv.Name:
		return corev1.VolumeBound
	case claim.Spec.VolumeName != "":
		return corev1.VolumeReleased
	}
	return pv.Status.Phase
}

// reservedFor returns the PersistentVolume whose claimRef has the UID of a claim, or nil.
func (v *Volumes) reservedFor(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	for _, pv := range world.Objects[*corev1.PersistentVolume](v.World.Store) {
		if isFor(pv, claim) && pv.Status.Phase != corev1.VolumeReleased {
			return pv
		}
	}
	return nil
}

// available returns an available PersistentVolume that a claim can use, or nil.
func (v *Volumes) available(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	for _, pv := range world.Objects[*corev1.PersistentVolume](v.World.Store) {
		other := *pv.Spec.VolumeMode != *claim.Spec.VolumeMode || ptr.Deref(pv.Spec.VolumeAttributesClassName, "") != protocol.AttributesClass(claim)
		if pv.Status.Phase != corev1.VolumeAvailable || pv.DeletionTimestamp != nil || other {
			continue
		}
		free := pv.Spec.ClaimRef == nil && pv.Spec.StorageClassName == ptr.Deref(claim.Spec.StorageClassName, "")
		if free || isKeptFor(pv, claim) {
			return pv
		}
	}
	return nil
}

func isFor(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == claim.UID
}

// isKeptFor reports whether the claimRef of a PersistentVolume has the name of a claim, but no UID. An administrator
// has reserved the PersistentVolume for claims of this name.
func isKeptFor(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := pv.Spec.ClaimRef
	return ref != nil && ref.UID == "" && ref.Namespace == claim.Namespace && ref.Name == claim.Name
}

func refOf(claim *corev1.PersistentVolumeClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
	}
}

// inUse reports whether a scheduled pod that has not ended uses a claim.
func (v *Volumes) inUse(claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(world.Objects[*corev1.Pod](v.World.Store), func(pod *corev1.Pod) bool {
		return pod.Namespace == claim.Namespace && protocol.Uses(pod, claim.Name) && pod.Spec.NodeName != "" && !isOver(pod)
	})
}

func isOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func withoutFinalizer(object client.Object, finalizer string) {
	object.SetFinalizers(slices.DeleteFunc(object.GetFinalizers(), func(f string) bool { return f == finalizer }))
}
