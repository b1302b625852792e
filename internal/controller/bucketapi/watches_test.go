package bucketapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
	for api, want := range map[pavv1.BucketAPI]int{pavv1.BucketAPICOSI1: 1, pavv1.BucketAPIVolume: 1} {
		access := &pavv1.PavBucketAccess{Spec: pavv1.PavBucketAccessSpec{API: api, Buckets: []pavv1.AccessedBucket{{Bucket: "b-1"}, {Bucket: "b-2"}}}}
		got := records.Claims(t.Context(), access)
		if len(got) != want || got[0].String() != "a/photos" {
			t.Errorf("%s: got %v", api, got)
		}
	}
	records.API = pavv1.BucketAPICOSI2
	if diff := cmp.Diff(0, len(records.Claims(t.Context(), &pavv1.PavBucketAccess{Spec: pavv1.PavBucketAccessSpec{Buckets: []pavv1.AccessedBucket{{Bucket: "b-1"}}}}))); diff != "" {
		t.Errorf("of a bucket of another API (-want +got):\n%s", diff)
	}
}
