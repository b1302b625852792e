package cosi1

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

var bucketName = cosiv1.BucketOf(claimUID)

func TestLife(t *testing.T) {
	claim := claimed().claim
	claim.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
	claim.Spec.Protocols = []cosiv1.Protocol{"S3", "GCP", "S3"}
	c := newCluster(t, claim, theClass(), theProvisioner(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}})

	c.pass()
	wantRecord(c)
	b := c.bucket(bucketName)
	wantSpec := cosiv1.BucketSpec{
		DriverName: "store", BucketClassName: "s3", DeletionPolicy: cosiv1.DeletionPolicyDelete, Protocols: []cosiv1.Protocol{"S3", "GCP"},
		Parameters:  map[string]string{"endpoint": "http://s3:9000"},
		BucketClaim: &corev1.ObjectReference{APIVersion: "objectstorage.k8s.io/v1alpha1", Kind: "BucketClaim", Namespace: "a", Name: "photos", UID: claimUID},
	}
	if diff := cmp.Diff(wantSpec, b.Spec); diff != "" || b.Labels[pavv1.ProvisionerLabel] != "store" || b.Status.BucketReady {
		t.Errorf("the Bucket has the labels %v, the status %+v, and (-want +got):\n%s", b.Labels, b.Status, diff)
	}
	if held := c.claim(); !controllerutil.ContainsFinalizer(held, cosiv1.ClaimFinalizer) || held.Status != (cosiv1.BucketClaimStatus{BucketName: bucketName}) {
		t.Errorf("the claim is %+v", held)
	}

	// From here on, the class does not matter.
	c.must(c.Delete(t.Context(), theClass()))
	c.serve("id")
	c.pass()
	if got := c.claim().Status; !got.BucketReady || !c.told(protocol.BucketClaimBound) {
		t.Errorf("the status of the claim is %+v", got)
	}
	if got := c.bucket(bucketName); got.Status != (cosiv1.BucketStatus{BucketReady: true, BucketID: "id"}) || !controllerutil.ContainsFinalizer(got, cosiv1.BucketFinalizer) {
		t.Errorf("the Bucket is %+v", got)
	}

	c.must(c.Delete(t.Context(), c.claim()))
	c.pass()
	if !c.bucketRecord(claimUID).Spec.Released || c.claim() == nil || c.bucket(bucketName) == nil {
		t.Error("first, the bucket is given up, and nothing else")
	}
	c.forget(c.bucketRecord(claimUID))
	c.restart()
	c.pass()
	if c.claim() != nil || c.bucket(bucketName) != nil {
		t.Error("in the end, nothing is left")
	}
	if c.pass(); c.reconciler.claims.Len() != 0 {
		t.Error("the reconciler remembers a claim of which nothing is left")
	}
}

// wantRecord checks the PavBucket of the claim.
func wantRecord(c *cluster) {
	c.Helper()
	record := c.bucketRecord(claimUID)
	if record == nil {
		c.Fatal("the claim is not recorded")
	}
	for what, text := range map[string]string{"claim": string(record.Spec.Claim.Raw), "class": string(record.Spec.Class.Raw)} {
		if strings.Contains(text, "last-applied") || strings.Contains(text, "managedFields") || !strings.Contains(text, `"kind"`) {
			c.Errorf("the copy of the %s is %s", what, text)
		}
	}
	if !controllerutil.ContainsFinalizer(record, pavv1.BucketFinalizer) || record.Labels[pavv1.ProvisionerLabel] != "store" {
		c.Errorf("the PavBucket has the finalizers %v and the labels %v", record.Finalizers, record.Labels)
	}
	got := record.Spec
	got.Claim, got.Class = nil, nil
	want := pavv1.PavBucketSpec{
		Provisioner: "store", API: pavv1.BucketAPICOSI1, ClaimRef: pavv1.ClaimReference{Namespace: "a", Name: "photos", UID: claimUID},
		BucketName: bucketName, Store: "http://s3:9000", ReclaimPolicy: pavv1.BucketDelete,
		Protocols: []pavv1.BucketProtocol{pavv1.ProtocolS3, pavv1.ProtocolGCS}, Parameters: map[string]string{"endpoint": "http://s3:9000"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.Errorf("the PavBucket (-want +got):\n%s", diff)
	}
}

// withAccessTo returns a cluster with a claim and an access, both of which are served.
func withAccessTo(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, claimed().claim, asked().access, theClass(), theAccessClass(), theProvisioner())
	c.pass()
	if c.accessRecord() != nil || !c.told(protocol.BucketAccessWaiting) {
		t.Error("the access waits for the bucket")
	}
	c.serve("id")
	c.pass()
	if c.accessRecord() == nil {
		t.Fatal("the access is not recorded")
	}
	return c
}

func TestLife_OfAnAccess(t *testing.T) {
	c := withAccessTo(t)
	record := c.accessRecord()
	if !strings.Contains(string(record.Spec.Access.Raw), `"BucketAccess"`) || !strings.Contains(string(record.Spec.Class.Raw), `"BucketAccessClass"`) || !controllerutil.ContainsFinalizer(record, pavv1.BucketFinalizer) {
		t.Errorf("the PavBucketAccess is %+v", record)
	}
	got := record.Spec
	got.Access, got.Class = nil, nil
	want := pavv1.PavBucketAccessSpec{
		Provisioner: "store", API: pavv1.BucketAPICOSI1, Requester: pavv1.AccessRequester{Kind: "BucketAccess", Namespace: "a", Name: "app", UID: accessUID},
		Buckets:  []pavv1.AccessedBucket{{Bucket: protocol.BucketRecord(claimUID), Mode: pavv1.AccessReadOnly, SecretName: "app-s3"}},
		Protocol: pavv1.ProtocolS3, AuthenticationType: pavv1.AuthenticationKey, Parameters: map[string]string{cosiv1.AccessModeParameter: "ReadOnly"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the PavBucketAccess (-want +got):\n%s", diff)
	}
	if a := c.access(); a.Status.AccessGranted || !controllerutil.ContainsFinalizer(a, cosiv1.AccessFinalizer) {
		t.Errorf("the access is %+v", a)
	}
	if !controllerutil.ContainsFinalizer(c.bucket(bucketName), cosiv1.AccessedBucketFinalizer) {
		t.Error("the Bucket is not held by its access")
	}

	// From here on, the class does not matter.
	c.must(c.Delete(t.Context(), theAccessClass()))
	c.grant("id")
	c.pass()
	if got := c.access().Status; got != (cosiv1.BucketAccessStatus{AccountID: "id", AccessGranted: true}) {
		t.Errorf("the status of the access is %+v", got)
	}
	asking := c.access()
	asking.Annotations = map[string]string{pavv1.RotateAnnotation: noon.Format(pavv1.RetryFormat)}
	c.must(c.Update(t.Context(), asking))
	c.pass()
	if got := c.accessRecord().Annotations[pavv1.RotateAnnotation]; got != noon.Format(pavv1.RetryFormat) {
		t.Errorf("the record has the request %q", got)
	}
	c.grant("id-1")
	c.pass()
	if got := c.access().Status.AccountID; got != "id-1" {
		t.Errorf("the access has the account %q", got)
	}

	c.must(c.Delete(t.Context(), c.access()))
	c.pass()
	if !c.accessRecord().Spec.Released || c.access() == nil {
		t.Error("first, the account is given up")
	}
	c.forget(c.accessRecord())
	c.restart()
	c.pass()
	if c.access() != nil || controllerutil.ContainsFinalizer(c.bucket(bucketName), cosiv1.AccessedBucketFinalizer) {
		t.Error("in the end, the access is gone, and does not hold the Bucket")
	}
}

// COSI's sidecar v0.1.0 removes the finalizers of all accesses, also of those of other drivers. PaV does not add that of an access again
// which shows its account, and revokes the access all the same.
func TestLife_AnAccessThatLosesItsFinalizer(t *testing.T) {
	c := withAccessTo(t)
	c.grant("id")
	c.pass()
	for _, account := range []string{"id", "id-1"} {
		free := c.access()
		free.Finalizers = nil
		c.must(c.Update(t.Context(), free))
		c.grant(account)
		c.pass()
		if a := c.access(); len(a.Finalizers) > 0 || a.Status.AccountID != account {
			t.Errorf("the access has the finalizers %q and account %q", a.Finalizers, a.Status.AccountID)
		}
	}
	c.must(c.Delete(t.Context(), c.access()))
	c.pass()
	if c.access() != nil || !c.accessRecord().Spec.Released {
		t.Error("the access is gone, and its account is not given up")
	}
}

// A claim that is deleted waits for those who have access, and an access that comes later gets nothing.
func TestLife_AClaimWithAnAccessIsDeleted(t *testing.T) {
	c := withAccessTo(t)
	c.grant("id")
	c.pass()
	c.must(c.Delete(t.Context(), c.claim()))
	c.pass()
	if c.bucketRecord(claimUID).Spec.Released || c.accessRecord().Spec.Released || !c.told("BucketAccess a/app has access to the bucket") {
		t.Error("the claim waits, and its user is told for what")
	}
	c.must(c.Delete(t.Context(), c.access()))
	c.pass()
	c.forget(c.accessRecord())
	again := asked().access
	again.UID = otherUID
	c.pass()
	c.must(c.Create(t.Context(), again))
	c.pass()
	if !c.bucketRecord(claimUID).Spec.Released || !c.told("is being deleted") || c.access() == nil {
		t.Error("the claim goes on, and the new access is refused")
	}
	c.forget(c.bucketRecord(claimUID))
	c.pass()
	if c.claim() != nil || c.bucket(bucketName) != nil {
		t.Error("the claim is deleted")
	}
}

// A claim that was created again under its name gets another bucket, and an access to the former never one to the new.
func TestLife_AClaimIsReplaced(t *testing.T) {
	c := withAccessTo(t)
	c.grant("id")
	c.pass()
	former := c.claim()
	former.Finalizers = nil
	c.must(c.Update(t.Context(), former))
	c.must(c.Delete(t.Context(), former))
	again := claimed().claim
	again.UID = otherUID
	c.must(c.Create(t.Context(), again))
	c.pass()
	if c.bucketRecord(otherUID) == nil || c.bucketRecord(claimUID).Spec.Released || c.accessRecord().Spec.Released || c.bucket(cosiv1.BucketOf(otherUID)) == nil {
		t.Fatal("the new claim is recorded, and the former waits for its access")
	}
	if got := c.accessRecord().Spec.Buckets[0].Bucket; got != protocol.BucketRecord(claimUID) {
		t.Errorf("the access is to %s", got)
	}
	c.must(c.Delete(t.Context(), c.access()))
	c.pass()
	c.forget(c.accessRecord())
	c.pass()
	if !c.bucketRecord(claimUID).Spec.Released || c.bucketRecord(otherUID).Spec.Released {
		t.Error("the bucket of the former is given up")
	}
	c.forget(c.bucketRecord(claimUID))
	c.pass()
	if c.bucket(bucketName) != nil || c.bucket(cosiv1.BucketOf(otherUID)) == nil {
		t.Error("the Bucket of the former is deleted, and no other")
	}
}

// A bucket that is retained needs neither claim nor Bucket.
func TestLife_ABucketIsRetained(t *testing.T) {
	class := theClass()
	class.DeletionPolicy = "retain"
	c := newCluster(t, claimed().claim, class, theProvisioner())
	c.pass()
	c.serve("id")
	c.pass()
	if got := c.bucket(bucketName).Spec.DeletionPolicy; got != cosiv1.DeletionPolicyRetain {
		t.Errorf("the Bucket has the policy %q", got)
	}
	c.must(c.Delete(t.Context(), c.claim()))
	c.pass()
	retained := c.bucketRecord(claimUID)
	retained.Status.Phase = pavv1.BucketRetained
	c.must(c.Status().Update(t.Context(), retained))
	c.pass()
	if c.claim() != nil || c.bucket(bucketName) != nil || c.bucketRecord(claimUID) == nil {
		t.Error("only the PavBucket is left")
	}
}

// Nothing is recorded of what cannot be served, and nothing is done to the claims of others.
func TestLife_AClaimIsNotServed(t *testing.T) {
	for name, test := range map[string]struct {
		claim       func(*cosiv1.BucketClaim)
		class       func(*cosiv1.BucketClass)
		provisioner func(*pavv1.PavProvisioner)
		told        string
	}{
		"its class is another driver's": {class: func(class *cosiv1.BucketClass) { class.DriverName = "ceph.objectstorage.k8s.io" }},
		"its copy is too large": {claim: func(claim *cosiv1.BucketClaim) {
			claim.Annotations = map[string]string{"large": strings.Repeat("x", pavv1.MaxClaimCopy)}
		}, told: "bytes"},
		"its store cannot be evaluated": {provisioner: func(p *pavv1.PavProvisioner) {
			p.Spec.BucketValidation.Store = &pavv1.Template{Raw: []byte(`"{{ params.missing.name }}"`)}
		}, told: "store"},
	} {
		t.Run(name, func(t *testing.T) {
			claim, class, provisioner := claimed().claim, theClass(), theProvisioner()
			if test.claim != nil {
				test.claim(claim)
			}
			if test.class != nil {
				test.class(class)
			}
			if test.provisioner != nil {
				test.provisioner(provisioner)
			}
			c := newCluster(t, claim, class, provisioner)
			c.pass()
			if got := c.claim(); c.bucketRecord(claimUID) != nil || c.bucket(bucketName) != nil || len(got.Finalizers) > 0 || got.Status != (cosiv1.BucketClaimStatus{}) {
				t.Error("something was done")
			}
			if test.told != "" && !c.told(test.told) || test.told == "" && c.told("") {
				t.Error("the user is not told, or told of others' claims")
			}
		})
	}
}

// A cache that is behind gives up neither the bucket of a claim nor an access.
func TestLife_TheCacheIsBehind(t *testing.T) {
	c := withAccessTo(t)
	c.grant("id")
	c.pass()
	c.reconciler.Client = interceptor.NewClient(c.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, cache client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			switch object.(type) {
			case *cosiv1.BucketClaim, *cosiv1.BucketAccess:
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			return cache.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, cache client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*pavv1.PavBucketAccessList); ok && strings.Contains(strings.Join(fieldsOf(options), " "), "access.bucket") {
				return nil // it does not know of the access, either
			}
			return cache.List(ctx, list, options...)
		},
	})
	c.pass()
	if c.bucketRecord(claimUID).Spec.Released || c.accessRecord().Spec.Released {
		t.Error("something is given up although it exists")
	}
}
