package access

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/credentials"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/workflow"
)

// deliver writes the credentials of the account to the Secrets of the access, and records these. An agent that is killed before it has
// recorded them writes them again.
func (r *Reconciler) deliver(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	secrets, err := r.deliverAll(ctx, o)
	if podplan.IsRefusal(err) {
		failure := workflow.FailureWithoutPod(pavv1.WorkflowGrant, err)
		failure.Reason = pavv1.FailureOutputInvalid
		return r.failMade(ctx, o, failure)
	}
	if err != nil {
		return err
	}
	rotated := o.record.Status.Current != nil
	if err := r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketAccessStatus) { r.setGranted(o, status, secrets) }); err != nil {
		return err
	}
	r.tellGranted(ctx, o, rotated)
	return nil
}

// deliverAll writes the Secrets of the access.
func (r *Reconciler) deliverAll(ctx context.Context, o observation) ([]pavv1.DeliveredSecret, error) {
	known, err := r.credentials(ctx, o)
	if err != nil {
		return nil, err
	}
	defer known.Clear()
	var secrets []pavv1.DeliveredSecret
	for _, accessed := range o.record.Spec.Buckets {
		i := slices.IndexFunc(o.buckets, func(b *pavv1.PavBucket) bool { return b.Name == accessed.Bucket })
		if i < 0 {
			return nil, refuse("PavBucket %q does not exist any more", accessed.Bucket)
		}
		data, err := secretData(o.record, o.buckets[i], known)
		if err != nil {
			return nil, err
		}
		uid, err := r.writeSecret(ctx, o.record, accessed.SecretName, data)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, pavv1.DeliveredSecret{Name: accessed.SecretName, UID: uid, Number: o.record.Status.Granting.Number})
	}
	return secrets, nil
}

// credentials returns those of the account that is granted, which the caller must clear: what its pod left, or what all accesses share.
func (r *Reconciler) credentials(ctx context.Context, o observation) (credentials.Credentials, error) {
	if o.record.Status.Pod == nil {
		return r.shared(ctx, o)
	}
	if o.pod() == nil {
		return nil, refuse("pod %s/%s is gone, and with it the credentials of its account", o.record.Status.Pod.Namespace, o.record.Status.Pod.Name)
	}
	_, opened, err := r.outcome(ctx, o)
	return opened, err
}

// shared returns the credentials in the Secret that the definition names.
func (r *Reconciler) shared(ctx context.Context, o observation) (credentials.Credentials, error) {
	if o.refusal() != nil {
		return nil, refuse("no access can be granted any more: %s", o.refusal().Message)
	}
	request, err := r.grantRequest(ctx, o, r.cached, o.record.Status.Granting)
	if err != nil {
		return nil, err
	}
	plan, err := request.Grant(ctx)
	if err != nil {
		return nil, err
	}
	if plan.FromSecret == "" {
		return nil, refuse("spec.bucketAccessGrant.fromSecret: names no Secret any more")
	}
	data, err := r.readSecret(ctx, plan.FromSecret)
	if err != nil {
		return nil, err
	}
	known := credentials.Credentials(data)
	if err := errors.Join(known.Check(), known.CheckFor(o.record.Spec.Protocol)); err != nil {
		return nil, refuse("Secret %s/%s: %w", pavv1.CredentialsNamespace, plan.FromSecret, err)
	}
	return known, nil
}

// open returns the credentials that a grant pod left, which the caller must clear.
func (r *Reconciler) open(ctx context.Context, o observation, result *workflow.Result) (credentials.Credentials, error) {
	if len(result.Sealed) == 0 {
		return credentials.Credentials{}, nil
	}
	private, err := r.readKey(ctx, o.record)
	if err != nil {
		return nil, err
	}
	defer clear(private)
	opened, err := credentials.Open(private, credentials.Purpose{Access: o.record.UID, Pod: o.record.Status.Pod.UID}, result.Sealed)
	if err != nil {
		return nil, &podplan.Error{Err: err}
	}
	return opened, nil
}

// unreadable returns why what a grant pod left as credentials is not complete, or nil.
func unreadable(result *workflow.Result) error {
	for _, name := range slices.Sorted(maps.Keys(result.Unreadable)) {
		if name == workflow.CredentialsDirectory || strings.HasPrefix(name, workflow.CredentialsDirectory+"/") {
			return refuse("the grant pod's /pav/%s: %s", name, result.Unreadable[name])
		}
	}
	return nil
}

// checkNames returns a refusal if a Secret of the access cannot be written: another object has its name. It is asked before an account is
// made; nothing is written.
func (r *Reconciler) checkNames(ctx context.Context, record *pavv1.PavBucketAccess) error {
	for _, accessed := range record.Spec.Buckets {
		if err := r.tryWritingSecret(ctx, record, accessed.SecretName); err != nil {
			return err
		}
	}
	return nil
}
