package snapshot

import (
	"context"
	"fmt"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
)

// view is what a VolumeSnapshotContent says of its snapshot. It is written from the record, and never read back as one.
type view struct {
	beingCreated bool
	ready        bool
	handle       string
	creationTime int64 // in nanoseconds; 0 if it is not known
	restoreSize  int64 // in bytes; 0 if it is not known
	failure      string
}

// refusals are the reasons of a condition that people have to act on. They are errors of the snapshot, as failed pods are.
var refusals = []string{"NoProvisioner", "Unsupported", "NoVolume"}

// viewOf returns what the VolumeSnapshotContent is to say.
func viewOf(o observation) view {
	status := &o.record.Status
	v := view{beingCreated: status.Pod != nil || status.Step == pavv1.SnapshotReverting}
	switch c := meta.FindStatusCondition(status.Conditions, pavv1.SnapshotCreated); {
	case c != nil && slices.Contains(refusals, c.Reason):
		v.failure = c.Message
	case status.Failure != nil:
		v.failure = status.Failure.Message
	}
	if o.pending() {
		return v
	}
	v.handle, v.ready = status.Handle, o.is(pavv1.SnapshotReady)
	if v.ready {
		v.failure = ""
	}
	if status.CreationTime != nil {
		v.creationTime = status.CreationTime.UnixNano()
	}
	if status.Size != nil {
		v.restoreSize = status.Size.Value()
	}
	return v
}

// viewShown returns what a VolumeSnapshotContent says.
func viewShown(content *snapshotv1.VolumeSnapshotContent) view {
	v := view{beingCreated: metav1.HasAnnotation(content.ObjectMeta, protocol.SnapshotBeingCreated)}
	status := content.Status
	if status == nil {
		return v
	}
	v.ready = status.ReadyToUse != nil && *status.ReadyToUse
	if status.SnapshotHandle != nil {
		v.handle = *status.SnapshotHandle
	}
	if status.CreationTime != nil {
		v.creationTime = *status.CreationTime
	}
	if status.RestoreSize != nil {
		v.restoreSize = *status.RestoreSize
	}
	if status.Error != nil && status.Error.Message != nil {
		v.failure = *status.Error.Message
	}
	return v
}

// contentBehind reports whether the VolumeSnapshotContent has to be written. What is to be deleted, or exists and is not recorded, is
// left as it is.
func (o observation) contentBehind() bool {
	if o.contentGone() || o.is(pavv1.SnapshotDeleting) || o.is(pavv1.SnapshotRetained) || o.pending() && o.exists() {
		return false
	}
	return viewOf(o) != viewShown(o.content)
}

// isHeld reports whether the VolumeSnapshotContent is being deleted and waits for PaV.
func (o observation) isHeld() bool {
	return o.content != nil && o.content.DeletionTimestamp != nil && controllerutil.ContainsFinalizer(o.content, protocol.SnapshotContentFinalizer)
}

// show writes to the VolumeSnapshotContent what is recorded of the snapshot: that something may run before it can, and that nothing runs
// any more after what has come of it.
func (r *Reconciler) show(ctx context.Context, o observation, _ rule.Decision) error {
	want, shown := viewOf(o), viewShown(o.content)
	if want.beingCreated && !shown.beingCreated {
		return r.annotate(ctx, o.content, true)
	}
	if shown.beingCreated = want.beingCreated; want != shown {
		return r.showStatus(ctx, o.content, want)
	}
	return r.annotate(ctx, o.content, false)
}

// annotate says whether something may run that creates the snapshot.
func (r *Reconciler) annotate(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, beingCreated bool) error {
	changed := content.DeepCopy()
	if beingCreated {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, protocol.SnapshotBeingCreated, "yes")
	} else {
		delete(changed.Annotations, protocol.SnapshotBeingCreated)
	}
	return r.patchContent(ctx, content, changed)
}

// showStatus writes the status of a VolumeSnapshotContent.
func (r *Reconciler) showStatus(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, v view) error {
	changed := content.DeepCopy()
	if changed.Status == nil {
		changed.Status = &snapshotv1.VolumeSnapshotContentStatus{}
	}
	status := changed.Status
	status.ReadyToUse = &v.ready
	status.SnapshotHandle, status.CreationTime, status.RestoreSize = orNil(v.handle), orNil(v.creationTime), orNil(v.restoreSize)
	switch {
	case v.failure == "":
		status.Error = nil
	case status.Error == nil || status.Error.Message == nil || *status.Error.Message != v.failure:
		status.Error = &snapshotv1.VolumeSnapshotError{Time: new(metav1.NewTime(r.Now())), Message: &v.failure}
	}
	patch := client.MergeFromWithOptions(content, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, changed, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("updating the status of VolumeSnapshotContent %q: %w", content.Name, err)
	}
	r.contents.Replace(content.Name, content.ResourceVersion, changed.ResourceVersion)
	return nil
}

func orNil[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}

// release lets Kubernetes delete the VolumeSnapshotContent of a snapshot whose storage is deleted, was never created, or is retained.
func (r *Reconciler) release(ctx context.Context, o observation, d rule.Decision) error {
	if err := r.confirm(ctx, o, d.Step); err != nil {
		return err
	}
	return r.releaseContent(ctx, o.content, o.is(pavv1.SnapshotDeleting))
}

// releaseContent removes what keeps a VolumeSnapshotContent from being deleted. That it has no snapshot any more is written before.
func (r *Reconciler) releaseContent(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, deleted bool) error {
	if deleted && content.Status != nil && content.Status.SnapshotHandle != nil {
		return r.showStatus(ctx, content, view{})
	}
	changed := content.DeepCopy()
	delete(changed.Annotations, protocol.SnapshotBeingCreated)
	controllerutil.RemoveFinalizer(changed, protocol.SnapshotContentFinalizer)
	return r.patchContent(ctx, content, changed)
}

// patchContent writes what changed of a VolumeSnapshotContent, unless someone else wrote it meanwhile.
func (r *Reconciler) patchContent(ctx context.Context, before, after *snapshotv1.VolumeSnapshotContent) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("updating VolumeSnapshotContent %q: %w", before.Name, err)
	}
	r.contents.Replace(before.Name, before.ResourceVersion, after.ResourceVersion)
	return nil
}
