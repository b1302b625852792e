package bucketapi

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// The claim of a bucket waits for all who have access, of whatever API, and is looked at when they are gone.
func TestRecords_ClaimsOfAnAccess(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := pavv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	bucket := &pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: "b-1"}}
	bucket.Spec.API, bucket.Spec.ClaimRef = pavv1.BucketAPICOSI1, pavv1.ClaimReference{Namespace: "a", Name: "photos"}
	records := Records{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(bucket).Build(), API: pavv1.BucketAPICOSI1}
	for _, api := range []pavv1.BucketAPI{pavv1.BucketAPICOSI1, pavv1.BucketAPIVolume} {
		if got := records.Claims(t.Context(), accessBy(api)); len(got) != 1 || got[0].String() != "a/photos" {
			t.Errorf("%s: got %v", api, got)
		}
	}
	records.API = pavv1.BucketAPICOSI2
	if got := records.Claims(t.Context(), accessBy(pavv1.BucketAPIVolume)); len(got) != 0 {
		t.Errorf("of a bucket of another API: got %v", got)
	}
}

// accessBy returns an access to two buckets, of which the second does not exist.
func accessBy(api pavv1.BucketAPI) *pavv1.PavBucketAccess {
	return &pavv1.PavBucketAccess{Spec: pavv1.PavBucketAccessSpec{API: api, Buckets: []pavv1.AccessedBucket{{Bucket: "b-1"}, {Bucket: "b-2"}}}}
}
