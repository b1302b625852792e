package claim

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
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
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
)

// named returns a claim that is to be provisioned, and names the claim of a bucket.
func named() snapshot {
	o := provisionable()
	o.provisioner.Spec.BucketCreation, o.provisioner.Spec.BucketAccessGrant = &pavv1.BucketCreation{}, &pavv1.BucketAccessGrant{}
	o.provisioner.Spec.VolumeStaging.PodTemplate = pavv1.Template{Raw: []byte(`{}`)}
	o.claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: new("objectbucket.io"), Kind: "ObjectBucketClaim", Name: "photos"}
	o.bucket = &bucketSource{record: &pavv1.PavBucket{
		ObjectMeta: metav1.ObjectMeta{Name: "b-c1"},
		Spec:       pavv1.PavBucketSpec{Provisioner: "demo", API: pavv1.BucketAPIClaim, ClaimRef: pavv1.ClaimReference{Namespace: "apps", Name: "photos", UID: "c1"}},
		Status:     pavv1.PavBucketStatus{Phase: pavv1.BucketReady, BucketID: "photos-1"},
	}}
	return o
}

func TestDecide_OnBuckets(t *testing.T) {
	const prefix = `spec.dataSourceRef: ObjectBucketClaim "apps/photos" `
	for name, test := range map[string]struct {
		spoil func(*snapshot)
		want  decision
	}{
		"a bucket": {want: decision{action: create}},
		"a bucket of COSI": {spoil: func(o *snapshot) {
			o.claim.Spec.DataSourceRef.APIGroup, o.claim.Spec.DataSourceRef.Kind = new("objectstorage.k8s.io"), "BucketClaim"
		}, want: decision{action: create}},
		"a kind of another group":         {spoil: func(o *snapshot) { o.claim.Spec.DataSourceRef.APIGroup = new("example.com") }, want: decision{action: leave}},
		"another kind of the group":       {spoil: func(o *snapshot) { o.claim.Spec.DataSourceRef.Kind = "ObjectBucket" }, want: decision{action: leave}},
		"a kind without a group":          {spoil: func(o *snapshot) { o.claim.Spec.DataSourceRef.APIGroup = nil }, want: decision{action: leave}},
		"a provisioner without buckets":   {spoil: func(o *snapshot) { o.provisioner.Spec.BucketCreation, o.provisioner.Spec.BucketAccessGrant = nil, nil }, want: decision{action: leave}},
		"a provisioner without volumes":   {spoil: func(o *snapshot) { o.provisioner.Spec.VolumeStaging = pavv1.VolumeStaging{} }, want: decision{refuse, `PavProvisioner "demo" has no volumes, as it has no volumeStaging: it serves claims of buckets only`}},
		"a provisioner that grants none":  {spoil: func(o *snapshot) { o.provisioner.Spec.BucketAccessGrant = nil }, want: decision{refuse, `PavProvisioner "demo" has no bucketAccessGrant, so that no volume gets access to its bucket`}},
		"another namespace":               {spoil: func(o *snapshot) { o.claim.Spec.DataSourceRef.Namespace = new("others") }, want: decision{refuse, "spec.dataSourceRef.namespace: a volume can only be a bucket of the claim's own namespace"}},
		"its own namespace":               {spoil: func(o *snapshot) { o.claim.Spec.DataSourceRef.Namespace = new("apps") }, want: decision{action: create}},
		"no claim of a bucket":            {spoil: func(o *snapshot) { o.bucket = &bucketSource{} }, want: decision{refuse, prefix + "does not exist, or has no bucket yet"}},
		"a claim that cannot be read":     {spoil: func(o *snapshot) { o.bucket = &bucketSource{unreadable: true} }, want: decision{refuse, prefix + "cannot be read: the controller agent has the right to it only where deployment-buckets.yaml is applied"}},
		"a bucket of another provisioner": {spoil: func(o *snapshot) { o.bucket.record.Spec.Provisioner = "other" }, want: decision{refuse, prefix + `has a bucket of PavProvisioner "other", and not of "demo", whose StorageClass "fast" the claim names`}},
		"a bucket that is given up":       {spoil: func(o *snapshot) { o.bucket.record.Spec.Released = true }, want: decision{refuse, prefix + "is being deleted"}},
		"a record that is being deleted":  {spoil: func(o *snapshot) { o.bucket.record.DeletionTimestamp = new(metav1.Now()) }, want: decision{refuse, prefix + "is being deleted"}},
		"a bucket that is not ready":      {spoil: func(o *snapshot) { o.bucket.record.Status.Phase = pavv1.BucketPending }, want: decision{refuse, prefix + "has a bucket that is not ready yet"}},
		"a bucket with a long identifier": {spoil: func(o *snapshot) { o.bucket.record.Status.BucketID = strings.Repeat("x", 129) }, want: decision{refuse, prefix + "has a bucket whose identifier cannot be the handle of a volume: the handle is 129 bytes long, and may have 128 at most"}},
		"an identifier that is a handle":  {spoil: func(o *snapshot) { o.bucket.record.Status.BucketID = strings.Repeat("x", 128) }, want: decision{action: create}},
		"a bucket of its own": {spoil: func(o *snapshot) {
			o.claim.Spec.DataSourceRef, o.bucket, o.provisioner.Spec.VolumeCreation = nil, nil, &pavv1.VolumeCreation{FromBucket: true}
		}, want: decision{action: create}},
		"a bucket of its own, without access": {spoil: func(o *snapshot) {
			o.claim.Spec.DataSourceRef, o.bucket, o.provisioner.Spec.VolumeCreation, o.provisioner.Spec.BucketAccessGrant = nil, nil, &pavv1.VolumeCreation{FromBucket: true}, nil
		}, want: decision{refuse, `PavProvisioner "demo" has no bucketAccessGrant, so that no volume gets access to its bucket`}},
	} {
		t.Run(name, func(t *testing.T) {
			o := named()
			if test.spoil != nil {
				test.spoil(&o)
			}
			if got := decide(o); got != test.want {
				t.Errorf("got  %v %q\nwant %v %q", got.action, got.message, test.want.action, test.want.message)
			}
		})
	}
}

func TestBucketRef(t *testing.T) {
	own := named()
	own.claim.Spec.DataSourceRef, own.bucket, own.provisioner.Spec.VolumeCreation = nil, nil, &pavv1.VolumeCreation{FromBucket: true}
	for name, test := range map[string]struct {
		claim snapshot
		want  *pavv1.VolumeBucketReference
	}{
		"no bucket": {claim: provisionable()},
		"a claimed bucket": {claim: named(), want: &pavv1.VolumeBucketReference{
			Name: "b-c1", BucketID: "photos-1", Claim: &pavv1.BucketClaimReference{Kind: "ObjectBucketClaim", Namespace: "apps", Name: "photos", UID: "c1"},
		}},
		"a bucket of its own": {claim: own, want: &pavv1.VolumeBucketReference{Name: "b-u1"}},
	} {
		if diff := cmp.Diff(test.want, test.claim.bucketRef()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if recorded, err := test.claim.recorded(); recorded != nil || err != nil {
			t.Errorf("%s: the source %v is recorded, %v", name, recorded, err)
		}
	}
}

// Without deployment-buckets.yaml, the controller agent may not read claims of buckets, and the claim is told so.
func TestReadBucket_ThatCannotBeRead(t *testing.T) {
	photos := schema.GroupResource{Group: "objectbucket.io", Resource: "objectbucketclaims"}
	for name, test := range map[string]struct {
		answer error
		want   *bucketSource // nil for an error
	}{
		"there is none":                  {answer: apierrors.NewNotFound(photos, "photos"), want: &bucketSource{}},
		"there is no such kind":          {answer: &meta.NoKindMatchError{}, want: &bucketSource{}},
		"the agent has no right to it":   {answer: apierrors.NewForbidden(photos, "photos", nil), want: &bucketSource{unreadable: true}},
		"the API server does not answer": {answer: apierrors.NewInternalError(errors.New("it is late"))},
	} {
		t.Run(name, func(t *testing.T) {
			live := interceptor.NewClient(reconciletest.Client(t), interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return test.answer
				},
			})
			got, err := (&Reconciler{Live: live}).readBucket(t.Context(), named().claim)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(bucketSource{})); diff != "" || (err != nil) != (test.want == nil) {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// Which version of COSI the claim of a bucket is of, only the cluster says.
func TestReadBucket(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(pavv1.AddToScheme(scheme), cosiv1.AddToScheme(scheme), cosiv2.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	claimed := func(changes ...func(*cosiv2.BucketClaim, *pavv1.PavBucket)) []client.Object {
		claim := &cosiv2.BucketClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "photos", UID: "c1"}}
		record := &pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: protocol.BucketRecord("c1")}}
		record.Spec.API, record.Spec.ClaimRef = pavv1.BucketAPICOSI2, pavv1.ClaimReference{Namespace: "apps", Name: "photos", UID: "c1"}
		for _, change := range changes {
			change(claim, record)
		}
		return []client.Object{claim, record}
	}
	source := corev1.TypedObjectReference{APIGroup: new("objectstorage.k8s.io"), Kind: "BucketClaim", Name: "photos"}
	for name, test := range map[string]struct {
		objects []client.Object
		want    string // the name of the record
	}{
		"a claim of v1alpha2":               {objects: claimed(), want: "b-c1"},
		"a claim without a record":          {objects: claimed()[:1]},
		"a record without a claim":          {objects: claimed()[1:]},
		"a claim that was created again":    {objects: claimed(func(c *cosiv2.BucketClaim, _ *pavv1.PavBucket) { c.UID = "c2" })},
		"the record of another version":     {objects: claimed(func(_ *cosiv2.BucketClaim, b *pavv1.PavBucket) { b.Spec.API = pavv1.BucketAPICOSI1 })},
		"the record of another's namespace": {objects: claimed(func(_ *cosiv2.BucketClaim, b *pavv1.PavBucket) { b.Spec.ClaimRef.Namespace = "x" })},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(test.objects...).Build()}
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "data"}}
			claim.Spec.DataSourceRef = source.DeepCopy()
			found, err := r.readBucket(t.Context(), claim)
			if err != nil || found == nil {
				t.Fatalf("got %v, %v", found, err)
			}
			got := ""
			if found.record != nil {
				got = found.record.Name
			}
			if got != test.want {
				t.Errorf("got the record %q", got)
			}
		})
	}
}
