package integration

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/agent"
)

// withCOSI returns an agent in a cluster that has COSI v1alpha1.
func withCOSI(t *testing.T) (*cluster, *agent.Agent) {
	t.Helper()
	c := startCOSI(t)
	return c, run(t, c)
}

// startCOSI returns a cluster that has COSI v1alpha1, with the definitions that PaV ships.
func startCOSI(t *testing.T) *cluster {
	t.Helper()
	c := start(t)
	options := envtest.CRDInstallOptions{Paths: []string{filepath.Join("..", "..", "deploy", "foreign", "cosi")}, ErrorIfPathMissing: true}
	if _, err := envtest.InstallCRDs(c.Environment.Config, options); err != nil {
		t.Fatal(err)
	}
	schemasHold(t, c, true)
	enableBuckets(t, c)
	return c
}

// cosiClasses makes a BucketClass and a BucketAccessClass of a driver, which have its name.
func cosiClasses(t *testing.T, c *cluster, driver string, changes ...func(*cosiv1.BucketClass, *cosiv1.BucketAccessClass)) {
	t.Helper()
	buckets := &cosiv1.BucketClass{ObjectMeta: metav1.ObjectMeta{Name: driver}, DriverName: driver, DeletionPolicy: cosiv1.DeletionPolicyDelete}
	accesses := &cosiv1.BucketAccessClass{ObjectMeta: metav1.ObjectMeta{Name: driver}, DriverName: driver, AuthenticationType: cosiv1.AuthenticationTypeKey}
	for _, change := range changes {
		change(buckets, accesses)
	}
	mustCreateHeld(t, c, buckets)
	mustCreateHeld(t, c, accesses)
}

// cosiClaim is a BucketClaim with its record.
type cosiClaim struct {
	c      *cluster
	object *cosiv1.BucketClaim
	record *pavv1.PavBucket
}

// claimOfCOSI makes a BucketClaim of a class.
func claimOfCOSI(t *testing.T, c *cluster, class, name string, changes ...func(*cosiv1.BucketClaim)) *cosiClaim {
	t.Helper()
	claim := &cosiv1.BucketClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	claim.Spec = cosiv1.BucketClaimSpec{BucketClassName: class, Protocols: []cosiv1.Protocol{cosiv1.ProtocolS3}}
	for _, change := range changes {
		change(claim)
	}
	b := &cosiClaim{c: c, object: mustCreate(t, c, claim)}
	b.record = &pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: "b-" + string(claim.UID)}}
	t.Cleanup(func() { removeIfFailed(t, c, b.object, b.record, b.bucket()) })
	return b
}

func asksFor(bucket string) func(*cosiv1.BucketClaim) {
	return func(c *cosiv1.BucketClaim) { c.Spec.BucketClassName, c.Spec.ExistingBucketName = "", bucket }
}

// removeIfFailed removes by force what a test that failed has left.
func removeIfFailed(t *testing.T, c *cluster, objects ...client.Object) {
	t.Helper()
	if !t.Failed() {
		return
	}
	for _, object := range objects {
		removeHeld(t, c, object, `{"metadata": {"finalizers": null}}`)
	}
}

func (b *cosiClaim) bucket() *cosiv1.Bucket {
	return &cosiv1.Bucket{ObjectMeta: metav1.ObjectMeta{Name: cosiv1.BucketOf(b.object.UID)}}
}

// serve makes the bucket of the claim.
func (b *cosiClaim) serve(t *testing.T) {
	t.Helper()
	end(t, b.c, recordedPod(t, b.c, b.record, pavv1.WorkflowBucketCreation, 1, cosiv1.BucketOf(b.object.UID)), workflow.Result{Created: true}, 0)
	b.wantReady(t)
}

func (b *cosiClaim) wantReady(t *testing.T) {
	t.Helper()
	exists(t, b.c, b.object, "is ready", func(c *cosiv1.BucketClaim) bool { return c.Status.BucketReady })
}

// cosiAccess is a BucketAccess with its record.
type cosiAccess struct {
	c      *cluster
	object *cosiv1.BucketAccess
	record *pavv1.PavBucketAccess
}

// accessOfCOSI makes a BucketAccess of a class to the bucket of a claim, whose Secret has its name.
func accessOfCOSI(t *testing.T, c *cluster, class, claim, name string) *cosiAccess {
	t.Helper()
	access := &cosiv1.BucketAccess{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	access.Spec = cosiv1.BucketAccessSpec{BucketClaimName: claim, BucketAccessClassName: class, CredentialsSecretName: name, Protocol: cosiv1.ProtocolS3}
	a := &cosiAccess{c: c, object: mustCreate(t, c, access)}
	a.record = &pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: "a-" + string(access.UID)}}
	t.Cleanup(func() { removeIfFailed(t, c, a.object, a.record, a.secret()) })
	return a
}

func (a *cosiAccess) secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.object.Namespace, Name: a.object.Spec.CredentialsSecretName}}
}

// account is the name of the first account of the access.
func (a *cosiAccess) account() string { return "ba-" + string(a.object.UID) }

// grant lets the grant pod of the access succeed.
func (a *cosiAccess) grant(t *testing.T, bucket string) {
	t.Helper()
	pod := recordedPod(t, a.c, a.record, pavv1.WorkflowGrant, 1, a.account()+" in "+grantsOf(bucket, a.account()))
	result, err := sealed(pod, a.account(), canary+a.object.Name)
	if err != nil {
		t.Fatal(err)
	}
	end(t, a.c, pod, result, 0)
	exists(t, a.c, a.object, "is granted", func(b *cosiv1.BucketAccess) bool {
		return b.Status.AccessGranted && b.Status.AccountID == a.account()
	})
}

// revoke deletes the access, whose bucket has no other, and lets its revocation pod succeed.
func (a *cosiAccess) revoke(t *testing.T, bucket string) {
	t.Helper()
	mustDelete(t, a.c, a.object)
	end(t, a.c, recordedPod(t, a.c, a.record, pavv1.WorkflowRevocation, 2, a.account()+" in "+grantsOf(bucket)), workflow.Result{}, 0)
	for _, object := range []client.Object{a.object, a.record, a.secret()} {
		gone(t, a.c, object)
	}
}

func TestCOSI_Life(t *testing.T) {
	c, a := withCOSI(t)
	driver(t, c, "cosi", ofBuckets)
	cosiClasses(t, c, "cosi")
	before := len(a.Line.Writes())
	claim := claimOfCOSI(t, c, "cosi", "photos")
	access := accessOfCOSI(t, c, "cosi", "photos", "photos-app")
	name := cosiv1.BucketOf(claim.object.UID)
	exists(t, c, claim.object, "names its Bucket", func(b *cosiv1.BucketClaim) bool { return b.Status.BucketName == name && !b.Status.BucketReady })
	claim.serve(t)
	access.grant(t, name)
	writes := a.Line.Writes()[before:]
	wantOrder(t, writes, "POST /apis/"+pavv1.GroupVersion.String()+"/pavbuckets", "POST /apis/"+cosiv1.GroupVersion.String()+"/buckets")
	wantOrder(t, writes,
		"POST /apis/"+pavv1.GroupVersion.String()+"/pavbuckets", "POST /api/v1/namespaces/pav-pods/pods",
		"POST /apis/"+pavv1.GroupVersion.String()+"/pavbucketaccesses", "POST /api/v1/namespaces/pav-credentials/secrets")
	wantBucket(t, claim)
	wantCOSISecret(t, access, name)
	wantEvent(t, c, claim.object, corev1.EventTypeNormal, "BucketClaimBound", name)
	wantEvent(t, c, access.object, corev1.EventTypeNormal, "AccessGranted", access.account())
	exists(t, c, access.record, "has no key any more", func(a *pavv1.PavBucketAccess) bool { return a.Status.Key == "" })
	wantNoKeys(t, c)

	mustDelete(t, c, claim.object)
	wantEvent(t, c, claim.object, corev1.EventTypeNormal, "BucketClaimWaiting", "BucketAccess default/photos-app")
	access.revoke(t, name)
	end(t, c, recordedPod(t, c, claim.record, pavv1.WorkflowBucketDeletion, 2, name+" True"), workflow.Result{}, 0)
	for _, object := range []client.Object{claim.object, claim.record, claim.bucket()} {
		gone(t, c, object)
	}
}

// wantBucket checks the Bucket of a claim that someone has access to.
func wantBucket(t *testing.T, claim *cosiClaim) {
	t.Helper()
	b := claim.bucket()
	exists(t, claim.c, b, "is held by an access", func(b *cosiv1.Bucket) bool { return slices.Contains(b.Finalizers, cosiv1.AccessedBucketFinalizer) })
	want := cosiv1.BucketSpec{
		DriverName: "cosi", BucketClassName: "cosi", DeletionPolicy: cosiv1.DeletionPolicyDelete, Protocols: []cosiv1.Protocol{cosiv1.ProtocolS3},
		BucketClaim: &corev1.ObjectReference{APIVersion: cosiv1.GroupVersion.String(), Kind: "BucketClaim", Namespace: "default", Name: claim.object.Name, UID: claim.object.UID},
	}
	if diff := cmp.Diff(want, b.Spec); diff != "" || b.Status != (cosiv1.BucketStatus{BucketReady: true, BucketID: b.Name}) || b.Labels[pavv1.ProvisionerLabel] != "cosi" {
		t.Errorf("the Bucket has the labels %v, the status %+v, and (-want +got):\n%s", b.Labels, b.Status, diff)
	}
}

// wantCOSISecret checks the Secret of an access to a bucket.
func wantCOSISecret(t *testing.T, access *cosiAccess, bucket string) {
	t.Helper()
	secret := access.secret()
	if err := access.c.Admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	info := cosiv1.BucketInfo{}
	if err := json.Unmarshal(secret.Data[cosiv1.BucketInfoKey], &info); err != nil {
		t.Fatal(err)
	}
	key := canary + access.object.Name
	wantInfo := cosiv1.BucketInfoSpec{
		BucketName: bucket, AuthenticationType: cosiv1.AuthenticationTypeKey, Protocols: []cosiv1.Protocol{cosiv1.ProtocolS3},
		S3: &cosiv1.SecretS3{Endpoint: "https://s3.example:9000", Region: "here", AccessKeyID: access.account(), AccessSecretKey: key},
	}
	if diff := cmp.Diff(wantInfo, info.Spec); diff != "" {
		t.Errorf("BucketInfo (-want +got):\n%s", diff)
	}
	want := map[string]string{
		"COSI_PROTOCOL": "S3", "COSI_CERTIFICATE_AUTHORITY": "", "COSI_S3_BUCKET_ID": bucket, "COSI_S3_ENDPOINT": "https://s3.example:9000", "COSI_S3_REGION": "here",
		"COSI_S3_ADDRESSING_STYLE": "", "COSI_S3_ACCESS_KEY_ID": access.account(), "COSI_S3_ACCESS_SECRET_KEY": key, "hint": "more",
	}
	got := map[string]string{}
	for name, value := range secret.Data {
		if name != cosiv1.BucketInfoKey {
			got[name] = string(value)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the Secret (-want +got):\n%s", diff)
	}
	if owner := metav1.GetControllerOf(secret); owner == nil || owner.UID != access.object.UID || !slices.Contains(secret.Finalizers, cosiv1.SecretFinalizer) {
		t.Errorf("the Secret has the owner %v and the finalizers %v", owner, secret.Finalizers)
	}
}

// offered is a Bucket that an administrator wrote for a bucket that exists already.
func offered(t *testing.T, c *cluster, driver, name string, claim corev1.ObjectReference) *cosiv1.Bucket {
	t.Helper()
	b := &cosiv1.Bucket{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.Spec = cosiv1.BucketSpec{DriverName: driver, BucketClaim: &claim, Protocols: []cosiv1.Protocol{cosiv1.ProtocolS3}, ExistingBucketID: "old-" + name}
	return mustCreateHeld(t, c, b)
}

// A Bucket of an administrator is bound by the claim that it names, by no other, and stays when the claim goes.
func TestCOSI_OfAnExistingBucket(t *testing.T) {
	c, _ := withCOSI(t)
	driver(t, c, "cosi-existing", ofBuckets)
	cosiClasses(t, c, "cosi-existing")
	b := offered(t, c, "cosi-existing", "archive", corev1.ObjectReference{Namespace: "default", Name: "mine"})
	stranger := claimOfCOSI(t, c, "", "stranger", asksFor("archive"))
	wantEvent(t, c, stranger.object, corev1.EventTypeWarning, "BucketBoundElsewhere", `"mine" of namespace "default"`)
	mine := claimOfCOSI(t, c, "", "mine", asksFor("archive"))
	mine.wantReady(t)
	exists(t, c, b, "is bound", func(b *cosiv1.Bucket) bool {
		return b.Spec.BucketClaim.UID == mine.object.UID && b.Status == (cosiv1.BucketStatus{BucketReady: true, BucketID: "old-archive"})
	})
	access := accessOfCOSI(t, c, "cosi-existing", "mine", "mine-app")
	access.grant(t, "old-archive")
	access.revoke(t, "old-archive")
	mustDelete(t, c, mine.object)
	gone(t, c, mine.object)
	gone(t, c, mine.record)
	if mine.record.Status.Pods != 0 {
		t.Errorf("the bucket had %d pods", mine.record.Status.Pods)
	}
	exists(t, c, b, "is free", func(b *cosiv1.Bucket) bool { return len(b.Finalizers) == 0 && b.DeletionTimestamp == nil })
	again := claimOfCOSI(t, c, "", "mine", asksFor("archive"))
	wantEvent(t, c, again.object, corev1.EventTypeWarning, "BucketBoundElsewhere", "former claim")
	for _, claim := range []*cosiClaim{stranger, again} {
		mustDelete(t, c, claim.object)
		gone(t, c, claim.object)
	}
}

// A Bucket that names no claim is refused, and the event says what lets the claim have it.
func TestCOSI_OfAnUnclaimedBucket(t *testing.T) {
	c, _ := withCOSI(t)
	driver(t, c, "cosi-unclaimed", ofBuckets)
	b := offered(t, c, "cosi-unclaimed", "unclaimed", corev1.ObjectReference{})
	claim := claimOfCOSI(t, c, "", "unclaimed", asksFor("unclaimed"))
	wantEvent(t, c, claim.object, corev1.EventTypeWarning, "BucketUnclaimed", "kubectl patch buckets.objectstorage.k8s.io unclaimed --type=merge -p '")
	for _, event := range eventsOf(t.Context(), t, c, claim.object) {
		if _, patch, found := strings.Cut(event.Message, "-p '"); found {
			if err := patching(b, strings.TrimSuffix(patch, "'"))(t.Context(), c.Admin); err != nil {
				t.Fatal(err)
			}
		}
	}
	claim.wantReady(t)
	mustDelete(t, c, claim.object)
	gone(t, c, claim.object)
	gone(t, c, claim.record)
}

// A retained bucket outlives its claim, and its Bucket does not.
func TestCOSI_ABucketIsRetained(t *testing.T) {
	c, _ := withCOSI(t)
	driver(t, c, "cosi-retained", ofBuckets)
	cosiClasses(t, c, "cosi-retained", func(class *cosiv1.BucketClass, _ *cosiv1.BucketAccessClass) {
		class.DeletionPolicy = cosiv1.DeletionPolicyRetain
	})
	claim := claimOfCOSI(t, c, "cosi-retained", "retained")
	claim.serve(t)
	mustDelete(t, c, claim.object)
	gone(t, c, claim.object)
	gone(t, c, claim.bucket())
	exists(t, c, claim.record, "is retained", func(b *pavv1.PavBucket) bool {
		return b.Status.Phase == pavv1.BucketRetained && b.Status.Pods == 1 && len(b.Finalizers) == 0
	})
	mustDelete(t, c, claim.record)
	gone(t, c, claim.record)
}

// An access whose Secret has the name of someone else's gets none, and the Secret stays as it is.
func TestCOSI_NameOfAForeignSecret(t *testing.T) {
	c, _ := withCOSI(t)
	driver(t, c, "cosi-secret", ofBuckets)
	cosiClasses(t, c, "cosi-secret")
	foreign := mustCreateHeld(t, c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cosi-foreign"}, Data: map[string][]byte{"password": []byte("mine")}})
	claim := claimOfCOSI(t, c, "cosi-secret", "cosi-foreign")
	claim.serve(t)
	access := accessOfCOSI(t, c, "cosi-secret", "cosi-foreign", "cosi-foreign")
	wantEvent(t, c, access.object, corev1.EventTypeWarning, "SecretNameTaken", "Secret default/cosi-foreign belongs to something else")
	mustDelete(t, c, access.object)
	gone(t, c, access.object)
	gone(t, c, access.record)
	found := &corev1.Secret{}
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(foreign), found); err != nil || !maps.EqualFunc(found.Data, foreign.Data, slices.Equal[[]byte]) {
		t.Errorf("the Secret has %v, %v", found.Data, err)
	}
	mustDelete(t, c, claim.object)
	end(t, c, recordedPod(t, c, claim.record, pavv1.WorkflowBucketDeletion, 2, cosiv1.BucketOf(claim.object.UID)+" True"), workflow.Result{}, 0)
	gone(t, c, claim.object)
	gone(t, c, claim.record)
	gone(t, c, claim.bucket())
}

// What is asked of other drivers is left to them.
func TestCOSI_OfAnotherDriver(t *testing.T) {
	c, _ := withCOSI(t)
	driver(t, c, "cosi-ours", ofBuckets)
	cosiClasses(t, c, "cosi-ours")
	cosiClasses(t, c, "ceph.objectstorage.k8s.io")
	theirs := claimOfCOSI(t, c, "ceph.objectstorage.k8s.io", "theirs")
	access := accessOfCOSI(t, c, "ceph.objectstorage.k8s.io", "theirs", "theirs-app")
	ours := claimOfCOSI(t, c, "cosi-ours", "ours")
	ours.serve(t)
	for _, object := range []client.Object{theirs.object, access.object} {
		version := object.GetResourceVersion()
		if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || object.GetResourceVersion() != version {
			t.Errorf("%T was written, or is gone: %v", object, err)
		}
		if events := eventsOf(t.Context(), t, c, object); len(events) != 0 {
			t.Errorf("%T has the events %v", object, events)
		}
		mustDelete(t, c, object)
		gone(t, c, object)
	}
	mustDelete(t, c, ours.object)
	end(t, c, recordedPod(t, c, ours.record, pavv1.WorkflowBucketDeletion, 2, cosiv1.BucketOf(ours.object.UID)+" True"), workflow.Result{}, 0)
	for _, object := range []client.Object{ours.object, ours.record, ours.bucket()} {
		gone(t, c, object)
	}
}
