package cosi2

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

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

var bucketName = cosiv2.BucketOf(claimUID)

func TestLife(t *testing.T) {
	claim := claimed().claim
	claim.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
	claim.Spec.Protocols = []cosiv2.Protocol{"S3", "GCS"}
	c := newCluster(t, claim, theClass(), theProvisioner(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}})

	c.pass()
	wantRecord(c)
	b := c.bucket(bucketName)
	wantSpec := cosiv2.BucketSpec{
		DriverName: "store", DeletionPolicy: cosiv2.DeletionPolicyDelete, Protocols: []cosiv2.Protocol{"S3", "GCS"},
		Parameters: map[string]string{"endpoint": "http://s3:9000"}, BucketClaimRef: cosiv2.BucketClaimReference{Namespace: "a", Name: "photos", UID: claimUID},
	}
	if diff := cmp.Diff(wantSpec, b.Spec); diff != "" || b.Labels[pavv1.ProvisionerLabel] != "store" || b.Status.ReadyToUse {
		t.Errorf("the Bucket has the labels %v, the status %+v, and (-want +got):\n%s", b.Labels, b.Status, diff)
	}
	held := c.claim()
	if diff := cmp.Diff(cosiv2.BucketClaimStatus{BoundBucketName: bucketName}, held.Status); diff != "" || !isHeld(held) {
		t.Errorf("the claim has the finalizers %q, and (-want +got):\n%s", held.Finalizers, diff)
	}

	// From here on, the class does not matter.
	c.must(c.Delete(t.Context(), theClass()))
	c.serve(claimUID, "id")
	c.pass()
	if got := c.claim().Status; !got.ReadyToUse || len(got.Protocols) != 2 || !c.told(protocol.BucketClaimBound) {
		t.Errorf("the status of the claim is %+v", got)
	}
	wantStatus := cosiv2.BucketStatus{
		ReadyToUse: true, BucketID: "id", Protocols: []cosiv2.Protocol{"S3", "GCS"}, BucketInfo: map[string]string{"COSI_S3_BUCKET_ID": "id", "COSI_GCS_BUCKET_NAME": "id"},
	}
	if got := c.bucket(bucketName); cmp.Diff(wantStatus, got.Status) != "" || !isHeld(got) {
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
		if strings.Contains(text, "last-applied") || strings.Contains(text, "managedFields") || !strings.Contains(text, `"objectstorage.k8s.io/v1alpha2"`) {
			c.Errorf("the copy of the %s is %s", what, text)
		}
	}
	if !controllerutil.ContainsFinalizer(record, pavv1.BucketFinalizer) || record.Labels[pavv1.ProvisionerLabel] != "store" {
		c.Errorf("the PavBucket has the finalizers %v and the labels %v", record.Finalizers, record.Labels)
	}
	got := record.Spec
	got.Claim, got.Class = nil, nil
	want := pavv1.PavBucketSpec{
		Provisioner: "store", API: pavv1.BucketAPICOSI2, ClaimRef: pavv1.ClaimReference{Namespace: "a", Name: "photos", UID: claimUID},
		BucketName: bucketName, Store: "http://s3:9000", ReclaimPolicy: pavv1.BucketDelete,
		Protocols: []pavv1.BucketProtocol{pavv1.ProtocolS3, pavv1.ProtocolGCS}, Parameters: map[string]string{"endpoint": "http://s3:9000"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.Errorf("the PavBucket (-want +got):\n%s", diff)
	}
}

// withAccessTo returns a cluster with two claims, and an access to the buckets of both, all of which are served.
func withAccessTo(t *testing.T) *cluster {
	t.Helper()
	second := claimed().claim
	second.Name, second.UID = films.Name, filmsUID
	c := newCluster(t, claimed().claim, second, asked(toFilms).access, theClass(), theAccessClass(), theProvisioner())
	c.pass()
	if c.accessRecord() != nil || !c.told(protocol.BucketAccessWaiting) {
		t.Error("the access waits for the buckets")
	}
	if shown := c.access().Status.Error; shown == nil || !strings.Contains(shown.Message, `BucketClaim "photos"`) || !shown.Time.Time.Equal(noon) {
		t.Errorf("the access says %+v", shown)
	}
	c.serve(claimUID, "id")
	c.pass()
	if c.accessRecord() != nil || !strings.Contains(c.access().Status.Error.Message, `BucketClaim "films"`) {
		t.Error("the access does not wait for the second bucket")
	}
	c.serve(filmsUID, "films-id")
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
		Provisioner: "store", API: pavv1.BucketAPICOSI2, Requester: pavv1.AccessRequester{Kind: "BucketAccess", Namespace: "a", Name: "app", UID: accessUID},
		Buckets: []pavv1.AccessedBucket{
			{Bucket: protocol.BucketRecord(claimUID), Mode: pavv1.AccessReadOnly, SecretName: "photos-s3"},
			{Bucket: protocol.BucketRecord(filmsUID), Mode: pavv1.AccessReadWrite, SecretName: "films-s3"},
		},
		Protocol: pavv1.ProtocolS3, AuthenticationType: pavv1.AuthenticationKey, Parameters: map[string]string{"role": "user"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the PavBucketAccess (-want +got):\n%s", diff)
	}
	wantStatus := cosiv2.BucketAccessStatus{
		AccessedBuckets: []cosiv2.AccessedBucket{
			{BucketName: bucketName, BucketID: "id", BucketClaimName: "photos"}, {BucketName: cosiv2.BucketOf(filmsUID), BucketID: "films-id", BucketClaimName: "films"},
		},
		DriverName: "store", AuthenticationType: cosiv2.AuthenticationTypeKey, Parameters: map[string]string{"role": "user"},
	}
	if a := c.access(); cmp.Diff(wantStatus, a.Status) != "" || !isHeld(a) {
		t.Errorf("the access is %+v", a)
	}

	// From here on, the class does not matter.
	c.must(c.Delete(t.Context(), theAccessClass()))
	c.grant("id")
	c.pass()
	wantStatus.ReadyToUse, wantStatus.AccountID = true, "id"
	if diff := cmp.Diff(wantStatus, c.access().Status); diff != "" {
		t.Errorf("the status of the access (-want +got):\n%s", diff)
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
	if diff := cmp.Diff(wantStatus, c.access().Status); diff != "" {
		t.Errorf("after a rotation, the status has changed (-want +got):\n%s", diff)
	}

	c.must(c.Delete(t.Context(), c.access()))
	c.pass()
	if !c.accessRecord().Spec.Released || c.access() == nil {
		t.Error("first, the account is given up")
	}
	c.forget(c.accessRecord())
	c.restart()
	c.pass()
	if c.access() != nil {
		t.Error("in the end, the access is gone")
	}
}

// A claim that is deleted waits for those who have access to its bucket, among others, and an access that comes later gets nothing.
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
	c.pass()
	again := asked(toFilms).access
	again.UID = otherUID
	c.must(c.Create(t.Context(), again))
	c.pass()
	if !c.bucketRecord(claimUID).Spec.Released || c.bucketRecord(filmsUID).Spec.Released || c.access() == nil {
		t.Error("the claim goes on, and no other")
	}
	if shown := c.access().Status.Error; shown == nil || !strings.Contains(shown.Message, "is being deleted") {
		t.Errorf("the new access says %+v", shown)
	}
	c.forget(c.bucketRecord(claimUID))
	c.pass()
	if c.claim() != nil || c.bucket(bucketName) != nil || c.bucket(cosiv2.BucketOf(filmsUID)) == nil {
		t.Error("the claim is deleted, and no other")
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
	if c.bucketRecord(otherUID) == nil || c.bucketRecord(claimUID).Spec.Released || c.accessRecord().Spec.Released || c.bucket(cosiv2.BucketOf(otherUID)) == nil {
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
	if c.bucket(bucketName) != nil || c.bucket(cosiv2.BucketOf(otherUID)) == nil {
		t.Error("the Bucket of the former is deleted, and no other")
	}
}

// The Bucket of a bucket that is retained stays, without finalizer, as long as an administrator wants.
func TestLife_ABucketIsRetained(t *testing.T) {
	c := newCluster(t, claimed().claim, theClass(), theProvisioner())
	c.pass()
	c.serve(claimUID, "id")
	c.pass()
	changed := c.bucket(bucketName)
	changed.Spec.DeletionPolicy = cosiv2.DeletionPolicyRetain
	c.must(c.Update(t.Context(), changed))
	c.pass()
	if got := c.bucketRecord(claimUID).Spec.ReclaimPolicy; got != pavv1.BucketRetain {
		t.Errorf("the record has the policy %s, not that of the Bucket", got)
	}
	c.must(c.Delete(t.Context(), c.claim()))
	c.pass()
	retained := c.bucketRecord(claimUID)
	retained.Status.Phase = pavv1.BucketRetained
	c.must(c.Status().Update(t.Context(), retained))
	c.pass()
	c.forget(c.bucketRecord(claimUID))
	c.restart()
	c.pass()
	b := c.bucket(bucketName)
	if c.claim() != nil || b == nil || isHeld(b) || b.DeletionTimestamp != nil {
		t.Fatalf("the claim is %v, and the Bucket %v", c.claim(), b)
	}
	c.must(c.Delete(t.Context(), b))
	if c.pass(); c.bucket(bucketName) != nil {
		t.Error("the Bucket cannot be deleted")
	}
}

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
	if ref := c.bucket("archive").Spec.BucketClaimRef; ref.UID != claimUID {
		t.Errorf("the Bucket is bound to %+v", ref)
	}
	c.serve(claimUID, "old")
	c.pass()
	if got := c.claim().Status; !got.ReadyToUse || got.BoundBucketName != "archive" {
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
	if b := c.bucket("archive"); c.claim() != nil || b == nil || len(b.Finalizers) != 0 || b.Spec.BucketClaimRef.UID != claimUID {
		t.Errorf("the Bucket that is left is %+v", b)
	}
	// A claim of the same name is another claim.
	again := existing().claim
	again.UID = otherUID
	c.must(c.Create(t.Context(), again))
	c.pass()
	if c.bucketRecord(otherUID) != nil || !c.told(protocol.BucketBoundElsewhere) || c.claim().Status.Error == nil {
		t.Error("the Bucket is bound again")
	}
}

// Nothing is recorded of what cannot be served, and nothing is done to the claims of others.
func TestLife_AClaimIsNotServed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*cosiv2.BucketClaim, *cosiv2.BucketClass, *pavv1.PavProvisioner)
		told   string
	}{
		"its class is another driver's": {change: func(_ *cosiv2.BucketClaim, class *cosiv2.BucketClass, _ *pavv1.PavProvisioner) {
			class.Spec.DriverName = "ceph.objectstorage.k8s.io"
		}},
		"its copy is too large": {change: func(claim *cosiv2.BucketClaim, _ *cosiv2.BucketClass, _ *pavv1.PavProvisioner) {
			claim.Annotations = map[string]string{"large": strings.Repeat("x", pavv1.MaxClaimCopy)}
		}, told: "bytes"},
		"its store cannot be evaluated": {change: func(_ *cosiv2.BucketClaim, _ *cosiv2.BucketClass, p *pavv1.PavProvisioner) {
			p.Spec.BucketValidation.Store = &pavv1.Template{Raw: []byte(`"{{ params.missing.name }}"`)}
		}, told: "store"},
	} {
		t.Run(name, func(t *testing.T) {
			claim, class, provisioner := claimed().claim, theClass(), theProvisioner()
			test.change(claim, class, provisioner)
			c := newCluster(t, claim, class, provisioner)
			c.pass()
			got := c.claim()
			if c.bucketRecord(claimUID) != nil || c.bucket(bucketName) != nil || len(got.Finalizers) > 0 || got.Status.BoundBucketName != "" {
				t.Error("something was done")
			}
			if shown := got.Status.Error; (shown == nil) != (test.told == "") || shown != nil && !strings.Contains(shown.Message, test.told) {
				t.Errorf("the claim says %+v", shown)
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
			case *cosiv2.BucketClaim, *cosiv2.BucketAccess:
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
