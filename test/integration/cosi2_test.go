package integration

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// startCOSI2 returns a cluster that has COSI v1alpha2, with definitions of PaV's, as upstream's cannot be used. It is a cluster of its own: a
// definition cannot get another version in the place of the one in which objects were stored.
func startCOSI2(t *testing.T) *cluster {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run make test")
	}
	c, err := newCluster(context.WithoutCancel(t.Context()), assets)
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error("stopping the control plane:", err)
		}
	})
	if err != nil {
		t.Fatal("starting the control plane:", err)
	}
	options := envtest.CRDInstallOptions{Paths: []string{filepath.Join("testdata", "cosi-v1alpha2")}, ErrorIfPathMissing: true}
	if _, err := envtest.InstallCRDs(c.Environment.Config, options); err != nil {
		t.Fatal(err)
	}
	enableBuckets(t, c)
	return c
}

// TestCOSI2 plays the lives of BucketClaims and BucketAccesses of v1alpha2. What upstream's programs would do, nothing here says.
func TestCOSI2(t *testing.T) {
	c := startCOSI2(t)
	run(t, c)
	for _, test := range []struct {
		name string
		play func(*testing.T, *cluster)
	}{
		{"Life", cosi2Life},
		{"SeveralBuckets", cosi2SeveralBuckets},
		{"Rotation", cosi2Rotation},
		{"ABucketIsRetained", cosi2Retained},
		{"AnExistingBucket", cosi2Existing},
		{"WhatCannotBeServed", cosi2Refused},
	} {
		t.Run(test.name, func(t *testing.T) { test.play(t, c) })
	}
}

// cosi2Classes makes a BucketClass and a BucketAccessClass of a driver, which have its name.
func cosi2Classes(t *testing.T, c *cluster, driver string, changes ...func(*cosiv2.BucketClass, *cosiv2.BucketAccessClass)) {
	t.Helper()
	buckets := &cosiv2.BucketClass{ObjectMeta: metav1.ObjectMeta{Name: driver}}
	buckets.Spec = cosiv2.BucketClassSpec{DriverName: driver, DeletionPolicy: cosiv2.DeletionPolicyDelete}
	accesses := &cosiv2.BucketAccessClass{ObjectMeta: metav1.ObjectMeta{Name: driver}}
	accesses.Spec = cosiv2.BucketAccessClassSpec{DriverName: driver, AuthenticationType: cosiv2.AuthenticationTypeKey, Parameters: map[string]string{"role": "user"}}
	for _, change := range changes {
		change(buckets, accesses)
	}
	mustCreateHeld(t, c, buckets)
	mustCreateHeld(t, c, accesses)
}

// cosi2Claim is a BucketClaim with its record.
type cosi2Claim struct {
	c      *cluster
	object *cosiv2.BucketClaim
	record *pavv1.PavBucket
}

// claimOfCOSI2 makes a BucketClaim of a class.
func claimOfCOSI2(t *testing.T, c *cluster, name string, spec cosiv2.BucketClaimSpec) *cosi2Claim {
	t.Helper()
	claim := &cosiv2.BucketClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec}
	b := &cosi2Claim{c: c, object: mustCreate(t, c, claim)}
	b.record = &pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: "b-" + string(claim.UID)}}
	t.Cleanup(func() { removeIfFailed(t, c, b.object, b.record, b.bucket()) })
	return b
}

func ofClass(name string) cosiv2.BucketClaimSpec {
	return cosiv2.BucketClaimSpec{BucketClassName: name}
}

func ofBucket(name string) cosiv2.BucketClaimSpec {
	return cosiv2.BucketClaimSpec{ExistingBucketName: name}
}

func (b *cosi2Claim) bucket() *cosiv2.Bucket {
	return &cosiv2.Bucket{ObjectMeta: metav1.ObjectMeta{Name: cosiv2.BucketOf(b.object.UID)}}
}

// name is the name of the Bucket, and of the bucket.
func (b *cosi2Claim) name() string { return cosiv2.BucketOf(b.object.UID) }

// serve makes the bucket of the claim.
func (b *cosi2Claim) serve(t *testing.T) {
	t.Helper()
	end(t, b.c, recordedPod(t, b.c, b.record, pavv1.WorkflowBucketCreation, 1, b.name()), workflow.Result{Created: true}, 0)
	b.wantReady(t)
}

func (b *cosi2Claim) wantReady(t *testing.T) {
	t.Helper()
	exists(t, b.c, b.object, "is ready", func(c *cosiv2.BucketClaim) bool { return c.Status.ReadyToUse })
}

// remove deletes the claim, and lets the deletion pod of its bucket succeed.
func (b *cosi2Claim) remove(t *testing.T) {
	t.Helper()
	mustDelete(t, b.c, b.object)
	end(t, b.c, recordedPod(t, b.c, b.record, pavv1.WorkflowBucketDeletion, 2, b.name()+" True"), workflow.Result{}, 0)
	for _, object := range []client.Object{b.object, b.record, b.bucket()} {
		gone(t, b.c, object)
	}
}

// cosi2Access is a BucketAccess with its record.
type cosi2Access struct {
	c      *cluster
	object *cosiv2.BucketAccess
	record *pavv1.PavBucketAccess
}

// accessOfCOSI2 makes a BucketAccess of a class to the buckets of claims, whose Secrets have the names of these.
func accessOfCOSI2(t *testing.T, c *cluster, class, name string, claims ...string) *cosi2Access {
	t.Helper()
	access := &cosiv2.BucketAccess{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	access.Spec = cosiv2.BucketAccessSpec{BucketAccessClassName: class, Protocol: cosiv2.ProtocolS3}
	for _, claim := range claims {
		access.Spec.BucketClaims = append(access.Spec.BucketClaims, cosiv2.BucketClaimAccess{BucketClaimName: claim, AccessMode: cosiv2.AccessModeReadWrite, AccessSecretName: claim})
	}
	a := &cosi2Access{c: c, object: mustCreate(t, c, access)}
	a.record = &pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: "a-" + string(access.UID)}}
	t.Cleanup(func() { removeIfFailed(t, c, append(a.secrets(), a.object, a.record)...) })
	return a
}

func (a *cosi2Access) secrets() []client.Object {
	var secrets []client.Object
	for _, asked := range a.object.Spec.BucketClaims {
		secrets = append(secrets, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.object.Namespace, Name: asked.AccessSecretName}})
	}
	return secrets
}

// account is the name of the first account of the access.
func (a *cosi2Access) account() string { return "ba-" + string(a.object.UID) }

// grant lets a grant pod of the access, which sees grants, succeed with an account.
func (a *cosi2Access) grant(t *testing.T, number int32, account, sees string) {
	t.Helper()
	pod := recordedPod(t, a.c, a.record, pavv1.WorkflowGrant, number, account+" in "+sees)
	result, err := sealed(pod, account, canary+a.object.Name)
	if err != nil {
		t.Fatal(err)
	}
	end(t, a.c, pod, result, 0)
}

// revoke deletes the access, and lets its revocation pod, which sees grants, succeed.
func (a *cosi2Access) revoke(t *testing.T, number int32, account, sees string) {
	t.Helper()
	mustDelete(t, a.c, a.object)
	end(t, a.c, recordedPod(t, a.c, a.record, pavv1.WorkflowRevocation, number, account+" in "+sees), workflow.Result{}, 0)
	for _, object := range append(a.secrets(), a.object, a.record) {
		gone(t, a.c, object)
	}
	wantNoKeys(t, a.c)
}

// wantStatus waits until the access is ready, and checks its status.
func (a *cosi2Access) wantStatus(t *testing.T, claims ...*cosi2Claim) {
	t.Helper()
	exists(t, a.c, a.object, "is ready", func(b *cosiv2.BucketAccess) bool { return b.Status.ReadyToUse })
	want := cosiv2.BucketAccessStatus{
		ReadyToUse: true, AccountID: a.account(), DriverName: a.record.Spec.Provisioner, AuthenticationType: cosiv2.AuthenticationTypeKey, Parameters: map[string]string{"role": "user"},
	}
	for _, claim := range claims {
		want.AccessedBuckets = append(want.AccessedBuckets, cosiv2.AccessedBucket{BucketName: claim.name(), BucketID: claim.name(), BucketClaimName: claim.object.Name})
	}
	if diff := cmp.Diff(want, a.object.Status); diff != "" || !slices.Contains(a.object.Finalizers, cosiv2.Finalizer) {
		t.Errorf("the access has the finalizers %q, and the status (-want +got):\n%s", a.object.Finalizers, diff)
	}
}

// wantSecret checks the Secret of the access to the bucket of a claim.
func (a *cosi2Access) wantSecret(t *testing.T, claim *cosi2Claim, account string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: claim.object.Name}}
	exists(t, a.c, secret, "has the credentials of "+account, func(s *corev1.Secret) bool { return string(s.Data[cosiv2.SecretS3AccessKeyID]) == account })
	got := map[string]string{}
	for name, value := range secret.Data {
		got[name] = string(value)
	}
	want := map[string]string{
		"COSI_PROTOCOL": "S3", "COSI_CERTIFICATE_AUTHORITY": "", "COSI_S3_BUCKET_ID": claim.name(), "COSI_S3_ENDPOINT": "https://s3.example:9000", "COSI_S3_REGION": "here",
		"COSI_S3_ADDRESSING_STYLE": "", "COSI_S3_ACCESS_KEY_ID": account, "COSI_S3_ACCESS_SECRET_KEY": canary + a.object.Name, "hint": "more",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the Secret (-want +got):\n%s", diff)
	}
	if owner := metav1.GetControllerOf(secret); owner == nil || owner.UID != a.object.UID || owner.APIVersion != cosiv2.GroupVersion.String() || !slices.Contains(secret.Finalizers, cosiv2.Finalizer) {
		t.Errorf("the Secret has the owner %v and the finalizers %v", owner, secret.Finalizers)
	}
}

func cosi2Life(t *testing.T, c *cluster) {
	t.Helper()
	driver(t, c, "cosi2", ofBuckets)
	cosi2Classes(t, c, "cosi2")
	claim := claimOfCOSI2(t, c, "photos2", ofClass("cosi2"))
	access := accessOfCOSI2(t, c, "cosi2", "photos2-app", "photos2")
	exists(t, c, access.object, "says what it waits for", func(b *cosiv2.BucketAccess) bool { return b.Status.Error != nil })
	exists(t, c, claim.object, "names its Bucket", func(b *cosiv2.BucketClaim) bool {
		return b.Status.BoundBucketName == claim.name() && !b.Status.ReadyToUse
	})
	claim.serve(t)
	access.grant(t, 1, access.account(), grantsOf(claim.name(), access.account()))
	exists(t, c, access.record, "is granted", func(a *pavv1.PavBucketAccess) bool { return a.Status.Current != nil })
	access.wantStatus(t, claim)
	access.wantSecret(t, claim, access.account())
	b := claim.bucket()
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
		t.Fatal(err)
	}
	wantSpec := cosiv2.BucketSpec{
		DriverName: "cosi2", DeletionPolicy: cosiv2.DeletionPolicyDelete, BucketClaimRef: cosiv2.BucketClaimReference{Namespace: "default", Name: "photos2", UID: claim.object.UID},
	}
	wantStatus := cosiv2.BucketStatus{
		ReadyToUse: true, BucketID: b.Name, Protocols: []cosiv2.Protocol{cosiv2.ProtocolS3},
		BucketInfo: map[string]string{"COSI_S3_BUCKET_ID": b.Name, "COSI_S3_ENDPOINT": "https://s3.example:9000", "COSI_S3_REGION": "here"},
	}
	if diff := cmp.Diff(wantSpec, b.Spec) + cmp.Diff(wantStatus, b.Status); diff != "" || b.Labels[pavv1.ProvisionerLabel] != "cosi2" {
		t.Errorf("the Bucket has the labels %v, and (-want +got):\n%s", b.Labels, diff)
	}
	wantEvent(t, c, claim.object, corev1.EventTypeNormal, "BucketClaimBound", claim.name())
	wantEvent(t, c, access.object, corev1.EventTypeNormal, "AccessGranted", access.account())

	mustDelete(t, c, claim.object)
	wantEvent(t, c, claim.object, corev1.EventTypeNormal, "BucketClaimWaiting", "BucketAccess default/photos2-app")
	access.revoke(t, 2, access.account(), grantsOf(claim.name()))
	end(t, c, recordedPod(t, c, claim.record, pavv1.WorkflowBucketDeletion, 2, claim.name()+" True"), workflow.Result{}, 0)
	for _, object := range []client.Object{claim.object, claim.record, claim.bucket()} {
		gone(t, c, object)
	}
}

// One account has access to two buckets, and each has a Secret.
func cosi2SeveralBuckets(t *testing.T, c *cluster) {
	t.Helper()
	driver(t, c, "cosi2-several", ofBuckets)
	cosi2Classes(t, c, "cosi2-several", func(_ *cosiv2.BucketClass, class *cosiv2.BucketAccessClass) {
		class.Spec.MultiBucketAccess = cosiv2.MultiBucketAccessMultiple
	})
	one, two := claimOfCOSI2(t, c, "several-one", ofClass("cosi2-several")), claimOfCOSI2(t, c, "several-two", ofClass("cosi2-several"))
	one.serve(t)
	two.serve(t)
	access := accessOfCOSI2(t, c, "cosi2-several", "several", "several-one", "several-two")
	access.grant(t, 1, access.account(), grantsOf(one.name(), access.account())+grantsOf(two.name(), access.account()))
	exists(t, c, access.record, "has two Secrets", func(a *pavv1.PavBucketAccess) bool { return len(a.Status.Secrets) == 2 })
	access.wantStatus(t, one, two)
	access.wantSecret(t, one, access.account())
	access.wantSecret(t, two, access.account())
	access.revoke(t, 2, access.account(), grantsOf(one.name())+grantsOf(two.name()))
	one.remove(t)
	two.remove(t)
}

// An access keeps the first account in its status, as that cannot change, and its Secret has the present one.
func cosi2Rotation(t *testing.T, c *cluster) {
	t.Helper()
	driver(t, c, "cosi2-rotation", ofBuckets, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.BucketAccessGrant.Overlap = &metav1.Duration{}
	})
	cosi2Classes(t, c, "cosi2-rotation")
	claim := claimOfCOSI2(t, c, "rotated2", ofClass("cosi2-rotation"))
	claim.serve(t)
	access := accessOfCOSI2(t, c, "cosi2-rotation", "rotated2-app", "rotated2")
	first, second := access.account(), access.account()+"-1"
	access.grant(t, 1, first, grantsOf(claim.name(), first))
	exists(t, c, access.record, "is granted", func(a *pavv1.PavBucketAccess) bool { return a.Status.Current != nil })
	access.wantStatus(t, claim)
	rotate(t, c, access.record, access.object)
	access.grant(t, 2, second, grantsOf(claim.name(), first, second))
	access.wantSecret(t, claim, second)
	end(t, c, recordedPod(t, c, access.record, pavv1.WorkflowRevocation, 3, first+" in "+grantsOf(claim.name(), second)), workflow.Result{}, 0)
	exists(t, c, access.record, "has one account", func(a *pavv1.PavBucketAccess) bool {
		return len(a.Status.Former) == 0 && a.Status.Current.AccountID == second
	})
	access.wantStatus(t, claim)
	access.revoke(t, 4, second, grantsOf(claim.name()))
	claim.remove(t)
}

// The Bucket of a bucket that is retained outlives its claim; an administrator may decide so late.
func cosi2Retained(t *testing.T, c *cluster) {
	t.Helper()
	driver(t, c, "cosi2-retained", ofBuckets)
	cosi2Classes(t, c, "cosi2-retained")
	claim := claimOfCOSI2(t, c, "retained2", ofClass("cosi2-retained"))
	claim.serve(t)
	if err := patching(claim.bucket(), `{"spec": {"deletionPolicy": "Retain"}}`)(t.Context(), c.Admin); err != nil {
		t.Fatal(err)
	}
	exists(t, c, claim.record, "is to be retained", func(b *pavv1.PavBucket) bool { return b.Spec.ReclaimPolicy == pavv1.BucketRetain })
	mustDelete(t, c, claim.object)
	gone(t, c, claim.object)
	b := claim.bucket()
	exists(t, c, b, "is free", func(b *cosiv2.Bucket) bool {
		return len(b.Finalizers) == 0 && b.DeletionTimestamp == nil && b.Status.BucketID == b.Name
	})
	exists(t, c, claim.record, "is retained", func(b *pavv1.PavBucket) bool {
		return b.Status.Phase == pavv1.BucketRetained && b.Status.Pods == 1 && len(b.Finalizers) == 0
	})
	for _, object := range []client.Object{claim.record, b} {
		mustDelete(t, c, object)
		gone(t, c, object)
	}
}

// A Bucket of an administrator is bound by the claim that it names, by no other, and stays when the claim goes.
func cosi2Existing(t *testing.T, c *cluster) {
	t.Helper()
	driver(t, c, "cosi2-existing", ofBuckets)
	cosi2Classes(t, c, "cosi2-existing")
	b := &cosiv2.Bucket{ObjectMeta: metav1.ObjectMeta{Name: "archive2"}}
	b.Spec = cosiv2.BucketSpec{
		DriverName: "cosi2-existing", DeletionPolicy: cosiv2.DeletionPolicyDelete, ExistingBucketID: "old-archive",
		BucketClaimRef: cosiv2.BucketClaimReference{Namespace: "default", Name: "mine2"},
	}
	mustCreateHeld(t, c, b)
	stranger := claimOfCOSI2(t, c, "stranger2", ofBucket("archive2"))
	wantEvent(t, c, stranger.object, corev1.EventTypeWarning, "BucketBoundElsewhere", `"mine2" of namespace "default"`)
	exists(t, c, stranger.object, "says why", func(b *cosiv2.BucketClaim) bool { return b.Status.Error != nil && !b.Status.ReadyToUse })
	mine := claimOfCOSI2(t, c, "mine2", ofBucket("archive2"))
	mine.wantReady(t)
	exists(t, c, b, "is bound", func(b *cosiv2.Bucket) bool {
		return b.Spec.BucketClaimRef.UID == mine.object.UID && b.Status.ReadyToUse && b.Status.BucketID == "old-archive"
	})
	access := accessOfCOSI2(t, c, "cosi2-existing", "mine2-app", "mine2")
	access.grant(t, 1, access.account(), grantsOf("old-archive", access.account()))
	exists(t, c, access.object, "is ready", func(b *cosiv2.BucketAccess) bool { return b.Status.ReadyToUse })
	access.revoke(t, 2, access.account(), grantsOf("old-archive"))
	mustDelete(t, c, mine.object)
	gone(t, c, mine.object)
	gone(t, c, mine.record)
	exists(t, c, b, "is free", func(b *cosiv2.Bucket) bool { return len(b.Finalizers) == 0 && b.DeletionTimestamp == nil })
	again := claimOfCOSI2(t, c, "mine2", ofBucket("archive2"))
	wantEvent(t, c, again.object, corev1.EventTypeWarning, "BucketBoundElsewhere", "former claim")
	for _, claim := range []*cosi2Claim{stranger, again} {
		mustDelete(t, c, claim.object)
		gone(t, c, claim.object)
	}
}

// Nothing is granted that the class does not allow, and the status says why.
func cosi2Refused(t *testing.T, c *cluster) {
	t.Helper()
	driver(t, c, "cosi2-refused", ofBuckets)
	cosi2Classes(t, c, "cosi2-refused", func(_ *cosiv2.BucketClass, class *cosiv2.BucketAccessClass) {
		class.Spec.DisallowedBucketAccessModes = []cosiv2.AccessMode{cosiv2.AccessModeReadWrite}
	})
	claim := claimOfCOSI2(t, c, "refused2", ofClass("cosi2-refused"))
	claim.serve(t)
	access := accessOfCOSI2(t, c, "cosi2-refused", "refused2-app", "refused2")
	wantEvent(t, c, access.object, corev1.EventTypeWarning, "BucketAccessRefused", "does not allow the accessMode ReadWrite")
	exists(t, c, access.object, "says why", func(b *cosiv2.BucketAccess) bool { return b.Status.Error != nil && !b.Status.ReadyToUse })
	mustDelete(t, c, access.object)
	gone(t, c, access.object)
	claim.remove(t)
}
