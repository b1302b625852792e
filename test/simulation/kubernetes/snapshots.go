package kubernetes

import (
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/test/simulation/world"
)

// The snapshot-controller's finalizers of a VolumeSnapshot, and its annotation of a VolumeSnapshotContent that is to go.
const (
	snapshotAsSource = "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection"
	snapshotBound    = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"

	snapshotBeingDeleted = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted"
)

// Snapshots is the snapshot-controller, an add-on of Kubernetes, as it is in v8.7: it binds VolumeSnapshots and
// VolumeSnapshotContents, protects them and the claims that are their sources, and orders their deletion. It writes no
// errors of its own, and has no groups.
type Snapshots struct{ World *world.World }

// Choices implements world.Actor.
func (s *Snapshots) Choices(add func(world.Choice)) {
	for _, snapshot := range world.Objects[*snapshotv1.VolumeSnapshot](s.World.Store) {
		if what, do := s.snapshot(snapshot); do != nil {
			add(world.Choice{What: "the snapshot-controller " + what + " " + snapshot.Namespace + "/" + snapshot.Name, Weight: 3, Do: do})
		}
	}
	for _, content := range world.Objects[*snapshotv1.VolumeSnapshotContent](s.World.Store) {
		if what, do := s.content(content); do != nil {
			add(world.Choice{What: "the snapshot-controller " + what + " " + content.Name, Weight: 3, Do: do})
		}
	}
}

// snapshot returns the next action for a VolumeSnapshot: syncSnapshot.
func (s *Snapshots) snapshot(snapshot *snapshotv1.VolumeSnapshot) (string, func()) {
	if do := s.releaseSource(snapshot, false); do != nil {
		return "releases the source of", do
	}
	if snapshot.DeletionTimestamp != nil {
		return s.delete(snapshot)
	}
	content := s.contentOf(snapshot)
	missing := func(finalizer string) bool { return !world.HasFinalizer(snapshot, finalizer) }
	if missing(snapshotAsSource) || content != nil && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete && missing(snapshotBound) {
		return "protects", change(s.World, snapshot, func(o *snapshotv1.VolumeSnapshot) {
			withFinalizer(o, snapshotAsSource)
			if content != nil && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete {
				withFinalizer(o, snapshotBound)
			}
		})
	}
	switch {
	case isReady(snapshot) && snapshot.Status.BoundVolumeSnapshotContentName != nil:
		return "", nil
	case content == nil:
		return s.request(snapshot)
	case content.Spec.VolumeSnapshotRef.UID == "": // an administrator wrote it for a VolumeSnapshot of this name
		return "binds", change(s.World, content, func(c *snapshotv1.VolumeSnapshotContent) {
			c.Spec.VolumeSnapshotRef.UID = snapshot.UID
			if class := snapshot.Spec.VolumeSnapshotClassName; class != nil {
				c.Spec.VolumeSnapshotClassName = class
			}
		})
	}
	if status := statusOf(snapshot.Status, content); !equality.Semantic.DeepEqual(snapshot.Status, status) {
		return "updates", change(s.World, snapshot, func(o *snapshotv1.VolumeSnapshot) { o.Status = status })
	}
	return "", nil
}

// contentOf returns the VolumeSnapshotContent that is bound to a VolumeSnapshot, or is to be; nil if there is none.
func (s *Snapshots) contentOf(snapshot *snapshotv1.VolumeSnapshot) *snapshotv1.VolumeSnapshotContent {
	static := snapshot.Spec.Source.VolumeSnapshotContentName != nil
	name := ptr.Deref(snapshot.Spec.Source.VolumeSnapshotContentName, protocol.SnapshotContentName(snapshot.UID))
	content := world.Object[*snapshotv1.VolumeSnapshotContent](s.World.Store, "", name)
	if content == nil || static != (content.Spec.Source.SnapshotHandle != nil) {
		return nil
	}
	ref := content.Spec.VolumeSnapshotRef
	if ref.Namespace != snapshot.Namespace || ref.Name != snapshot.Name || ref.UID != snapshot.UID && (!static || ref.UID != "") {
		return nil
	}
	return content
}

// request takes the next step to write the VolumeSnapshotContent of a VolumeSnapshot: createSnapshotContent. The claim is
// protected first.
func (s *Snapshots) request(snapshot *snapshotv1.VolumeSnapshot) (string, func()) {
	claim := s.sourceOf(snapshot)
	if claim == nil || snapshot.Spec.VolumeSnapshotClassName == nil {
		return "", nil
	}
	if !world.HasFinalizer(claim, protocol.SourceProtection) {
		if claim.DeletionTimestamp != nil {
			return "", nil
		}
		return "protects the source of", change(s.World, claim, func(c *corev1.PersistentVolumeClaim) { withFinalizer(c, protocol.SourceProtection) })
	}
	class := world.Object[*snapshotv1.VolumeSnapshotClass](s.World.Store, "", *snapshot.Spec.VolumeSnapshotClassName)
	pv := world.Object[*corev1.PersistentVolume](s.World.Store, "", claim.Spec.VolumeName)
	if class == nil || claim.Status.Phase != corev1.ClaimBound || pv == nil || !isFor(pv, claim) || pv.Spec.CSI == nil {
		return "", nil
	}
	return "requests", func() {
		_ = s.World.Store.Create(by, &snapshotv1.VolumeSnapshotContent{
			ObjectMeta: metav1.ObjectMeta{Name: protocol.SnapshotContentName(snapshot.UID)},
			Spec: snapshotv1.VolumeSnapshotContentSpec{
				VolumeSnapshotRef: corev1.ObjectReference{
					APIVersion: snapshotv1.SchemeGroupVersion.String(), Kind: protocol.KindSnapshot, Namespace: snapshot.Namespace, Name: snapshot.Name,
					UID: snapshot.UID, ResourceVersion: snapshot.ResourceVersion,
				},
				Source:                  snapshotv1.VolumeSnapshotContentSource{VolumeHandle: &pv.Spec.CSI.VolumeHandle},
				VolumeSnapshotClassName: &class.Name, DeletionPolicy: class.DeletionPolicy, Driver: class.Driver, SourceVolumeMode: pv.Spec.VolumeMode,
			},
		})
	}
}

// statusOf returns the status that a VolumeSnapshot is to have: updateSnapshotStatus.
func statusOf(now *snapshotv1.VolumeSnapshotStatus, content *snapshotv1.VolumeSnapshotContent) *snapshotv1.VolumeSnapshotStatus {
	status := now.DeepCopy()
	if status == nil {
		status = &snapshotv1.VolumeSnapshotStatus{}
	}
	if status.BoundVolumeSnapshotContentName == nil {
		status.BoundVolumeSnapshotContentName = &content.Name
	}
	shown := content.Status
	if shown == nil {
		shown = &snapshotv1.VolumeSnapshotContentStatus{}
	}
	if status.CreationTime == nil && shown.CreationTime != nil {
		status.CreationTime = new(metav1.NewTime(time.Unix(*shown.CreationTime/int64(time.Second), 0))) // it has whole seconds
	}
	if (status.RestoreSize == nil || status.RestoreSize.IsZero()) && shown.RestoreSize != nil {
		status.RestoreSize = resource.NewQuantity(*shown.RestoreSize, resource.BinarySI)
	}
	status.ReadyToUse, status.Error = new(ptr.Deref(shown.ReadyToUse, false)), shown.Error.DeepCopy()
	return status
}

func isReady(snapshot *snapshotv1.VolumeSnapshot) bool {
	return snapshot.Status != nil && ptr.Deref(snapshot.Status.ReadyToUse, false)
}

// delete takes the next step to delete a VolumeSnapshot: checkandRemoveSnapshotFinalizersAndCheckandDeleteContent.
func (s *Snapshots) delete(snapshot *snapshotv1.VolumeSnapshot) (string, func()) {
	if !world.HasFinalizer(snapshot, snapshotAsSource) && !world.HasFinalizer(snapshot, snapshotBound) {
		return "", nil
	}
	content := s.contentOf(snapshot)
	if content != nil && content.Spec.VolumeSnapshotRef.UID == "" {
		content = nil
	}
	cascades := content != nil && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete
	switch {
	case content != nil && s.isBeingRestored(snapshot):
		return "", nil
	case content != nil && !metav1.HasAnnotation(content.ObjectMeta, snapshotBeingDeleted):
		return "announces the end of", announceEnd(s.World, content)
	case cascades && content.DeletionTimestamp == nil:
		return "deletes the content of", func() { _ = s.World.Store.Delete(by, s.World.Store.KeyOf(content), preconditions(content.UID), nil) }
	}
	if do := s.releaseSource(snapshot, true); do != nil {
		return "releases the source of", do
	}
	if !world.HasFinalizer(snapshot, snapshotAsSource) && cascades {
		return "", nil // until the content is gone
	}
	return "releases", change(s.World, snapshot, func(o *snapshotv1.VolumeSnapshot) {
		withoutFinalizer(o, snapshotAsSource)
		if !cascades {
			withoutFinalizer(o, snapshotBound)
		}
	})
}

func announceEnd(w *world.World, content *snapshotv1.VolumeSnapshotContent) func() {
	return change(w, content, func(c *snapshotv1.VolumeSnapshotContent) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, snapshotBeingDeleted, "yes")
	})
}

// isBeingRestored reports whether a claim waits for a volume that is made from a VolumeSnapshot.
func (s *Snapshots) isBeingRestored(snapshot *snapshotv1.VolumeSnapshot) bool {
	for _, claim := range world.Objects[*corev1.PersistentVolumeClaim](s.World.Store) {
		source := claim.Spec.DataSource
		if claim.Namespace == snapshot.Namespace && claim.Status.Phase == corev1.ClaimPending && source != nil &&
			source.Kind == protocol.KindSnapshot && source.Name == snapshot.Name {
			return true
		}
	}
	return false
}

// sourceOf returns the claim that a VolumeSnapshot is made of, or nil.
func (s *Snapshots) sourceOf(snapshot *snapshotv1.VolumeSnapshot) *corev1.PersistentVolumeClaim {
	name := snapshot.Spec.Source.PersistentVolumeClaimName
	if name == nil {
		return nil
	}
	return world.Object[*corev1.PersistentVolumeClaim](s.World.Store, snapshot.Namespace, *name)
}

// releaseSource returns the action that ends the protection of a VolumeSnapshot's claim: checkandRemovePVCFinalizer. It is
// nil while VolumeSnapshots of the claim are not ready, apart from this one if it ends.
func (s *Snapshots) releaseSource(snapshot *snapshotv1.VolumeSnapshot, ends bool) func() {
	claim := s.sourceOf(snapshot)
	if claim == nil || !world.HasFinalizer(claim, protocol.SourceProtection) {
		return nil
	}
	for _, other := range world.Objects[*snapshotv1.VolumeSnapshot](s.World.Store) {
		of := other.Spec.Source.PersistentVolumeClaimName
		if other.Namespace == claim.Namespace && of != nil && *of == claim.Name && !isReady(other) && (!ends || other.Name != snapshot.Name) {
			return nil
		}
	}
	return change(s.World, claim, func(c *corev1.PersistentVolumeClaim) { withoutFinalizer(c, protocol.SourceProtection) })
}

// content returns the next action for a VolumeSnapshotContent: syncContent.
func (s *Snapshots) content(content *snapshotv1.VolumeSnapshotContent) (string, func()) {
	ref := content.Spec.VolumeSnapshotRef
	if ref.UID == "" {
		return "", nil
	}
	if content.DeletionTimestamp == nil && !world.HasFinalizer(content, protocol.SnapshotContentFinalizer) {
		return "protects", change(s.World, content, func(c *snapshotv1.VolumeSnapshotContent) { withFinalizer(c, protocol.SnapshotContentFinalizer) })
	}
	snapshot := world.Object[*snapshotv1.VolumeSnapshot](s.World.Store, ref.Namespace, ref.Name)
	if snapshot == nil || snapshot.UID != ref.UID || snapshot.DeletionTimestamp == nil || metav1.HasAnnotation(content.ObjectMeta, snapshotBeingDeleted) {
		return "", nil
	}
	if world.HasFinalizer(snapshot, snapshotAsSource) || world.HasFinalizer(snapshot, snapshotBound) {
		return "announces the end of the snapshot of", announceEnd(s.World, content)
	}
	return "", nil
}

func withFinalizer(object client.Object, finalizer string) {
	if !world.HasFinalizer(object, finalizer) {
		object.SetFinalizers(append(object.GetFinalizers(), finalizer))
	}
}
