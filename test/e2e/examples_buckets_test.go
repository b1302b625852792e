package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// A bucket of a real S3 server is claimed, and used with the keys of the claim by a client that is not ours; by COSI as well. The keys reach no other bucket,
// and are refused as soon as the claim is gone. Nothing of it is left in the server, or in the cluster.
func TestExample_Buckets(t *testing.T) {
	t.Parallel()
	t.Cleanup(func() { remove(t, &corev1.Secret{ObjectMeta: objectMeta("pav-pods", "buckets")}) })
	e := newExample(t, "9-buckets", exampleNamespace(t, "buckets"), "s3-tools.tar", "versitygw.tar")
	e.follow(t, "Start the server")
	prints(t, e.follow(t, "Claim a bucket and use it"), "Hello, bucket!")
	e.follow(t, "The claim says what it has got")
	printed := e.follow(t, "Pods can have the bucket as a directory")
	prints(t, printed, "Hello, bucket!")
	prints(t, printed, "Hello, directory!")
	e.follow(t, "The volume has an account of its own")
	claim := read(t, &obcv1.ObjectBucketClaim{ObjectMeta: objectMeta(e.namespace, "photos")})
	awaitBucket(t, claim)
	bucket, user := claim.Spec.BucketName, account(t, claim)
	wantCredentials(t, claim, user)
	wantConfigMap(t, claim, e.server(t))
	wantObjectBucket(t, claim, corev1.PersistentVolumeReclaimDelete)
	if status := read(t, bucketOf(claim)).Status; status.Phase != pavv1.BucketReady || status.BucketID != bucket {
		t.Errorf("the PavBucket has the status %+v", status)
	}

	e.run(t, s3Admin(e.server(t)))
	if got := e.accounts(t); !strings.Contains(got, user) {
		t.Errorf("the server has the accounts %q, want %s among them", got, user)
	}
	e.s3(t, "create_bucket strangers another; request PUT /strangers/hello.txt secret; want put 200")
	for _, denied := range []string{
		"s3cmd ls s3://strangers", "s3cmd get --force s3://strangers/hello.txt -", "s3cmd put hello.txt s3://strangers",
		"s3cmd mb s3://another", "s3cmd rb s3://$BUCKET_NAME",
	} {
		e.isRefused(t, denied, "") // some answers have no text
	}
	other := e.claimAnother(t)
	e.isRefused(t, "s3cmd ls s3://"+other.Spec.BucketName, "AccessDenied")

	e.follow(t, "Delete the claim")
	for _, revoked := range []string{"s3cmd ls s3://" + bucket, "s3cmd put hello.txt s3://" + bucket} {
		e.isRefused(t, revoked, "InvalidAccessKeyId")
	}
	awaitGone(t, claim, accessOf(claim), objectBucketOf(claim), bucketOf(claim), secretOf(claim), configMapOf(claim))
	removeBucket(t, other)
	e.followCOSI(t)
	if got := e.accounts(t); got != "" {
		t.Errorf("the server has the accounts %q", got)
	}
	if got := e.s3(t, `request GET /; echo $reply | grep -o "<Name>[^<]*"`); got != "<Name>strangers\n" {
		t.Errorf("the server has the buckets %q", got)
	}
	e.end(t, "s3-admin")
	e.follow(t, "Clean up")
}

// followCOSI tries the part of the README about COSI: two accounts have access to one bucket, of which one cannot write.
func (e *example) followCOSI(t *testing.T) {
	t.Helper()
	prints(t, e.follow(t, "The same provisioner serves COSI"), "Hello, COSI!")
	claim := read(t, &cosiv1.BucketClaim{ObjectMeta: objectMeta(e.namespace, "films")})
	if bucket := read(t, &cosiv1.Bucket{ObjectMeta: objectMeta("", claim.Status.BucketName)}); !claim.Status.BucketReady || !bucket.Status.BucketReady || bucket.Status.BucketID != bucket.Name {
		t.Errorf("the claim has the status %+v, and its Bucket has %+v", claim.Status, bucket.Status)
	}
	accounts := e.accounts(t)
	for _, name := range []string{"films-writer", "films-reader"} {
		access := read(t, &cosiv1.BucketAccess{ObjectMeta: objectMeta(e.namespace, name)})
		if !access.Status.AccessGranted || !strings.Contains(accounts, access.Status.AccountID) {
			t.Errorf("%s has the status %+v, and the server has the accounts %q", name, access.Status, accounts)
		}
	}
	for _, denied := range []string{"echo no > no.txt; s3cmd put no.txt s3://$COSI_S3_BUCKET_ID", "s3cmd rm s3://$COSI_S3_BUCKET_ID/hello.txt"} {
		e.isRefusedTo(t, "films-reader", denied, "AccessDenied")
	}
	e.follow(t, "Delete the accesses")
	for _, pod := range []string{"films-writer", "films-reader"} {
		e.isRefusedTo(t, pod, "s3cmd ls s3://$COSI_S3_BUCKET_ID", "InvalidAccessKeyId")
	}
	awaitGone(t, claim, &cosiv1.Bucket{ObjectMeta: objectMeta("", claim.Status.BucketName)})
}

// wantConfigMap fails the test unless the ConfigMap of a claim says where its bucket is.
func wantConfigMap(t *testing.T, claim *obcv1.ObjectBucketClaim, server string) {
	t.Helper()
	data := read(t, configMapOf(claim)).Data
	names := []string{"BUCKET_HOST", "BUCKET_NAME", "BUCKET_PORT", "BUCKET_REGION", "BUCKET_SUBREGION"}
	if diff := cmp.Diff(names, slices.Sorted(maps.Keys(data))); diff != "" {
		t.Errorf("the keys of the ConfigMap (-want +got):\n%s", diff)
	}
	if data[obcv1.BucketHost]+":"+data[obcv1.BucketPort] != server || data[obcv1.BucketName] != claim.Spec.BucketName || data[obcv1.BucketRegion] != "us-east-1" {
		t.Errorf("the ConfigMap has %q, and the server is %s", data, server)
	}
}

// claimAnother makes another claim of the example's class, and waits until it is bound.
func (e *example) claimAnother(t *testing.T) *obcv1.ObjectBucketClaim {
	t.Helper()
	claim := &obcv1.ObjectBucketClaim{ObjectMeta: objectMeta(e.namespace, "other"), Spec: obcv1.ObjectBucketClaimSpec{StorageClassName: e.name, GenerateBucketName: "other"}}
	must(t, kube.Create(t.Context(), claim))
	awaitBucket(t, claim)
	return claim
}

// isRefused fails the test unless the server refuses, with the beginning of a code, what the example's pod does with the keys that it has
// got.
func (e *example) isRefused(t *testing.T, command, reason string) {
	t.Helper()
	e.isRefusedTo(t, "photos", command, reason)
}

// isRefusedTo is isRefused for another pod.
func (e *example) isRefusedTo(t *testing.T, pod, command, reason string) {
	t.Helper()
	out, err := inPod(t.Context(), e.namespace, pod, command)
	if err == nil || !strings.Contains(err.Error(), "S3 error: 403 ("+reason) {
		t.Errorf("%s: it prints %q, and is not refused with %s: %v", command, out, reason, err)
	}
}

// accounts returns the accounts of the server, and not their keys.
func (e *example) accounts(t *testing.T) string {
	t.Helper()
	return e.s3(t, `request PATCH /list-users; echo $reply | grep -o "<Access>[^<]*" || true`)
}

// s3 runs a script with the functions of s3.sh as the server's administrator, and returns what it prints.
func (e *example) s3(t *testing.T, script string) string {
	t.Helper()
	out, err := inPod(t.Context(), e.namespace, "s3-admin", "bash -euc '. s3.sh; "+script+"'")
	must(t, err)
	return out
}

// s3Admin returns a pod with s3.sh, and the credentials of a server's administrator.
func s3Admin(server string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: s3-admin
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: main
      image: %s
      command: [sleep, infinity]
      env:
        - {name: AWS_ACCESS_KEY_ID, value: example}
        - {name: AWS_SECRET_ACCESS_KEY, value: open-sesame}
        - {name: S3_ENDPOINT, value: "http://%s"}
`, s3Tools, server)
}
