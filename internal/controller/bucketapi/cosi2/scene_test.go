package cosi2

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

var (
	photos = types.NamespacedName{Namespace: "a", Name: "photos"}
	films  = types.NamespacedName{Namespace: "a", Name: "films"}
	app    = types.NamespacedName{Namespace: "a", Name: "app"}
)

const (
	claimUID  = types.UID("00000000-0000-4000-8000-000000000001")
	otherUID  = types.UID("00000000-0000-4000-8000-000000000002")
	filmsUID  = types.UID("00000000-0000-4000-8000-000000000003")
	accessUID = types.UID("00000000-0000-4000-8000-00000000000a")
)

type claimEdit func(*claimObservation)

func withClaim(o claimObservation, edits []claimEdit) claimObservation {
	for _, edit := range edits {
		edit(&o)
	}
	return o
}

// claimed is a claim that nothing was done for.
func claimed(edits ...claimEdit) claimObservation {
	o := claimObservation{name: photos, uid: claimUID, now: noon}
	o.claim = &cosiv2.BucketClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: photos.Namespace, Name: photos.Name, UID: claimUID},
		Spec:       cosiv2.BucketClaimSpec{BucketClassName: "s3", Protocols: []cosiv2.Protocol{cosiv2.ProtocolS3}},
	}
	o.class = &cosiv2.BucketClass{ObjectMeta: metav1.ObjectMeta{Name: "s3"}, Spec: cosiv2.BucketClassSpec{DriverName: "store", DeletionPolicy: cosiv2.DeletionPolicyDelete}}
	o.provisioner = &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "store", UID: "p", Generation: 1}}
	o.provisioner.Spec.BucketCreation = &pavv1.BucketCreation{}
	return withClaim(o, edits)
}

// existing is a claim that asks for a Bucket of an administrator, which names it.
func existing(edits ...claimEdit) claimObservation {
	o := claimed()
	o.class, o.claim.Spec.BucketClassName, o.claim.Spec.ExistingBucketName = nil, "", "archive"
	o.bucket = &cosiv2.Bucket{ObjectMeta: metav1.ObjectMeta{Name: "archive"}}
	o.bucket.Spec = cosiv2.BucketSpec{
		DriverName: "store", DeletionPolicy: cosiv2.DeletionPolicyDelete, ExistingBucketID: "old", Protocols: []cosiv2.Protocol{cosiv2.ProtocolS3},
		BucketClaimRef: cosiv2.BucketClaimReference{Namespace: photos.Namespace, Name: photos.Name}, Parameters: map[string]string{"endpoint": "http://s3:9000"},
	}
	return withClaim(o, edits)
}

// recorded is a claim whose record was written.
func recorded(edits ...claimEdit) claimObservation {
	o := claimed()
	o.class = nil
	o.record = &pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: protocol.BucketRecord(claimUID), UID: "b"}}
	o.record.Spec = pavv1.PavBucketSpec{
		Provisioner: "store", API: pavv1.BucketAPICOSI2, BucketName: cosiv2.BucketOf(claimUID), ReclaimPolicy: pavv1.BucketDelete,
		ClaimRef: pavv1.ClaimReference{Namespace: photos.Namespace, Name: photos.Name, UID: claimUID}, Protocols: []pavv1.BucketProtocol{pavv1.ProtocolS3},
	}
	o.remembered = true
	return withClaim(o, edits)
}

// pending is a claim that shows that its bucket is not ready, and ready is one whose bucket is.
func pending(edits ...claimEdit) claimObservation { return withClaim(shown(recorded()), edits) }

func ready(edits ...claimEdit) claimObservation { return withClaim(shown(recorded(isReady)), edits) }

// kept is a claim of a class that retains, whose bucket is ready.
func kept(edits ...claimEdit) claimObservation {
	return withClaim(shown(recorded(isReady, func(o *claimObservation) { o.record.Spec.ReclaimPolicy = pavv1.BucketRetain })), edits)
}

// bound is a claim that has the Bucket of an administrator, which is ready.
func bound(edits ...claimEdit) claimObservation {
	o := existing()
	o.bucket.Spec.BucketClaimRef.UID = claimUID
	o.record = recorded().record
	o.record.Spec.ExistingBucketID, o.record.Spec.BucketName, o.record.Spec.ReclaimPolicy = "old", "archive", pavv1.BucketRetain
	isReady(&o)
	return withClaim(shown(o), edits)
}

// shown shows in claim and Bucket what the record says.
func shown(o claimObservation) claimObservation {
	if o.bucket == nil {
		o.bucket = newBucket(o)
	}
	o.bucket.Finalizers, o.bucket.Status = []string{cosiv2.Finalizer}, o.bucketStatus()
	o.claim.Finalizers, o.claim.Status = []string{cosiv2.Finalizer}, o.claimStatus()
	return o
}

func isReady(o *claimObservation) {
	o.record.Status = pavv1.PavBucketStatus{
		Phase: pavv1.BucketReady, BucketID: "id", Created: true, Info: map[string]string{protocol.InfoEndpoint: "https://s3.example:9000"},
		Protocols: []pavv1.BucketProtocol{pavv1.ProtocolS3},
	}
}

func isDeleted(o *claimObservation) { o.claim.DeletionTimestamp = new(metav1.NewTime(noon)) }

func isGone(o *claimObservation) { o.claim = nil }

func isReleased(o *claimObservation) { o.record.Spec.Released = true }

func isRetained(o *claimObservation) {
	o.record.Spec.Released, o.record.Status.Phase = true, pavv1.BucketRetained
}

func isAccessed(o *claimObservation) { o.accesses = []string{"BucketAccess a/app"} }

func recordGone(o *claimObservation) { o.record = nil }

func bucketGone(o *claimObservation) { o.bucket = nil }

func bucketFree(o *claimObservation) { o.bucket.Finalizers = nil }

func bucketGoing(o *claimObservation) { o.bucket.DeletionTimestamp = new(metav1.NewTime(noon)) }

func forgotten(o *claimObservation) { o.remembered = false }

func driverGone(o *claimObservation) { o.class, o.provisioner = nil, nil }

// names gives the Bucket a claim that it names.
func names(namespace, name string, uid types.UID) claimEdit {
	return func(o *claimObservation) {
		if o.bucket == nil {
			o.bucket = &cosiv2.Bucket{ObjectMeta: metav1.ObjectMeta{Name: cosiv2.BucketOf(claimUID)}, Spec: cosiv2.BucketSpec{DriverName: "store"}}
		}
		o.bucket.Spec.BucketClaimRef = cosiv2.BucketClaimReference{Namespace: namespace, Name: name, UID: uid}
	}
}

func bucketSays(policy cosiv2.DeletionPolicy) claimEdit {
	return func(o *claimObservation) { o.bucket.Spec.DeletionPolicy = policy }
}

func recordSays(policy pavv1.BucketReclaimPolicy) claimEdit {
	return func(o *claimObservation) { o.record.Spec.ReclaimPolicy = policy }
}

func failed(message string) *pavv1.WorkflowFailure {
	return &pavv1.WorkflowFailure{Message: message, Time: metav1.NewTime(noon)}
}

type accessEdit func(*accessObservation)

func withAccess(o accessObservation, edits []accessEdit) accessObservation {
	for _, edit := range edits {
		edit(&o)
	}
	return o
}

// asked is an access that nothing was done for, to the bucket of a claim that is ready.
func asked(edits ...accessEdit) accessObservation {
	claim := ready()
	o := accessObservation{name: app, uid: accessUID, now: noon, provisioner: claim.provisioner}
	o.provisioner.Spec.BucketAccessGrant = &pavv1.BucketAccessGrant{}
	wants := cosiv2.BucketClaimAccess{BucketClaimName: photos.Name, AccessMode: cosiv2.AccessModeReadOnly, AccessSecretName: "photos-s3"}
	o.access = &cosiv2.BucketAccess{
		ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name, UID: accessUID},
		Spec:       cosiv2.BucketAccessSpec{BucketClaims: []cosiv2.BucketClaimAccess{wants}, BucketAccessClassName: "s3", Protocol: cosiv2.ProtocolS3},
	}
	o.class = &cosiv2.BucketAccessClass{ObjectMeta: metav1.ObjectMeta{Name: "s3"}, Spec: cosiv2.BucketAccessClassSpec{DriverName: "store", AuthenticationType: cosiv2.AuthenticationTypeKey}}
	o.claims = []askedClaim{{BucketClaimAccess: wants, claim: claim.claim, bucket: claim.record}}
	return withAccess(o, edits)
}

// toFilms lets an access be to the bucket of another claim as well, which is ready.
func toFilms(o *accessObservation) {
	claim := ready()
	claim.claim.Name, claim.claim.UID = films.Name, filmsUID
	claim.record.Name, claim.record.Spec.ClaimRef.Name, claim.record.Spec.ClaimRef.UID = protocol.BucketRecord(filmsUID), films.Name, filmsUID
	claim.record.Spec.BucketName, claim.record.Status.BucketID = cosiv2.BucketOf(filmsUID), "films-id"
	wants := cosiv2.BucketClaimAccess{BucketClaimName: films.Name, AccessMode: cosiv2.AccessModeReadWrite, AccessSecretName: "films-s3"}
	o.access.Spec.BucketClaims = append(o.access.Spec.BucketClaims, wants)
	o.claims = append(o.claims, askedClaim{BucketClaimAccess: wants, claim: claim.claim, bucket: claim.record})
	o.class.Spec.MultiBucketAccess = cosiv2.MultiBucketAccessMultiple
}

// granting is an access whose record was written and is shown, and granted is one that shows its account.
func granting(edits ...accessEdit) accessObservation {
	o := asked()
	o.record = &pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: protocol.AccessRecord(accessUID), UID: "a"}}
	o.record.Spec = pavv1.PavBucketAccessSpec{
		Provisioner: "store", API: pavv1.BucketAPICOSI2, AuthenticationType: pavv1.AuthenticationKey,
		Requester: pavv1.AccessRequester{Kind: kindAccess, Namespace: app.Namespace, Name: app.Name, UID: accessUID},
		Buckets:   []pavv1.AccessedBucket{{Bucket: o.claims[0].bucket.Name, Mode: pavv1.AccessReadOnly, SecretName: "photos-s3"}},
	}
	o.buckets = []*pavv1.PavBucket{o.claims[0].bucket}
	o.class, o.claims, o.remembered = nil, nil, true
	o.access.Finalizers, o.access.Status = []string{cosiv2.Finalizer}, o.status()
	return withAccess(o, edits)
}

func granted(edits ...accessEdit) accessObservation {
	o := granting(hasAccount("id"))
	o.access.Status = o.status()
	return withAccess(o, edits)
}

func hasAccount(id string) accessEdit {
	return func(o *accessObservation) {
		o.record.Status.Current = &pavv1.GrantedAccount{AccountName: "ba", AccountID: id}
	}
}

func accessDeleted(o *accessObservation) { o.access.DeletionTimestamp = new(metav1.NewTime(noon)) }

func accessNotHeld(o *accessObservation) { o.access.Finalizers = nil }

func accessReleased(o *accessObservation) { o.record.Spec.Released = true }

func accessRecordGone(o *accessObservation) { o.record = nil }

func accessDriverGone(o *accessObservation) { o.class, o.provisioner = nil, nil }

func accessForgotten(o *accessObservation) { o.remembered = false }

// hasDriver gives the access a driver, as the controller of COSI does.
func hasDriver(name string) accessEdit {
	return func(o *accessObservation) { o.access.Status.DriverName = name }
}

func rotate(at time.Time) accessEdit {
	return func(o *accessObservation) {
		o.access.Annotations = map[string]string{pavv1.RotateAnnotation: at.Format(pavv1.RetryFormat)}
	}
}

func rotated(at time.Time) accessEdit {
	return func(o *accessObservation) {
		o.record.Annotations = map[string]string{pavv1.RotateAnnotation: at.Format(pavv1.RetryFormat)}
	}
}

type decision struct {
	got     rule.Decision
	want    rule.Step
	reason  string // of the event, if there is one
	message string // a part of it
	after   time.Duration
}

func check(t *testing.T, tests map[string]decision, acts func(rule.Step) bool) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := test.got
			if d.Step != test.want || d.Reason != test.reason || d.After != test.after || !strings.Contains(d.Message, test.message) {
				t.Errorf("decided %s (%s, %q) after %s by the rule %q; want %s (%s, %q) after %s", d.Step, d.Reason, d.Message, d.After, d.Rule, test.want, test.reason, test.message, test.after)
			}
			if !acts(d.Step) {
				t.Errorf("nothing takes the step %s", d.Step)
			}
		})
	}
}

func checkClaims(t *testing.T, tests map[string]decision) {
	t.Helper()
	check(t, tests, func(s rule.Step) bool { return claimActs[s] != nil })
}

func checkAccesses(t *testing.T, tests map[string]decision) {
	t.Helper()
	check(t, tests, func(s rule.Step) bool { return accessActs[s] != nil })
}
