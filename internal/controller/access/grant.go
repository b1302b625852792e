package access

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/credentials"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

// grant begins an attempt to grant access, with an account of its own: it records the grant pod, or that the credentials which all
// accesses share are to be delivered.
func (r *Reconciler) grant(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	account, begin := nextAccount(o.record), r.beginning(o)
	// The record has whole seconds. They are rounded up: the request that begins the attempt must not look later, as if it asked for another one.
	account.RequestedAt = new(metav1.NewTime(r.Now().Add(time.Second - 1).Truncate(time.Second)))
	if err := r.checkRequester(ctx, o.record); err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowGrant, begin, err)
	}
	request, err := r.grantRequest(ctx, o, r.cached, &account)
	if err != nil {
		return err
	}
	plan, err := request.Grant(ctx)
	if err == nil {
		err = r.checkCeilings(ctx, o, request)
	}
	if err == nil && plan.FromSecret == "" {
		err = r.checkStores(ctx, o, request.BucketDefinition)
	}
	if err == nil {
		err = r.checkNames(ctx, o.record)
	}
	if err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowGrant, begin, err)
	}
	granting := func(status *pavv1.PavBucketAccessStatus) {
		begin(status)
		status.Granting, status.Accounts = &account, account.Number+1
	}
	if plan.FromSecret != "" {
		account.AccountID, account.Shared = account.AccountName, true
		return r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketAccessStatus) {
			granting(status)
			status.Step = pavv1.AccessDelivering
		})
	}
	return r.intend(ctx, o, pavv1.AccessGranting, plan.Pod, func(status *pavv1.PavBucketAccessStatus) {
		granting(status)
		status.Key = keyName(o.record, status.Pods)
	})
}

// grantRequest returns the request to grant access with an account.
func (r *Reconciler) grantRequest(ctx context.Context, o observation, accesses lookup, account *pavv1.GrantedAccount) (podplan.AccessRequest, error) {
	buckets, err := r.granted(ctx, o, accesses, account, nil)
	if err != nil {
		return podplan.AccessRequest{}, err
	}
	return r.requestOf(ctx, o, *account, buckets)
}

// beginning records a new attempt.
func (r *Reconciler) beginning(o observation) change {
	return func(status *pavv1.PavBucketAccessStatus) {
		switch {
		case status.Phase == "":
			status.Phase, status.RecordUID = pavv1.AccessPending, o.record.UID
		case status.Current != nil:
			status.Phase = pavv1.AccessRotating
		}
		status.Attempt++
		status.LastHandledRetry = o.record.Annotations[pavv1.RetryAnnotation]
		status.ProvisionerGeneration = o.provisioner.Generation
	}
}

// checkCeilings returns a refusal if a bucket has as many accesses as the definition lets it have. Those that were requested first have
// it.
func (r *Reconciler) checkCeilings(ctx context.Context, o observation, request podplan.AccessRequest) error {
	if o.record.Status.Current != nil {
		return nil // it is one of them
	}
	for _, bucket := range o.buckets {
		limits, err := podplan.BucketRequest{BucketDefinition: request.BucketDefinition, Record: bucket, Namespace: request.Namespace}.Ceilings(ctx)
		if err != nil {
			return err
		}
		if limits.Accesses == nil {
			continue
		}
		same, err := r.sameBucket(ctx, bucket)
		if err != nil {
			return err
		}
		accesses, err := r.live(ctx, o.record, same)
		if err != nil {
			return err
		}
		if n := int64(earlier(accesses, o.record)); n >= *limits.Accesses {
			return refuse("bucket %q has %d accesses already, and may have %d", bucket.Status.BucketID, n, *limits.Accesses)
		}
	}
	return nil
}

// earlier returns how many of the accesses have an account, or are being given one, or were requested before a record. Of two that were
// requested within a second, the names say which was the first, but the other may have been seen before.
func earlier(accesses []pavv1.PavBucketAccess, record *pavv1.PavBucketAccess) int {
	count := 0
	for i := range accesses {
		other := &accesses[i]
		first := other.CreationTimestamp.Before(&record.CreationTimestamp) || other.CreationTimestamp.Equal(&record.CreationTimestamp) && other.Name < record.Name
		if other.Name != record.Name && (first || other.Status.Current != nil || other.Status.Granting != nil) {
			count++
		}
	}
	return count
}

// markDelivering records the account that the grant pod has made, before its credentials are written. If what the pod left is of no use, the
// account is to be revoked.
func (r *Reconciler) markDelivering(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	outcome, opened, err := r.outcome(ctx, o)
	opened.Clear()
	if podplan.IsRefusal(err) {
		return r.failMade(ctx, o, outputInvalid(o, err))
	}
	if err != nil {
		return err
	}
	err = r.recordAccount(ctx, o, outcome)
	if podplan.IsRefusal(err) {
		return r.failMade(ctx, o, outputInvalid(o, err))
	}
	return err
}

func outputInvalid(o observation, err error) *pavv1.WorkflowFailure {
	failure := workflow.FailureWithoutPod(pavv1.WorkflowGrant, err)
	failure.Reason, failure.PodNamespace, failure.PodName = pavv1.FailureOutputInvalid, o.pod().Namespace, o.pod().Name
	return failure
}

// outcome returns what the grant pod has told of the account, and its credentials, which the caller must clear.
func (r *Reconciler) outcome(ctx context.Context, o observation) (podplan.AccountOutcome, credentials.Credentials, error) {
	none := podplan.AccountOutcome{}
	result, err := workflow.ResultOf(o.pod())
	if err != nil {
		return none, nil, &podplan.Error{Err: err}
	}
	if result == nil {
		return none, nil, refuse("the node of the grant pod did not report what the pod left in /pav")
	}
	if err := unreadable(result); err != nil {
		return none, nil, err
	}
	outcome, err := podplan.AccountOutcomeOf(*o.record.Status.Granting, result, o.now)
	if err != nil {
		return none, nil, err
	}
	opened, err := r.open(ctx, o, result)
	if err != nil {
		return none, nil, err
	}
	if o.record.Spec.AuthenticationType == pavv1.AuthenticationKey {
		if err := opened.CheckFor(o.record.Spec.Protocol); err != nil {
			opened.Clear()
			return none, nil, &podplan.Error{Err: err}
		}
	}
	return outcome, opened, nil
}

// endAttempt removes the record of an attempt that has left no account, or whose account is recorded elsewhere.
func endAttempt(status *pavv1.PavBucketAccessStatus) {
	status.Step, status.Pod, status.Granting = "", nil, nil
	if status.Phase == pavv1.AccessRotating {
		status.Phase = pavv1.AccessReady
	}
}

// setGranted records that clients have the credentials of the account.
func (r *Reconciler) setGranted(o observation, status *pavv1.PavBucketAccessStatus, secrets []pavv1.DeliveredSecret) {
	now := r.Now()
	retire(status, status.Current, now.Add(overlapOf(o.provisioner)))
	if status.Current != nil && o.ofVolume() {
		status.Former[len(status.Former)-1].Held = true
	}
	account := *status.Granting
	account.GrantedAt = new(metav1.NewTime(now))
	status.Current, status.Secrets, status.Failure, status.Attempt, status.Phase = &account, secrets, nil, 0, pavv1.AccessReady
	endAttempt(status)
	meta.RemoveStatusCondition(&status.Conditions, pavv1.AccessRotated)
	meta.RemoveStatusCondition(&status.Conditions, pavv1.AccessGranted) // so that the new condition has the time of this write
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: pavv1.AccessGranted, Status: metav1.ConditionTrue,
		Reason: "Granted", Message: "the Secret has the credentials of an account", ObservedGeneration: o.record.Generation})
}

// tellGranted reports that clients have access, or another account.
func (r *Reconciler) tellGranted(ctx context.Context, o observation, rotated bool) {
	account := o.record.Status.Current
	ctrl.LoggerFrom(ctx).Info("granted access to buckets", "account", account.Number)
	if !rotated {
		r.tell(o, false, protocol.AccessGrantedEvent, fmt.Sprintf("PavProvisioner %q: account %q has access", o.record.Spec.Provisioner, account.AccountID))
		return
	}
	if o.ofVolume() {
		r.tell(o, false, protocol.AccessRotatedEvent, fmt.Sprintf("PavProvisioner %q: account %q replaces the former one, which works until no node has the volume staged with it",
			o.record.Spec.Provisioner, account.AccountID))
		return
	}
	r.tell(o, false, protocol.AccessRotatedEvent, fmt.Sprintf("PavProvisioner %q: account %q replaces the former one, which works for another %s; pods that have its credentials in their environment need a restart by then",
		o.record.Spec.Provisioner, account.AccountID, overlapOf(o.provisioner)))
}
