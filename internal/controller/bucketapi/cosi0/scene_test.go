package cosi0

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	cosiv0 "github.com/albertofaria/pav/internal/api/cosi/proposal"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

var photos = types.NamespacedName{Namespace: "a", Name: "photos"}

const (
	bucketUID = types.UID("00000000-0000-4000-8000-000000000001")
	otherUID  = types.UID("00000000-0000-4000-8000-000000000002")

	contentName = "s3-" + string(bucketUID)
	bucketName  = "photos-" + string(bucketUID)
)

type edit func(*observation)

func with(o observation, edits []edit) observation {
	for _, edit := range edits {
		edit(&o)
	}
	return o
}

// asked is a Bucket that nothing was done for.
func asked(edits ...edit) observation {
	o := observation{name: photos, uid: bucketUID, now: noon}
	o.object = &cosiv0.Bucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: photos.Namespace, Name: photos.Name, UID: bucketUID},
		Spec:       cosiv0.BucketSpec{BucketPrefix: "photos-", BucketClassName: "s3", SecretName: "photos-s3"},
	}
	o.class = &cosiv0.BucketClass{
		ObjectMeta: metav1.ObjectMeta{Name: "s3"}, Provisioner: "store", ReleasePolicy: cosiv0.ReleaseDelete, Parameters: map[string]string{"endpoint": "http://s3:9000"},
	}
	o.provisioner = &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "store", UID: "p", Generation: 1}}
	o.provisioner.Spec.BucketCreation, o.provisioner.Spec.BucketAccessGrant = &pavv1.BucketCreation{}, &pavv1.BucketAccessGrant{}
	return with(o, edits)
}

// recorded is a Bucket whose records were written.
func recorded(edits ...edit) observation {
	o := asked()
	o.object.Finalizers, o.object.Labels = []string{cosiv0.Finalizer}, map[string]string{cosiv0.ProvisionerLabel: "store"}
	o.object.Status.Phase = cosiv0.BucketPending
	o.bucket = &pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: protocol.BucketRecord(bucketUID), UID: "b"}}
	o.bucket.Spec = pavv1.PavBucketSpec{
		Provisioner: "store", API: pavv1.BucketAPICOSI0, BucketName: bucketName, ReclaimPolicy: pavv1.BucketDelete, Parameters: o.class.Parameters,
		ClaimRef: pavv1.ClaimReference{Namespace: photos.Namespace, Name: photos.Name, UID: bucketUID}, Protocols: []pavv1.BucketProtocol{pavv1.ProtocolS3},
	}
	raw, err := json.Marshal(o.class)
	if err != nil {
		panic(err)
	}
	o.bucket.Spec.Class = &apiextensionsv1.JSON{Raw: raw}
	o.access, o.remembered = newAccess(o), true
	return with(o, edits)
}

// granted is a Bucket whose bucket clients can use.
func granted(edits ...edit) observation {
	o := recorded()
	status := &o.bucket.Status
	status.Phase, status.BucketID, status.Created = pavv1.BucketReady, bucketName, true
	o.access.Status.Phase, o.access.Status.Current = pavv1.AccessReady, &pavv1.GrantedAccount{AccountName: "ba"}
	return with(o, edits)
}

// bound is a Bucket that shows its bucket.
func bound(edits ...edit) observation {
	o := granted()
	o.content = newContent(o)
	o.content.Status.Phase, o.object.Status = cosiv0.ContentBound, o.boundStatus()
	return with(o, edits)
}

func deleted(o *observation) { o.object.DeletionTimestamp = new(metav1.NewTime(noon)) }

func gone(o *observation) { o.object = nil }

func free(o *observation) { o.object.Finalizers = nil }

func accessReleased(o *observation) { o.access.Spec.Released = true }

func revoked(o *observation) { o.access = nil }

func released(o *observation) { o.access, o.bucket.Spec.Released = nil, true }

func retained(o *observation) {
	o.access, o.bucket.Spec.Released, o.bucket.Status.Phase = nil, true, pavv1.BucketRetained
}

func bucketGone(o *observation) { o.access, o.bucket, o.class = nil, nil, nil }

func contentGone(o *observation) { o.content = nil }

func classGone(o *observation) { o.class, o.provisioner = nil, nil }

func provisionerGone(o *observation) { o.provisioner = nil }

func forgotten(o *observation) { o.remembered = false }

// existing lets the class name a bucket that exists already, and static also a Secret with credentials.
func existing(o *observation) { o.class.BucketIdentifier = "old" }

func static(o *observation) {
	existing(o)
	o.class.SecretRef = &cosiv0.SecretReference{Namespace: pavv1.CredentialsNamespace, Name: "old-keys"}
	o.provisioner.Spec.BucketAccessGrant.FromSecret = &pavv1.Template{Raw: []byte(`"{{ class.secretRef.name }}"`)}
}

func class(change func(*cosiv0.BucketClass)) edit {
	return func(o *observation) { change(o.class) }
}

func supports(protocols ...pavv1.BucketProtocol) edit {
	return func(o *observation) {
		o.provisioner.Spec.BucketValidation = &pavv1.BucketValidation{Protocols: protocols}
	}
}

// taken gives the name of the BucketContent to another one.
func taken(o *observation) {
	o.content, o.other = nil, &cosiv0.BucketContent{ObjectMeta: metav1.ObjectMeta{Name: contentName}}
}

func rotate(at time.Time) edit {
	return func(o *observation) {
		o.object.Annotations = map[string]string{pavv1.RotateAnnotation: at.Format(pavv1.RetryFormat)}
	}
}

type decision struct {
	o       observation
	want    rule.Step
	reason  string        // of the event, if there is one
	message string        // a part of it
	after   time.Duration // of the next pass
}

func check(t *testing.T, tests map[string]decision) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := decide(test.o)
			if d.Step != test.want || d.Reason != test.reason || d.After != test.after || !strings.Contains(d.Message, test.message) {
				t.Errorf("decided %s (%s, %q) after %s by the rule %q; want %s (%s, %q) after %s", d.Step, d.Reason, d.Message, d.After, d.Rule, test.want, test.reason, test.message, test.after)
			}
			if acts[d.Step] == nil {
				t.Errorf("nothing takes the step %s", d.Step)
			}
		})
	}
}
