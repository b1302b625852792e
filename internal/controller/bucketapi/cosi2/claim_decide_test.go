package cosi2

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
)

func TestDecideClaim_WithoutARecord(t *testing.T) {
	const refuse, refused = bucketapi.StepRefuse, protocol.BucketClaimRefused
	of := func(edits ...claimEdit) rule.Decision { return decideClaim(claimed(edits...)) }
	policy := func(p cosiv2.DeletionPolicy) claimEdit {
		return func(o *claimObservation) { o.class.Spec.DeletionPolicy = p }
	}
	checkClaims(t, map[string]decision{
		"it asks for a bucket":             {got: of(), want: stepRecord},
		"its class is another driver's":    {got: of(func(o *claimObservation) { o.provisioner = nil }), want: rule.Done},
		"it has no class":                  {got: of(driverGone), want: rule.Done},
		"the class retains":                {got: of(policy("Retain")), want: stepRecord},
		"the class has no policy":          {got: of(policy("")), want: refuse, reason: refused, message: "Delete or Retain"},
		"the class has an unknown policy":  {got: of(policy("retain")), want: refuse, reason: refused, message: "Delete or Retain"},
		"it names no protocols":            {got: of(func(o *claimObservation) { o.claim.Spec.Protocols = nil }), want: stepRecord},
		"it names an unknown protocol":     {got: of(func(o *claimObservation) { o.claim.Spec.Protocols = []cosiv2.Protocol{"GCP"} }), want: refuse, reason: refused, message: `"GCP" is none of S3, Azure and GCS`},
		"the provisioner has no buckets":   {got: of(func(o *claimObservation) { o.provisioner.Spec.BucketCreation = nil }), want: refuse, reason: refused, message: "no buckets"},
		"the provisioner is being deleted": {got: of(func(o *claimObservation) { o.provisioner.DeletionTimestamp = new(metav1.NewTime(noon)) }), want: refuse, reason: refused, message: "being deleted"},
		"the provisioner is refused": {got: of(func(o *claimObservation) {
			o.provisioner.Status.Conditions = []metav1.Condition{{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionFalse, Reason: "Taken", Message: "it is taken"}}
		}), want: refuse, reason: refused, message: "it is taken"},
		"another Bucket has the name":                 {got: of(names("b", "x", otherUID)), want: refuse, reason: refused, message: "is not one of this claim"},
		"another program has made its Bucket":         {got: of(names("a", "photos", claimUID)), want: stepRecord},
		"its Bucket is another driver's":              {got: of(names("a", "photos", claimUID), func(o *claimObservation) { o.bucket.Spec.DriverName = "x" }), want: refuse, reason: refused, message: "its driver"},
		"it has the status of another claim":          {got: of(func(o *claimObservation) { o.claim.Status.BoundBucketName = "bc-x" }), want: refuse, reason: refused, message: "without its status"},
		"it is deleted before anything was done":      {got: of(isDeleted), want: rule.Done},
		"it is deleted, and another driver's":         {got: decideClaim(pending(recordGone, bucketGone, forgotten, driverGone, isDeleted)), want: rule.Done},
		"its record was removed by force":             {got: decideClaim(ready(recordGone, func(o *claimObservation) { o.class = claimed().class })), want: stepRecord},
		"its record and its class were removed":       {got: decideClaim(ready(recordGone, driverGone)), want: refuse, reason: refused, message: "is gone"},
		"all that says whose it is but its Bucket is": {got: decideClaim(ready(recordGone, driverGone, forgotten)), want: refuse, reason: refused, message: "is gone"},
	})
}

func TestDecideClaim_OfAnExistingBucket(t *testing.T) {
	const refuse, refused, elsewhere = bucketapi.StepRefuse, protocol.BucketClaimRefused, protocol.BucketBoundElsewhere
	of := func(edits ...claimEdit) rule.Decision { return decideClaim(existing(edits...)) }
	checkClaims(t, map[string]decision{
		"the Bucket names it":                            {got: of(), want: stepRecord},
		"the Bucket is bound to it":                      {got: of(names("a", "photos", claimUID)), want: stepRecord},
		"the Bucket does not exist":                      {got: of(bucketGone), want: refuse, reason: protocol.BucketClaimWaiting, message: "does not exist"},
		"the Bucket is another driver's":                 {got: of(func(o *claimObservation) { o.provisioner = nil }), want: rule.Done},
		"the Bucket is being deleted":                    {got: of(bucketGoing), want: refuse, reason: refused, message: "being deleted"},
		"the Bucket names a claim of another name":       {got: of(names("a", "x", "")), want: refuse, reason: elsewhere, message: `"x" of namespace "a"`},
		"the Bucket names a claim of another namespace":  {got: of(names("b", "photos", "")), want: refuse, reason: elsewhere},
		"the Bucket has the UID, and another namespace":  {got: of(names("b", "photos", claimUID)), want: refuse, reason: elsewhere},
		"the Bucket names no claim":                      {got: of(names("", "", "")), want: refuse, reason: elsewhere},
		"the Bucket is bound to a former claim":          {got: of(names("a", "photos", otherUID)), want: refuse, reason: elsewhere, message: "former claim"},
		"the Bucket was given to it, and another has it": {got: of(names("a", "photos", claimUID), func(o *claimObservation) { o.holder = "b/x" }), want: refuse, reason: elsewhere, message: "b/x"},
		"the Bucket names no bucket":                     {got: of(func(o *claimObservation) { o.bucket.Spec.ExistingBucketID = "" }), want: refuse, reason: refused, message: "existingBucketID"},
		"the Bucket does not support what it asks for":   {got: of(func(o *claimObservation) { o.claim.Spec.Protocols = []cosiv2.Protocol{"GCS"} }), want: refuse, reason: refused, message: "GCS"},
		"the Bucket has an unknown protocol": {got: of(func(o *claimObservation) {
			o.claim.Spec.Protocols, o.bucket.Spec.Protocols = nil, []cosiv2.Protocol{"NFS"}
		}), want: refuse, reason: refused, message: "NFS"},
		"the Bucket lists no protocols":              {got: of(func(o *claimObservation) { o.bucket.Spec.Protocols = nil }), want: stepRecord},
		"it is deleted before it was bound":          {got: of(isDeleted), want: rule.Done},
		"it has the Bucket":                          {got: decideClaim(bound()), want: rule.Done},
		"its Bucket is to be retained":               {got: decideClaim(bound(bucketSays("Retain"))), want: rule.Done},
		"another program gave its Bucket to another": {got: decideClaim(bound(names("b", "x", otherUID))), want: rule.Done},
		"its Bucket was removed by force":            {got: decideClaim(bound(bucketGone)), want: rule.Done},
		"it is deleted":                              {got: decideClaim(bound(isDeleted)), want: stepRelease},
		"it is deleted, and has no record any more":  {got: decideClaim(bound(isDeleted, recordGone)), want: stepLetGo},
		"it is gone, and its Bucket is held":         {got: decideClaim(bound(isGone, recordGone)), want: stepDeleteBucket},
		"it is gone, and its Bucket is free":         {got: decideClaim(bound(isGone, recordGone, bucketFree)), want: rule.Done},
		"it is deleted, and its Bucket is another's": {got: decideClaim(bound(isDeleted, recordGone, names("b", "x", otherUID))), want: stepLetGo},
		"it is gone, and its Bucket is another's":    {got: decideClaim(bound(isGone, recordGone, names("b", "x", otherUID))), want: rule.Done},
	})
}

func TestDecideClaim_ThatIsWanted(t *testing.T) {
	const refuse, refused = bucketapi.StepRefuse, protocol.BucketClaimRefused
	checkClaims(t, map[string]decision{
		"nothing is shown":                           {got: decideClaim(recorded()), want: stepShow},
		"the provisioner is gone":                    {got: decideClaim(recorded(driverGone)), want: stepShow},
		"it waits for its bucket":                    {got: decideClaim(pending()), want: rule.Done},
		"it failed to get its bucket":                {got: decideClaim(pending(func(o *claimObservation) { o.record.Status.Failure = failed("no room") })), want: stepShow},
		"it shows an error of the past":              {got: decideClaim(pending(func(o *claimObservation) { o.claim.Status.Error = errorOf(failed("no room")) })), want: stepShow},
		"its bucket is ready":                        {got: decideClaim(pending(isReady)), want: stepShow},
		"it shows that its bucket is ready":          {got: decideClaim(ready()), want: rule.Done},
		"it shows what is not true":                  {got: decideClaim(ready(func(o *claimObservation) { o.record.Status.Phase = pavv1.BucketPending })), want: stepShow},
		"its Bucket is removed by force":             {got: decideClaim(ready(bucketGone)), want: stepShow},
		"its Bucket has no finalizer":                {got: decideClaim(ready(bucketFree)), want: stepShow},
		"its Bucket has a finalizer of another":      {got: decideClaim(ready(func(o *claimObservation) { o.bucket.Finalizers = append(o.bucket.Finalizers, "x/y") })), want: rule.Done},
		"its Bucket is being deleted":                {got: decideClaim(ready(bucketGoing, bucketFree)), want: rule.Done},
		"its Bucket does not say what the bucket is": {got: decideClaim(ready(func(o *claimObservation) { o.bucket.Status.BucketID = "" })), want: stepShow},
		"its Bucket says that it is another bucket":  {got: decideClaim(ready(func(o *claimObservation) { o.bucket.Status.BucketID = "x" })), want: rule.Done},
		"its bucket is accessed":                     {got: decideClaim(ready(isAccessed)), want: rule.Done},
		"its finalizer was removed":                  {got: decideClaim(ready(func(o *claimObservation) { o.claim.Finalizers = nil })), want: stepShow},
		"its Bucket is another's":                    {got: decideClaim(ready(names("b", "x", otherUID))), want: refuse, reason: refused, message: "is not one of this claim"},
		"its status names another Bucket":            {got: decideClaim(ready(func(o *claimObservation) { o.claim.Status.BoundBucketName = "x" })), want: refuse, reason: refused, message: "without its status"},
		"an administrator gave its bucket up":        {got: decideClaim(ready(isReleased)), want: refuse, reason: refused, message: "given up"},
		"an administrator keeps its bucket":          {got: decideClaim(ready(bucketSays("Retain"))), want: stepRetain},
		"only its Bucket is to be deleted":           {got: decideClaim(kept(bucketSays("Delete"))), want: rule.Done},
		"only its record is to be deleted":           {got: decideClaim(kept(recordSays(pavv1.BucketDelete))), want: stepRetain},
		"its Bucket and its record are":              {got: decideClaim(kept(bucketSays("Delete"), recordSays(pavv1.BucketDelete))), want: rule.Done},
	})
}

func TestDecideClaim_ThatIsNotWanted(t *testing.T) {
	notDeleted := func(o *claimObservation) { o.record.Status.DeletionFailure = failed("busy") }
	saysSo := func(o *claimObservation) { o.claim.Status.Error = errorOf(failed("busy")) }
	checkClaims(t, map[string]decision{
		"it is deleted":                                  {got: decideClaim(ready(isDeleted)), want: stepRelease},
		"it is deleted while it waits":                   {got: decideClaim(pending(isDeleted)), want: stepRelease},
		"it is deleted, and its driver is":               {got: decideClaim(ready(isDeleted, driverGone)), want: stepRelease},
		"it is deleted, and its bucket is to be kept":    {got: decideClaim(ready(isDeleted, isReleased, bucketSays("Retain"))), want: stepRetain},
		"it is gone":                                     {got: decideClaim(ready(isGone)), want: stepRelease},
		"it is deleted, and someone has access":          {got: decideClaim(ready(isDeleted, isAccessed)), want: bucketapi.StepRefuse, reason: protocol.BucketClaimWaiting, message: "BucketAccess a/app"},
		"it is gone, and someone has access":             {got: decideClaim(ready(isGone, isAccessed)), want: bucketapi.StepRefuse, reason: protocol.BucketClaimWaiting},
		"its finalizer was removed before":               {got: decideClaim(ready(isDeleted, func(o *claimObservation) { o.claim.Finalizers = nil })), want: stepRelease},
		"its bucket is being deleted":                    {got: decideClaim(ready(isDeleted, isReleased)), want: rule.Done},
		"its bucket cannot be deleted":                   {got: decideClaim(ready(isDeleted, isReleased, notDeleted)), want: stepShowFailure},
		"it says that its bucket cannot be deleted":      {got: decideClaim(ready(isDeleted, isReleased, notDeleted, saysSo)), want: rule.Done},
		"it is gone, and its bucket cannot be deleted":   {got: decideClaim(ready(isGone, isReleased, notDeleted)), want: rule.Done},
		"its bucket is retained after a failed deletion": {got: decideClaim(kept(isDeleted, isRetained, notDeleted)), want: stepLetGo},
		"its bucket is deleted":                          {got: decideClaim(ready(isDeleted, recordGone)), want: stepLetGo},
		"its bucket is retained":                         {got: decideClaim(kept(isDeleted, isRetained)), want: stepLetGo},
		"its bucket is deleted, and only Bucket says so": {got: decideClaim(ready(isDeleted, recordGone, driverGone, forgotten)), want: stepLetGo},
		"its bucket is deleted, and its Bucket gone":     {got: decideClaim(ready(isDeleted, recordGone, driverGone, bucketGone)), want: stepLetGo},
		"it is gone, and its bucket is deleted":          {got: decideClaim(ready(isGone, recordGone, driverGone, forgotten)), want: stepDeleteBucket},
		"it is gone, and its Bucket is being deleted":    {got: decideClaim(ready(isGone, recordGone, bucketGoing)), want: stepDeleteBucket},
		"it is gone, and its Bucket lost its finalizer":  {got: decideClaim(ready(isGone, recordGone, bucketFree)), want: stepDeleteBucket},
		"it is gone, and another holds its Bucket":       {got: decideClaim(ready(isGone, recordGone, bucketFree, bucketGoing)), want: rule.Done},
		"it is gone, and its bucket is retained":         {got: decideClaim(kept(isGone, isRetained)), want: stepDeleteBucket},
		"it is gone, and its bucket is retained, free":   {got: decideClaim(kept(isGone, isRetained, bucketFree)), want: rule.Done},
		"another program made its Bucket":                {got: decideClaim(ready(isGone, recordGone, func(o *claimObservation) { o.bucket.Labels = nil })), want: stepDeleteBucket},
		"another program made its Bucket, which is free": {got: decideClaim(ready(isGone, recordGone, bucketFree, func(o *claimObservation) { o.bucket.Labels = nil })), want: rule.Done},
		"only the record of its bucket is left":          {got: decideClaim(kept(isGone, isRetained, bucketGone)), want: rule.Done},
	})
}

// The Bucket of a bucket that is retained stays, even when its record is deleted; that of a bucket that never was does not.
func TestIsBucketDeletable(t *testing.T) {
	for name, test := range map[string]struct {
		o    claimObservation
		want bool
	}{
		"the bucket is deleted":                              {ready(isGone, recordGone), true},
		"the bucket is there":                                {ready(isGone), false},
		"the bucket is retained":                             {kept(isGone, isRetained), false},
		"the bucket was retained":                            {kept(isGone, recordGone), false},
		"the bucket was never made":                          {pending(isGone, recordGone, bucketSays("Retain")), true},
		"an administrator made the Bucket":                   {bound(isGone, recordGone), false},
		"another program made the Bucket":                    {ready(isGone, recordGone, func(o *claimObservation) { o.bucket.Labels = nil }), false},
		"a Bucket has the label, and the name of another":    {ready(isGone, recordGone, func(o *claimObservation) { o.bucket.Name = "x" }), false},
		"a Bucket has the name, and is that of another":      {ready(isGone, recordGone, names("a", "photos", otherUID)), false},
		"a bucket that may exist was given up by its record": {ready(isGone, isRetained), false},
	} {
		if got := test.o.isBucketDeletable(); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestStatusOfClaim(t *testing.T) {
	info := map[string]string{"COSI_S3_BUCKET_ID": "id", "COSI_S3_ENDPOINT": "https://s3.example:9000"}
	s3 := []cosiv2.Protocol{cosiv2.ProtocolS3}
	own, failure := cosiv2.BucketOf(claimUID), failed("no room")
	for name, test := range map[string]struct {
		o      claimObservation
		claim  cosiv2.BucketClaimStatus
		bucket cosiv2.BucketStatus
	}{
		"it waits": {o: pending(), claim: cosiv2.BucketClaimStatus{BoundBucketName: own}},
		"it failed": {
			o:      pending(func(o *claimObservation) { o.record.Status.Failure = failure }),
			claim:  cosiv2.BucketClaimStatus{BoundBucketName: own, Error: errorOf(failure)},
			bucket: cosiv2.BucketStatus{Error: errorOf(failure)},
		},
		"it is ready": {
			o:      pending(isReady),
			claim:  cosiv2.BucketClaimStatus{BoundBucketName: own, ReadyToUse: true, Protocols: s3},
			bucket: cosiv2.BucketStatus{ReadyToUse: true, BucketID: "id", Protocols: s3, BucketInfo: info},
		},
		"it was ready, and what cannot be removed stays": {
			o:      ready(func(o *claimObservation) { o.record.Status = pavv1.PavBucketStatus{Phase: pavv1.BucketPending} }),
			claim:  cosiv2.BucketClaimStatus{BoundBucketName: own, Protocols: s3},
			bucket: cosiv2.BucketStatus{BucketID: "id", Protocols: s3, BucketInfo: info},
		},
		"its bucket has another ID by now": {
			o:      ready(func(o *claimObservation) { o.record.Status.BucketID = "new" }),
			claim:  cosiv2.BucketClaimStatus{BoundBucketName: own, ReadyToUse: true, Protocols: s3},
			bucket: cosiv2.BucketStatus{ReadyToUse: true, BucketID: "id", Protocols: s3, BucketInfo: map[string]string{"COSI_S3_BUCKET_ID": "new", "COSI_S3_ENDPOINT": "https://s3.example:9000"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.claim, test.o.claimStatus()); diff != "" {
				t.Errorf("the claim (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.bucket, test.o.bucketStatus()); diff != "" {
				t.Errorf("the Bucket (-want +got):\n%s", diff)
			}
		})
	}
}
