package access

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
)

// release records that all accounts of an access that is not wanted any more are to be revoked.
func (r *Reconciler) release(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if err := r.runs.CheckNotCreated(ctx, o.record, o.Pods); err != nil {
		return err
	}
	r.accounts.Lock()
	defer r.accounts.Unlock()
	abandon, err := r.abandon(ctx, o)
	if err != nil {
		return err
	}
	now := r.Now()
	return r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketAccessStatus) {
		abandon(status)
		retire(status, status.Current, now)
		status.Current, status.Phase = nil, pavv1.AccessRevoking
		setCondition(o.record, status, pavv1.AccessRevokedCondition, "Revoking", "the accounts are to be revoked") // its time is when that began
	})
}

// revoke records the revocation pod of the account that is due.
func (r *Reconciler) revoke(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	begin := func(status *pavv1.PavBucketAccessStatus) {
		status.RevocationAttempt++
		status.LastHandledRetry = o.record.Annotations[pavv1.RetryAnnotation]
		status.ProvisionerGeneration = o.provisioner.Generation
	}
	pod, err := r.planRevocation(ctx, o, r.cached, o.revoking())
	if err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowRevocation, begin, err)
	}
	if pod == nil {
		return r.patchStatus(ctx, o.record, r.revoked(o))
	}
	return r.intend(ctx, o, pavv1.AccessRevokingStep, pod, begin)
}

// planRevocation evaluates the template of the revocation pod of an account; nil if it yields none, or if there is no account.
func (r *Reconciler) planRevocation(ctx context.Context, o observation, accesses lookup, account *pavv1.GrantedAccount) (map[string]any, error) {
	if account == nil {
		return nil, nil
	}
	buckets, err := r.granted(ctx, o, accesses, nil, account)
	if err != nil {
		return nil, err
	}
	request, err := r.requestOf(ctx, o, *account, buckets)
	if err != nil {
		return nil, err
	}
	return request.Revoke(ctx)
}

// recordRevoked records that the account that is due is revoked.
func (r *Reconciler) recordRevoked(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	account, left := o.revoking(), o.leaves()
	if left {
		r.tellLeft(ctx, o, account) // before the record loses the account: better twice than never
	}
	if err := r.patchStatus(ctx, o.record, r.revoked(o)); err != nil {
		return err
	}
	if account != nil && !left {
		ctrl.LoggerFrom(ctx).Info("revoked an account", "account", account.Number)
	}
	return nil
}

// leaves reports whether the account that is due goes on working: a grant pod may have made it, and nothing revokes it. A revocation pod
// that is recorded, and was not created before the definition lost its template, has revoked nothing.
func (o observation) leaves() bool {
	account := o.revoking()
	return account != nil && !account.Shared && !o.attempt().HasBegun() && !o.hasRevocationPod()
}

// tellLeft reports that an account goes on working.
func (r *Reconciler) tellLeft(ctx context.Context, o observation, account *pavv1.GrantedAccount) {
	which := fmt.Sprintf("account %q", idOf(account))
	if account.GrantedAt == nil {
		which += ", which an attempt that failed may have made,"
	}
	text := fmt.Sprintf("PavProvisioner %q has no bucketAccessRevoke.podTemplate: %s goes on working until someone deletes it in the store", o.record.Spec.Provisioner, which)
	if due, _ := r.repeats.Due(o.record.Name, text, r.Now()); due {
		ctrl.LoggerFrom(ctx).Info("nothing revokes an account, which goes on working", "account", account.Number)
		r.tell(o, true, protocol.AccountLeft, text)
	}
}

// revoked records that the account that is due does not exist any more.
func (r *Reconciler) revoked(o observation) change {
	account := o.revoking()
	return func(status *pavv1.PavBucketAccessStatus) {
		status.Former = slices.DeleteFunc(status.Former, func(a pavv1.GrantedAccount) bool { return account != nil && a.Number == account.Number })
		status.Step, status.Pod, status.RevocationAttempt, status.RevocationFailure = "", nil, 0, nil
		if status.Current != nil || status.Phase != pavv1.AccessRevoking {
			meta.RemoveStatusCondition(&status.Conditions, pavv1.AccessRevokedCondition)
		}
	}
}

// forget deletes the Secrets of an access, and then the record, which is all that PaV knows of it. The finalizer is removed first: an agent
// that is killed between the two finds a record to delete again. Of a record that was restored from a backup, the Secrets may be in use.
func (r *Reconciler) forget(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if err := r.runs.CheckSeen(ctx, o.record, o.Pods, pavv1.WorkflowGrant); err != nil {
		return err
	}
	if !o.restored() {
		for _, accessed := range o.record.Spec.Buckets {
			left, err := r.removeSecret(ctx, o.record, accessed.SecretName)
			if err != nil {
				return err
			}
			if left {
				r.tell(o, true, protocol.SecretLeft, fmt.Sprintf("Secret %s/%s still has the credentials of the access and its finalizers, as PaV may not change it: it is immutable, has lost the label %s, or the controller agent its rights; delete it, and remove its finalizers",
					secretNamespace(o.record), accessed.SecretName, pavv1.AccessLabel))
			}
		}
	}
	released := o.record.DeepCopy()
	controllerutil.RemoveFinalizer(released, pavv1.BucketFinalizer)
	if err := r.patchRecord(ctx, o.record, released); err != nil || o.deleting() {
		return err
	}
	exactly := client.Preconditions{UID: new(released.UID), ResourceVersion: new(released.ResourceVersion)}
	if err := r.Client.Delete(ctx, released, exactly); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting PavBucketAccess %q: %w", o.record.Name, err)
	}
	r.expectations.Replace(o.record.Name, released.ResourceVersion, "")
	ctrl.LoggerFrom(ctx).Info("forgot an access to buckets")
	return nil
}
