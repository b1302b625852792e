package access

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// A grant pod may tell which account it has made. Two accesses must not have one account, as it would be revoked with either of them. So
// between the look at the other accesses and the write of the record, no other access gets one: those are under Reconciler.accounts.

// toldBy returns what a grant pod that is over has told of its account, or "".
func toldBy(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	result, err := workflow.ResultOf(pod)
	if err != nil || result == nil || workflow.CheckID(result.AccountID) != nil {
		return ""
	}
	return result.AccountID
}

// checkAccount returns a refusal if an account that a pod has told is another access's. The cache may not have what was just written, so
// that the API server is asked, unless the name has the UID of the access.
func (r *Reconciler) checkAccount(ctx context.Context, record *pavv1.PavBucketAccess, account *pavv1.GrantedAccount, id string) error {
	holder := ""
	look := func(page *pavv1.PavBucketAccessList) {
		for i := range page.Items {
			for _, other := range accountsOf(&page.Items[i]) {
				if page.Items[i].Name != record.Name && idOf(&other) == id {
					holder = page.Items[i].Name
				}
			}
		}
	}
	var err error
	if provisioner := record.Spec.Provisioner; id == account.AccountName {
		cached := &pavv1.PavBucketAccessList{}
		err = r.Client.List(ctx, cached, client.MatchingFields{reconcile.AccessesByProvisioner: provisioner}, client.UnsafeDisableDeepCopy)
		look(cached)
	} else {
		labelled := []client.ListOption{client.MatchingLabels{pavv1.ProvisionerLabel: provisioner}}
		err = reconcile.Pages(ctx, r.Live, &pavv1.PavBucketAccessList{}, labelled, func() { holder = "" }, look)
	}
	if err != nil {
		return fmt.Errorf("looking up who has an account: %w", err)
	}
	if holder != "" {
		return refuse("the grant pod's /pav/accountId: account %q is that of PavBucketAccess %q", id, holder)
	}
	return nil
}

// recordAccount records the account that the grant pod has made. The error is a refusal if it is another access's.
func (r *Reconciler) recordAccount(ctx context.Context, o observation, outcome podplan.AccountOutcome) error {
	r.accounts.Lock()
	defer r.accounts.Unlock()
	if err := r.checkAccount(ctx, o.record, o.record.Status.Granting, outcome.AccountID); err != nil {
		return err
	}
	return r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketAccessStatus) {
		status.Step = pavv1.AccessDelivering
		status.Granting.AccountID, status.Granting.ExpiresAt = outcome.AccountID, outcome.ExpiresAt
	})
}

// failMade records that an attempt has failed whose pod may have made an account.
func (r *Reconciler) failMade(ctx context.Context, o observation, failure *pavv1.WorkflowFailure) error {
	r.accounts.Lock()
	defer r.accounts.Unlock()
	abandon, err := r.abandon(ctx, o)
	if err != nil {
		return err
	}
	return r.failGrant(ctx, o, failure, abandon)
}

// abandon records that the attempt is over, and that its account, if its pod may have made one, is to be revoked now. An account that is
// another access's is not. The record is to be written under Reconciler.accounts.
func (r *Reconciler) abandon(ctx context.Context, o observation) (change, error) {
	granting, now := o.record.Status.Granting, r.Now()
	if granting == nil || !o.mayHaveRun() && !o.at(pavv1.AccessDelivering) {
		return endAttempt, nil
	}
	id := toldBy(o.pod())
	if id != "" {
		err := r.checkAccount(ctx, o.record, granting, id)
		if podplan.IsRefusal(err) {
			id = ""
		} else if err != nil {
			return nil, err
		}
	}
	return func(status *pavv1.PavBucketAccessStatus) {
		if id != "" {
			status.Granting.AccountID = id
		}
		retire(status, status.Granting, now)
		endAttempt(status)
	}, nil
}
