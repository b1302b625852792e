package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// A claim gets what the protocol promises, and nothing of it is left when it is deleted.
func TestBucket_IsCreatedAndDeletedWithItsClaim(t *testing.T) {
	t.Parallel()
	s := newBucketStore(t, "bucket-life")
	claim := s.claimBucket(t, s.namespace, "photos", obcv1.ObjectBucketClaimSpec{GenerateBucketName: "photos"})
	awaitBucket(t, claim)
	bucket := claim.Spec.BucketName
	if want := "photos-" + string(claim.UID); bucket != want {
		t.Errorf("the bucket is called %q, want %q", bucket, want)
	}
	config := map[string]string{"BUCKET_NAME": bucket, "BUCKET_HOST": "store.example", "BUCKET_PORT": "9000", "BUCKET_REGION": "here", "BUCKET_SUBREGION": ""}
	if diff := cmp.Diff(config, read(t, configMapOf(claim)).Data); diff != "" {
		t.Errorf("the ConfigMap (-want +got):\n%s", diff)
	}
	wantCredentials(t, claim, account(t, claim))
	wantObjectBucket(t, claim, corev1.PersistentVolumeReclaimDelete)
	record := read(t, bucketOf(claim))
	if status := record.Status; status.Phase != pavv1.BucketReady || status.BucketID != bucket || !status.Created || status.Failure != nil {
		t.Errorf("the PavBucket has the status %+v", status)
	}
	s.wantAccess(t, bucket, account(t, claim))
	s.fill(t, bucket)

	user := account(t, claim)
	removeBucket(t, claim)
	s.wantDone(t, bucket, "create", "delete")
	s.wantDone(t, user, "grant", "revoke")
}

// wantCredentials fails the test unless the Secret of a claim has the keys of an account, by all names.
func wantCredentials(t *testing.T, claim *obcv1.ObjectBucketClaim, account string) {
	t.Helper()
	data := read(t, secretOf(claim)).Data
	var names []string
	for name := range data {
		names = append(names, name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"ACCESS_KEY_ID", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "SECRET_ACCESS_KEY"}, names); diff != "" {
		t.Errorf("the keys of the Secret (-want +got):\n%s", diff)
	}
	for _, name := range []string{obcv1.AWSAccessKeyID, obcv1.AccessKeyID} {
		if got := string(data[name]); got != account {
			t.Errorf("%s is %q, want %q", name, got, account)
		}
	}
	key := string(data[obcv1.AWSSecretAccessKey])
	if len(key) != 40 || string(data[obcv1.SecretAccessKey]) != key { // no line feed at the end
		t.Errorf("the secret keys have %d and %d bytes, want the same 40", len(key), len(data[obcv1.SecretAccessKey]))
	}
}

// wantObjectBucket fails the test unless the ObjectBucket of a claim is bound to it.
func wantObjectBucket(t *testing.T, claim *obcv1.ObjectBucketClaim, policy corev1.PersistentVolumeReclaimPolicy) {
	t.Helper()
	object := read(t, objectBucketOf(claim))
	ref, endpoint := object.Spec.ClaimRef, object.Spec.Endpoint
	if ref == nil || ref.UID != claim.UID || ref.Namespace != claim.Namespace || ref.Name != claim.Name || object.Status.Phase != obcv1.BucketBound {
		t.Errorf("the ObjectBucket is %s, and has the claim %+v", object.Status.Phase, ref)
	}
	if endpoint == nil || endpoint.BucketName != claim.Spec.BucketName || claim.Spec.ObjectBucketName != object.Name {
		t.Errorf("the ObjectBucket %s has the endpoint %+v, and the claim has %+v", object.Name, endpoint, claim.Spec)
	}
	if got := object.Spec.ReclaimPolicy; got == nil || *got != policy {
		t.Errorf("the reclaim policy is %v, want %s", got, policy)
	}
}

// A claim cannot get at another one's bucket by asking for its name, and cannot delete it by being deleted.
func TestBucketName_OfAnotherClaim_IsRefused(t *testing.T) {
	t.Parallel()
	s := newBucketStore(t, "bucket-names")
	const bucket = "requested"
	first := s.claimBucket(t, s.namespace, "first", obcv1.ObjectBucketClaimSpec{BucketName: bucket})
	awaitBucket(t, first)
	s.fill(t, bucket)

	second := s.claimBucket(t, newNamespace(t), "second", obcv1.ObjectBucketClaimSpec{BucketName: bucket})
	wantNameTaken(t, second, bucket)
	removeBucket(t, second)

	s.wantFull(t, bucket)
	s.wantDone(t, bucket, "create")
	s.wantAccess(t, bucket, account(t, first))
	awaitBucket(t, first)
	removeBucket(t, first)
	s.wantDone(t, bucket, "create", "delete")
}

// wantNameTaken waits until a claim and its record say that the bucket is another claim's.
func wantNameTaken(t *testing.T, claim *obcv1.ObjectBucketClaim, bucket string) {
	t.Helper()
	wantBucketEvent(t, claim, "", fmt.Sprintf("%q is another claim's", bucket))
	wantBucketCondition(t, claim, pavv1.BucketCreated, "BucketNameTaken")
	wantNotBound(t, claim)
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(claim), secretOf(claim)); !apierrors.IsNotFound(err) {
		t.Errorf("the claim has a Secret (%v)", err)
	}
}

// wantBucketCondition waits until the record of a claim has a condition that is false, with the reason.
func wantBucketCondition(t *testing.T, claim *obcv1.ObjectBucketClaim, kind, reason string) {
	t.Helper()
	eventually(t, "the PavBucket of claim "+claim.Name+" says "+reason, func(ctx context.Context) error {
		record := bucketOf(claim)
		if err := kube.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(record.Status.Conditions, kind)
		if condition == nil || condition.Reason != reason {
			return fmt.Errorf("it has the status %+v", record.Status)
		}
		return nil
	})
}

// A bucket that was there before, and that no claim has, is nobody's to take. As the script cannot prove whose it is, it is not deleted, and
// the record says so.
func TestBucketOfAStranger_IsRefusedAndKept(t *testing.T) {
	t.Parallel()
	s := newBucketStore(t, "bucket-strangers")
	const bucket = "strangers"
	s.fill(t, bucket)
	claim := s.claimBucket(t, s.namespace, "greedy", obcv1.ObjectBucketClaimSpec{BucketName: bucket})
	wantBucketEvent(t, claim, "", "bucket "+bucket+" is a stranger's")
	wantNotBound(t, claim)
	release(t, claim)
	wantBucketEvent(t, claim, "MayExist", bucket)
	wantRetained(t, claim, "MayExist")
	s.wantFull(t, bucket)
	s.wantDone(t, bucket)
	remove(t, bucketOf(claim))
	s.discard(t, bucket)
}

// wantRetained waits until the record of a claim's bucket is only a record, which can be deleted.
func wantRetained(t *testing.T, claim *obcv1.ObjectBucketClaim, reason string) {
	t.Helper()
	wantBucketCondition(t, claim, pavv1.BucketDeleted, reason)
	eventually(t, "the PavBucket of claim "+claim.Name+" is not held", func(ctx context.Context) error {
		record := bucketOf(claim)
		if err := kube.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
			return err
		}
		if record.Status.Phase != pavv1.BucketRetained || len(record.Finalizers) > 0 {
			return fmt.Errorf("it is %s, and has the finalizers %q", record.Status.Phase, record.Finalizers)
		}
		return nil
	})
}

// A claim that has the name of a Secret which its namespace has already gets nothing, and the Secret stays as it is.
func TestSecretOfAnother_IsNotTouched(t *testing.T) {
	t.Parallel()
	s := newBucketStore(t, "bucket-secrets")
	foreign := &corev1.Secret{ObjectMeta: objectMeta(s.namespace, "taken"), StringData: map[string]string{"whose": "another's"}}
	must(t, kube.Create(t.Context(), foreign))
	before := read(t, &corev1.Secret{ObjectMeta: objectMeta(s.namespace, "taken")})
	unchanged := func(when string) {
		t.Helper()
		now := read(t, &corev1.Secret{ObjectMeta: objectMeta(s.namespace, "taken")})
		if now.UID != before.UID || now.ResourceVersion != before.ResourceVersion {
			t.Errorf("the Secret was written %s: it was %+v, and is %+v", when, before, now)
		}
	}
	claim := s.claimBucket(t, s.namespace, "taken", obcv1.ObjectBucketClaimSpec{GenerateBucketName: "taken"})
	wantBucketEvent(t, claim, "SecretNameTaken", "taken")
	wantNotBound(t, claim)
	unchanged("while the claim exists")
	release(t, claim)
	awaitGone(t, bucketOf(claim))
	unchanged("after the claim was deleted")
}

// Claims of a class that names a bucket share it. Their deletion takes their access, and nothing else.
func TestBucketThatExists_IsShared(t *testing.T) {
	t.Parallel()
	const bucket = "existing"
	s := newBucketStore(t, "bucket-shared", with("class", "parameters: {bucketName: "+bucket+"}"))
	s.fill(t, bucket)
	first := s.claimBucket(t, s.namespace, "first", obcv1.ObjectBucketClaimSpec{})
	second := s.claimBucket(t, newNamespace(t), "second", obcv1.ObjectBucketClaimSpec{})
	for _, claim := range []*obcv1.ObjectBucketClaim{first, second} {
		awaitBucket(t, claim)
		wantCredentials(t, claim, account(t, claim))
		if got := read(t, configMapOf(claim)).Data[obcv1.BucketName]; got != bucket {
			t.Errorf("the ConfigMap of claim %s has the bucket %q", claim.Name, got)
		}
		if record := read(t, bucketOf(claim)); record.Spec.ExistingBucketID != bucket || record.Status.Created {
			t.Errorf("the PavBucket of claim %s has %q and %+v", claim.Name, record.Spec.ExistingBucketID, record.Status)
		}
	}
	theirs := []string{account(t, first), account(t, second)}
	s.wantAccess(t, bucket, theirs...)

	removeBucket(t, first)
	s.wantAccess(t, bucket, theirs[1])
	awaitBucket(t, second)
	removeBucket(t, second)
	s.wantAccess(t, bucket)
	s.wantFull(t, bucket)
	s.wantDone(t, bucket)
	for _, user := range theirs {
		s.wantDone(t, user, "grant", "revoke")
	}
	s.discard(t, bucket)
}

// A bucket that is retained stays with its data and its name when its claim goes. Nobody has access to it, and nobody gets it by its name.
func TestBucketThatIsRetained_KeepsDataAndName(t *testing.T) {
	t.Parallel()
	const bucket = "kept"
	s := newBucketStore(t, "bucket-retained", with("class", "reclaimPolicy: Retain"))
	claim := s.claimBucket(t, s.namespace, "first", obcv1.ObjectBucketClaimSpec{BucketName: bucket})
	awaitBucket(t, claim)
	wantObjectBucket(t, claim, corev1.PersistentVolumeReclaimRetain)
	s.fill(t, bucket)
	user := account(t, claim)
	release(t, claim)
	awaitGone(t, secretOf(claim))
	wantRetained(t, claim, "Retained")
	s.wantAccess(t, bucket)
	s.wantDone(t, user, "grant", "revoke")

	heir := s.claimBucket(t, s.namespace, "heir", obcv1.ObjectBucketClaimSpec{BucketName: bucket})
	wantNameTaken(t, heir, bucket)
	removeBucket(t, heir)
	s.wantFull(t, bucket)
	s.wantDone(t, bucket, "create")
	remove(t, bucketOf(claim))
	s.discard(t, bucket)
}
