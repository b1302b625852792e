package retry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/status"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func atNoon() time.Time { return noon }

func ago(d time.Duration) *metav1.Time { return new(metav1.NewTime(noon.Add(-d))) }

// granted is the access of the ObjectBucketClaim apps/photos, which has had an account for a time.
func granted(since time.Duration) *pavv1.PavBucketAccess {
	return &pavv1.PavBucketAccess{
		ObjectMeta: metav1.ObjectMeta{Name: "a-u1"},
		Spec:       pavv1.PavBucketAccessSpec{Provisioner: "demo"},
		Status:     pavv1.PavBucketAccessStatus{Current: &pavv1.GrantedAccount{RequestedAt: ago(since + 2*time.Second), GrantedAt: ago(since)}},
	}
}

func requested(object client.Object, at time.Time) {
	object.SetAnnotations(map[string]string{pavv1.RotateAnnotation: at.Format(pavv1.RetryFormat)})
}

func TestRotation_SaysWhatFollows(t *testing.T) {
	for name, test := range map[string]struct {
		record *pavv1.PavBucketAccess
		change func(*rotation)
		asks   bool
		what   string
	}{
		"at once":         {record: granted(time.Hour), asks: true, what: "it follows now; the present account works for another 1h after that"},
		"after the pause": {record: granted(4 * time.Minute), asks: true, what: "it follows in 6m, as there is at most one in 10m; the present account works for another 1h after that"},
		"after another overlap": {record: granted(time.Hour), change: func(r *rotation) {
			r.provisioner.Spec.BucketAccessGrant.Overlap = &metav1.Duration{Duration: time.Minute}
		}, asks: true, what: "it follows now; the present account works for another 1m after that"},
		"nothing is granted":   {record: &pavv1.PavBucketAccess{}, what: "no access is granted yet; see kubectl pav describe"},
		"the access goes":      {record: granted(time.Hour), change: func(r *rotation) { r.record.Spec.Released = true }, what: "the access is being revoked"},
		"one is being granted": {record: granted(time.Hour), change: func(r *rotation) { r.record.Status.Granting = &pavv1.GrantedAccount{} }, what: "another account is being granted already"},
		"one is requested":     {record: granted(time.Minute), change: func(r *rotation) { requested(r.requester, noon) }, what: "one is requested already, and it follows in 9m, as there is at most one in 10m; the present account works for another 1h after that"},
		"one is on record":     {record: granted(time.Minute), change: func(r *rotation) { requested(r.record, noon) }, what: "one is requested already, and it follows in 9m, as there is at most one in 10m; the present account works for another 1h after that"},
		"one was handled":      {record: granted(time.Hour), change: func(r *rotation) { requested(r.requester, noon.Add(-2*time.Hour)) }, asks: true, what: "it follows now; the present account works for another 1h after that"},
		"the last attempt failed": {record: granted(time.Hour), change: func(r *rotation) {
			r.record.Status.Failure = &pavv1.WorkflowFailure{NextAttemptTime: ago(-20 * time.Second)}
		}, asks: true, what: "it follows in 20s, as the last attempt failed; the present account works for another 1h after that"},
		"nobody grants access":       {record: granted(time.Hour), change: func(r *rotation) { r.provisioner.Spec.BucketAccessGrant = nil }, what: `PavProvisioner "demo" has no bucketAccessGrant`},
		"the definition is unknown":  {record: granted(time.Hour), change: func(r *rotation) { r.provisioner = nil }, asks: true, what: "it follows now"},
		"a tenant asks":              {change: func(r *rotation) { r.hidden = true }, asks: true, what: "it follows now, or 10m after the last one, once access is granted"},
		"there is no record":         {what: "PaV has no record of the access"},
		"this clock is behind by 1h": {record: granted(-time.Hour), asks: true, what: "it follows in 1h10m, as there is at most one in 10m; the present account works for another 1h after that"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rotation{now: noon, requester: &objectbucketv1.ObjectBucketClaim{}, record: test.record,
				provisioner: &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Spec: pavv1.PavProvisionerSpec{BucketAccessGrant: &pavv1.BucketAccessGrant{}}}}
			if test.change != nil {
				test.change(&r)
			}
			at, what := r.plan()
			if at.IsZero() == test.asks || what != test.what {
				t.Errorf("got %v, %q", at, what)
			}
			if test.asks && test.record != nil && !at.After(test.record.Status.Current.Began()) {
				t.Errorf("the request of %v is one for the present account, of %v", at, test.record.Status.Current.Began())
			}
		})
	}
}

// The annotation is on the object that the user named: a tenant may write that, and not the record.
func TestRotate_AnnotatesTheObject(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(pavv1.AddToScheme(scheme), objectbucketv1.AddToScheme(scheme), cosiv1.AddToScheme(scheme), cosiv2.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	forbidden := interceptor.Funcs{Get: func(ctx context.Context, reader client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		if _, is := object.(*pavv1.PavBucketAccess); is {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pavbucketaccesses"}, key.Name, nil)
		}
		return reader.Get(ctx, key, object, options...)
	}}
	claim := &objectbucketv1.ObjectBucketClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "photos", UID: "u1"}}
	access := &cosiv1.BucketAccess{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "web", UID: "u1"}}
	for name, test := range map[string]struct {
		ref    status.Ref
		object client.Object
		hidden bool
	}{
		"a claim":             {ref: status.Ref{Kind: status.ObjectBucketClaim, Namespace: "apps", Name: "photos"}, object: claim},
		"a claim of a tenant": {ref: status.Ref{Kind: status.ObjectBucketClaim, Namespace: "apps", Name: "photos"}, object: claim, hidden: true},
		"an access":           {ref: status.Ref{Kind: status.BucketAccess, Namespace: "apps", Name: "web"}, object: access},
		"a record":            {ref: status.Ref{Kind: status.PavAccess, Name: "a-u1"}, object: &pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: "a-u1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(claim.DeepCopy(), access.DeepCopy(), granted(time.Hour))
			if test.hidden {
				builder = builder.WithInterceptorFuncs(forbidden)
			}
			objects := builder.Build()
			result, err := Rotate(t.Context(), objects, test.ref, atNoon)
			if err != nil || !result.Asked {
				t.Fatalf("got %+v, %v", result, err)
			}
			object := test.object.DeepCopyObject().(client.Object)
			if err := objects.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			if got := object.GetAnnotations()[pavv1.RotateAnnotation]; got != "2026-03-01T12:00:00.000000Z" {
				t.Errorf("the annotation is %q", got)
			}
			if test.hidden {
				return
			}
			again, err := Rotate(t.Context(), objects, test.ref, atNoon)
			if err != nil || again.Asked || !strings.Contains(again.What, "requested already") {
				t.Errorf("a second request: %+v, %v", again, err)
			}
		})
	}
	cosi2 := interceptor.Funcs{Get: func(ctx context.Context, reader client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		if _, is := object.(*cosiv1.BucketAccess); is {
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: cosiv1.GroupVersion.Group, Kind: "BucketAccess"}}
		}
		return reader.Get(ctx, key, object, options...)
	}}
	second := &cosiv2.BucketAccess{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "web", UID: "u1"}}
	objects := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(cosi2).WithObjects(second, granted(time.Hour)).Build()
	result, err := Rotate(t.Context(), objects, status.Ref{Kind: status.BucketAccess, Namespace: "apps", Name: "web"}, atNoon)
	if err != nil || !result.Asked {
		t.Fatalf("in a cluster with COSI v1alpha2: %+v, %v", result, err)
	}
	if err := objects.Get(t.Context(), client.ObjectKeyFromObject(second), second); err != nil || second.Annotations[pavv1.RotateAnnotation] == "" {
		t.Errorf("in a cluster with COSI v1alpha2, the access is %+v, %v", second, err)
	}
	if _, err := Rotate(t.Context(), fake.NewClientBuilder().WithScheme(scheme).Build(), status.Ref{Kind: status.PavAccess, Name: "a"}, atNoon); !apierrors.IsNotFound(err) {
		t.Errorf("of nothing: %v", err)
	}
}
