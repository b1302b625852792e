package cosi1

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
)

var app = types.NamespacedName{Namespace: "a", Name: "app"}

const accessUID = types.UID("00000000-0000-4000-8000-00000000000a")

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
	o := accessObservation{name: app, uid: accessUID, now: noon, claim: claim.claim, bucket: claim.record, provisioner: claim.provisioner}
	o.provisioner.Spec.BucketAccessGrant = &pavv1.BucketAccessGrant{}
	o.access = &cosiv1.BucketAccess{
		ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name, UID: accessUID},
		Spec:       cosiv1.BucketAccessSpec{BucketClaimName: photos.Name, BucketAccessClassName: "s3", Protocol: cosiv1.ProtocolS3, CredentialsSecretName: "app-s3"},
	}
	o.class = &cosiv1.BucketAccessClass{ObjectMeta: metav1.ObjectMeta{Name: "s3"}, DriverName: "store", AuthenticationType: cosiv1.AuthenticationTypeKey}
	return withAccess(o, edits)
}

// granting is an access whose record was written, and granted is one that shows its account.
func granting(edits ...accessEdit) accessObservation {
	o := asked()
	o.class, o.claim, o.bucket = nil, nil, nil
	o.access.Finalizers = []string{cosiv1.AccessFinalizer}
	o.record = &pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: protocol.AccessRecord(accessUID), UID: "a"}}
	o.record.Spec = pavv1.PavBucketAccessSpec{
		Provisioner: "store", API: pavv1.BucketAPICOSI1, Requester: pavv1.AccessRequester{Kind: kindAccess, Namespace: app.Namespace, Name: app.Name, UID: accessUID},
	}
	o.remembered = true
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

func checkAccesses(t *testing.T, tests map[string]decision) {
	t.Helper()
	check(t, tests, func(s rule.Step) bool { return accessActs[s] != nil })
}

func TestDecideAccess_WithoutARecord(t *testing.T) {
	const refused, waiting = protocol.BucketAccessRefused, protocol.BucketAccessWaiting
	of := func(edits ...accessEdit) rule.Decision { return decideAccess(asked(edits...)) }
	mode := func(text string) accessEdit {
		return func(o *accessObservation) {
			o.class.Parameters = map[string]string{cosiv1.AccessModeParameter: text}
		}
	}
	checkAccesses(t, map[string]decision{
		"it asks for access":                     {got: of(), want: stepRecord},
		"its class is another driver's":          {got: of(func(o *accessObservation) { o.provisioner = nil }), want: rule.Done},
		"it has no class":                        {got: of(accessDriverGone), want: rule.Done},
		"the provisioner is being deleted":       {got: of(func(o *accessObservation) { o.provisioner.DeletionTimestamp = new(metav1.NewTime(noon)) }), want: stepRefuse, reason: refused, message: "being deleted"},
		"the provisioner grants no access":       {got: of(func(o *accessObservation) { o.provisioner.Spec.BucketAccessGrant = nil }), want: stepRefuse, reason: refused, message: "bucketAccessGrant"},
		"the class has a mode":                   {got: of(mode("ReadOnly")), want: stepRecord},
		"the class has an unknown mode":          {got: of(mode("read")), want: stepRefuse, reason: refused, message: "ReadOnly"},
		"clients authenticate by IAM":            {got: of(func(o *accessObservation) { o.class.AuthenticationType = "IAM" }), want: stepRecord},
		"clients authenticate in an unknown way": {got: of(func(o *accessObservation) { o.class.AuthenticationType = "Password" }), want: stepRefuse, reason: refused, message: "Key or IAM"},
		"its claim does not exist":               {got: of(func(o *accessObservation) { o.claim, o.bucket = nil, nil }), want: stepRefuse, reason: waiting, message: "does not exist"},
		"its claim is being deleted":             {got: of(func(o *accessObservation) { o.claim.DeletionTimestamp = new(metav1.NewTime(noon)) }), want: stepRefuse, reason: refused, message: "being deleted"},
		"its claim has no record":                {got: of(func(o *accessObservation) { o.bucket = nil }), want: stepRefuse, reason: waiting, message: "not yet"},
		"its claim is another provisioner's":     {got: of(func(o *accessObservation) { o.bucket.Spec.Provisioner = "x" }), want: stepRefuse, reason: refused, message: `PavProvisioner "x"`},
		"the bucket is given up":                 {got: of(func(o *accessObservation) { o.bucket.Spec.Released = true }), want: stepRefuse, reason: refused, message: "given up"},
		"the bucket is not ready":                {got: of(func(o *accessObservation) { o.bucket.Status.Phase = pavv1.BucketPending }), want: stepRefuse, reason: waiting, message: "no bucket yet"},
		"it names no protocol":                   {got: of(func(o *accessObservation) { o.access.Spec.Protocol = "" }), want: stepRecord},
		"it names an unknown protocol":           {got: of(func(o *accessObservation) { o.access.Spec.Protocol = "NFS" }), want: stepRefuse, reason: refused, message: `"NFS"`},
		"it names no Secret":                     {got: of(func(o *accessObservation) { o.access.Spec.CredentialsSecretName = "" }), want: stepRefuse, reason: refused, message: "credentialsSecretName"},
		"its Secret can have no such name":       {got: of(func(o *accessObservation) { o.access.Spec.CredentialsSecretName = "../x" }), want: stepRefuse, reason: refused, message: "credentialsSecretName"},
		"its record and its class were removed":  {got: decideAccess(granted(accessRecordGone, accessDriverGone)), want: stepRefuse, reason: refused, message: "is gone"},
		"it is deleted before anything was done": {got: of(accessDeleted), want: rule.Done},
		"it is deleted, and another driver's":    {got: decideAccess(granted(accessRecordGone, accessDriverGone, accessForgotten, accessDeleted)), want: rule.Done},
		"it is deleted, and only its claim is PaV's": {got: decideAccess(granted(accessRecordGone, accessDriverGone, accessForgotten, accessDeleted, func(o *accessObservation) {
			o.bucket = asked().bucket
		})), want: stepLetGo},
	})
}

func TestDecideAccess_WithARecord(t *testing.T) {
	checkAccesses(t, map[string]decision{
		"it waits for an account":                             {got: decideAccess(granting()), want: rule.Done},
		"it has no finalizer":                                 {got: decideAccess(granting(accessNotHeld)), want: stepShow},
		"it says that it has an account":                      {got: decideAccess(granting(func(o *accessObservation) { o.access.Status.AccessGranted = true })), want: stepShow},
		"it has an account":                                   {got: decideAccess(granting(hasAccount("id"))), want: stepShow},
		"it shows its account":                                {got: decideAccess(granted()), want: rule.Done},
		"it shows its account, and the finalizer was removed": {got: decideAccess(granted(accessNotHeld)), want: rule.Done},
		"it has another account":                              {got: decideAccess(granted(hasAccount("id-1"))), want: stepShow},
		"nobody told what its account is":                     {got: decideAccess(granted(hasAccount(""))), want: stepShow},
		"its class and provisioner are gone":                  {got: decideAccess(granted(accessDriverGone)), want: rule.Done},
		"an administrator gave it up":                         {got: decideAccess(granted(accessReleased)), want: stepRefuse, reason: protocol.BucketAccessRefused, message: "given up"},
		"another account is requested":                        {got: decideAccess(granted(rotate(noon.Add(-time.Minute)))), want: stepRotate},
		"another account will be requested":                   {got: decideAccess(granted(rotate(noon.Add(time.Minute)))), want: rule.Done, after: time.Minute},
		"another account was requested":                       {got: decideAccess(granted(rotate(noon), rotated(noon))), want: rule.Done},
		"it is deleted":                                       {got: decideAccess(granted(accessDeleted)), want: stepRelease},
		"it is deleted while it waits":                        {got: decideAccess(granting(accessDeleted)), want: stepRelease},
		"it is gone":                                          {got: decideAccess(granted(func(o *accessObservation) { o.access = nil })), want: stepRelease},
		"it is being revoked":                                 {got: decideAccess(granted(accessDeleted, accessReleased)), want: rule.Done},
		"it is revoked":                                       {got: decideAccess(granted(accessDeleted, accessRecordGone)), want: stepLetGo},
		"it is revoked, and its provisioner is gone":          {got: decideAccess(granted(accessDeleted, accessRecordGone, accessDriverGone)), want: stepLetGo},
		"it is revoked, and was not held":                     {got: decideAccess(granted(accessDeleted, accessRecordGone, accessNotHeld)), want: rule.Done},
	})
}

func TestProtocolOfAccess(t *testing.T) {
	for name, test := range map[string]struct {
		asks       cosiv1.Protocol
		has, asked []pavv1.BucketProtocol
		want       pavv1.BucketProtocol
	}{
		"the one that it asks for":            {asks: "GCP", has: []pavv1.BucketProtocol{pavv1.ProtocolS3}, want: pavv1.ProtocolGCS},
		"none that COSI knows":                {asks: "x", want: ""},
		"the first of the bucket":             {has: []pavv1.BucketProtocol{pavv1.ProtocolAzure, pavv1.ProtocolS3}, want: pavv1.ProtocolAzure},
		"the first that the claim asks for":   {asked: []pavv1.BucketProtocol{pavv1.ProtocolAzure}, want: pavv1.ProtocolAzure},
		"the default of PavProvisioners else": {want: pavv1.ProtocolS3},
	} {
		t.Run(name, func(t *testing.T) {
			o := asked()
			o.access.Spec.Protocol, o.bucket.Status.Protocols, o.bucket.Spec.Protocols = test.asks, test.has, test.asked
			if got := o.protocol(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
