package access

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
)

// accountName returns the name that an account of an access is to have, by the UID of the object that asks for it.
func accountName(requester types.UID, number int32) string {
	name := "ba-" + string(requester)
	if number == 0 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, number)
}

// nextAccount returns the account that the next attempt is to make. No two attempts of an access make one of the same number: what the
// earlier one has made is revoked by its number.
func nextAccount(record *pavv1.PavBucketAccess) pavv1.GrantedAccount {
	number := int32(0)
	for _, account := range accountsOf(record) {
		number = max(number, account.Number+1)
	}
	number = max(number, record.Status.Accounts)
	return pavv1.GrantedAccount{Number: number, AccountName: accountName(record.Spec.Requester.UID, number)}
}

// accountsOf returns all accounts that may exist.
func accountsOf(record *pavv1.PavBucketAccess) []pavv1.GrantedAccount {
	status := &record.Status
	all := slices.Clone(status.Former)
	for _, account := range []*pavv1.GrantedAccount{status.Current, status.Granting} {
		if account != nil {
			all = append(all, *account)
		}
	}
	return all
}

// idOf returns what identifies an account in its store: if no pod told, it is the name that it was to have.
func idOf(account *pavv1.GrantedAccount) string {
	if account.AccountID != "" {
		return account.AccountID
	}
	return account.AccountName
}

// grantsOn returns all grants that are to be in force on a bucket, sorted, from all accesses to it. Several records may be of the same
// bucket: one that existed before its claims. With is an account of one of the accesses that is about to be granted, and without one that
// is about to be revoked; nil for none.
func grantsOn(records []string, accesses []pavv1.PavBucketAccess, of string, with, without *pavv1.GrantedAccount, now time.Time) []podplan.BucketGrant {
	grants := []podplan.BucketGrant{}
	for i := range accesses {
		access := &accesses[i]
		accounts := inForce(access, now)
		if access.Name == of && without != nil {
			accounts = slices.DeleteFunc(accounts, func(a pavv1.GrantedAccount) bool { return a.Number == without.Number })
		}
		if access.Name == of && with != nil {
			accounts = append(accounts, *with)
		}
		for _, accessed := range access.Spec.Buckets {
			if !slices.Contains(records, accessed.Bucket) {
				continue
			}
			for _, account := range accounts {
				grants = append(grants, podplan.BucketGrant{AccountID: idOf(&account), Mode: accessed.Mode})
			}
		}
	}
	slices.SortFunc(grants, func(a, b podplan.BucketGrant) int {
		return strings.Compare(a.AccountID+"\x00"+string(a.Mode), b.AccountID+"\x00"+string(b.Mode))
	})
	return slices.Compact(grants)
}

// inForce returns the accounts of an access that are to work: the present one, replaced ones whose time is not over or that nodes may
// use, and one whose credentials are being delivered. Credentials that all accesses share are of no account that a policy could name.
func inForce(record *pavv1.PavBucketAccess, now time.Time) []pavv1.GrantedAccount {
	status := &record.Status
	var accounts []pavv1.GrantedAccount
	if status.Current != nil {
		accounts = append(accounts, *status.Current)
	}
	if status.Granting != nil && status.Step == pavv1.AccessDelivering {
		accounts = append(accounts, *status.Granting)
	}
	for _, former := range status.Former {
		if former.GrantedAt != nil && (former.Held || former.RevokeAfter != nil && now.Before(former.RevokeAfter.Time)) {
			accounts = append(accounts, former)
		}
	}
	return slices.DeleteFunc(accounts, func(a pavv1.GrantedAccount) bool { return a.Shared })
}

// due returns the former account that is to be revoked next, or nil; and when one is, the zero time for none.
func due(record *pavv1.PavBucketAccess, now time.Time) (*pavv1.GrantedAccount, time.Time) {
	next := nextFormer(record)
	if next == nil {
		return nil, time.Time{}
	}
	at := revokeTime(next)
	if record.Spec.Released || !now.Before(at) {
		return next, at
	}
	return nil, at
}

// nextFormer returns the former account that is to be revoked first, or nil: those of attempts that failed come before those that were
// replaced. One that nodes may use is not to be revoked as long as the access is wanted.
func nextFormer(record *pavv1.PavBucketAccess) *pavv1.GrantedAccount {
	var next *pavv1.GrantedAccount
	for i := range record.Status.Former {
		former := &record.Status.Former[i]
		if former.Held && !record.Spec.Released {
			continue
		}
		if next == nil || comesBefore(former, next) {
			next = former
		}
	}
	return next
}

func comesBefore(one, other *pavv1.GrantedAccount) bool {
	if (one.GrantedAt == nil) != (other.GrantedAt == nil) {
		return one.GrantedAt == nil
	}
	return revokeTime(one).Before(revokeTime(other))
}

// revokeTime returns when an account is to be revoked.
func revokeTime(account *pavv1.GrantedAccount) time.Time {
	if account.RevokeAfter == nil {
		return time.Time{}
	}
	return account.RevokeAfter.Time
}

// overlapOf returns how long a former account works after a rotation.
func overlapOf(provisioner *pavv1.PavProvisioner) time.Duration {
	if provisioner == nil {
		return podplan.Overlap(nil)
	}
	return podplan.Overlap(provisioner.Spec.BucketAccessGrant)
}

// retire records that an account is to be revoked after a time. A store may have given an account that another one replaces the same name.
func retire(status *pavv1.PavBucketAccessStatus, account *pavv1.GrantedAccount, after time.Time) {
	if account == nil {
		return
	}
	former := *account
	former.RevokeAfter = new(metav1.NewTime(after))
	status.Former = append(status.Former, former)
}
