package status

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
)

func TestGetBuckets(t *testing.T) {
	bucket := func(name, namespace, claim, provisioner string, status pavv1.PavBucketStatus) *pavv1.PavBucket {
		record := bucketRecord(status)
		record.Name, record.UID = name, ""
		record.Spec.Provisioner, record.Spec.ClaimRef.Namespace, record.Spec.ClaimRef.Name = provisioner, namespace, claim
		return record
	}
	reader := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(
		bucket("b-1", "web", "new", "demo", pavv1.PavBucketStatus{}),
		bucket("b-u1", "apps", "good", "demo", readyBucket()),
		bucket("b-3", "apps", "bad", "demo", pavv1.PavBucketStatus{Phase: pavv1.BucketPending, Step: pavv1.BucketCreating, Attempt: 3, Pod: &pavv1.PodReference{},
			Failure: bucketFailure(pavv1.WorkflowBucketCreation, "p", "no such\nuser")}),
		bucket("b-4", "apps", "kept", "demo", pavv1.PavBucketStatus{Phase: pavv1.BucketDeleting, DeletionAttempt: 2, DeletionFailure: bucketFailure(pavv1.WorkflowBucketDeletion, "p", "busy")}),
		bucket("b-5", "apps", "foreign", "other", pavv1.PavBucketStatus{}),
		accessRecord(readyAccess()), webRecord(readyAccess()),
	).Build()
	rows, err := readBuckets(t.Context(), reader, "demo")
	if err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	if err := renderBuckets(&cli.Env{IOStreams: genericiooptions.IOStreams{Out: out}}, rows, true, noon); err != nil {
		t.Fatal(err)
	}
	want := `NAMESPACE   CLAIM   PROVISIONER   PHASE      STEP       BUCKET      ACCESSES   FAILURES   AGE   RECORD   LAST FAILURE
apps        bad     demo          Pending    creating   photos-u1   0          2          3s    b-3      no such | user
apps        good    demo          Ready      -          photos-u1   2          0          3s    b-u1
apps        kept    demo          Deleting   -          photos-u1   0          2          3s    b-4      busy
web         new     demo          Pending    -          photos-u1   0          0          3s    b-1
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, out)
	}
}

func TestGetAccesses(t *testing.T) {
	failing := accessRecord(readyAccess())
	failing.Name, failing.Spec.Requester.Name = "a-2", "busy"
	failing.Status.Former = []pavv1.GrantedAccount{*granted(1, -time.Hour)}
	failing.Status.Current.ExpiresAt = at(-time.Minute)
	failing.Status.RevocationAttempt, failing.Status.RevocationFailure = 2, bucketFailure(pavv1.WorkflowRevocation, "p", "in use")
	pending := accessRecord(pavv1.PavBucketAccessStatus{Phase: pavv1.AccessPending, Step: pavv1.AccessGranting, Attempt: 2, Pod: &pavv1.PodReference{},
		Failure: bucketFailure(pavv1.WorkflowGrant, "p", "denied")})
	pending.Name, pending.Spec.Requester.Name = "a-3", "new"
	foreign := webRecord(readyAccess())
	foreign.Name, foreign.Spec.Provisioner = "a-4", "other"
	reader := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(boundBucket().f.Provisioner, accessRecord(readyAccess()), webRecord(readyAccess()), failing, pending, foreign).Build()
	rows, err := readAccesses(t.Context(), reader, "demo")
	if err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	if err := renderAccesses(&cli.Env{IOStreams: genericiooptions.IOStreams{Out: out}}, rows, true, noon); err != nil {
		t.Fatal(err)
	}
	want := `NAMESPACE   ACCESS   PROVISIONER   PHASE     STEP       ACCOUNT   FORMER   EXPIRES   ROTATION   FAILURES   AGE   RECORD   LAST FAILURE
apps        busy     demo          Ready     -          ba-u1     1        now       9m59s      2          3s    a-2      in use
apps        new      demo          Pending   granting   -         0        -         -          1          3s    a-3      denied
apps        photos   demo          Ready     -          ba-u1     0        -         29d        0          3s    a-u1
apps        web      demo          Ready     -          ba-u1     0        -         29d        0          3s    a-w1
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, out)
	}
}
