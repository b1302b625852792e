package selftest

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// testFinalizer keeps the records of a bucket after PaV has given them up, so that PaV can be made to delete and to revoke again.
const testFinalizer = pavv1.Group + "/test"

// keep holds a record, and release lets it be deleted.
func keep(ctx context.Context, c client.Client, record client.Object) error {
	return amend(ctx, c, record, func() { controllerutil.AddFinalizer(record, testFinalizer) })
}

func release(ctx context.Context, c client.Client, record client.Object) error {
	return client.IgnoreNotFound(amend(ctx, c, record, func() { controllerutil.RemoveFinalizer(record, testFinalizer) }))
}

// amend changes a record, besides its status. PaV writes it, too.
func amend(ctx context.Context, c client.Client, record client.Object, change func()) error {
	return again(ctx, c, record, change, func(before client.Object) error {
		return c.Patch(ctx, record, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
}

// amendStatus changes the status of a record, from which PaV goes on.
func amendStatus[R client.Object](ctx context.Context, c client.Client, record R, change func(R)) error {
	return again(ctx, c, record, func() { change(record) }, func(before client.Object) error {
		return c.Status().Patch(ctx, record, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
}

// again reads, changes and writes a record, until nobody else has written it meanwhile.
func again(ctx context.Context, c client.Client, record client.Object, change func(), write func(before client.Object) error) error {
	for {
		if err := c.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
			return fmt.Errorf("reading %s: %w", describeObject(record), err)
		}
		before, ok := record.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("copying %T", record)
		}
		change()
		err := write(before)
		if apierrors.IsConflict(err) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return fmt.Errorf("changing %s: %w", describeObject(record), err)
		}
		return nil
	}
}

// awaitBucket waits until a PavBucket is as wanted, and reads it into record.
func (r *run) awaitBucket(ctx context.Context, record *pavv1.PavBucket, wanted func(*pavv1.PavBucket) bool) error {
	return r.troubles.ofBuckets(ctx, func(ctx context.Context) error {
		return await(ctx, r.client, &pavv1.PavBucketList{}, func(seen objects) (bool, error) {
			now, _ := seen[client.ObjectKeyFromObject(record)].(*pavv1.PavBucket)
			if now == nil {
				return false, vanished(record)
			}
			now.DeepCopyInto(record)
			return wanted(record), nil
		}, only("", record.Name)...)
	})
}

// awaitAccess waits until a PavBucketAccess is as wanted, and reads it into record.
func (r *run) awaitAccess(ctx context.Context, record *pavv1.PavBucketAccess, wanted func(*pavv1.PavBucketAccess) bool) error {
	return r.troubles.ofBuckets(ctx, func(ctx context.Context) error {
		return await(ctx, r.client, &pavv1.PavBucketAccessList{}, func(seen objects) (bool, error) {
			now, _ := seen[client.ObjectKeyFromObject(record)].(*pavv1.PavBucketAccess)
			if now == nil {
				return false, vanished(record)
			}
			now.DeepCopyInto(record)
			return wanted(record), nil
		}, only("", record.Name)...)
	})
}

// vanished returns an error about a record that is gone, and nil if it was not written yet.
func vanished(record client.Object) error {
	if record.GetUID() == "" {
		return nil
	}
	return fmt.Errorf("%s was deleted", describeObject(record))
}

// awaitShown waits until the object of the API says that there is access.
func (s *bucketScenario) awaitShown(ctx context.Context) error {
	list, shown := client.ObjectList(&objectbucketv1.ObjectBucketClaimList{}), func(object client.Object) bool {
		claim, is := object.(*objectbucketv1.ObjectBucketClaim)
		return is && claim.Status.Phase == objectbucketv1.ClaimBound
	}
	if s.bucket.api == pavv1.BucketAPICOSI1 {
		list, shown = &cosiv1.BucketAccessList{}, func(object client.Object) bool {
			access, is := object.(*cosiv1.BucketAccess)
			return is && access.Status.AccessGranted
		}
	}
	return await(ctx, s.client, list, func(seen objects) (bool, error) {
		now := seen[client.ObjectKeyFromObject(s.access)]
		if now == nil {
			return false, fmt.Errorf("%s was deleted", describeObject(s.access))
		}
		return shown(now), nil
	}, only(s.name, s.access.GetName())...)
}

// removeBuckets deletes all buckets of the test, and accesses to them, and waits until PaV has no record of them.
func (r *run) removeBuckets(ctx context.Context) error {
	if !r.buckets {
		return nil
	}
	selected := client.MatchingLabels{pavv1.ProvisionerLabel: r.name}
	buckets, accesses := &pavv1.PavBucketList{}, &pavv1.PavBucketAccessList{}
	if err := errors.Join(r.client.List(ctx, buckets, selected), r.client.List(ctx, accesses, selected)); err != nil {
		return fmt.Errorf("listing the test's buckets: %w", err)
	}
	for i := range buckets.Items {
		if err := release(ctx, r.client, &buckets.Items[i]); err != nil {
			return err
		}
	}
	for i := range accesses.Items {
		if err := release(ctx, r.client, &accesses.Items[i]); err != nil {
			return err
		}
	}
	for _, object := range []client.Object{&objectbucketv1.ObjectBucketClaim{}, &cosiv1.BucketAccess{}, &cosiv1.BucketClaim{}} {
		if err := r.client.DeleteAllOf(ctx, object, client.InNamespace(r.name), client.MatchingLabels(r.labels())); err != nil && !isMissing(err) {
			return fmt.Errorf("deleting the test's claims of buckets: %w", err)
		}
	}
	return r.troubles.ofBuckets(ctx, func(ctx context.Context) error {
		if err := gone(ctx, r.client, &pavv1.PavBucketAccessList{}, selected); err != nil {
			return fmt.Errorf("a PavBucketAccess is still there: %w", err)
		}
		if err := gone(ctx, r.client, &pavv1.PavBucketList{}, selected); err != nil {
			return fmt.Errorf("a PavBucket is still there: %w", err)
		}
		return nil
	}, undoingBuckets...)
}

// leftBuckets reports the buckets and accesses that could not be removed.
func (r *run) leftBuckets(ctx context.Context, words podMessages) {
	selected := client.MatchingLabels{pavv1.ProvisionerLabel: r.name}
	buckets, accesses := &pavv1.PavBucketList{}, &pavv1.PavBucketAccessList{}
	if err := errors.Join(r.client.List(ctx, buckets, selected), r.client.List(ctx, accesses, selected)); err != nil {
		if !isMissing(err) {
			r.report.Left = append(r.report.Left, Left{Kind: "Perhaps buckets of", Name: r.name, Why: "they cannot be listed: " + err.Error(), Commands: []string{"kubectl pav get buckets " + r.name}})
		}
		return
	}
	for i := range accesses.Items {
		a := &accesses.Items[i]
		why, commands := "its phase is "+string(a.Status.Phase), []string{"kubectl pav describe pavbucketaccess " + a.Name}
		if f := a.Status.RevocationFailure; f != nil {
			why, commands = "an account cannot be revoked: "+words.with(f), []string{r.edit("bucketAccessRevoke"), "kubectl pav retry pavbucketaccess/" + a.Name}
		}
		r.left(a, why, commands...)
	}
	for i := range buckets.Items {
		b := &buckets.Items[i]
		why, commands := "its phase is "+string(b.Status.Phase), []string{"kubectl pav describe pavbucket " + b.Name}
		if f := b.Status.DeletionFailure; f != nil {
			why, commands = "its deletion fails: "+words.with(f), []string{r.edit("bucketDeletion"), "kubectl pav retry pavbucket/" + b.Name}
		}
		r.left(b, why, commands...)
	}
}
