package selftest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// free fails if any object has the test's name already: only this name tells which volumes belong to the test.
func (r *run) free(ctx context.Context) error {
	for _, object := range []client.Object{&corev1.Namespace{}, &pavv1.PavProvisioner{}, &storagev1.StorageClass{}, &storagev1.CSIDriver{}} {
		err := r.client.Get(ctx, client.ObjectKey{Name: r.name}, object)
		object.SetName(r.name)
		switch {
		case err == nil:
			return fmt.Errorf("%s exists already: choose another name with --name", describeObject(object))
		case meta.IsNoMatchError(err):
			return notInstalled(err)
		case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err): // A user who may not read these objects may not create them either, except for the CSIDriver.
			return fmt.Errorf("looking for %s: %w", describeObject(object), err)
		}
	}
	volumes := &pavv1.PavVolumeList{}
	if err := r.client.List(ctx, volumes, client.MatchingLabels{pavv1.ProvisionerLabel: r.name}, client.Limit(1)); err != nil {
		return fmt.Errorf("looking for volumes of a provisioner %s: %w", r.name, err)
	}
	if len(volumes.Items) > 0 {
		return fmt.Errorf("there are volumes of a provisioner %s, such as PavVolume %s: choose another name with --name", r.name, volumes.Items[0].Name)
	}
	buckets := &pavv1.PavBucketList{}
	if err := r.client.List(ctx, buckets, client.MatchingLabels{pavv1.ProvisionerLabel: r.name}, client.Limit(1)); err != nil && !isMissing(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("looking for buckets of a provisioner %s: %w", r.name, err)
	}
	if len(buckets.Items) > 0 {
		return fmt.Errorf("there are buckets of a provisioner %s, such as PavBucket %s: choose another name with --name", r.name, buckets.Items[0].Name)
	}
	return nil
}

func notInstalled(err error) error {
	return fmt.Errorf("PaV is not installed on this cluster: %w", err)
}

// create creates an object that is cleaned up after the test.
func (r *run) create(ctx context.Context, object client.Object) error {
	wanted, _ := object.DeepCopyObject().(client.Object)
	err := r.post(ctx, object)
	switch {
	case meta.IsNoMatchError(err):
		return notInstalled(err)
	case err == nil:
		r.created = append(r.created, object)
		return nil
	case refused(err) || errors.Is(err, errNotAsked):
		return fmt.Errorf("creating %s: %w", describeObject(object), err)
	}
	return r.adopt(ctx, wanted, err)
}

// errNotAsked means that the request to create an object was never sent.
var errNotAsked = errors.New("too late to begin")

// post creates an object. It waits for the response even if ctx ends: cleanup must know whether the object exists.
func (r *run) post(ctx context.Context, object client.Object) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", errNotAsked, context.Cause(ctx))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	return r.client.Create(ctx, object)
}

// refused reports whether an error means that nothing was created.
func refused(err error) bool {
	return apierrors.IsAlreadyExists(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) ||
		apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) || apierrors.IsUnauthorized(err)
}

// adopt finds out whether an object was created if the error, why, does not tell.
func (r *run) adopt(ctx context.Context, object client.Object, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	failed := fmt.Errorf("creating %s: %w", describeObject(object), why)
	found, _ := object.DeepCopyObject().(client.Object)
	err := r.client.Get(ctx, client.ObjectKeyFromObject(object), found)
	switch {
	case apierrors.IsNotFound(err):
		return failed
	case err != nil:
		command := strings.Replace(r.deletion(object), "delete", "get", 1) + " -o yaml   # if it is the test's: " + r.deletion(object)
		r.left(object, "it may have been created: "+err.Error(), command)
		return failed
	case !r.mine(found):
		return failed
	}
	r.created = append(r.created, found)
	return nil
}

// mine reports whether an object has the mark of this test.
func (r *run) mine(object client.Object) bool {
	return object.GetLabels()[instanceLabel] == r.name || object.GetAnnotations()[instanceLabel] == r.name
}

// mark marks an object of the files as created by the test. The mark is an annotation: the label selects the objects
// that the test deletes between its steps.
func (r *run) mark(object metav1.Object) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[instanceLabel] = r.name
	object.SetAnnotations(annotations)
}

// hasCopy reports whether the test created its copy of the PavProvisioner, so that volumes with that name belong to
// the test.
func (r *run) hasCopy() bool {
	for _, object := range r.created {
		if kindOf(object) == "PavProvisioner" && object.GetName() == r.name {
			return true
		}
	}
	return false
}
