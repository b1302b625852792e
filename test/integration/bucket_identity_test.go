package integration

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/agent"
)

// A definition may make one identifier for two claims. The bucket is that of the claim whose pod ended first, although the other is older.
func TestObjectBucketClaim_PodsThatTellOneBucket(t *testing.T) {
	c, _ := withBuckets(t)
	driver(t, c, "bucketed-same", ofBuckets)
	older, younger := claimBucket(t, c, "bucketed-same", "older"), claimBucket(t, c, "bucketed-same", "younger")
	creation := func(b *bucketClaim) *corev1.Pod {
		return recordedPod(t, c, b.bucket, pavv1.WorkflowBucketCreation, 1, "photos-"+string(b.object.UID))
	}
	first, second := creation(younger), creation(older)
	end(t, c, first, workflow.Result{BucketID: "same", Created: true}, 0)
	younger.grant(t, "same")
	end(t, c, second, workflow.Result{BucketID: "same", Created: true}, 0)
	wantEvent(t, c, older.object, corev1.EventTypeWarning, "BucketCreationFailed", `bucket "same" is already another claim's`)
	mustDelete(t, c, older.object)
	older.wantGone(t)
	exists(t, c, younger.bucket, "is as before", func(b *pavv1.PavBucket) bool { return b.Status.Phase == pavv1.BucketReady && b.Status.Pods == 1 })
	mustDelete(t, c, younger.object)
	end(t, c, recordedPod(t, c, younger.access, pavv1.WorkflowRevocation, 2, younger.account()+" in "+grantsOf("same")), workflow.Result{}, 0)
	end(t, c, recordedPod(t, c, younger.bucket, pavv1.WorkflowBucketDeletion, 2, "same True"), workflow.Result{}, 0)
	younger.wantGone(t)
}

// While no agent runs, a claim is removed by force, and another one makes one of its name. The credentials of the first are nowhere.
func TestObjectBucketClaim_ReplacedWhileNoAgentRuns(t *testing.T) {
	c := start(t)
	installBucketKinds(t, c)
	enableBuckets(t, c)
	launch := func() *agent.Agent { return agent.Launch(t, c.agent, agent.Options(namespace), &agent.Line{}) }
	current := launch()
	t.Cleanup(func() { current.Stop(t); checkNothingLeft(t, c) })
	driver(t, c, "bucketed-replaced", ofBuckets)
	former := claimBucket(t, c, "bucketed-replaced", "replaced")
	name := "photos-" + string(former.object.UID)
	end(t, c, recordedPod(t, c, former.bucket, pavv1.WorkflowBucketCreation, 1, name), workflow.Result{Created: true}, 0)
	pod := recordedPod(t, c, former.access, pavv1.WorkflowGrant, 1, former.account()+" in "+grantsOf(name, former.account()))
	current.Stop(t)
	result, err := sealed(pod, former.account(), canary+"former")
	if err != nil {
		t.Fatal(err)
	}
	end(t, c, pod, result, 0)
	mustDelete(t, c, former.object)
	if err := c.Admin.Patch(t.Context(), former.object, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))); err != nil {
		t.Fatal(err)
	}
	gone(t, c, former.object)
	next := claimBucket(t, c, "bucketed-replaced", "replaced")

	current = launch()
	revocation := recordedPod(t, c, former.access, pavv1.WorkflowRevocation, 2, former.account()+" in "+grantsOf(name))
	secret := next.secret()
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
		t.Errorf("there is a Secret, with the keys of %s: %v", secret.Data[obcv1.AWSAccessKeyID], err)
	}
	end(t, c, revocation, workflow.Result{}, 0)
	end(t, c, recordedPod(t, c, former.bucket, pavv1.WorkflowBucketDeletion, 2, name+" True"), workflow.Result{}, 0)
	gone(t, c, former.access)
	gone(t, c, former.bucket)
	name = "photos-" + string(next.object.UID)
	next.serve(t, name)
	exists(t, c, secret, "has the second claim's credentials", func(s *corev1.Secret) bool { return string(s.Data[obcv1.AWSAccessKeyID]) == next.account() })
	mustDelete(t, c, next.object)
	end(t, c, recordedPod(t, c, next.access, pavv1.WorkflowRevocation, 2, next.account()+" in "+grantsOf(name)), workflow.Result{}, 0)
	end(t, c, recordedPod(t, c, next.bucket, pavv1.WorkflowBucketDeletion, 2, name+" True"), workflow.Result{}, 0)
	next.wantGone(t)
}

// What was released has had its accounts revoked: nobody gets access by it again.
func TestReleasedRecords_StaySo(t *testing.T) {
	c := start(t)
	bucket := &pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: "b-released"}}
	bucket.Spec = pavv1.PavBucketSpec{Provisioner: "none", API: pavv1.BucketAPIClaim, BucketName: "photos", ReclaimPolicy: pavv1.BucketRetain,
		ClaimRef: pavv1.ClaimReference{Namespace: "default", Name: "photos", UID: "u"}}
	access := &pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: "a-released"}}
	access.Spec = pavv1.PavBucketAccessSpec{Provisioner: "none", API: pavv1.BucketAPIClaim, Protocol: pavv1.ProtocolS3, AuthenticationType: pavv1.AuthenticationKey,
		Requester: pavv1.AccessRequester{Kind: "ObjectBucketClaim", Namespace: "default", Name: "photos", UID: "u"},
		Buckets:   []pavv1.AccessedBucket{{Bucket: "b-released", Mode: pavv1.AccessReadWrite, SecretName: "photos"}}}
	for _, record := range []client.Object{bucket, access} {
		mustCreateHeld(t, c, record)
		for _, test := range []struct{ patch, refusal string }{
			{`{"spec": {"released": false}}`, ""},
			{`{"spec": {"released": true}}`, ""},
			{`{"spec": {"released": false}}`, "cannot be taken back"},
			{`{"spec": {"released": null}}`, "cannot be taken back"},
			{`{"metadata": {"labels": {"a": "b"}}}`, ""},
		} {
			err := c.Admin.Patch(t.Context(), record, client.RawPatch(types.MergePatchType, []byte(test.patch)))
			if (err == nil) != (test.refusal == "") || err != nil && !strings.Contains(err.Error(), test.refusal) {
				t.Errorf("%T: %s: got %v", record, test.patch, err)
			}
		}
	}
}
