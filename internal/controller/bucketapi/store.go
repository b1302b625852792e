package bucketapi

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/template"
)

// Stores evaluates in which stores buckets are.
type Stores struct {
	// Live reads from the API server.
	Live client.Reader

	// Templates evaluates the fields of provisioners.
	Templates *template.Evaluator

	// Lookup is called if a definition looks up a claim of another namespace than the bucket's.
	Lookup func(provisioner *pavv1.PavProvisioner, message string, allowed bool)
}

// Of returns the store of a bucket that is to be recorded.
func (s Stores) Of(ctx context.Context, provisioner *pavv1.PavProvisioner, bucket *pavv1.PavBucket) (string, error) {
	own := bucket.Spec.ClaimRef.Namespace
	namespace, err := reconcile.ReadObject(ctx, s.Live, corev1.SchemeGroupVersion.WithKind("Namespace"), types.NamespacedName{Name: own})
	if err != nil {
		return "", err
	}
	request := podplan.BucketRequest{
		BucketDefinition: podplan.BucketDefinition{
			Provisioner: provisioner.UID, Generation: provisioner.Generation, Spec: &provisioner.Spec,
			Templates: s.Templates, GetPVC: reconcile.GetPVC(s.Live),
			Foreign: func(_ context.Context, name, in string, allowed bool) {
				s.Lookup(provisioner, template.ForeignLookup(provisioner.Name, name, in, own, allowed), allowed)
			},
		},
		Record: bucket,
	}
	if namespace != nil {
		request.Namespace = namespace.Object
	}
	return request.Store(ctx)
}

// TellLookup reports to the administrator that a definition looks up claims of another namespace: a tenant may have chosen the namespace.
// There is no record yet that could have the event.
func TellLookup(events record.EventRecorder, provisioner *pavv1.PavProvisioner, message string, allowed bool) {
	eventType := corev1.EventTypeNormal
	if !allowed {
		eventType = corev1.EventTypeWarning
	}
	events.Event(provisioner, eventType, protocol.ForeignClaim, observability.Clip(message, observability.MaxNote))
}
