package obc

import (
	"context"
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
	replacement := config.DeepCopy()
	err := r.Direct.Create(ctx, config)
	exists := apierrors.IsAlreadyExists(err)
	if exists {
		err = r.Direct.Update(ctx, replacement)
	}
	switch {
	case err == nil:
		r.memories.change(o.name, o.uid, func(m *memory) { m.written, m.removed = hash, false })
		return nil, nil
	case apierrors.IsNotFound(err):
		return nil, reconcile.ErrStale // it, or the namespace, was deleted meanwhile
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

// isRefused reports whether the API server does not let the agent write an object.
func isRefused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

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
	case err == nil, apierrors.IsNotFound(err), apierrors.IsForbidden(err), apierrors.IsConflict(err):
	case apierrors.IsInvalid(err):
		// Who makes it immutable has to remove the finalizer.
		r.tell(o, corev1.EventTypeWarning, protocol.ConfigMapLeft, fmt.Sprintf("ConfigMap %q cannot be deleted, as it is immutable: delete it, and remove its finalizer", o.name))
	default:
		return fmt.Errorf("deleting ConfigMap %q: %w", o.name, err)
	}
	r.memories.change(o.name, o.uid, func(m *memory) { m.removed, m.written = true, "" })
	return nil
}
