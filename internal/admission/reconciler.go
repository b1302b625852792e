package admission

import (
	"bytes"
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/albertofaria/pav/internal/reconcile"
)

// steps is more than any pass has.
const steps = 8

// renewer is the reconciler of the certificate. Every replica has one: in a rolling update from a version without it,
// the leader does not renew certificates, and stays the leader until another replica is ready. If two replicas write
// at once, the second gets a conflict, and reads again.
type renewer struct {
	client client.Client
	key    types.NamespacedName
	issuer *issuer
	now    func() time.Time

	// next is an authority that is not in use yet. It is created again if the process ends.
	next  keys
	since time.Time
}

func (r *renewer) register(mgr ctrl.Manager) error {
	mine := func(context.Context, client.Object) []ctrl.Request {
		return []ctrl.Request{{NamespacedName: r.key}}
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("certificate").
		For(&corev1.Secret{}). // the cache has one
		Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, handler.EnqueueRequestsFromMapFunc(mine)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: reconcile.Backoff(), NeedLeaderElection: new(false)}).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *renewer) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	secret := &corev1.Secret{}
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	for _, err := range []error{
		r.client.Get(ctx, r.key, secret),
		r.client.Get(ctx, types.NamespacedName{Name: ConfigurationName}, configuration),
	} {
		if apierrors.IsNotFound(err) {
			return ctrl.Result{}, nil // the readiness check says so
		}
		if err != nil {
			return ctrl.Result{}, err
		}
	}
	for range steps {
		s := snapshot{secret: secret.Data, bundle: bundleOf(configuration), now: r.now(), next: r.next, since: r.since}
		p := r.issuer.decide(s)
		if r.issuer.hasAuthority(s) {
			r.next = nil // another replica was first
		}
		if p.step == rest {
			return ctrl.Result{RequeueAfter: p.after}, nil
		}
		if err := r.act(ctx, s, p, secret, configuration); err != nil {
			return reconcile.Result(err)
		}
		ctrl.LoggerFrom(ctx).Info("renewed the certificate of the webhook", "step", p.step)
	}
	return ctrl.Result{RequeueAfter: settle}, nil // a configuration without webhooks takes no authority
}

// act takes a step. The objects are those that the API server returned.
func (r *renewer) act(ctx context.Context, s snapshot, p plan, secret *corev1.Secret, configuration *admissionregistrationv1.ValidatingWebhookConfiguration) error {
	switch p.step {
	case rest:
		return nil
	case makeAuthority:
		next, err := r.issuer.authority(s.now)
		r.next, r.since = next, s.now
		return err
	case trustAuthority:
		return r.writeBundle(ctx, configuration, p.bundle)
	case useAuthority:
		if err := r.writeSecret(ctx, secret, r.next); err != nil {
			return err
		}
		r.next = nil
		return nil
	case makeCertificate:
		made, err := r.issuer.certificate(s.secret, s.now)
		if err != nil {
			return err
		}
		return r.writeSecret(ctx, secret, made)
	}
	return fmt.Errorf("no such step: %q", p.step)
}

func (r *renewer) writeSecret(ctx context.Context, secret *corev1.Secret, contents keys) error {
	before := secret.DeepCopy()
	secret.Data = contents
	if err := r.client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the Secret %s: %w", r.key, err)
	}
	return nil
}

func (r *renewer) writeBundle(ctx context.Context, configuration *admissionregistrationv1.ValidatingWebhookConfiguration, bundle []byte) error {
	before := configuration.DeepCopy()
	for i := range configuration.Webhooks {
		configuration.Webhooks[i].ClientConfig.CABundle = bundle
	}
	if err := r.client.Patch(ctx, configuration, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the ValidatingWebhookConfiguration %s: %w", ConfigurationName, err)
	}
	return nil
}

// bundleOf returns the CA bundle of all webhooks of a configuration, or nil if they differ.
func bundleOf(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) []byte {
	var bundle []byte
	for i := range configuration.Webhooks {
		one := configuration.Webhooks[i].ClientConfig.CABundle
		if i > 0 && !bytes.Equal(one, bundle) {
			return nil
		}
		bundle = one
	}
	return bundle
}
