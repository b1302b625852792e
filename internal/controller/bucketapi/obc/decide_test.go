package obc

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
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

type edit func(*observation)

func with(o observation, edits []edit) observation {
	for _, edit := range edits {
		edit(&o)
	}
	return o
}

// claimed is a claim that nothing was done for.
func claimed(edits ...edit) observation {
	o := observation{name: photos, uid: claimUID, now: noon}
	o.claim = &objectbucketv1.ObjectBucketClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: photos.Namespace, Name: photos.Name, UID: claimUID},
		Spec:       objectbucketv1.ObjectBucketClaimSpec{StorageClassName: "s3", GenerateBucketName: "photos"},
	}
	o.class = &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "s3"}, Provisioner: "store"}
	o.provisioner = &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "store", UID: "p", Generation: 1}}
	o.provisioner.Spec.BucketCreation = &pavv1.BucketCreation{}
	o.provisioner.Spec.BucketValidation = &pavv1.BucketValidation{AdditionalConfig: []string{"maxSize"}}
	return with(o, edits)
}

// recorded is a claim whose records were written.
func recorded(edits ...edit) observation {
	o := claimed()
	o.class = nil
	o.claim.Finalizers = []string{objectbucketv1.Finalizer}
	o.claim.Labels = map[string]string{objectbucketv1.ProvisionerLabel: "store"}
	o.claim.Status.Phase = objectbucketv1.ClaimPending
	o.bucket = &pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: protocol.BucketRecord(claimUID), UID: "b"}}
	o.bucket.Spec = pavv1.PavBucketSpec{
		Provisioner: "store", API: pavv1.BucketAPIClaim, BucketName: "photos-" + string(claimUID), ReclaimPolicy: pavv1.BucketDelete,
		ClaimRef: pavv1.ClaimReference{Namespace: photos.Namespace, Name: photos.Name, UID: claimUID},
	}
	o.access = newAccess(o.bucket)
	o.memory.ours = true
	return with(o, edits)
}

// granted is a claim whose bucket clients can use.
func granted(edits ...edit) observation {
	o := recorded()
	status := &o.bucket.Status
	status.Phase, status.BucketID, status.Created = pavv1.BucketReady, o.bucket.Spec.BucketName, true
	status.Info = map[string]string{"endpoint": "https://s3.example:9000", "region": "r"}
	o.access.Status.Phase, o.access.Status.Current = pavv1.AccessReady, &pavv1.GrantedAccount{AccountName: "ba"}
	return with(o, edits)
}

// bound is a claim that shows its bucket.
func bound(edits ...edit) observation {
	o := granted()
	o.objectBucket = objectBucketOf(o)
	o.objectBucket.Status.Phase = objectbucketv1.BucketBound
	o.claim.Spec.BucketName, o.claim.Spec.ObjectBucketName = o.bucket.Spec.BucketName, o.objectBucket.Name
	o.claim.Status.Phase = objectbucketv1.ClaimBound
	o.memory.written = hashOf(configData(o.bucket))
	return with(o, edits)
}

func deleted(o *observation) { o.claim.DeletionTimestamp = new(metav1.NewTime(noon)) }

func gone(o *observation) { o.claim = nil }

func accessReleased(o *observation) { o.access.Spec.Released = true }

func revoked(o *observation) { o.access = nil }

func released(o *observation) { o.access, o.bucket.Spec.Released = nil, true }

func retained(o *observation) {
	o.access, o.bucket.Spec.Released, o.bucket.Status.Phase = nil, true, pavv1.BucketRetained
}

func bucketGone(o *observation) { o.access, o.bucket = nil, nil }

func classGone(o *observation) { o.class, o.provisioner = nil, nil }

func provisionerGone(o *observation) { o.provisioner = nil }

func forgotten(o *observation) { o.memory = memory{} }

// taken gives the name of the ObjectBucket to something else: an ObjectBucket of no PavProvisioner or, with a namespace, of another claim.
func taken(namespace, name string, uid types.UID) edit {
	return func(o *observation) {
		o.objectBucket, o.other = nil, &objectbucketv1.ObjectBucket{ObjectMeta: metav1.ObjectMeta{Name: "obc-a-photos"}}
		if namespace != "" {
			o.other.Labels = map[string]string{pavv1.ProvisionerLabel: "store"}
			o.other.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: name, UID: uid}
		}
	}
}

func rotate(at time.Time) edit {
	return func(o *observation) {
		o.claim.Annotations = map[string]string{pavv1.RotateAnnotation: at.Format(pavv1.RetryFormat)}
	}
}

func asks(config map[string]string) edit {
	return func(o *observation) { o.claim.Spec.AdditionalConfig = config }
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

func TestDecide_AClaimWithoutRecords(t *testing.T) {
	const refused = protocol.BucketClaimRefused
	existing := func(o *observation) {
		o.class.Parameters = map[string]string{objectbucketv1.BucketNameParameter: "old"}
	}
	unnamed := func(o *observation) { o.claim.Spec.GenerateBucketName = "" }
	labelled := func(label string) edit {
		return func(o *observation) { o.claim.Labels = map[string]string{objectbucketv1.ProvisionerLabel: label} }
	}
	held := func(o *observation) { o.claim.Finalizers = []string{objectbucketv1.Finalizer} }
	check(t, map[string]decision{
		"it asks for a bucket":               {o: claimed(), want: stepRecord},
		"it asks for a bucket of a name":     {o: claimed(func(o *observation) { o.claim.Spec.BucketName = "n" }), want: stepRecord},
		"its class has a bucket":             {o: claimed(existing, unnamed), want: stepRecord},
		"it has no class":                    {o: claimed(classGone), want: rule.Done},
		"its class is another provisioner's": {o: claimed(provisionerGone), want: rule.Done},
		"it was labelled before":             {o: claimed(labelled("store")), want: stepRecord},
		"it was another provisioner's":       {o: claimed(labelled("rook-ceph.ceph.rook.io-bucket")), want: stepRefuse, reason: refused, message: "belongs to the provisioner"},
		"the provisioner has no buckets":     {o: claimed(func(o *observation) { o.provisioner.Spec.BucketCreation = nil }), want: stepRefuse, reason: refused, message: "no buckets"},
		"the provisioner only grants access": {o: claimed(existing, func(o *observation) {
			o.provisioner.Spec.BucketCreation, o.provisioner.Spec.BucketAccessGrant = nil, &pavv1.BucketAccessGrant{}
		}), want: stepRecord},
		"the provisioner is being deleted": {o: claimed(func(o *observation) { o.provisioner.DeletionTimestamp = new(metav1.NewTime(noon)) }), want: stepRefuse, reason: refused, message: "being deleted"},
		"the provisioner is refused": {o: claimed(func(o *observation) {
			o.provisioner.Status.Conditions = []metav1.Condition{{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionFalse, Reason: "Taken", Message: "it is taken"}}
		}), want: stepRefuse, reason: refused, message: "it is taken"},
		"nothing names the bucket":                    {o: claimed(unnamed), want: stepRefuse, reason: refused, message: "generateBucketName"},
		"the name is too long for a record":           {o: claimed(func(o *observation) { o.claim.Spec.BucketName = strings.Repeat("n", 2049) }), want: stepRefuse, reason: refused, message: "2048"},
		"the class retains":                           {o: claimed(func(o *observation) { o.class.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain) }), want: stepRecord},
		"the class recycles":                          {o: claimed(func(o *observation) { o.class.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRecycle) }), want: stepRefuse, reason: refused, message: "reclaimPolicy"},
		"a foreign ObjectBucket has the name":         {o: claimed(taken("", "", "")), want: stepRefuse, reason: protocol.ObjectBucketNameTaken, message: "is not PaV's"},
		"the ObjectBucket of another claim has it":    {o: claimed(taken("a-photos", "x", otherUID)), want: stepRefuse, reason: protocol.ObjectBucketNameTaken, message: "claim a-photos/x"},
		"the ObjectBucket of a former claim has it":   {o: claimed(taken("a", "photos", otherUID), func(o *observation) { o.former = true }), want: stepRecord},
		"it is deleted before anything was done":      {o: claimed(deleted, provisionerGone), want: rule.Done},
		"it is deleted, and was only labelled":        {o: claimed(deleted, labelled("store"), held), want: stepReleaseClaim},
		"it is deleted, and another provisioner's":    {o: claimed(deleted, labelled("other"), held, provisionerGone), want: rule.Done},
		"its record was removed by force":             {o: recorded(bucketGone, func(o *observation) { o.class = claimed().class }), want: stepRecord},
		"its record was removed, and its class":       {o: recorded(bucketGone, provisionerGone), want: stepRefuse, reason: refused, message: "is gone"},
		"only its access is left, and its class gone": {o: recorded(func(o *observation) { o.bucket = nil }), want: stepRefuse, reason: refused, message: "is gone"},
	})
}

func TestDecide_AClaimThatIsWanted(t *testing.T) {
	check(t, map[string]decision{
		"the PavBucketAccess is not written":            {o: recorded(func(o *observation) { o.access = nil }), want: stepRecord},
		"the class is gone before the access":           {o: recorded(func(o *observation) { o.access, o.provisioner = nil, nil }), want: stepRecord},
		"it waits":                                      {o: recorded(), want: rule.Done},
		"it does not say that it waits":                 {o: recorded(func(o *observation) { o.claim.Status.Phase = "" }), want: stepMarkPending},
		"it was bound before it was restored":           {o: recorded(func(o *observation) { o.claim.Status.Phase = objectbucketv1.ClaimBound }), want: stepMarkPending},
		"the bucket is ready, and access is not":        {o: granted(func(o *observation) { o.access.Status.Current = nil }), want: rule.Done},
		"access is there, and the bucket not yet ready": {o: granted(func(o *observation) { o.bucket.Status.Phase = pavv1.BucketPending }), want: rule.Done},
		"clients have access":                           {o: granted(), want: stepBind},
		"clients have access, and the class is gone":    {o: granted(provisionerGone), want: stepBind},
		"it is bound":                                   {o: bound(), want: rule.Done},
		"it is bound, and the agent was restarted":      {o: bound(forgotten), want: stepBind},
		"its ObjectBucket is removed by force":          {o: bound(func(o *observation) { o.objectBucket = nil }), want: stepBind},
		"its ObjectBucket was changed":                  {o: bound(func(o *observation) { o.objectBucket.Spec.Endpoint.BucketHost = "x" }), want: stepBind},
		"its ObjectBucket does not say that it is used": {o: bound(func(o *observation) { o.objectBucket.Status.Phase = "" }), want: stepBind},
		"its ObjectBucket has more":                     {o: bound(func(o *observation) { o.objectBucket.Spec.AdditionalState = map[string]string{"k": "v"} }), want: rule.Done},
		"it does not say that it is bound":              {o: bound(func(o *observation) { o.claim.Status.Phase = objectbucketv1.ClaimPending }), want: stepBind},
		"it does not have the name of the bucket":       {o: bound(func(o *observation) { o.claim.Spec.BucketName = "" }), want: stepBind},
		"it names another class by now":                 {o: bound(func(o *observation) { o.claim.Spec.StorageClassName = "x" }), want: rule.Done},
		"its finalizer was removed":                     {o: bound(func(o *observation) { o.claim.Finalizers = nil }), want: stepHold},
		"its label was removed":                         {o: bound(func(o *observation) { o.claim.Labels = nil }), want: stepHold},
		"it waits without the finalizer":                {o: recorded(func(o *observation) { o.claim.Finalizers = nil }), want: rule.Done},
		"the bucket is told of differently":             {o: bound(func(o *observation) { o.bucket.Status.Info["region"] = "x" }), want: stepBind},
		"a former claim is not cleaned up":              {o: granted(func(o *observation) { o.former = true }), want: stepRefuse, reason: protocol.BucketClaimWaiting, message: "former"},
		"another claim got the ObjectBucket first":      {o: granted(taken("a-photos", "x", otherUID)), want: stepRefuse, reason: protocol.ObjectBucketNameTaken, message: "claim a-photos/x"},
		"a foreign ObjectBucket came first":             {o: granted(taken("", "", "")), want: stepRefuse, reason: protocol.ObjectBucketNameTaken, message: "is not PaV's"},
		"its ObjectBucket was given to another claim":   {o: bound(taken("a", "photos", otherUID)), want: stepRefuse, reason: protocol.ObjectBucketNameTaken},
		"it asks for more":                              {o: bound(asks(map[string]string{"maxSize": "2Gi"})), want: stepUpdate},
		"it asks for more before it is bound":           {o: recorded(asks(map[string]string{"maxSize": "2Gi"})), want: stepUpdate},
		"it asks for nothing, in another way":           {o: bound(asks(map[string]string{})), want: rule.Done},
		"an administrator gave its access up":           {o: bound(accessReleased), want: stepRefuse, reason: protocol.BucketClaimRefused, message: "given up"},
		"an administrator gave its bucket up":           {o: bound(released), want: stepRefuse, reason: protocol.BucketClaimRefused, message: "given up"},
		"its bucket is retained although it exists":     {o: bound(retained), want: stepRefuse, reason: protocol.BucketClaimRefused, message: "given up"},
		"another account is requested":                  {o: bound(rotate(noon.Add(-time.Minute))), want: stepRotate},
		"another account will be requested":             {o: bound(rotate(noon.Add(time.Minute))), want: rule.Done, after: time.Minute},
		"another account is requested for never":        {o: bound(rotate(noon.AddDate(900, 0, 0))), want: rule.Done, after: 24 * time.Hour},
		"another account was requested":                 {o: bound(rotate(noon.Add(-time.Minute)), hasRotation(noon.Add(-time.Minute))), want: rule.Done},
		"the administrator has requested one since":     {o: bound(rotate(noon.Add(-time.Minute)), hasRotation(noon)), want: rule.Done},
		"it was requested again":                        {o: bound(rotate(noon), hasRotation(noon.Add(-time.Minute))), want: rule.Done},
		"it was requested again after it was served":    {o: bound(rotate(noon), hasRotation(noon.Add(-time.Hour)), began(noon.Add(-time.Minute))), want: stepRotate},
		"the account is a later one":                    {o: bound(rotate(noon.Add(-time.Hour)), began(noon.Add(-time.Minute))), want: rule.Done},
		"the request is no time":                        {o: bound(func(o *observation) { o.claim.Annotations = map[string]string{pavv1.RotateAnnotation: "now"} }), want: rule.Done},
	})
}

// began says when the attempt began that made the account.
func began(at time.Time) edit {
	return func(o *observation) { o.access.Status.Current.RequestedAt = new(metav1.NewTime(at)) }
}

func hasRotation(at time.Time) edit {
	return func(o *observation) {
		o.access.Annotations = map[string]string{pavv1.RotateAnnotation: at.Format(pavv1.RetryFormat)}
	}
}

func TestDecide_AClaimThatIsNotWanted(t *testing.T) {
	brownfield := func(o *observation) {
		o.bucket.Spec.ExistingBucketID, o.bucket.Spec.ReclaimPolicy = "old", pavv1.BucketRetain
	}
	unheld := func(o *observation) { o.claim.Finalizers = nil }
	objectBucketGone := func(o *observation) { o.objectBucket = nil }
	check(t, map[string]decision{
		"it is deleted":                                    {o: bound(deleted), want: stepReleaseAccess},
		"it is deleted while it waits":                     {o: recorded(deleted), want: stepReleaseAccess},
		"it is deleted before the access was written":      {o: recorded(deleted, revoked), want: stepReleaseBucket},
		"it is gone":                                       {o: bound(gone), want: stepReleaseAccess},
		"it is deleted, and its class and provisioner are": {o: bound(deleted, provisionerGone), want: stepReleaseAccess},
		"its access is being revoked":                      {o: bound(deleted, accessReleased), want: rule.Done},
		"its access is revoked":                            {o: bound(deleted, revoked), want: stepReleaseBucket},
		"its access is revoked, and it is gone":            {o: bound(gone, revoked), want: stepReleaseBucket},
		"its existing bucket is not accessed any more":     {o: bound(deleted, revoked, brownfield), want: stepReleaseBucket},
		"its bucket is being deleted":                      {o: bound(deleted, released), want: rule.Done},
		"its bucket is being deleted, and it is gone":      {o: bound(gone, released), want: rule.Done},
		"its bucket is deleted":                            {o: bound(deleted, bucketGone), want: stepDeleteObjectBucket},
		"its bucket is deleted, and it is gone":            {o: bound(gone, bucketGone), want: stepDeleteObjectBucket},
		"its bucket is retained":                           {o: bound(deleted, retained), want: stepDeleteObjectBucket},
		"its bucket is retained, and it is gone":           {o: bound(gone, retained), want: stepDeleteObjectBucket},
		"only its ObjectBucket is left after a crash":      {o: bound(gone, bucketGone, provisionerGone, forgotten), want: stepDeleteObjectBucket},
		"its ObjectBucket is deleted":                      {o: bound(deleted, bucketGone, objectBucketGone), want: stepReleaseClaim},
		"its ObjectBucket is another's":                    {o: bound(deleted, bucketGone, taken("", "", "")), want: stepReleaseClaim},
		"its bucket was retained, and all is deleted":      {o: bound(deleted, retained, objectBucketGone), want: stepReleaseClaim},
		"all is deleted, and the provisioner, too":         {o: bound(deleted, bucketGone, objectBucketGone, provisionerGone), want: stepReleaseClaim},
		"all is deleted, and nothing says whose it was":    {o: bound(deleted, bucketGone, objectBucketGone, provisionerGone, forgotten), want: rule.Done},
		"its finalizer was removed":                        {o: bound(deleted, bucketGone, objectBucketGone, unheld), want: rule.Done},
		"its finalizer was removed before":                 {o: bound(deleted, unheld), want: stepReleaseAccess},
		"only the record of its bucket is left":            {o: bound(gone, retained, objectBucketGone), want: rule.Done},
	})
}

// What a claim of the name has left is told apart by UIDs.
func TestGroup(t *testing.T) {
	former := bound(gone, released)
	former.uid = otherUID
	former.bucket.Spec.ClaimRef.UID = otherUID
	former.objectBucket.Spec.ClaimRef.UID = otherUID
	present := recorded()
	objectBucketOfNobody := taken("", "", "")
	foreign := bound(objectBucketOfNobody).other

	all := group(photos, present.claim, former.objectBucket, []pavv1.PavBucket{*present.bucket, *former.bucket}, []pavv1.PavBucketAccess{*present.access})
	if len(all) != 2 {
		t.Fatalf("got %d observations, want 2", len(all))
	}
	one, two := all[0], all[1]
	if one.uid != otherUID || one.claim != nil || one.bucket == nil || one.access != nil || one.objectBucket == nil || one.other != nil {
		t.Errorf("the former claim: got %+v", one)
	}
	if two.uid != claimUID || two.claim == nil || two.bucket == nil || two.access == nil || two.objectBucket != nil || two.other == nil || !two.former {
		t.Errorf("the present claim: got %+v", two)
	}

	for name, test := range map[string]struct {
		all    []observation
		former bool
		count  int
	}{
		"the bucket of the former is retained": {group(photos, present.claim, nil, []pavv1.PavBucket{*bound(gone, retained, func(o *observation) { o.bucket.Spec.ClaimRef.UID = otherUID }).bucket}, nil), false, 2},
		"only the ObjectBucket is left":        {group(photos, present.claim, former.objectBucket, nil, nil), true, 2},
		"a foreign ObjectBucket is no claim's": {group(photos, present.claim, foreign, nil, nil), false, 1},
		"there is nothing":                     {group(photos, nil, foreign, nil, nil), false, 0},
	} {
		got := len(test.all) > 0 && test.all[len(test.all)-1].former
		if len(test.all) != test.count || got != test.former {
			t.Errorf("%s: got %d observations, and a former one is left: %t", name, len(test.all), got)
		}
	}
}
