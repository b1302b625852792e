package doctor

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestExamine_FindsWhatIsWrongWithBuckets(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Facts)
		want   []string
	}{
		"buckets are needed, and not enabled": {func(f *Facts) { f.Provisioners[0].Spec.BucketCreation = &pavv1.BucketCreation{} },
			[]string{"problem buckets: 1 PavProvisioner has buckets, and buckets are not enabled: demo > kubectl create -f deployment-buckets.yaml"}},
		"buckets were disabled too early": {func(f *Facts) { f.Accesses = access(pavv1.PavBucketAccessStatus{}) },
			[]string{"problem buckets: 1 record of buckets is left, and buckets are not enabled: nothing is granted, revoked or deleted > kubectl create -f deployment-buckets.yaml"}},
		"the namespace of credentials is gone": {func(f *Facts) { withBuckets(f); f.Credentials = false },
			[]string{"problem buckets: namespace pav-credentials does not exist: no access can be granted > kubectl create -f deployment-buckets.yaml"}},
		"nobody can claim a bucket": {func(f *Facts) { withBuckets(f); f.BucketAPIs = nil },
			[]string{"problem buckets: the cluster has neither ObjectBucketClaims nor BucketClaims, so that nobody can claim a bucket > kubectl create -f deploy/foreign/objectbucket"}},
		"COSI is of another version": {func(f *Facts) { withBuckets(f); f.BucketAPIs["bucketclaims.objectstorage.k8s.io"] = false },
			[]string{"problem buckets: CustomResourceDefinition bucketclaims.objectstorage.k8s.io serves none of the versions that PaV serves: v1alpha1, v1alpha2 > kubectl get crd bucketclaims.objectstorage.k8s.io -o jsonpath={.spec.versions[*].name}"}},
		"a bucket cannot be created": {func(f *Facts) {
			withBuckets(f)
			f.Buckets = bucket(pavv1.PavBucketStatus{Phase: pavv1.BucketPending, Failure: &pavv1.WorkflowFailure{}})
		}, []string{"problem buckets: 1 bucket cannot be created: b-u1 > kubectl pav describe pavbucket/b-u1"}},
		"a bucket cannot be updated": {func(f *Facts) {
			withBuckets(f)
			f.Buckets = bucket(pavv1.PavBucketStatus{Phase: pavv1.BucketReady, Failure: &pavv1.WorkflowFailure{}})
		}, []string{"problem buckets: 1 bucket cannot be updated: b-u1 > kubectl pav describe pavbucket/b-u1"}},
		"a bucket cannot be deleted": {func(f *Facts) {
			withBuckets(f)
			f.Buckets = bucket(pavv1.PavBucketStatus{Phase: pavv1.BucketDeleting, DeletionFailure: &pavv1.WorkflowFailure{}})
		}, []string{"problem leftovers: the bucket of 1 PavBucket is not deleted: b-u1 > kubectl pav describe pavbucket/b-u1"}},
		"a bucket has waited for its deletion": {func(f *Facts) {
			withBuckets(f)
			f.Buckets = bucket(pavv1.PavBucketStatus{Phase: pavv1.BucketDeleting, Conditions: []metav1.Condition{condition(pavv1.BucketDeleted, metav1.ConditionFalse, "")}})
		}, []string{"problem leftovers: the bucket of 1 PavBucket is not deleted: b-u1 > kubectl pav describe pavbucket/b-u1"}},
		"a bucket is retained": {func(f *Facts) {
			withBuckets(f)
			f.Buckets = bucket(pavv1.PavBucketStatus{Phase: pavv1.BucketRetained, Conditions: []metav1.Condition{condition(pavv1.BucketDeleted, metav1.ConditionFalse, "")}})
		}, []string{}},
		"access cannot be granted": {func(f *Facts) {
			withBuckets(f)
			f.Accesses = access(pavv1.PavBucketAccessStatus{Failure: &pavv1.WorkflowFailure{}})
		}, []string{"problem buckets: 1 access cannot be granted: a-u1 > kubectl pav describe pavbucketaccess/a-u1"}},
		"an account cannot be replaced": {func(f *Facts) {
			withBuckets(f)
			f.Accesses = access(pavv1.PavBucketAccessStatus{Current: &pavv1.GrantedAccount{}, Failure: &pavv1.WorkflowFailure{}})
		}, []string{"problem buckets: the account of 1 access cannot be replaced: a-u1 > kubectl pav describe pavbucketaccess/a-u1"}},
		"credentials have ended": {func(f *Facts) {
			withBuckets(f)
			f.Accesses = access(pavv1.PavBucketAccessStatus{Current: &pavv1.GrantedAccount{ExpiresAt: agoPointer(time.Minute)}})
		}, []string{"problem buckets: the credentials of 1 access have ended: a-u1 > kubectl pav describe pavbucketaccess/a-u1"}},
		"an account cannot be revoked": {func(f *Facts) {
			withBuckets(f)
			f.Accesses = access(pavv1.PavBucketAccessStatus{Current: &pavv1.GrantedAccount{}, RevocationFailure: &pavv1.WorkflowFailure{}})
		}, []string{"problem leftovers: an account of 1 PavBucketAccess is not revoked: a-u1 > kubectl pav describe pavbucketaccess/a-u1"}},
		"the record of an access stays": {func(f *Facts) {
			withBuckets(f)
			f.Accesses = access(pavv1.PavBucketAccessStatus{Current: &pavv1.GrantedAccount{}})
			deleting(&f.Accesses[0].ObjectMeta, pavv1.BucketFinalizer, time.Hour)
		}, []string{"problem leftovers: PavBucketAccess a-u1 has been under deletion for 1h > kubectl pav describe pavbucketaccess/a-u1"}},
		"pods of buckets have owners": {func(f *Facts) {
			withBuckets(f)
			f.Buckets, f.Accesses = bucket(pavv1.PavBucketStatus{Phase: pavv1.BucketReady}), access(pavv1.PavBucketAccessStatus{Current: &pavv1.GrantedAccount{}})
			for _, owner := range []types.UID{"b1", "a1"} {
				pod := *f.Pods[0].DeepCopy()
				pod.OwnerReferences[0].UID = owner
				f.Pods = append(f.Pods, pod)
			}
		}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy(t)
			test.change(f)
			if diff := cmp.Diff(test.want, found(Examine(f))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestExamine_WhereBucketsAreWell_SaysSo(t *testing.T) {
	f := healthy(t)
	withBuckets(f)
	f.Buckets, f.Accesses = bucket(pavv1.PavBucketStatus{Phase: pavv1.BucketReady}), access(pavv1.PavBucketAccessStatus{Current: &pavv1.GrantedAccount{}})
	rows, well := checkBuckets(f)
	if want := "none of 1 bucket and 1 access fails"; len(rows) > 0 || well != want {
		t.Errorf("got %v, %q, want %q", rows, well, want)
	}
}
