package status

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func podOfBucket(name, annotation, record string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "pav-pods", Name: name,
		Labels: map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowGrant, pavv1.ProvisionerLabel: "demo"}, Annotations: map[string]string{annotation: record}}}
}

// Whichever object of a bucket the user names, all others are found from it.
func TestGather_FindsAllObjectsOfABucket(t *testing.T) {
	b := boundBucket().f.Bucket
	web := webRecord(pavv1.PavBucketAccessStatus{})
	client := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "client"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "photos"}}}}}}}}}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "other"}}
	for _, test := range []struct {
		ref                     Ref
		own                     string
		accesses, pods, clients int
	}{
		{Ref{ObjectBucketClaim, "apps", "photos"}, "a-u1", 2, 3, 1},
		{Ref{PavBucket, "", "b-u1"}, "", 2, 3, 0},
		{Ref{PavAccess, "", "a-u1"}, "a-u1", 1, 2, 1},
	} {
		t.Run(test.ref.String(), func(t *testing.T) {
			reader := builder(t).WithObjects(b.ObjectClaim, b.ObjectBucket, b.Record, b.Own, web, boundBucket().f.Provisioner, client, other,
				podOfBucket("bucket", pavv1.BucketAnnotation, "b-u1"), podOfBucket("grant", pavv1.AccessAnnotation, "a-u1"),
				podOfBucket("web", pavv1.AccessAnnotation, "a-w1"), podOfBucket("another", pavv1.BucketAnnotation, "b-u2")).Build()
			f, err := Gather(t.Context(), reader, test.ref, atNoon)
			if err != nil {
				t.Fatal(err)
			}
			own := ""
			if f.Bucket.Own != nil {
				own = f.Bucket.Own.Name
			}
			if got := f.Bucket; got.ObjectClaim == nil || got.ObjectBucket == nil || got.Record == nil || f.Provisioner == nil || got.Disabled || own != test.own {
				t.Errorf("found %+v", got)
			}
			if len(f.Bucket.Accesses) != test.accesses || len(f.Pods) != test.pods || len(f.Clients) != test.clients {
				t.Errorf("%d accesses, %d pods, %d clients", len(f.Bucket.Accesses), len(f.Pods), len(f.Clients))
			}
		})
	}
}

func TestGather_FindsAllObjectsOfCOSI(t *testing.T) {
	b := cosiAccess().f.Bucket
	b.Object = &cosiv1.Bucket{ObjectMeta: metav1.ObjectMeta{Name: "bucket-u1"}}
	for _, ref := range []Ref{{BucketClaim, "apps", "photos"}, {BucketAccess, "apps", "web"}, {PavBucket, "", "b-u1"}, {PavAccess, "", "a-w1"}} {
		t.Run(ref.String(), func(t *testing.T) {
			reader := builder(t).WithObjects(b.Claim, b.Class, b.Object, b.Access, b.AccessClass, b.Record, webRecord(pavv1.PavBucketAccessStatus{})).Build()
			f, err := Gather(t.Context(), reader, ref, atNoon)
			if err != nil {
				t.Fatal(err)
			}
			got := f.Bucket
			if got.Claim == nil || got.Object == nil || got.Record == nil || len(got.Accesses) != 1 || ref.isAccess() != (got.Own != nil) || ref.isAccess() != (got.Access != nil) {
				t.Errorf("found %+v", got)
			}
		})
	}
}

// Before there are records, classes and what is installed say what a claim waits for.
func TestGather_OfABucketThatHasNotBegun(t *testing.T) {
	obc, w := claimedBucket(), cosiAccess()
	reader := builder(t).WithObjects(obc.f.Bucket.ObjectClaim, obc.f.Class, w.f.Bucket.Claim, w.f.Bucket.Class, w.f.Bucket.Access, w.f.Bucket.AccessClass, obc.f.Provisioner).Build()
	f, err := Gather(t.Context(), reader, Ref{ObjectBucketClaim, "apps", "photos"}, atNoon)
	if err != nil || f.Class == nil || f.Provisioner == nil || !f.Bucket.Disabled {
		t.Errorf("got %+v, %v", f.Bucket, err)
	}
	f, err = Gather(t.Context(), reader, Ref{BucketAccess, "apps", "web"}, atNoon)
	if err != nil || f.Bucket.Class == nil || f.Bucket.AccessClass == nil || f.Provisioner == nil {
		t.Errorf("got %+v, %v", f.Bucket, err)
	}
}

// Records may be left of a claim that is gone, and another claim may have its name.
func TestGather_OfABucketWhoseClaimIsGone(t *testing.T) {
	record, access := bucketRecord(pavv1.PavBucketStatus{Phase: pavv1.BucketDeleting}), accessRecord(readyAccess())
	f, err := Gather(t.Context(), builder(t).WithObjects(record, access).Build(), Ref{ObjectBucketClaim, "apps", "photos"}, atNoon)
	if err != nil || f.Bucket.Record == nil || f.Bucket.Own == nil || f.Bucket.ObjectClaim != nil {
		t.Errorf("got %+v, %v", f, err)
	}
	former := webRecord(pavv1.PavBucketAccessStatus{})
	f, err = Gather(t.Context(), builder(t).WithObjects(record, former).Build(), Ref{BucketAccess, "apps", "web"}, atNoon)
	if err != nil || f.Bucket.Own == nil || f.Bucket.Record == nil {
		t.Errorf("got %+v, %v", f, err)
	}
	other := &objectbucketv1.ObjectBucketClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "photos", UID: "u2"}}
	f, err = Gather(t.Context(), builder(t).WithObjects(record, other).Build(), Ref{PavBucket, "", "b-u1"}, atNoon)
	if err != nil || f.Bucket.ObjectClaim != nil {
		t.Errorf("another claim is taken for that of the record: %+v, %v", f, err)
	}
}

// notThere answers as a cluster that does not have the kinds of some groups, or in which the user may not read some kinds.
func notThere(missing func(kind string) error) interceptor.Funcs {
	kindOf := func(object any) string {
		switch object.(type) {
		case *objectbucketv1.ObjectBucketClaim:
			return "ObjectBucketClaim"
		case *cosiv1.BucketClaim:
			return "BucketClaim"
		case *cosiv1.BucketAccess:
			return "BucketAccess"
		case *pavv1.PavBucket, *pavv1.PavBucketList:
			return "PavBucket"
		case *pavv1.PavBucketAccess, *pavv1.PavBucketAccessList:
			return "PavBucketAccess"
		}
		return ""
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, reader client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := missing(kindOf(object)); err != nil {
				return err
			}
			return reader.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, reader client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := missing(kindOf(list)); err != nil {
				return err
			}
			return reader.List(ctx, list, options...)
		},
	}
}

func TestGather_WithoutBucketKinds(t *testing.T) {
	absent := notThere(func(kind string) error {
		if kind != "" {
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: kind}}
		}
		return nil
	})
	reader := builder(t).WithInterceptorFuncs(absent).Build()
	for ref, want := range map[Ref]string{
		{ObjectBucketClaim, "apps", "photos"}: `there is no ObjectBucketClaim "photos" in namespace "apps"`,
		{BucketClaim, "apps", "photos"}:       `there is no BucketClaim "photos" in namespace "apps"`,
		{BucketAccess, "apps", "web"}:         `there is no BucketAccess "web" in namespace "apps"`,
		{PavBucket, "", "b"}:                  `there is no PavBucket "b"`,
		{PavAccess, "", "a"}:                  `there is no PavBucketAccess "a"`,
	} {
		if _, err := Gather(t.Context(), reader, ref, atNoon); err == nil || err.Error() != want {
			t.Errorf("of %s: %v", ref, err)
		}
	}
}

// A tenant may read the own claim, and none of PaV's records.
func TestGather_OfABucket_WhereRecordsAreHidden(t *testing.T) {
	forbidden := notThere(func(kind string) error {
		if strings.HasPrefix(kind, "Pav") {
			return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", nil)
		}
		return nil
	})
	reader := builder(t).WithObjects(boundBucket().f.Bucket.ObjectClaim).WithInterceptorFuncs(forbidden).Build()
	f, err := Gather(t.Context(), reader, Ref{ObjectBucketClaim, "apps", "photos"}, atNoon)
	if err != nil || f.Bucket.ObjectClaim == nil || !f.hides(hiddenPavBuckets) || !f.hides(hiddenPavAccesses) {
		t.Fatalf("got %+v, %v", f, err)
	}
	if found := Build(f).Findings[0]; found.State != Healthy {
		t.Errorf("found %+v", found)
	}
	if _, _, err := BucketRecords(t.Context(), reader, Ref{ObjectBucketClaim, "apps", "photos"}); err == nil || err.Error() != "you may not read PavBuckets" {
		t.Errorf("got %v", err)
	}
}

func TestTargetsOf_ABucket(t *testing.T) {
	b := boundBucket().f.Bucket
	reader := builder(t).WithObjects(b.ObjectClaim, b.Record, b.Own).Build()
	targets, err := TargetsOf(t.Context(), reader, Ref{ObjectBucketClaim, "apps", "photos"})
	if err != nil || len(targets) != 2 || targets[0].Name() != "pavbucket/b-u1" || targets[1].Name() != "pavbucketaccess/a-u1" {
		t.Fatalf("got %+v, %v", targets, err)
	}
	bucket, access := podOfBucket("p", pavv1.BucketAnnotation, "b-u1"), podOfBucket("p", pavv1.AccessAnnotation, "a-u1")
	if !targets[0].Has(bucket) || targets[0].Has(access) || !targets[1].Has(access) || targets[1].Has(bucket) || targets[0].Labels()[pavv1.ProvisionerLabel] != "demo" {
		t.Errorf("the targets are not told apart")
	}
	for _, target := range targets {
		if gone, err := target.IsGone(t.Context(), reader); gone || err != nil {
			t.Errorf("%s is gone: %t, %v", target.Name(), gone, err)
		}
	}
	if gone, err := targets[1].IsGone(t.Context(), builder(t).WithObjects(b.Record).Build()); !gone || err != nil {
		t.Errorf("gone: %t, %v", gone, err)
	}
	if targets, err = TargetsOf(t.Context(), reader, Ref{PavAccess, "", "a-u1"}); err != nil || len(targets) != 1 || targets[0].Access == nil {
		t.Errorf("of an access: %+v, %v", targets, err)
	}
}
