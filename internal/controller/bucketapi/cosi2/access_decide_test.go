package cosi2

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
)

func TestDecideAccess_WithoutARecord(t *testing.T) {
	const refuse, refused = bucketapi.StepRefuse, protocol.BucketAccessRefused
	of := func(edits ...accessEdit) rule.Decision { return decideAccess(asked(edits...)) }
	class := func(change func(*cosiv2.BucketAccessClassSpec)) accessEdit {
		return func(o *accessObservation) { change(&o.class.Spec) }
	}
	wants := func(change func(*cosiv2.BucketClaimAccess)) accessEdit {
		return func(o *accessObservation) { change(&o.access.Spec.BucketClaims[0]) }
	}
	trusting := class(func(s *cosiv2.BucketAccessClassSpec) { s.AuthenticationType = cosiv2.AuthenticationTypeServiceAccount })
	checkAccesses(t, map[string]decision{
		"it asks for access":                       {got: of(), want: stepRecord},
		"its class is another driver's":            {got: of(func(o *accessObservation) { o.provisioner = nil }), want: rule.Done},
		"it has no class":                          {got: of(accessDriverGone), want: rule.Done},
		"the provisioner is being deleted":         {got: of(func(o *accessObservation) { o.provisioner.DeletionTimestamp = new(metav1.NewTime(noon)) }), want: refuse, reason: refused, message: "being deleted"},
		"the provisioner grants no access":         {got: of(func(o *accessObservation) { o.provisioner.Spec.BucketAccessGrant = nil }), want: refuse, reason: refused, message: "bucketAccessGrant"},
		"clients authenticate in an unknown way":   {got: of(class(func(s *cosiv2.BucketAccessClassSpec) { s.AuthenticationType = "IAM" })), want: refuse, reason: refused, message: "Key or ServiceAccount"},
		"clients authenticate by a ServiceAccount": {got: of(trusting, func(o *accessObservation) { o.access.Spec.ServiceAccountName = "app" }), want: stepRecord},
		"clients have no ServiceAccount":           {got: of(trusting), want: refuse, reason: refused, message: "serviceAccountName"},
		"the class does not allow the mode":        {got: of(class(func(s *cosiv2.BucketAccessClassSpec) { s.DisallowedBucketAccessModes = []cosiv2.AccessMode{"ReadOnly"} })), want: refuse, reason: refused, message: "does not allow the accessMode ReadOnly"},
		"the class does not allow other modes": {got: of(class(func(s *cosiv2.BucketAccessClassSpec) {
			s.DisallowedBucketAccessModes = []cosiv2.AccessMode{"ReadWrite"}
		})), want: stepRecord},
		"it names an unknown mode":                   {got: of(wants(func(w *cosiv2.BucketClaimAccess) { w.AccessMode = "Read" })), want: refuse, reason: refused, message: "must be ReadWrite"},
		"it names an unknown protocol":               {got: of(func(o *accessObservation) { o.access.Spec.Protocol = "GCP" }), want: refuse, reason: refused, message: `"GCP"`},
		"it names another protocol than the bucket":  {got: of(func(o *accessObservation) { o.access.Spec.Protocol = "GCS" }), want: refuse, reason: refused, message: "does not support the protocol GCS"},
		"nobody knows the protocols of the bucket":   {got: of(func(o *accessObservation) { o.claims[0].bucket.Status.Protocols = nil }), want: stepRecord},
		"its Secret can have no such name":           {got: of(wants(func(w *cosiv2.BucketClaimAccess) { w.AccessSecretName = "../x" })), want: refuse, reason: refused, message: "accessSecretName"},
		"it has the driver already":                  {got: of(hasDriver("store")), want: stepRecord},
		"it has the driver, and the class another":   {got: of(hasDriver("store"), class(func(s *cosiv2.BucketAccessClassSpec) { s.DriverName = "x" })), want: refuse, reason: refused, message: `is of "x"`},
		"it has the driver, and no class any more":   {got: of(hasDriver("store"), func(o *accessObservation) { o.class = nil }), want: refuse, reason: refused, message: "no BucketAccessClass"},
		"its record and its class were removed":      {got: decideAccess(granted(accessRecordGone, accessDriverGone)), want: refuse, reason: refused, message: "is gone"},
		"it is deleted before anything was done":     {got: of(accessDeleted), want: rule.Done},
		"it is deleted, and another driver's":        {got: decideAccess(granted(accessRecordGone, accessDriverGone, accessForgotten, accessDeleted)), want: rule.Done},
		"it is deleted, and only its claim is PaV's": {got: of(accessDriverGone, accessDeleted, func(o *accessObservation) { o.access.Finalizers = []string{cosiv2.Finalizer} }), want: stepLetGo},
		"it is deleted, and has another driver":      {got: of(accessDriverGone, accessDeleted, hasDriver("x"), func(o *accessObservation) { o.access.Finalizers = []string{cosiv2.Finalizer} }), want: rule.Done},
	})
}

func TestDecideAccess_ToBucketsOfClaims(t *testing.T) {
	const refuse, refused, waiting = bucketapi.StepRefuse, protocol.BucketAccessRefused, protocol.BucketAccessWaiting
	of := func(edits ...accessEdit) rule.Decision { return decideAccess(asked(edits...)) }
	second := func(change func(*askedClaim)) accessEdit {
		return func(o *accessObservation) { change(&o.claims[1]) }
	}
	first := func(change func(*askedClaim)) accessEdit {
		return func(o *accessObservation) { change(&o.claims[0]) }
	}
	isMissing := func(c *askedClaim) { c.claim, c.bucket = nil, nil }
	isPending := func(c *askedClaim) { c.bucket.Status.Phase = pavv1.BucketPending }
	inStore := func(store string) func(*askedClaim) {
		return func(c *askedClaim) { c.bucket.Spec.Store = store }
	}
	isGoing := func(c *askedClaim) { c.claim.DeletionTimestamp = new(metav1.NewTime(noon)) }
	checkAccesses(t, map[string]decision{
		"its claim does not exist":             {got: of(first(isMissing)), want: refuse, reason: waiting, message: "does not exist"},
		"its claim is being deleted":           {got: of(first(isGoing)), want: refuse, reason: refused, message: "being deleted"},
		"its claim has no record":              {got: of(first(func(c *askedClaim) { c.bucket = nil })), want: refuse, reason: waiting, message: "not yet"},
		"its claim is another provisioner's":   {got: of(first(func(c *askedClaim) { c.bucket.Spec.Provisioner = "x" })), want: refuse, reason: refused, message: `PavProvisioner "x"`},
		"the bucket is given up":               {got: of(first(func(c *askedClaim) { c.bucket.Spec.Released = true })), want: refuse, reason: refused, message: "given up"},
		"the bucket is not ready":              {got: of(first(func(c *askedClaim) { c.bucket.Status.Phase = pavv1.BucketPending })), want: refuse, reason: waiting, message: "no bucket yet"},
		"it is to two buckets":                 {got: of(toFilms), want: stepRecord},
		"the class allows one bucket":          {got: of(toFilms, func(o *accessObservation) { o.class.Spec.MultiBucketAccess = cosiv2.MultiBucketAccessSingle }), want: refuse, reason: refused, message: "one bucket only"},
		"the class says nothing about several": {got: of(toFilms, func(o *accessObservation) { o.class.Spec.MultiBucketAccess = "" }), want: refuse, reason: refused, message: "one bucket only"},
		"the class does not allow one mode": {got: of(toFilms, func(o *accessObservation) {
			o.class.Spec.DisallowedBucketAccessModes = []cosiv2.AccessMode{"ReadWrite"}
		}), want: refuse, reason: refused, message: `"films"`},
		"its buckets are in two stores":           {got: of(toFilms, second(inStore("x"))), want: refuse, reason: refused, message: `spec.bucketClaims: the buckets of BucketClaims "photos" and "films" are in different stores`},
		"its buckets are in one store":            {got: of(toFilms, first(inStore("x")), second(inStore("x"))), want: stepRecord},
		"two stores are known before a bucket is": {got: of(toFilms, first(isPending), second(inStore("x"))), want: refuse, reason: refused, message: `spec.store of PavBuckets "b-` + string(claimUID) + `" and "b-` + string(filmsUID) + `"`},
		"the store of the first is not known":     {got: of(toFilms, first(isMissing), second(inStore("x"))), want: refuse, reason: waiting, message: `"photos"`},
		"two buckets have one Secret":             {got: of(toFilms, func(o *accessObservation) { o.access.Spec.BucketClaims[1].AccessSecretName = "photos-s3" }), want: refuse, reason: refused, message: "two buckets"},
		"the second claim does not exist":         {got: of(toFilms, second(isMissing)), want: refuse, reason: waiting, message: `"films"`},
		"one is missing, the other is going":      {got: of(toFilms, first(isMissing), second(isGoing)), want: refuse, reason: refused, message: `"films" is being deleted`},
		"none exists":                             {got: of(toFilms, first(isMissing), second(isMissing)), want: refuse, reason: waiting, message: `"photos"`},
	})
}

func TestDecideAccess_WithARecord(t *testing.T) {
	notRevoked := func(o *accessObservation) { o.record.Status.RevocationFailure = failed("busy") }
	saysSo := func(o *accessObservation) { o.access.Status.Error = errorOf(failed("busy")) }
	checkAccesses(t, map[string]decision{
		"it waits for an account":            {got: decideAccess(granting()), want: rule.Done},
		"it has no finalizer":                {got: decideAccess(granted(accessNotHeld)), want: stepShow},
		"it says that it has an account":     {got: decideAccess(granting(func(o *accessObservation) { o.access.Status.ReadyToUse = true })), want: stepShow},
		"it has an account":                  {got: decideAccess(granting(hasAccount("id"))), want: stepShow},
		"it failed to get an account":        {got: decideAccess(granting(func(o *accessObservation) { o.record.Status.Failure = failed("no") })), want: stepShow},
		"it shows its account":               {got: decideAccess(granted()), want: rule.Done},
		"it has another account":             {got: decideAccess(granted(hasAccount("id-1"))), want: rule.Done},
		"its class and provisioner are gone": {got: decideAccess(granted(accessDriverGone)), want: rule.Done},
		"its bucket is gone":                 {got: decideAccess(granted(func(o *accessObservation) { o.buckets = nil })), want: rule.Done},
		"an administrator gave it up":        {got: decideAccess(granted(accessReleased)), want: bucketapi.StepRefuse, reason: protocol.BucketAccessRefused, message: "given up"},
		"another account is requested":       {got: decideAccess(granted(rotate(noon.Add(-time.Minute)))), want: stepRotate},
		"another account will be requested":  {got: decideAccess(granted(rotate(noon.Add(time.Minute)))), want: rule.Done, after: time.Minute},
		"another account was requested":      {got: decideAccess(granted(rotate(noon), rotated(noon))), want: rule.Done},
		"it is deleted":                      {got: decideAccess(granted(accessDeleted)), want: stepRelease},
		"it is deleted while it waits":       {got: decideAccess(granting(accessDeleted)), want: stepRelease},
		"it is gone":                         {got: decideAccess(granted(func(o *accessObservation) { o.access = nil })), want: stepRelease},
		"it is being revoked":                {got: decideAccess(granted(accessDeleted, accessReleased)), want: rule.Done},
		"its account cannot be revoked":      {got: decideAccess(granted(accessDeleted, accessReleased, notRevoked)), want: stepShowFailure},
		"it says that it cannot be revoked":  {got: decideAccess(granted(accessDeleted, accessReleased, notRevoked, saysSo)), want: rule.Done},
		"it is gone, and cannot be revoked": {got: decideAccess(granted(accessReleased, notRevoked, func(o *accessObservation) {
			o.access = nil
		})), want: rule.Done},
		"it is revoked": {got: decideAccess(granted(accessDeleted, accessRecordGone)), want: stepLetGo},
		"it is revoked, and its provisioner is gone": {got: decideAccess(granted(accessDeleted, accessRecordGone, accessDriverGone)), want: stepLetGo},
		"it is revoked, and was not held":            {got: decideAccess(granted(accessDeleted, accessRecordGone, accessNotHeld)), want: rule.Done},
	})
}

func TestStatusOfAccess(t *testing.T) {
	to := []cosiv2.AccessedBucket{{BucketName: cosiv2.BucketOf(claimUID), BucketID: "id", BucketClaimName: "photos"}}
	initial := cosiv2.BucketAccessStatus{AccessedBuckets: to, DriverName: "store", AuthenticationType: cosiv2.AuthenticationTypeKey}
	with := func(changes ...func(*cosiv2.BucketAccessStatus)) cosiv2.BucketAccessStatus {
		status := initial
		for _, change := range changes {
			change(&status)
		}
		return status
	}
	account := func(id string) func(*cosiv2.BucketAccessStatus) {
		return func(s *cosiv2.BucketAccessStatus) { s.ReadyToUse, s.AccountID = true, id }
	}
	parameters := map[string]string{"role": "user"}
	for name, test := range map[string]struct {
		o    accessObservation
		want cosiv2.BucketAccessStatus
	}{
		"it waits":                 {granting(func(o *accessObservation) { o.access.Status = cosiv2.BucketAccessStatus{} }), initial},
		"its bucket is gone":       {granting(func(o *accessObservation) { o.access.Status, o.buckets = cosiv2.BucketAccessStatus{}, nil }), with(func(s *cosiv2.BucketAccessStatus) { s.AccessedBuckets = nil })},
		"its class has parameters": {granting(func(o *accessObservation) { o.record.Spec.Parameters = parameters }), with(func(s *cosiv2.BucketAccessStatus) { s.Parameters = parameters })},
		"it failed":                {granting(func(o *accessObservation) { o.record.Status.Failure = failed("no") }), with(func(s *cosiv2.BucketAccessStatus) { s.Error = errorOf(failed("no")) })},
		"it has an account":        {granting(hasAccount("id")), with(account("id"))},
		"nobody told what it is":   {granting(hasAccount("")), with(account("ba"))},
		"it has another account":   {granted(hasAccount("id-1")), with(account("id"))},
		"it has lost its account":  {granted(func(o *accessObservation) { o.record.Status.Current = nil }), with(func(s *cosiv2.BucketAccessStatus) { s.AccountID = "id" })},
		"another program has begun it": {granting(func(o *accessObservation) { o.access.Status.AccessedBuckets[0].BucketID = "x" }), with(func(s *cosiv2.BucketAccessStatus) {
			s.AccessedBuckets = []cosiv2.AccessedBucket{{BucketName: to[0].BucketName, BucketID: "x", BucketClaimName: "photos"}}
		})},
		"it failed to get another one": {granted(func(o *accessObservation) { o.record.Status.Failure = failed("no") }), with(account("id"), func(s *cosiv2.BucketAccessStatus) { s.Error = errorOf(failed("no")) })},
		"the store trusts the clients": {granting(func(o *accessObservation) {
			o.access.Status.AuthenticationType, o.record.Spec.AuthenticationType = "", pavv1.AuthenticationServiceAccount
		}), with(func(s *cosiv2.BucketAccessStatus) { s.AuthenticationType = cosiv2.AuthenticationTypeServiceAccount })},
		"it shows parameters of before": {granting(func(o *accessObservation) {
			o.access.Status.Parameters, o.record.Spec.Parameters = parameters, map[string]string{"role": "x"}
		}), with(func(s *cosiv2.BucketAccessStatus) { s.Parameters = parameters })},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.o.status()); diff != "" {
				t.Errorf("the status (-want +got):\n%s", diff)
			}
		})
	}
}
