package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// bucketStore is a ledger whose provisioner has buckets, and no volumes. Of its storage, a directory in "buckets" is a bucket, with the
// UID of its claim in a file in "tags", and the grants that its policy was last written from in one in "policies". A file in "accounts" is
// an account.
type bucketStore struct {
	*ledger
	claims []*obcv1.ObjectBucketClaim
}

// newBucketStore makes a store, its provisioner and its class. When the test ends, its claims are deleted, and no bucket and no account
// may be left.
func newBucketStore(t *testing.T, name string, edits ...edit) *bucketStore {
	t.Helper()
	s := &bucketStore{ledger: newLedgerOf(t, name, (*ledger).bucketsYAML, edits...)}
	for _, sub := range []string{"buckets", "tags", "policies", "accounts"} {
		must(t, os.Mkdir(filepath.Join(s.directory, sub), 0o755)) //nolint:gosec // Pods write to it.
	}
	t.Cleanup(func() { s.close(t) })
	return s
}

// bucketsYAML returns the provisioner and its class. As with volumes, each pod does what its hook says in the middle of its work.
func (l *ledger) bucketsYAML() string {
	create := `
bucket={{ bucketName | tobash }} uid={{ claim.metadata.uid | tobash }}
hook create
if mkdir "/storage/buckets/$bucket"; then
  echo "create $bucket $NODE" >> /storage/journal
  echo "$uid" > "/storage/tags/$bucket"
fi
if ! grep -qx "$uid" "/storage/tags/$bucket"; then
  echo "bucket $bucket is a stranger's" > /pav/error
  exit 1
fi
touch /pav/created`
	deletion := `
bucket={{ bucketId | tobash }}
hook delete
rm -rf "/storage/buckets/$bucket" "/storage/tags/$bucket" "/storage/policies/$bucket"
echo "delete $bucket $NODE" >> /storage/journal`
	const policies = `
{% for b in buckets %}
printf %s {{ b.grants | tojson | tobash }} > /storage/policies/{{ b.id | tobash }}
{% endfor %}`
	grant := `
account={{ accountName | tobash }}
echo "grant $account $NODE" >> /storage/journal
touch "/storage/accounts/$account"
cd /pav/credentials
printf %s "$account" > accessKeyId
head -c 30 /dev/urandom | base64 > accessSecretKey
hook grant` + policies
	revoke := `
account={{ (accountId or accountName) | tobash }}
hook revoke` + policies + `
rm -f "/storage/accounts/$account"
echo "revoke $account $NODE" >> /storage/journal`
	return documents(fmt.Sprintf(`apiVersion: pav.albertofaria.github.io/v1alpha1
kind: PavProvisioner
metadata:
  name: %s
spec:
  provisioningModes: [Dynamic, Static]
  bucketCreation:
    info: {endpoint: "http://store.example:9000", region: here}%s
  bucketDeletion:%s
  bucketAccessGrant:%s
  bucketAccessRevoke:%s`, l.name,
		l.hookedPod("create", create), l.hookedPod("delete", deletion), l.hookedPod("grant", grant), l.hookedPod("revoke", revoke)),
		storageClass(l.name)+"# class\n")
}

// close deletes all claims, and checks that their buckets and accounts are gone.
func (s *bucketStore) close(t *testing.T) {
	t.Helper()
	ctx, cancel := cleanupContext(t)
	defer cancel()
	s.unhook(t, "create", "delete", "grant", "revoke")
	var err error
	for _, claim := range s.claims {
		err = errors.Join(err, client.IgnoreNotFound(kube.Delete(ctx, claim)))
	}
	if err := errors.Join(err, poll(ctx, s.wantNoRecords)); err != nil {
		t.Error(err)
	}
	for _, sub := range []string{"buckets", "accounts"} {
		left, err := os.ReadDir(filepath.Join(s.directory, sub))
		if err != nil {
			t.Error(err)
		}
		for _, entry := range left {
			t.Errorf("%s is left of the %s", entry.Name(), sub)
		}
	}
}

// wantNoRecords objects while there are records of the provisioner.
func (s *bucketStore) wantNoRecords(ctx context.Context) error {
	buckets, accesses := &pavv1.PavBucketList{}, &pavv1.PavBucketAccessList{}
	if err := errors.Join(kube.List(ctx, buckets), kube.List(ctx, accesses)); err != nil {
		return err
	}
	for i := range accesses.Items {
		if a := &accesses.Items[i]; a.Spec.Provisioner == s.name {
			return fmt.Errorf("PavBucketAccess %s still exists: %+v", a.Name, a.Status)
		}
	}
	for i := range buckets.Items {
		if b := &buckets.Items[i]; b.Spec.Provisioner == s.name {
			return fmt.Errorf("PavBucket %s still exists: %+v", b.Name, b.Status)
		}
	}
	return nil
}

// claimBucket makes a claim of the store's class.
func (s *bucketStore) claimBucket(t *testing.T, namespace, name string, spec obcv1.ObjectBucketClaimSpec) *obcv1.ObjectBucketClaim {
	t.Helper()
	claim := &obcv1.ObjectBucketClaim{ObjectMeta: objectMeta(namespace, name), Spec: spec}
	claim.Spec.StorageClassName = s.name
	must(t, kube.Create(t.Context(), claim))
	s.claims = append(s.claims, claim.DeepCopy())
	return claim
}

// bucketOf and accessOf return the records of a claim, by name only, and secretOf and configMapOf what clients have of it.
func bucketOf(claim *obcv1.ObjectBucketClaim) *pavv1.PavBucket {
	return &pavv1.PavBucket{ObjectMeta: objectMeta("", "b-"+string(claim.UID))}
}

func accessOf(claim *obcv1.ObjectBucketClaim) *pavv1.PavBucketAccess {
	return &pavv1.PavBucketAccess{ObjectMeta: objectMeta("", "a-"+string(claim.UID))}
}

func secretOf(claim *obcv1.ObjectBucketClaim) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: objectMeta(claim.Namespace, claim.Name)}
}

func configMapOf(claim *obcv1.ObjectBucketClaim) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: objectMeta(claim.Namespace, claim.Name)}
}

func objectBucketOf(claim *obcv1.ObjectBucketClaim) *obcv1.ObjectBucket {
	return &obcv1.ObjectBucket{ObjectMeta: objectMeta("", obcv1.BucketOf(claim.Namespace, claim.Name))}
}

// read gets an object that must exist, and returns it.
func read[T client.Object](t *testing.T, object T) T {
	t.Helper()
	must(t, kube.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	return object
}

// awaitBucket waits until a claim is bound.
func awaitBucket(t *testing.T, claim *obcv1.ObjectBucketClaim) {
	t.Helper()
	eventually(t, "ObjectBucketClaim "+claim.Name+" is bound", func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return err
		}
		if claim.Status.Phase != obcv1.ClaimBound {
			return fmt.Errorf("it is %q", claim.Status.Phase)
		}
		return nil
	})
}

// wantNotBound fails the test if a claim is bound.
func wantNotBound(t *testing.T, claim *obcv1.ObjectBucketClaim) {
	t.Helper()
	if phase := read(t, claim).Status.Phase; phase == obcv1.ClaimBound {
		t.Errorf("ObjectBucketClaim %s is %s", claim.Name, phase)
	}
}

// wantBucketEvent waits for an event of a claim.
func wantBucketEvent(t *testing.T, claim *obcv1.ObjectBucketClaim, reason string, words ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("ObjectBucketClaim %s has an event %s", claim.Name, reason), func(ctx context.Context) error {
		return wantEvent(ctx, claim.Namespace, claim.Name, reason, words...)
	})
}

// release deletes a claim, and waits until it is gone, and with it all access to the bucket: what is left is the record of the bucket, if
// that is retained.
func release(t *testing.T, claim *obcv1.ObjectBucketClaim) {
	t.Helper()
	must(t, kube.Delete(t.Context(), claim.DeepCopy()))
	awaitGone(t, claim, accessOf(claim), objectBucketOf(claim), configMapOf(claim))
}

// removeBucket deletes a claim, and waits until nothing of it is left.
func removeBucket(t *testing.T, claim *obcv1.ObjectBucketClaim) {
	t.Helper()
	release(t, claim)
	awaitGone(t, bucketOf(claim), secretOf(claim))
}

// awaitGone waits until none of some objects exists.
func awaitGone(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		eventually(t, fmt.Sprintf("%T %s is gone", object, object.GetName()), func(ctx context.Context) error { return gone(ctx, object) })
	}
}

// account returns the account of a claim that is bound.
func account(t *testing.T, claim *obcv1.ObjectBucketClaim) string {
	t.Helper()
	access := read(t, accessOf(claim))
	if access.Status.Phase != pavv1.AccessReady || access.Status.Current == nil || access.Status.Current.AccountID == "" {
		t.Fatalf("the access of claim %s has the status %+v", claim.Name, access.Status)
	}
	return access.Status.Current.AccountID
}

// wantAccess fails the test unless these accounts, and no others, exist and have access to a bucket.
func (s *bucketStore) wantAccess(t *testing.T, bucket string, accounts ...string) {
	t.Helper()
	text, err := readFile(s.directory, "policies", bucket)
	must(t, err)
	var grants []struct{ AccountID, Mode string }
	must(t, json.Unmarshal([]byte(text), &grants))
	granted := []string{}
	for _, grant := range grants {
		granted = append(granted, grant.AccountID)
		if grant.Mode != string(pavv1.AccessReadWrite) {
			t.Errorf("account %s has the mode %s", grant.AccountID, grant.Mode)
		}
	}
	entries, err := os.ReadDir(filepath.Join(s.directory, "accounts"))
	must(t, err)
	exist := []string{}
	for _, entry := range entries {
		exist = append(exist, entry.Name())
	}
	want := slices.Sorted(slices.Values(append([]string{}, accounts...)))
	for what, got := range map[string][]string{"accounts with access": granted, "accounts": exist} {
		if diff := cmp.Diff(append([]string{}, want...), append([]string{}, slices.Sorted(slices.Values(got))...)); diff != "" {
			t.Errorf("the %s of bucket %s (-want +got):\n%s", what, bucket, diff)
		}
	}
}

// wantDone fails the test unless pods did this to a bucket or an account, in this order.
func (s *bucketStore) wantDone(t *testing.T, name string, want ...string) {
	t.Helper()
	effects, err := s.effects(false)
	must(t, err)
	if got := effects[name]; strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("what was done to %s is %q, want %q", name, got, want)
	}
}

// precious is what a bucket has, so that it is seen if that is lost.
const precious = "precious"

// fill puts data into a bucket, which is made if it does not exist.
func (s *bucketStore) fill(t *testing.T, bucket string) {
	t.Helper()
	directory := filepath.Join(s.directory, "buckets", bucket)
	must(t, os.MkdirAll(directory, 0o755)) //nolint:gosec // Pods read it.
	must(t, os.WriteFile(filepath.Join(directory, precious), []byte(precious), 0o600))
}

// wantFull fails the test unless a bucket has its data.
func (s *bucketStore) wantFull(t *testing.T, bucket string) {
	t.Helper()
	if got, err := readFile(s.directory, "buckets", bucket, precious); err != nil || got != precious {
		t.Errorf("bucket %s has %q (%v)", bucket, got, err)
	}
}

// discard is an administrator who deletes a bucket that PaV retains.
func (s *bucketStore) discard(t *testing.T, bucket string) {
	t.Helper()
	must(t, os.RemoveAll(filepath.Join(s.directory, "buckets", bucket)))
	journal, err := os.OpenFile(filepath.Join(s.directory, "journal"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(t, err)
	_, err = fmt.Fprintf(journal, "delete %s by-hand\n", bucket)
	must(t, errors.Join(err, journal.Close()))
}
