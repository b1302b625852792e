package cosi1

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

var photos = types.NamespacedName{Namespace: "a", Name: "photos"}

const (
	claimUID = types.UID("00000000-0000-4000-8000-000000000001")
	otherUID = types.UID("00000000-0000-4000-8000-000000000002")
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
	o.claim = &cosiv1.BucketClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: photos.Namespace, Name: photos.Name, UID: claimUID},
		Spec:       cosiv1.BucketClaimSpec{BucketClassName: "s3", Protocols: []cosiv1.Protocol{cosiv1.ProtocolS3}},
	}
	o.class = &cosiv1.BucketClass{ObjectMeta: metav1.ObjectMeta{Name: "s3"}, DriverName: "store", DeletionPolicy: cosiv1.DeletionPolicyDelete}
	o.provisioner = &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "store", UID: "p", Generation: 1}}
	o.provisioner.Spec.BucketCreation = &pavv1.BucketCreation{}
	return withClaim(o, edits)
}

// existing is a claim that asks for a Bucket of an administrator, which names it.
func existing(edits ...claimEdit) claimObservation {
	o := claimed()
	o.class, o.claim.Spec.BucketClassName, o.claim.Spec.ExistingBucketName = nil, "", "archive"
	o.bucket = &cosiv1.Bucket{ObjectMeta: metav1.ObjectMeta{Name: "archive"}}
	o.bucket.Spec = cosiv1.BucketSpec{
		DriverName: "store", ExistingBucketID: "old", Protocols: []cosiv1.Protocol{cosiv1.ProtocolS3},
		BucketClaim: &corev1.ObjectReference{Namespace: photos.Namespace, Name: photos.Name},
		Parameters:  map[string]string{"endpoint": "http://s3:9000"},
	}
	return withClaim(o, edits)
}

// recorded is a claim whose record was written.
func recorded(edits ...claimEdit) claimObservation {
	o := claimed()
	o.class = nil
	o.record = &pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: protocol.BucketRecord(claimUID), UID: "b"}}
	o.record.Spec = pavv1.PavBucketSpec{
		Provisioner: "store", API: pavv1.BucketAPICOSI1, BucketName: cosiv1.BucketOf(claimUID), ReclaimPolicy: pavv1.BucketDelete,
		ClaimRef: pavv1.ClaimReference{Namespace: photos.Namespace, Name: photos.Name, UID: claimUID}, Protocols: []pavv1.BucketProtocol{pavv1.ProtocolS3},
	}
	o.remembered = true
	return withClaim(o, edits)
}

// pending is a claim that shows that its bucket is not ready, and ready is one whose bucket is.
func pending(edits ...claimEdit) claimObservation {
	o := recorded()
	return withClaim(shown(o), edits)
}

func ready(edits ...claimEdit) claimObservation {
	o := recorded(isReady)
	return withClaim(shown(o), edits)
}

// bound is a claim that has the Bucket of an administrator, which is ready.
func bound(edits ...claimEdit) claimObservation {
	o := existing()
	o.bucket.Spec.BucketClaim.UID = claimUID
	o.record = recorded().record
	o.record.Spec.ExistingBucketID, o.record.Spec.BucketName, o.record.Spec.ReclaimPolicy = "old", "archive", pavv1.BucketRetain
	isReady(&o)
	return withClaim(shown(o), edits)
}

// shown shows in claim and Bucket what the record says.
func shown(o claimObservation) claimObservation {
	if o.bucket == nil {
		o.bucket, _ = newBucket(o)
	}
	o.bucket = filled(o)
	o.bucket.Status = o.bucketStatus()
	o.claim.Finalizers, o.claim.Status = []string{cosiv1.ClaimFinalizer}, o.claimStatus()
	return o
}

func isReady(o *claimObservation) {
	o.record.Status.Phase, o.record.Status.BucketID, o.record.Status.Created = pavv1.BucketReady, "id", true
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

func forgotten(o *claimObservation) { o.remembered = false }

func driverGone(o *claimObservation) { o.class, o.provisioner = nil, nil }

// names gives the Bucket a claim that it names.
func names(namespace, name string, uid types.UID) claimEdit {
	return func(o *claimObservation) {
		b := o.bucket
		if b == nil {
			b = &cosiv1.Bucket{ObjectMeta: metav1.ObjectMeta{Name: cosiv1.BucketOf(claimUID)}}
			b.Spec.DriverName = "store"
		}
		b.Spec.BucketClaim = &corev1.ObjectReference{Namespace: namespace, Name: name, UID: uid}
		o.bucket = b
	}
}

func unclaimed(o *claimObservation) { o.bucket.Spec.BucketClaim = &corev1.ObjectReference{} }

func firstClaim(o *claimObservation) {
	o.provisioner.Spec.BucketValidation = &pavv1.BucketValidation{UnclaimedBuckets: pavv1.UnclaimedFirstClaim}
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

func TestDecideClaim_WithoutARecord(t *testing.T) {
	const refused = protocol.BucketClaimRefused
	of := func(edits ...claimEdit) rule.Decision { return decideClaim(claimed(edits...)) }
	policy := func(p cosiv1.DeletionPolicy) claimEdit {
		return func(o *claimObservation) { o.class.DeletionPolicy = p }
	}
	checkClaims(t, map[string]decision{
		"it asks for a bucket":                    {got: of(), want: stepRecord},
		"its class is another driver's":           {got: of(func(o *claimObservation) { o.provisioner = nil }), want: rule.Done},
		"it has no class":                         {got: of(driverGone), want: rule.Done},
		"the class retains":                       {got: of(policy("Retain")), want: stepRecord},
		"the class retains by upstream's default": {got: of(policy("retain")), want: stepRecord},
		"the class has no policy":                 {got: of(policy("")), want: stepRecord},
		"the class has an unknown policy":         {got: of(policy("Recycle")), want: stepRefuse, reason: refused, message: "Delete or Retain"},
		"it names no protocols":                   {got: of(func(o *claimObservation) { o.claim.Spec.Protocols = nil }), want: stepRecord},
		"it names an unknown protocol":            {got: of(func(o *claimObservation) { o.claim.Spec.Protocols = []cosiv1.Protocol{"NFS"} }), want: stepRefuse, reason: refused, message: `"NFS"`},
		"the provisioner has no buckets":          {got: of(func(o *claimObservation) { o.provisioner.Spec.BucketCreation = nil }), want: stepRefuse, reason: refused, message: "no buckets"},
		"the provisioner is being deleted":        {got: of(func(o *claimObservation) { o.provisioner.DeletionTimestamp = new(metav1.NewTime(noon)) }), want: stepRefuse, reason: refused, message: "being deleted"},
		"the provisioner is refused": {got: of(func(o *claimObservation) {
			o.provisioner.Status.Conditions = []metav1.Condition{{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionFalse, Reason: "Taken", Message: "it is taken"}}
		}), want: stepRefuse, reason: refused, message: "it is taken"},
		"another Bucket has the name":                 {got: of(names("b", "x", otherUID)), want: stepRefuse, reason: refused, message: "is not one of this claim"},
		"another program has made its Bucket":         {got: of(names("a", "photos", claimUID)), want: stepRecord},
		"its Bucket is another driver's":              {got: of(names("a", "photos", claimUID), func(o *claimObservation) { o.bucket.Spec.DriverName = "x" }), want: stepRefuse, reason: refused, message: "its driver"},
		"it has the status of another claim":          {got: of(func(o *claimObservation) { o.claim.Status.BucketName = "bucket-x" }), want: stepRefuse, reason: refused, message: "without its status"},
		"it is deleted before anything was done":      {got: of(isDeleted), want: rule.Done},
		"it is deleted, and another driver's":         {got: decideClaim(pending(recordGone, bucketGone, forgotten, driverGone, isDeleted)), want: rule.Done},
		"its record was removed by force":             {got: decideClaim(ready(recordGone, func(o *claimObservation) { o.class = claimed().class })), want: stepRecord},
		"its record and its class were removed":       {got: decideClaim(ready(recordGone, driverGone)), want: stepRefuse, reason: refused, message: "is gone"},
		"all that says whose it is but its Bucket is": {got: decideClaim(ready(recordGone, driverGone, forgotten)), want: stepRefuse, reason: refused, message: "is gone"},
	})
}

func TestDecideClaim_OfAnExistingBucket(t *testing.T) {
	const refused, elsewhere = protocol.BucketClaimRefused, protocol.BucketBoundElsewhere
	of := func(edits ...claimEdit) rule.Decision { return decideClaim(existing(edits...)) }
	checkClaims(t, map[string]decision{
		"the Bucket names it":                              {got: of(), want: stepRecord},
		"the Bucket is bound to it":                        {got: of(names("a", "photos", claimUID)), want: stepRecord},
		"the Bucket does not exist":                        {got: of(bucketGone), want: stepRefuse, reason: protocol.BucketClaimWaiting, message: "does not exist"},
		"the Bucket is another driver's":                   {got: of(func(o *claimObservation) { o.provisioner = nil }), want: rule.Done},
		"the Bucket is being deleted":                      {got: of(func(o *claimObservation) { o.bucket.DeletionTimestamp = new(metav1.NewTime(noon)) }), want: stepRefuse, reason: refused, message: "being deleted"},
		"the Bucket names a claim of another name":         {got: of(names("a", "x", "")), want: stepRefuse, reason: elsewhere, message: `"x" of namespace "a"`},
		"the Bucket names a claim of another namespace":    {got: of(names("b", "photos", "")), want: stepRefuse, reason: elsewhere},
		"the Bucket names no namespace":                    {got: of(names("", "photos", "")), want: stepRefuse, reason: elsewhere},
		"the Bucket is bound to a former claim":            {got: of(names("a", "photos", otherUID)), want: stepRefuse, reason: elsewhere, message: "former claim"},
		"the Bucket has only another's UID":                {got: of(names("", "", otherUID), firstClaim), want: stepRefuse, reason: elsewhere},
		"the Bucket names no claim":                        {got: of(unclaimed), want: stepRefuse, reason: protocol.BucketUnclaimed, message: `kubectl patch buckets.objectstorage.k8s.io archive --type=merge -p '{"spec":{"bucketClaim":{"name":"photos","namespace":"a"}}}'`},
		"the Bucket has no reference":                      {got: of(func(o *claimObservation) { o.bucket.Spec.BucketClaim = nil }), want: stepRefuse, reason: protocol.BucketUnclaimed},
		"the Bucket names no claim, and the first gets it": {got: of(unclaimed, firstClaim), want: stepRecord},
		"the Bucket names another, and the first gets it":  {got: of(names("b", "photos", ""), firstClaim), want: stepRefuse, reason: elsewhere},
		"the Bucket was given to it, and another has it":   {got: of(names("a", "photos", claimUID), func(o *claimObservation) { o.holder = "b/x" }), want: stepRefuse, reason: elsewhere, message: "b/x"},
		"the Bucket names no bucket":                       {got: of(func(o *claimObservation) { o.bucket.Spec.ExistingBucketID = "" }), want: stepRefuse, reason: refused, message: "existingBucketID"},
		"the name of the bucket is too long":               {got: of(func(o *claimObservation) { o.bucket.Spec.ExistingBucketID = strings.Repeat("x", 2049) }), want: stepRefuse, reason: refused, message: "2049"},
		"the Bucket does not support what it asks for":     {got: of(func(o *claimObservation) { o.claim.Spec.Protocols = []cosiv1.Protocol{"GCP"} }), want: stepRefuse, reason: refused, message: "GCP"},
		"the Bucket lists no protocols":                    {got: of(func(o *claimObservation) { o.bucket.Spec.Protocols = nil }), want: stepRecord},
		"it is deleted before it was bound":                {got: of(isDeleted), want: rule.Done},
		"it has the Bucket":                                {got: decideClaim(bound()), want: rule.Done},
		"another program gave its Bucket to another":       {got: decideClaim(bound(names("b", "x", otherUID))), want: rule.Done},
		"its Bucket was removed by force":                  {got: decideClaim(bound(bucketGone)), want: rule.Done},
		"it is deleted":                                    {got: decideClaim(bound(isDeleted)), want: stepRelease},
		"it is deleted, and has no record any more":        {got: decideClaim(bound(isDeleted, recordGone)), want: stepLetGo},
		"it is gone, and its Bucket is held":               {got: decideClaim(bound(isGone, recordGone)), want: stepDeleteBucket},
		"it is gone, and its Bucket is free":               {got: decideClaim(bound(isGone, recordGone, func(o *claimObservation) { o.bucket.Finalizers = nil })), want: rule.Done},
		"it is deleted, and its Bucket is another's":       {got: decideClaim(bound(isDeleted, recordGone, names("b", "x", otherUID))), want: stepLetGo},
		"it is gone, and its Bucket is another's":          {got: decideClaim(bound(isGone, recordGone, names("b", "x", otherUID))), want: rule.Done},
	})
}

func TestDecideClaim_ThatIsWanted(t *testing.T) {
	const refused = protocol.BucketClaimRefused
	checkClaims(t, map[string]decision{
		"nothing is shown":                            {got: decideClaim(recorded()), want: stepShow},
		"the provisioner is gone":                     {got: decideClaim(recorded(driverGone)), want: stepShow},
		"it waits for its bucket":                     {got: decideClaim(pending()), want: rule.Done},
		"its bucket is ready":                         {got: decideClaim(pending(isReady)), want: stepShow},
		"it shows that its bucket is ready":           {got: decideClaim(ready()), want: rule.Done},
		"it shows what is not true":                   {got: decideClaim(ready(func(o *claimObservation) { o.record.Status.Phase = pavv1.BucketPending })), want: stepShow},
		"its Bucket is removed by force":              {got: decideClaim(ready(bucketGone)), want: stepShow},
		"its Bucket has no finalizer":                 {got: decideClaim(ready(func(o *claimObservation) { o.bucket.Finalizers = nil })), want: stepShow},
		"its Bucket has a finalizer of another":       {got: decideClaim(ready(func(o *claimObservation) { o.bucket.Finalizers = append(o.bucket.Finalizers, "x/y") })), want: rule.Done},
		"its Bucket is being deleted":                 {got: decideClaim(ready(isAccessed, func(o *claimObservation) { o.bucket.DeletionTimestamp = new(metav1.NewTime(noon)) })), want: rule.Done},
		"its Bucket does not say what the bucket is":  {got: decideClaim(ready(func(o *claimObservation) { o.bucket.Status.BucketID = "" })), want: stepShow},
		"its Bucket says that it is another bucket":   {got: decideClaim(ready(func(o *claimObservation) { o.bucket.Status.BucketID = "x" })), want: rule.Done},
		"its bucket is accessed":                      {got: decideClaim(ready(isAccessed)), want: stepShow},
		"its finalizer was removed":                   {got: decideClaim(ready(func(o *claimObservation) { o.claim.Finalizers = nil })), want: stepShow},
		"its Bucket is another's":                     {got: decideClaim(ready(names("b", "x", otherUID))), want: stepRefuse, reason: refused, message: "is not one of this claim"},
		"its status names another Bucket":             {got: decideClaim(ready(func(o *claimObservation) { o.claim.Status.BucketName = "x" })), want: stepRefuse, reason: refused, message: "without its status"},
		"it names another class by now":               {got: decideClaim(ready(func(o *claimObservation) { o.claim.Spec.BucketClassName = "x" })), want: rule.Done},
		"an administrator gave its bucket up":         {got: decideClaim(ready(isReleased)), want: stepRefuse, reason: refused, message: "given up"},
		"its bucket is retained although it is there": {got: decideClaim(ready(isRetained)), want: stepRefuse, reason: refused, message: "given up"},
	})
}

func TestDecideClaim_ThatIsNotWanted(t *testing.T) {
	checkClaims(t, map[string]decision{
		"it is deleted":                                  {got: decideClaim(ready(isDeleted)), want: stepRelease},
		"it is deleted while it waits":                   {got: decideClaim(pending(isDeleted)), want: stepRelease},
		"it is deleted, and its driver is":               {got: decideClaim(ready(isDeleted, driverGone)), want: stepRelease},
		"it is gone":                                     {got: decideClaim(ready(isGone)), want: stepRelease},
		"it is deleted, and someone has access":          {got: decideClaim(ready(isDeleted, isAccessed)), want: stepRefuse, reason: protocol.BucketClaimWaiting, message: "BucketAccess a/app"},
		"it is gone, and someone has access":             {got: decideClaim(ready(isGone, isAccessed)), want: stepRefuse, reason: protocol.BucketClaimWaiting},
		"its finalizer was removed before":               {got: decideClaim(ready(isDeleted, func(o *claimObservation) { o.claim.Finalizers = nil })), want: stepRelease},
		"its bucket is being deleted":                    {got: decideClaim(ready(isDeleted, isReleased)), want: rule.Done},
		"its bucket is deleted":                          {got: decideClaim(ready(isDeleted, recordGone)), want: stepLetGo},
		"its bucket is retained":                         {got: decideClaim(ready(isDeleted, isRetained)), want: stepLetGo},
		"its bucket is deleted, and only Bucket says so": {got: decideClaim(ready(isDeleted, recordGone, driverGone, forgotten)), want: stepLetGo},
		"its bucket is deleted, and its Bucket gone":     {got: decideClaim(ready(isDeleted, recordGone, driverGone, bucketGone)), want: stepLetGo},
		"it is gone, and its bucket is deleted":          {got: decideClaim(ready(isGone, recordGone, driverGone, forgotten)), want: stepDeleteBucket},
		"it is gone, and its bucket is retained":         {got: decideClaim(ready(isGone, isRetained)), want: stepDeleteBucket},
		"another program made its Bucket": {got: decideClaim(ready(isGone, recordGone, func(o *claimObservation) {
			o.bucket.Labels = nil
		})), want: stepDeleteBucket},
		"another program made its Bucket, which is free": {got: decideClaim(ready(isGone, recordGone, func(o *claimObservation) {
			o.bucket.Labels, o.bucket.Finalizers = nil, nil
		})), want: rule.Done},
		"only the record of its bucket is left": {got: decideClaim(ready(isGone, isRetained, bucketGone)), want: rule.Done},
	})
}
