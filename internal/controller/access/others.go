package access

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
)

// lookup returns the accesses to PavBuckets, for one of them, which is as the API server has it.
type lookup func(ctx context.Context, of *pavv1.PavBucketAccess, buckets []string) ([]pavv1.PavBucketAccess, error)

// fewReads is how many accesses are read one by one. More are read by a list, which has those to all buckets of the provisioner.
const fewReads = 20

// granted returns the buckets of an access, each with all grants that are to be in force on it: with that of an account that is granted,
// and without that of one that is revoked. A pod that is about to be created is made with those that the API server has, and what only
// plans one with those of the cache: else the requests for many accesses to one bucket would grow with the square of their number.
func (r *Reconciler) granted(ctx context.Context, o observation, accesses lookup, with, without *pavv1.GrantedAccount) ([]podplan.GrantedBucket, error) {
	granted := make([]podplan.GrantedBucket, len(o.buckets))
	for i, bucket := range o.buckets {
		same, err := r.sameBucket(ctx, bucket)
		if err != nil {
			return nil, err
		}
		all, err := accesses(ctx, o.record, same)
		if err != nil {
			return nil, err
		}
		granted[i] = podplan.GrantedBucket{Record: bucket, Grants: grantsOn(same, all, o.record.Name, with, without, o.now)}
	}
	return granted, nil
}

// sameBucket returns the names of the PavBuckets that are of the same bucket as one of them, which is first.
func (r *Reconciler) sameBucket(ctx context.Context, bucket *pavv1.PavBucket) ([]string, error) {
	records, err := reconcile.BucketsOf(ctx, r.Client, reconcile.StorageOfBucket(bucket))
	if err != nil {
		return nil, err
	}
	same := []string{bucket.Name}
	for i := range records {
		if records[i].Name != bucket.Name {
			same = append(same, records[i].Name)
		}
	}
	return same, nil
}

// cached is the lookup in the cache.
func (r *Reconciler) cached(ctx context.Context, _ *pavv1.PavBucketAccess, buckets []string) ([]pavv1.PavBucketAccess, error) {
	var accesses []pavv1.PavBucketAccess
	known := map[string]bool{}
	for _, bucket := range buckets {
		found, err := reconcile.AccessesTo(ctx, r.Client, bucket)
		if err != nil {
			return nil, err
		}
		for i := range found {
			if !known[found[i].Name] {
				known[found[i].Name] = true
				accesses = append(accesses, found[i])
			}
		}
	}
	return accesses, nil
}

// live is the lookup before a step that cannot be undone. Which accesses there are, the cache says, since none has an account that this
// agent has not seen: it checked that once, when it began to lead. What accounts they have, the API server says: it is asked for those
// that it does not have in the version of the cache.
func (r *Reconciler) live(ctx context.Context, of *pavv1.PavBucketAccess, buckets []string) ([]pavv1.PavBucketAccess, error) {
	cached, err := r.cached(ctx, of, buckets)
	if err != nil {
		return nil, err
	}
	var versions map[types.UID]string // nil has none
	if len(cached) > fewReads {
		if versions, err = r.versions(ctx, of.Spec.Provisioner); err != nil {
			return nil, err
		}
	}
	accesses := make([]pavv1.PavBucketAccess, 0, len(cached))
	for i := range cached {
		access := &cached[i]
		switch {
		case access.Name == of.Name:
			access = of
		case versions[access.UID] != access.ResourceVersion:
			if access, err = reconcile.Optional(ctx, r.Live, client.ObjectKeyFromObject(access), &pavv1.PavBucketAccess{}); err != nil {
				return nil, err
			}
		}
		if access != nil {
			accesses = append(accesses, *access)
		}
	}
	return accesses, nil
}

// versions returns the versions in which the API server has the accesses to all buckets of a provisioner.
func (r *Reconciler) versions(ctx context.Context, provisioner string) (map[types.UID]string, error) {
	empty := &metav1.PartialObjectMetadataList{}
	empty.SetGroupVersionKind(pavv1.GroupVersion.WithKind(kind + "List"))
	labelled := []client.ListOption{client.MatchingLabels{pavv1.ProvisionerLabel: provisioner}}
	var versions map[types.UID]string
	err := reconcile.Pages(ctx, r.Live, empty, labelled, func() { versions = map[types.UID]string{} }, func(page *metav1.PartialObjectMetadataList) {
		for i := range page.Items {
			versions[page.Items[i].UID] = page.Items[i].ResourceVersion
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing the accesses to buckets of PavProvisioner %q: %w", provisioner, err)
	}
	return versions, nil
}
