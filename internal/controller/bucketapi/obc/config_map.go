package obc

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// errNoVersion means that the answer to a dry run has no version, which is not what an API server answers.
var errNoVersion = errors.New("the API server did not say which version of the ConfigMap it has")

// configMapOf returns the ConfigMap of a claim, without data and finalizers. It is written as a whole, since the agent has no right to
// read it. A policy lets the agent write only ConfigMaps with this label and owner.
func configMapOf(o observation) *corev1.ConfigMap {
	owner := metav1.OwnerReference{APIVersion: objectbucketv1.GroupVersion.String(), Kind: kind, Name: o.name.Name, UID: o.uid, Controller: new(true)}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.name.Namespace, Name: o.name.Name, OwnerReferences: []metav1.OwnerReference{owner},
		Labels: map[string]string{pavv1.AccessLabel: string(o.uid), objectbucketv1.ProvisionerLabel: o.label()},
	}}
}

// writeConfigMap writes the ConfigMap of a claim, if it is not known to have the data. It returns why the API server does not let it.
func (r *Reconciler) writeConfigMap(ctx context.Context, o observation) (*rule.Decision, error) {
	data := configData(o.bucket)
	hash := hashOf(data)
	if o.memory.written == hash {
		return nil, nil
	}
	config := configMapOf(o)
	config.Data, config.Finalizers = data, []string{objectbucketv1.Finalizer}
	exists, err := r.replaceConfigMap(ctx, o, config)
	switch {
	case err == nil:
		r.memories.change(o.name, o.uid, func(m *memory) { m.written, m.removed = hash, false })
		return nil, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return nil, reconcile.ErrStale // it, or the namespace, was changed or deleted meanwhile
	case exists && isRefused(err):
		d := refuse(protocol.ConfigMapNameTaken, fmt.Sprintf("ConfigMap %q exists, is not this claim's, and is left as it is: delete it, or give the claim another name", o.name))
		return &d, nil
	case isRefused(err):
		d := refuse(protocol.BucketClaimRefused, fmt.Sprintf("ConfigMap %q cannot be created: %v", o.name, err))
		return &d, nil
	default:
		return nil, fmt.Errorf("writing ConfigMap %q: %w", o.name, err)
	}
}

// replaceConfigMap writes a ConfigMap, which exists or not, as Secrets are written: an agent that has stalled, and leads no more, replaces no
// newer one, and creates none with a finalizer that nobody removes any more. A dry run tells which version the API server has.
func (r *Reconciler) replaceConfigMap(ctx context.Context, o observation, config *corev1.ConfigMap) (exists bool, err error) {
	seen := config.DeepCopy()
	err = r.Direct.Update(ctx, seen, client.DryRunAll)
	exists = !apierrors.IsNotFound(err)
	if !exists {
		seen = config.DeepCopy()
		seen.Finalizers = nil
		err = r.Direct.Create(ctx, seen)
	}
	if err != nil {
		return exists, err
	}
	if seen.UID == "" || seen.ResourceVersion == "" {
		return exists, errNoVersion // without it, any version would be replaced
	}
	if err := r.checkUnchanged(ctx, o); err != nil {
		return exists, err
	}
	config.UID, config.ResourceVersion = seen.UID, seen.ResourceVersion
	return exists, r.Direct.Update(ctx, config)
}

// checkUnchanged returns reconcile.ErrStale if the API server does not have the record of a bucket any more as it is here, or if the claim
// goes: then the ConfigMap may have been deleted for good.
func (r *Reconciler) checkUnchanged(ctx context.Context, o observation) error {
	bucket, err := reconcile.Optional(ctx, r.Live, client.ObjectKeyFromObject(o.bucket), &pavv1.PavBucket{})
	if err != nil {
		return err
	}
	claim, err := reconcile.Optional(ctx, r.Live, o.name, &objectbucketv1.ObjectBucketClaim{})
	if err != nil {
		return err
	}
	if bucket == nil || bucket.UID != o.bucket.UID || bucket.ResourceVersion != o.bucket.ResourceVersion || claim == nil || claim.UID != o.uid || claim.DeletionTimestamp != nil {
		return reconcile.ErrStale
	}
	return nil
}

// isRefused reports whether the API server does not let the agent write an object.
func isRefused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

// hadConfigMap reports whether the ConfigMap of a claim was written, as far as it is known: a claim is bound after that.
func (o observation) hadConfigMap() bool {
	return o.memory.written != "" || o.claim != nil && o.claim.Spec.ObjectBucketName != ""
}

// removeConfigMap deletes the ConfigMap of a claim. One that is not the claim's is left alone.
func (r *Reconciler) removeConfigMap(ctx context.Context, o observation) error {
	if o.memory.removed || o.label() == "" {
		return nil
	}
	config := configMapOf(o)
	err := r.Direct.Update(ctx, config)
	if err == nil {
		err = r.Direct.Delete(ctx, config, client.Preconditions{UID: new(config.UID)})
	}
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
	case apierrors.IsForbidden(err) && !o.hadConfigMap(): // it is something else's
	case isRefused(err):
		// Who makes it immutable has to remove the finalizer.
		r.tell(o, corev1.EventTypeWarning, protocol.ConfigMapLeft, fmt.Sprintf("ConfigMap %q is left with its finalizer, as PaV may not change it: it is immutable, has lost the label %s, or the controller agent its rights; delete it, and remove its finalizer",
			o.name, pavv1.AccessLabel))
	default:
		return fmt.Errorf("deleting ConfigMap %q: %w", o.name, err)
	}
	r.memories.change(o.name, o.uid, func(m *memory) { m.removed, m.written = true, "" })
	return nil
}
