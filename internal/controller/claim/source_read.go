package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	kubesource "sigs.k8s.io/controller-runtime/pkg/source"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// readSource reads what the claim names as its source from the API server; nil if it names none. Tenants write claims and VolumeSnapshots,
// and choose from whose storage the volume is filled: what is recorded never comes from a cache.
func (r *Reconciler) readSource(ctx context.Context, o snapshot) (*source, error) {
	ref := protocol.Source(o.claim)
	if ref == nil || protocol.IsPopulators(ref) {
		return nil, nil
	}
	s := &source{}
	namespace := protocol.SourceNamespace(o.claim, ref)
	if namespace != o.claim.Namespace {
		var err error
		if s.granted, err = r.isGranted(ctx, o.claim, ref); err != nil || !s.granted {
			return s, err
		}
	}
	key := client.ObjectKey{Namespace: namespace, Name: ref.Name}
	if ref.Kind == protocol.KindSnapshot {
		return s, r.readSnapshot(ctx, key, s)
	}
	return s, r.readClaim(ctx, key, s)
}

// cachedSource returns what the cache shows of a claim's source; nil if it cannot tell. Claims that wait for their source take no reads
// from the API server.
func (r *Reconciler) cachedSource(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*source, error) {
	ref := protocol.Source(claim)
	if ref == nil || protocol.IsPopulators(ref) || ref.Kind == protocol.KindSnapshot && !r.watchesSnapshots.Load() {
		return nil, nil
	}
	s := &source{ClaimSource: podplan.ClaimSource{Cached: true}, granted: true}
	key := client.ObjectKey{Namespace: protocol.SourceNamespace(claim, ref), Name: ref.Name}
	var err error
	if ref.Kind == protocol.KindSnapshot {
		s.Snapshot, err = reconcile.Optional(ctx, r.Client, key, &snapshotv1.VolumeSnapshot{})
	} else {
		s.Claim, err = reconcile.Optional(ctx, r.Client, key, &corev1.PersistentVolumeClaim{})
	}
	return s, err
}

// readSnapshot reads a VolumeSnapshot, its VolumeSnapshotContent and its record.
func (r *Reconciler) readSnapshot(ctx context.Context, key client.ObjectKey, s *source) error {
	var err error
	if s.Snapshot, err = reconcile.Optional(ctx, r.Live, key, &snapshotv1.VolumeSnapshot{}); meta.IsNoMatchError(err) {
		s.NoSnapshots = true
		return nil
	}
	if err != nil || s.Snapshot == nil || s.Snapshot.Status == nil || s.Snapshot.Status.BoundVolumeSnapshotContentName == nil {
		return err
	}
	s.Content, err = reconcile.Optional(ctx, r.Live, client.ObjectKey{Name: *s.Snapshot.Status.BoundVolumeSnapshotContentName}, &snapshotv1.VolumeSnapshotContent{})
	if err != nil || s.Content == nil || protocol.SnapshotOf(s.Content) == "" {
		return err
	}
	s.Record, err = reconcile.Optional(ctx, r.Live, client.ObjectKey{Name: protocol.SnapshotOf(s.Content)}, &pavv1.PavSnapshot{})
	if s.Record != nil && s.Record.Spec.Provisioner != s.Content.Spec.Driver {
		s.Record = nil
	}
	return err
}

// readClaim reads a claim, its PersistentVolume and its PavVolume.
func (r *Reconciler) readClaim(ctx context.Context, key client.ObjectKey, s *source) error {
	var err error
	if s.Claim, err = reconcile.Optional(ctx, r.Live, key, &corev1.PersistentVolumeClaim{}); err != nil || s.Claim == nil || s.Claim.Spec.VolumeName == "" {
		return err
	}
	name := client.ObjectKey{Name: s.Claim.Spec.VolumeName}
	if s.PV, err = reconcile.Optional(ctx, r.Live, name, &corev1.PersistentVolume{}); err != nil || s.PV == nil || s.PV.Spec.CSI == nil {
		return err
	}
	s.Volume, err = reconcile.Optional(ctx, r.Live, name, &pavv1.PavVolume{})
	if s.Volume != nil && !s.Volume.IsOf(s.PV.Spec.CSI.Driver, s.PV.Spec.CSI.VolumeHandle) {
		s.Volume = nil // the record of another volume of that name
	}
	return err
}

// referenceGrants is the kind by which the owner of a namespace lets objects of other namespaces refer to objects there.
var referenceGrants = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1beta1", Kind: "ReferenceGrant"}

// isGranted reports whether a ReferenceGrant lets a claim use a source of another namespace. Where the definition of ReferenceGrants is
// missing, none does.
func (r *Reconciler) isGranted(ctx context.Context, claim *corev1.PersistentVolumeClaim, ref *corev1.TypedObjectReference) (bool, error) {
	if !r.CrossNamespaceSources {
		return false, nil
	}
	grants := &unstructured.UnstructuredList{}
	grants.SetGroupVersionKind(referenceGrants)
	namespace := protocol.SourceNamespace(claim, ref)
	// Not found is the answer after the definition was deleted.
	if err := r.Live.List(ctx, grants, client.InNamespace(namespace)); meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("reading the ReferenceGrants of namespace %q: %w", namespace, err)
	}
	// The watch shows those that were written after this answer.
	if err := r.watchGrants(); err != nil {
		return false, err
	}
	return slices.ContainsFunc(grants.Items, func(grant unstructured.Unstructured) bool { return permits(grant.Object, claim.Namespace, ref) }), nil
}

// permits reports whether one ReferenceGrant lets claims of a namespace use a source.
func permits(grant map[string]any, namespace string, ref *corev1.TypedObjectReference) bool {
	group := ""
	if ref.APIGroup != nil {
		group = *ref.APIGroup
	}
	has := func(field string, matches func(map[string]any) bool) bool {
		items, _, _ := unstructured.NestedSlice(grant, "spec", field)
		return slices.ContainsFunc(items, func(item any) bool {
			entry, ok := item.(map[string]any)
			return ok && matches(entry)
		})
	}
	return has("from", func(from map[string]any) bool {
		return from["group"] == "" && from["kind"] == protocol.KindClaim && from["namespace"] == namespace
	}) && has("to", func(to map[string]any) bool {
		name, named := to["name"].(string)
		return to["group"] == group && to["kind"] == ref.Kind && (!named || name == "" || name == ref.Name)
	})
}

// waitingFor returns requests for the claims that wait for a volume and whose source has a key, or depends on what has it.
func (r *Reconciler) waitingFor(ctx context.Context, key string, of func(*corev1.PersistentVolumeClaim) string) []ctrl.Request {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.Client.List(ctx, claims, client.MatchingFields{reconcile.ClaimsBySource: reconcile.Bucket(key)}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look claims up by their source", "key", key)
		return nil
	}
	var requests []ctrl.Request
	for i := range claims.Items {
		if of(&claims.Items[i]) == key {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&claims.Items[i])})
		}
	}
	return requests
}

// ofClaim maps a claim to the claims that wait for a volume and name it as their source.
func (r *Reconciler) ofClaim(ctx context.Context, claim client.Object) []ctrl.Request {
	return r.waitingFor(ctx, protocol.KeyOfSource(protocol.KindClaim, claim.GetNamespace(), claim.GetName()), protocol.SourceKey)
}

// ofSnapshot does the same for a VolumeSnapshot.
func (r *Reconciler) ofSnapshot(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) []ctrl.Request {
	return r.waitingFor(ctx, protocol.KeyOfSource(protocol.KindSnapshot, snapshot.Namespace, snapshot.Name), protocol.SourceKey)
}

// ofContent does the same for the VolumeSnapshot of a VolumeSnapshotContent.
func (r *Reconciler) ofContent(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) []ctrl.Request {
	ref := &content.Spec.VolumeSnapshotRef
	return r.waitingFor(ctx, protocol.KeyOfSource(protocol.KindSnapshot, ref.Namespace, ref.Name), protocol.SourceKey)
}

// ofGrant maps a ReferenceGrant to the claims that wait for a volume and whose source is in its namespace.
func (r *Reconciler) ofGrant(ctx context.Context, grant *metav1.PartialObjectMetadata) []ctrl.Request {
	return r.waitingFor(ctx, protocol.KeyOfGrants(grant.Namespace), protocol.GrantsKey)
}

// WatchSnapshots adds the watches of VolumeSnapshots and VolumeSnapshotContents, which are an add-on, to the reconciler, which is
// registered and may run. Their definitions must exist.
func (r *Reconciler) WatchSnapshots() error {
	if err := errors.Join(
		r.controller.Watch(kubesource.Kind(r.cache, &snapshotv1.VolumeSnapshot{}, handler.TypedEnqueueRequestsFromMapFunc(r.ofSnapshot))),
		r.controller.Watch(kubesource.Kind(r.cache, &snapshotv1.VolumeSnapshotContent{}, handler.TypedEnqueueRequestsFromMapFunc(r.ofContent))),
	); err != nil {
		return fmt.Errorf("watching snapshots: %w", err)
	}
	r.watchesSnapshots.Store(true)
	return nil
}

// watchGrants adds the watch of ReferenceGrants once, when a claim needs one for the first time. Their definition must exist.
func (r *Reconciler) watchGrants() error {
	r.grants.Lock()
	defer r.grants.Unlock()
	if r.watchesGrants {
		return nil
	}
	grant := &metav1.PartialObjectMetadata{}
	grant.SetGroupVersionKind(referenceGrants)
	if err := r.controller.Watch(kubesource.Kind(r.cache, grant, handler.TypedEnqueueRequestsFromMapFunc(r.ofGrant))); err != nil {
		return fmt.Errorf("watching ReferenceGrants: %w", err)
	}
	r.watchesGrants = true
	return nil
}
