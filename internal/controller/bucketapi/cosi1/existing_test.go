package cosi1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

// The Bucket of an administrator is bound, and stays when its claim goes.
func TestLife_OfAnExistingBucket(t *testing.T) {
	c := newCluster(t, existing().claim, existing().bucket, theProvisioner())
	c.pass()
	record := c.bucketRecord(claimUID)
	if record == nil {
		t.Fatal("the claim is not recorded")
	}
	if spec := record.Spec; spec.ExistingBucketID != "old" || spec.BucketName != "archive" || spec.ReclaimPolicy != pavv1.BucketRetain || spec.NameRequested || len(spec.Protocols) != 1 || spec.Class != nil {
		t.Errorf("the PavBucket is %+v", spec)
	}
	if ref := c.bucket("archive").Spec.BucketClaim; ref.UID != claimUID {
		t.Errorf("the Bucket is bound to %+v", ref)
	}
	c.serve("old")
	c.pass()
	if got := c.claim().Status; got != (cosiv1.BucketClaimStatus{BucketReady: true, BucketName: "archive"}) {
		t.Errorf("the status of the claim is %+v", got)
	}
	if b := c.bucket("archive"); b.Status.BucketID != "old" || len(b.Labels) != 0 {
		t.Errorf("the Bucket is %+v", b)
	}
	c.must(c.Delete(t.Context(), c.claim()))
	c.pass()
	c.forget(c.bucketRecord(claimUID))
	c.restart()
	c.pass()
	if b := c.bucket("archive"); c.claim() != nil || b == nil || len(b.Finalizers) != 0 || b.Spec.BucketClaim.UID != claimUID {
		t.Errorf("the Bucket that is left is %+v", b)
	}
	// A claim of the same name is another claim.
	again := existing().claim
	again.UID = otherUID
	c.must(c.Create(t.Context(), again))
	c.pass()
	if c.bucketRecord(otherUID) != nil || !c.told(protocol.BucketBoundElsewhere) {
		t.Error("the Bucket is bound again")
	}
}

// Another program gives the Bucket of a claim to a second one: the first keeps it.
func TestLife_AnExistingBucketIsGivenToAnotherClaim(t *testing.T) {
	c := newCluster(t, existing().claim, existing().bucket, theProvisioner())
	c.pass()
	c.serve("old")
	c.pass()
	second := existing().claim
	second.Namespace, second.UID = "b", otherUID
	c.must(c.Create(t.Context(), second))
	given := c.bucket("archive")
	given.Spec.BucketClaim = &corev1.ObjectReference{Namespace: "b", Name: "photos", UID: otherUID}
	c.must(c.Update(t.Context(), given))
	for _, key := range []client.ObjectKey{photos, client.ObjectKeyFromObject(second)} {
		if _, err := c.reconciler.reconcileClaim(t.Context(), requestOf(key)); err != nil {
			t.Fatal(err)
		}
	}
	if c.bucketRecord(otherUID) != nil || !c.told("is that of claim a/photos") || !c.claim().Status.BucketReady || c.bucketRecord(claimUID).Spec.Released {
		t.Error("the second claim has the bucket of the first")
	}
}

// A Bucket that names no claim is bound by the first one, and by no other.
func TestLife_OfAnUnclaimedBucket(t *testing.T) {
	first, second, b, p := existing().claim, existing().claim, existing().bucket, theProvisioner()
	second.Namespace, second.UID = "b", otherUID
	b.Spec.BucketClaim = &corev1.ObjectReference{}
	p.Spec.BucketValidation.UnclaimedBuckets = pavv1.UnclaimedFirstClaim
	c := newCluster(t, first, second, b, p)
	c.pass()
	if _, err := c.reconciler.reconcileClaim(t.Context(), requestOf(client.ObjectKeyFromObject(second))); err != nil {
		t.Fatal(err)
	}
	if c.bucketRecord(claimUID) == nil || c.bucketRecord(otherUID) != nil || c.bucket("archive").Spec.BucketClaim.UID != claimUID || !c.told(protocol.BucketBoundElsewhere) {
		t.Error("both have the Bucket, or none")
	}
}

// The BucketClass of another driver's claim was written again, with a PavProvisioner as its driver. The claim and its Bucket are still the
// other driver's: nothing is said of them, and when the claim is deleted, that driver has to let it go.
func TestLife_OfAClaimOfAnotherDriver(t *testing.T) {
	claim := claimed().claim
	claim.Finalizers = []string{cosiv1.ClaimFinalizer}
	b := &cosiv1.Bucket{ObjectMeta: metav1.ObjectMeta{Name: bucketName, Finalizers: []string{cosiv1.BucketFinalizer}}}
	b.Spec = cosiv1.BucketSpec{DriverName: "x", DeletionPolicy: cosiv1.DeletionPolicyDelete, BucketClaim: &corev1.ObjectReference{Namespace: "a", Name: "photos", UID: claimUID}}
	c := newCluster(t, claim, b, theClass(), theProvisioner())
	for _, deleted := range []bool{false, true} {
		if deleted {
			c.must(c.Delete(t.Context(), c.claim()))
		}
		before := c.version()
		c.pass()
		if diff := cmp.Diff(before, c.version()); diff != "" || c.told("") {
			t.Errorf("with a claim that is deleted (%t), something is done (-before +after), or said:\n%s", deleted, diff)
		}
	}
}
