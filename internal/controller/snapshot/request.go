package snapshot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// mostObject is how many bytes a copy of an object of a tenant may have.
const mostObject = pavv1.MaxClaimCopy

// request looks for the VolumeSnapshotContent for which a record of the name is to be written, and writes it. Nothing is done to any
// storage before the record exists.
func (r *Reconciler) request(ctx context.Context, name string) error {
	content, err := r.contentOf(ctx, name)
	if err != nil {
		return err
	}
	if content == nil {
		r.repeats.Forget(name)
		return nil
	}
	defer r.contents.Forget(content.Name) // it is read from the API server as long as there is no record
	provisioner, err := reconcile.Optional(ctx, r.Client, client.ObjectKey{Name: content.Spec.Driver}, &pavv1.PavProvisioner{})
	if err != nil || provisioner == nil {
		return err // another driver's
	}
	// The record is written from what the API server has.
	live, err := reconcile.Optional(ctx, r.Live, client.ObjectKeyFromObject(content), &snapshotv1.VolumeSnapshotContent{})
	if err != nil || live == nil || live.UID != content.UID || protocol.SnapshotOf(live) != name {
		return err
	}
	if live.DeletionTimestamp != nil && (!exists(live) || !controllerutil.ContainsFinalizer(live, protocol.SnapshotContentFinalizer)) {
		return r.releaseUnknown(ctx, live)
	}
	record, err := r.newRecord(ctx, name, live)
	if refusal, ok := errors.AsType[*podplan.Error](err); ok {
		return r.refuseRequest(ctx, live, refusal)
	}
	if err != nil {
		return err
	}
	if err := r.Client.Create(ctx, record); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating PavSnapshot %q: %w", name, err)
	}
	ctrl.LoggerFrom(ctx).Info("recorded a request for a snapshot", "volumeSnapshotContent", live.Name)
	return nil
}

// exists reports whether a VolumeSnapshotContent has the handle of a snapshot.
func exists(content *snapshotv1.VolumeSnapshotContent) bool {
	return content.Spec.Source.SnapshotHandle != nil || content.Status != nil && content.Status.SnapshotHandle != nil
}

// contentOf returns the VolumeSnapshotContent of the record of a name, or nil.
func (r *Reconciler) contentOf(ctx context.Context, name string) (*snapshotv1.VolumeSnapshotContent, error) {
	contents := &snapshotv1.VolumeSnapshotContentList{}
	if err := r.Client.List(ctx, contents, client.MatchingFields{contentsByRecord: reconcile.Bucket(name)}); err != nil {
		return nil, fmt.Errorf("looking up the VolumeSnapshotContent of PavSnapshot %q: %w", name, err)
	}
	for i := range contents.Items {
		if protocol.SnapshotOf(&contents.Items[i]) == name {
			return &contents.Items[i], nil
		}
	}
	return nil, nil
}

// releaseUnknown lets Kubernetes delete a VolumeSnapshotContent that has no snapshot: it was deleted before its record was written.
func (r *Reconciler) releaseUnknown(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) error {
	if !controllerutil.ContainsFinalizer(content, protocol.SnapshotContentFinalizer) {
		return nil
	}
	gone, err := r.isSnapshotGone(ctx, content.Spec.VolumeSnapshotRef)
	if err != nil || !gone {
		return err // its end brings the next pass
	}
	return r.releaseContent(ctx, content, false)
}

// isSnapshotGone reports whether a VolumeSnapshot does not exist, or is being deleted.
func (r *Reconciler) isSnapshotGone(ctx context.Context, ref corev1.ObjectReference) (bool, error) {
	snapshot, err := reconcile.Optional(ctx, r.Live, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &snapshotv1.VolumeSnapshot{})
	return snapshot == nil || snapshot.UID != ref.UID || snapshot.DeletionTimestamp != nil, err
}

// refuseRequest says why no record is written. What could change it is watched; it is said again only because events expire.
func (r *Reconciler) refuseRequest(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, why error) error {
	name := protocol.SnapshotOf(content)
	due, next := r.repeats.Due(name, why.Error(), r.Now())
	if due {
		r.tellContent(content, corev1.EventTypeWarning, protocol.SnapshotCreationFailed, why.Error())
	}
	v := viewShown(content)
	if v.failure != why.Error() && v.handle == "" {
		v.failure, v.ready = why.Error(), false
		if err := r.showStatus(ctx, content, v); err != nil {
			return err
		}
	}
	return &reconcile.Later{After: next}
}

// newRecord returns the record of a VolumeSnapshotContent. The error is a podplan.Error if none can be made from what there is.
func (r *Reconciler) newRecord(ctx context.Context, name string, content *snapshotv1.VolumeSnapshotContent) (*pavv1.PavSnapshot, error) {
	ref := content.Spec.VolumeSnapshotRef
	record := &pavv1.PavSnapshot{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Finalizers: []string{pavv1.SnapshotFinalizer}, Labels: map[string]string{pavv1.ProvisionerLabel: content.Spec.Driver},
		},
		Spec: pavv1.PavSnapshotSpec{
			Provisioner:    content.Spec.Driver,
			ContentRef:     pavv1.SnapshotContentReference{Name: content.Name, UID: content.UID},
			SnapshotRef:    pavv1.SnapshotReference{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID},
			DeletionPolicy: pavv1.SnapshotPolicyRetain,
		},
	}
	if content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete {
		record.Spec.DeletionPolicy = pavv1.SnapshotPolicyDelete
	}
	if handle := content.Spec.Source.SnapshotHandle; handle != nil {
		record.Spec.SnapshotHandle = *handle
	}
	objects := &record.Spec.Objects
	var err error
	if objects.SnapshotContent, err = r.copyOf(ctx, snapshotKind("VolumeSnapshotContent"), client.ObjectKey{Name: content.Name}); err != nil {
		return nil, err
	}
	if err := r.addClass(ctx, content, record); err != nil {
		return nil, err
	}
	if ref.UID != "" {
		if objects.Snapshot, err = r.copyOf(ctx, snapshotKind("VolumeSnapshot"), client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}); err != nil {
			return nil, err
		}
	}
	if content.Spec.Source.VolumeHandle == nil {
		return record, nil
	}
	// A snapshot that exists may outlive its volume.
	if err := r.addVolume(ctx, *content.Spec.Source.VolumeHandle, content.CreationTimestamp, record); err != nil && (!podplan.IsRefusal(err) || !exists(content)) {
		return nil, err
	}
	return record, nil
}

// addClass adds the VolumeSnapshotClass to a record. Without one, only snapshots that exist can be used, and a class that is gone does
// not keep them from being deleted.
func (r *Reconciler) addClass(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, record *pavv1.PavSnapshot) error {
	has, name := exists(content), content.Spec.VolumeSnapshotClassName
	if name == nil {
		if has {
			return nil
		}
		return refuse("VolumeSnapshotContent %q names no VolumeSnapshotClass", content.Name)
	}
	class, err := reconcile.Optional(ctx, r.Live, client.ObjectKey{Name: *name}, &snapshotv1.VolumeSnapshotClass{})
	if err != nil {
		return err
	}
	if class == nil {
		if has {
			return nil
		}
		return refuse("VolumeSnapshotClass %q does not exist: create it", *name)
	}
	if err := podplan.CheckSnapshotClass(content.Spec.Driver, class); err != nil && !has {
		return err
	}
	record.Spec.Objects.SnapshotClass, err = r.copyOf(ctx, snapshotKind("VolumeSnapshotClass"), client.ObjectKey{Name: *name})
	return err
}

// addVolume adds the volume of a handle, and its claim. Requested is when the snapshot was requested.
func (r *Reconciler) addVolume(ctx context.Context, handle string, requested metav1.Time, record *pavv1.PavSnapshot) error {
	record.Spec.VolumeHandle = handle
	named, err := claimNamed(record)
	if err != nil {
		return err
	}
	volumes, err := reconcile.VolumesOf(ctx, r.Client, record.Spec.Provisioner, handle)
	if err != nil {
		return err
	}
	pv := volumeOf(volumes, record.Spec.SnapshotRef.Namespace, named)
	const soon = 10 * time.Second
	if pv == nil && r.Now().Sub(requested.Time).Abs() < soon {
		return &reconcile.Later{After: time.Second} // the cache may be behind
	}
	if pv == nil {
		return refuse("no PersistentVolume of the driver %q has the handle %q", record.Spec.Provisioner, handle)
	}
	record.Spec.VolumeName = pv.Name
	record.Labels[pavv1.VolumeLabel] = workflow.Hash(pv.Name)
	objects := &record.Spec.Objects
	if objects.PersistentVolume, err = r.copyOf(ctx, corev1.SchemeGroupVersion.WithKind("PersistentVolume"), client.ObjectKeyFromObject(pv)); err != nil {
		return err
	}
	claim, err := claimOf(record, named)
	if err != nil {
		return err
	}
	record.Spec.ClaimUID = claim.UID
	objects.Claim, err = r.copyOf(ctx, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), client.ObjectKey{Namespace: claim.Namespace, Name: claim.Name})
	return err
}

// claimNamed returns the name of the claim that the VolumeSnapshot names; "" if the VolumeSnapshot is gone.
func claimNamed(record *pavv1.PavSnapshot) (string, error) {
	snapshot := &snapshotv1.VolumeSnapshot{}
	if err := decode(record.Spec.Objects.Snapshot, snapshot); err != nil {
		return "", err
	}
	if named := snapshot.Spec.Source.PersistentVolumeClaimName; snapshot.UID == record.Spec.SnapshotRef.UID && named != nil {
		return *named, nil
	}
	return "", nil
}

// volumeOf returns that one of the PersistentVolumes of a handle which is bound to a claim, or else any of them; nil if there are none.
func volumeOf(volumes []*corev1.PersistentVolume, namespace, claim string) *corev1.PersistentVolume {
	rank := func(pv *corev1.PersistentVolume) int {
		switch ref := pv.Spec.ClaimRef; {
		case ref == nil || ref.Namespace != namespace || ref.Name != claim:
			return 0
		case pv.Status.Phase != corev1.VolumeBound:
			return 1
		default:
			return 2
		}
	}
	if len(volumes) == 0 {
		return nil
	}
	return slices.MaxFunc(volumes, func(a, b *corev1.PersistentVolume) int { return cmp.Compare(rank(a), rank(b)) })
}

// claimOf returns the claim to which the PersistentVolume of a record was bound when it was copied. It must be the one that the
// VolumeSnapshot names, or any of its namespace if that is not known: after the request, the PersistentVolume may have been given to
// another claim, whose data is not to be captured.
func claimOf(record *pavv1.PavSnapshot, named string) (*corev1.ObjectReference, error) {
	pv := &corev1.PersistentVolume{}
	if err := decode(record.Spec.Objects.PersistentVolume, pv); err != nil {
		return nil, err
	}
	ref, claim := record.Spec.SnapshotRef, pv.Spec.ClaimRef
	if claim == nil || claim.UID == "" || claim.Namespace != ref.Namespace || named != "" && claim.Name != named {
		return nil, refuse("PersistentVolume %q is not bound any more to the claim that VolumeSnapshot %q names", record.Spec.VolumeName, ref.Namespace+"/"+ref.Name)
	}
	return claim, nil
}

// decode decodes the copy of an object; without one, the object stays empty.
func decode(raw *apiextensionsv1.JSON, into any) error {
	if raw == nil {
		return nil
	}
	if err := json.Unmarshal(raw.Raw, into); err != nil {
		return fmt.Errorf("decoding the copy of a %T: %w", into, err)
	}
	return nil
}

func snapshotKind(name string) schema.GroupVersionKind {
	return snapshotv1.SchemeGroupVersion.WithKind(name)
}

// copyOf returns a copy of an object as the API server has it, without what other programs note in it; nil if there is none.
func (r *Reconciler) copyOf(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*apiextensionsv1.JSON, error) {
	object, err := reconcile.ReadObject(ctx, r.Live, kind, key)
	if err != nil || object == nil {
		return nil, err
	}
	raw, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %q: %w", kind.Kind, key.Name, err)
	}
	if len(raw) > mostObject {
		return nil, refuse("%s %q has %d bytes, and may have %d for PaV to keep a copy of it: shorten its labels or annotations", kind.Kind, key.Name, len(raw), mostObject)
	}
	return &apiextensionsv1.JSON{Raw: raw}, nil
}

func refuse(format string, args ...any) error {
	return &podplan.Error{Err: fmt.Errorf(format, args...)}
}
