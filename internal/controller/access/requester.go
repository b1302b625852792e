package access

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// checkRequester returns a refusal if the object that asked for access does not exist any more. The record is told so only later, and not
// as long as the cluster does not have the kind of the object, or the agent no right to read it: until then, its credentials must not get
// into a namespace that belongs to another tenant by now, and it gets no further accounts.
func (r *Reconciler) checkRequester(ctx context.Context, record *pavv1.PavBucketAccess) error {
	if record.Spec.API == pavv1.BucketAPIVolume {
		return r.checkVolume(ctx, record)
	}
	requester := protocol.RequesterOfAccess(record)
	if requester == nil {
		return nil // secretOf refuses the API
	}
	live := &metav1.PartialObjectMetadata{TypeMeta: requester.TypeMeta}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(requester), live)
	switch {
	case meta.IsNoMatchError(err), apierrors.IsForbidden(err):
		return refuse("%s %s/%s, which asked for the access, cannot be read: the cluster does not have this kind, or the controller agent has no right to it", requester.Kind, requester.Namespace, requester.Name)
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading %s %s/%s: %w", requester.Kind, requester.Namespace, requester.Name, err)
	case err != nil, live.UID != requester.UID:
		return refuse("%s %s/%s with the UID %s, which asked for the access, does not exist any more", requester.Kind, requester.Namespace, requester.Name, requester.UID)
	}
	return nil
}

// checkVolume is checkRequester for the access of a volume. The claim that the volume was created for may be gone while another one has the
// volume, and the credentials are for staging pods, not for the namespace of the claim. So it is the record of the volume that counts.
func (r *Reconciler) checkVolume(ctx context.Context, record *pavv1.PavBucketAccess) error {
	name := volumeOf(record)
	volume, err := reconcile.Optional(ctx, r.Live, client.ObjectKey{Name: name}, &pavv1.PavVolume{})
	if err != nil {
		return err
	}
	if volume == nil || volume.Spec.BucketRef == nil || volume.Spec.Provisioner != record.Spec.Provisioner || volume.Spec.ClaimRef.UID != record.Spec.Requester.UID {
		return refuse("PavVolume %q, which is the bucket that the access is to, does not exist any more", name)
	}
	return nil
}
