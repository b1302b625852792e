package integration

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// "kubectl pav test" holds the records of a bucket that PaV has given up, and lets it revoke and delete again: scripts must succeed where
// nothing is left.
func TestObjectBucketClaim_HeldRecords_AreRevokedAndDeletedAgain(t *testing.T) {
	c, _ := withBuckets(t)
	driver(t, c, "bucketed-again", ofBuckets)
	b := claimBucket(t, c, "bucketed-again", "again")
	name := "photos-" + string(b.object.UID)
	b.serve(t, name)
	exists(t, c, b.access, "has an account, and no key any more", func(a *pavv1.PavBucketAccess) bool { return a.Status.Current != nil && a.Status.Key == "" })
	account := *b.access.Status.Current
	account.RevokeAfter = account.GrantedAt
	holds(t, c, b.bucket, true)
	holds(t, c, b.access, true)
	mustDelete(t, c, b.object)

	revocation := b.account() + " in " + grantsOf(name)
	end(t, c, recordedPod(t, c, b.access, pavv1.WorkflowRevocation, 2, revocation), workflow.Result{}, 0)
	exists(t, c, b.access, "is revoked, and held", func(a *pavv1.PavBucketAccess) bool {
		return a.DeletionTimestamp != nil && len(a.Status.Former) == 0 && a.Status.Pod == nil
	})
	before := b.access.DeepCopy()
	b.access.Status.Former = []pavv1.GrantedAccount{account}
	if err := c.Admin.Status().Patch(t.Context(), b.access, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	end(t, c, recordedPod(t, c, b.access, pavv1.WorkflowRevocation, 3, revocation), workflow.Result{}, 0)
	exists(t, c, b.access, "is revoked again", func(a *pavv1.PavBucketAccess) bool { return len(a.Status.Former) == 0 && a.Status.Pod == nil })
	holds(t, c, b.access, false)

	end(t, c, recordedPod(t, c, b.bucket, pavv1.WorkflowBucketDeletion, 2, name+" True"), workflow.Result{}, 0)
	isDeleted := func(b *pavv1.PavBucket) bool {
		return b.DeletionTimestamp != nil && b.Status.Step == pavv1.BucketDeletedStep && !controllerutil.ContainsFinalizer(b, pavv1.BucketFinalizer)
	}
	exists(t, c, b.bucket, "is deleted, and held", isDeleted)
	again := b.bucket.DeepCopy()
	b.bucket.Status.Step = pavv1.BucketDeletingStep
	if err := c.Admin.Status().Patch(t.Context(), b.bucket, client.MergeFrom(again)); err != nil {
		t.Fatal(err)
	}
	end(t, c, recordedPod(t, c, b.bucket, pavv1.WorkflowBucketDeletion, 3, name+" True"), workflow.Result{}, 0)
	exists(t, c, b.bucket, "is deleted again", isDeleted)
	holds(t, c, b.bucket, false)
	b.wantGone(t)
}

// holds puts a finalizer of the test on an object, or removes it.
func holds(t *testing.T, c *cluster, object client.Object, held bool) {
	t.Helper()
	const finalizer = pavv1.Group + "/test"
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		t.Fatalf("copying %T", object)
	}
	if held {
		controllerutil.AddFinalizer(object, finalizer)
	} else {
		controllerutil.RemoveFinalizer(object, finalizer)
	}
	if err := c.Admin.Patch(t.Context(), object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		t.Fatal(err)
	}
}
