package status

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/agent"
)

// claimOfCOSI2 is a BucketClaim of v1alpha2 in namespace apps, with the record of its bucket.
func claimOfCOSI2(name string, uid types.UID, status pavv1.PavBucketStatus) (*cosiv2.BucketClaim, *pavv1.PavBucket) {
	record := bucketRecord(status)
	record.Name, record.UID, record.Spec.API = "b-"+string(uid), "r-"+uid, pavv1.BucketAPICOSI2
	record.Spec.ClaimRef = pavv1.ClaimReference{Namespace: "apps", Name: name, UID: uid}
	return &cosiv2.BucketClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: name, UID: uid, CreationTimestamp: *at(0)},
		Spec:       cosiv2.BucketClaimSpec{BucketClassName: "buckets"},
		Status:     cosiv2.BucketClaimStatus{BoundBucketName: cosiv2.BucketOf(uid), ReadyToUse: status.Phase == pavv1.BucketReady},
	}, record
}

// accessOfCOSI2 is a BucketAccess apps/web of v1alpha2 to the buckets of claims. Its Secrets have their names.
func accessOfCOSI2(claims ...string) *cosiv2.BucketAccess {
	access := &cosiv2.BucketAccess{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "web", UID: "w1", CreationTimestamp: *at(0)}}
	access.Spec.BucketAccessClassName = "keys"
	for _, claim := range claims {
		access.Spec.BucketClaims = append(access.Spec.BucketClaims, cosiv2.BucketClaimAccess{BucketClaimName: claim, AccessMode: cosiv2.AccessModeReadOnly, AccessSecretName: claim})
	}
	return access
}

// classesOfCOSI2 are what a cluster has where claims of v1alpha2 are served.
func classesOfCOSI2() []client.Object {
	return []client.Object{
		&cosiv2.BucketClass{ObjectMeta: metav1.ObjectMeta{Name: "buckets"}, Spec: cosiv2.BucketClassSpec{DriverName: "demo", DeletionPolicy: cosiv2.DeletionPolicyDelete}},
		&cosiv2.BucketAccessClass{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, Spec: cosiv2.BucketAccessClassSpec{DriverName: "demo"}},
		bucketOfNobody(Ref{}).f.Provisioner, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: agent.BucketRights}},
	}
}

func TestGather_FindsAllObjectsOfCOSI_OfV1alpha2(t *testing.T) {
	claim, record := claimOfCOSI2("photos", "u1", readyBucket())
	bucket := &cosiv2.Bucket{ObjectMeta: metav1.ObjectMeta{Name: "bc-u1"}, Spec: cosiv2.BucketSpec{DriverName: "demo", DeletionPolicy: cosiv2.DeletionPolicyRetain}}
	web := webRecord(readyAccess())
	web.Spec.API = pavv1.BucketAPICOSI2
	objects := append(classesOfCOSI2(), claim, record, bucket, accessOfCOSI2("photos"), web)
	for _, ref := range []Ref{{BucketClaim, "apps", "photos"}, {BucketAccess, "apps", "web"}, {PavBucket, "", "b-u1"}, {PavAccess, "", "a-w1"}} {
		t.Run(ref.String(), func(t *testing.T) {
			f, err := Gather(t.Context(), builder(t).WithObjects(objects...).Build(), ref, atNoon)
			if err != nil {
				t.Fatal(err)
			}
			got := f.Bucket
			if got.Claim == nil || got.Object == nil || got.Record == nil || len(got.Accesses) != 1 || ref.isAccess() != (got.Own != nil) || ref.isAccess() != (got.Access != nil) {
				t.Fatalf("found %+v", got)
			}
			report := Build(f)
			if found := report.Findings[0]; found.State != Healthy {
				t.Errorf("found %+v", found)
			}
			for _, want := range []Detail{
				{Name: "Claim", Value: "BucketClaim apps/photos, ready", State: Healthy}, {Name: "Class", Value: "buckets"}, {Name: "Bucket object", Value: "bc-u1, deletion policy Retain"},
			} {
				if !slices.Contains(report.Details, want) {
					t.Errorf("no %v in %v", want, report.Details)
				}
			}
		})
	}
}

// A former access or claim is found by its records, whichever version it was of.
func TestGather_OfCOSI_OfV1alpha2_WhereOnlyRecordsAreLeft(t *testing.T) {
	_, record := claimOfCOSI2("photos", "u1", pavv1.PavBucketStatus{Phase: pavv1.BucketDeleting})
	web := webRecord(readyAccess())
	web.Spec.API = pavv1.BucketAPICOSI2
	for ref, name := range map[Ref]string{{BucketClaim, "apps", "photos"}: "b-u1", {BucketAccess, "apps", "web"}: "a-w1"} {
		bucket, access, err := BucketRecords(t.Context(), builder(t).WithObjects(record, web).Build(), ref)
		if err != nil || bucket != nil && bucket.Name != name || access != nil && access.Name != name {
			t.Errorf("of %s: %v, %v, %v", ref, bucket, access, err)
		}
	}
}

// Of several buckets, the one that is missing is what an access waits for.
func TestDescribe_AnAccessToSeveralBuckets(t *testing.T) {
	photos, photosRecord := claimOfCOSI2("photos", "u1", readyBucket())
	films, filmsRecord := claimOfCOSI2("films", "u2", pavv1.PavBucketStatus{Phase: pavv1.BucketPending})
	refused := accessOfCOSI2("photos")
	refused.Status.Error = &cosiv2.TimestampedError{Message: "the accessMode ReadOnly is not allowed"}
	for name, test := range map[string]struct {
		objects               []client.Object
		code, summary, reason string
	}{
		"one has no bucket":       {[]client.Object{accessOfCOSI2("photos", "films"), photos, photosRecord, films, filmsRecord}, "BucketNotReady", `when BucketClaim "films" has a bucket`, ""},
		"the first has none":      {[]client.Object{accessOfCOSI2("films", "photos"), photos, photosRecord, films, filmsRecord}, "BucketNotReady", `when BucketClaim "films" has a bucket`, ""},
		"one does not exist":      {[]client.Object{accessOfCOSI2("photos", "music"), photos, photosRecord}, "NoBucketClaim", `no BucketClaim "music"`, ""},
		"all have one":            {[]client.Object{accessOfCOSI2("photos"), photos, photosRecord}, "NotBegun", "about to handle the access", ""},
		"its status says why not": {[]client.Object{refused, photos, photosRecord}, "NotServed", "PaV does not serve it yet", "the accessMode ReadOnly is not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Gather(t.Context(), builder(t).WithObjects(append(classesOfCOSI2(), test.objects...)...).Build(), Ref{BucketAccess, "apps", "web"}, atNoon)
			if err != nil {
				t.Fatal(err)
			}
			report := Build(f)
			if found := report.Findings[0]; found.Code != test.code || !strings.Contains(found.Summary, test.summary) || !strings.Contains(found.Reason, test.reason) {
				t.Errorf("found %+v", found)
			}
			created := slices.IndexFunc(report.Timeline, func(e Entry) bool { return e.Object == "access" })
			if what := "created, for " + list("claim", f.Bucket.askedClaims()); created < 0 || report.Timeline[created].What != what {
				t.Errorf("no %q in %+v", what, report.Timeline)
			}
		})
	}
}
