package volume

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// ofClaimedBucket makes the volume the bucket of an ObjectBucketClaim, to which it has access.
func ofClaimedBucket(o *observation) {
	o.volume.Spec.BucketRef = &pavv1.VolumeBucketReference{
		Name: "b-c1", BucketID: "h", Claim: &pavv1.BucketClaimReference{Kind: "ObjectBucketClaim", Namespace: "apps", Name: "photos", UID: "c1"},
	}
	o.bucket = &bucket{
		record: &pavv1.PavBucket{
			ObjectMeta: metav1.ObjectMeta{Name: "b-c1"},
			Spec:       pavv1.PavBucketSpec{Provisioner: "demo", API: pavv1.BucketAPIClaim, ClaimRef: pavv1.ClaimReference{UID: "c1"}},
			Status:     pavv1.PavBucketStatus{Phase: pavv1.BucketReady, BucketID: "h"},
		},
		access: &pavv1.PavBucketAccess{
			ObjectMeta: metav1.ObjectMeta{Name: "a-u1"},
			Spec: pavv1.PavBucketAccessSpec{
				API: pavv1.BucketAPIVolume, Requester: pavv1.AccessRequester{UID: "u1"}, Buckets: []pavv1.AccessedBucket{{Bucket: "b-c1", SecretName: "pvc-u1"}},
			},
			Status: pavv1.PavBucketAccessStatus{Current: &pavv1.GrantedAccount{Number: 2}},
		},
	}
}

// ofOwnBucket makes the volume a bucket of its own, to which it has access.
func ofOwnBucket(o *observation) {
	ofClaimedBucket(o)
	o.volume.Spec.BucketRef = &pavv1.VolumeBucketReference{Name: "b-u1"}
	o.bucket.record.Name, o.bucket.record.Spec.API, o.bucket.record.Spec.ClaimRef.UID = "b-u1", pavv1.BucketAPIVolume, "u1"
}

// awaiting records that the request for the volume is valid.
func awaiting(o *observation) {
	o.volume.Status = pavv1.PavVolumeStatus{Phase: pavv1.VolumePending, Step: pavv1.StepGranting, Attempt: 1, Plan: &pavv1.VolumePlan{Capacity: ptrQuantity("1Gi")}}
}

// bucketShown records what staging needs to know of the bucket.
func bucketShown(o *observation) { o.showBucket(&o.volume.Status) }

func onBucket(change func(*bucket)) func(*observation) {
	return func(o *observation) { change(o.bucket) }
}

func noAccess(b *bucket)       { b.access = nil }
func noBucket(b *bucket)       { b.record = nil }
func releasedAccess(b *bucket) { b.access.Spec.Released = true }
func releasedBucket(b *bucket) { b.record.Spec.Released = true }
func notGranted(b *bucket)     { b.access.Status.Current = nil }

func bucketIs(phase pavv1.BucketPhase) func(*observation) {
	return onBucket(func(b *bucket) { b.record.Status.Phase = phase })
}

func TestDecide_OnBuckets(t *testing.T) {
	const ready, deleting, retained = pavv1.VolumeReady, pavv1.VolumeDeleting, pavv1.VolumeRetained
	const bound, released = corev1.VolumeBound, corev1.VolumeReleased
	unwanted := func(o *observation) { o.claim = claimGone }
	used := func() *state { return in(ready, bound, deletePolicy).with(withDeletionPod) }
	kept := func() *state { return in(ready, released, retainPolicy) }
	dying := func() *state { return in(deleting, released, deletePolicy).with(withDeletionPod) }
	tests := map[string]struct {
		state   *state
		want    step
		message string
	}{
		// The volume is being provisioned.
		"a claimed bucket":                            {state: fresh().with(ofClaimedBucket).with(onBucket(noAccess)), want: stepBegin},
		"a bucket of its own, not recorded":           {state: fresh().with(ofOwnBucket).with(onBucket(noBucket)).with(onBucket(noAccess)).with(awaiting), want: stepRecordBucket},
		"a bucket of its own, whose name is taken":    {state: fresh().with(ofOwnBucket).with(onBucket(noBucket)).with(onBucket(noAccess)).with(onBucket(func(b *bucket) { b.taken = true })).with(awaiting), want: stepWait, message: `PavBucket "b-u1" exists and is not this volume's`},
		"a bucket of its own, given up":               {state: fresh().with(ofOwnBucket).with(onBucket(releasedBucket)).with(awaiting), want: stepWait, message: `PavBucket "b-u1", whose bucket is the volume, was given up`},
		"a claimed bucket that is gone":               {state: fresh().with(ofClaimedBucket).with(onBucket(noBucket)).with(awaiting), want: stepWait, message: `ObjectBucketClaim "apps/photos", whose bucket is the volume, was deleted: delete the claim`},
		"a claimed bucket that is given up":           {state: fresh().with(ofClaimedBucket).with(onBucket(releasedBucket)).with(awaiting), want: stepWait, message: "was deleted"},
		"a bucket that is not ready":                  {state: fresh().with(ofOwnBucket).with(bucketIs(pavv1.BucketPending)).with(awaiting), want: stepWait, message: `waiting for PavBucket "b-u1"`},
		"access that is not recorded":                 {state: fresh().with(ofOwnBucket).with(onBucket(noAccess)).with(awaiting), want: stepRecordAccess},
		"access that is not granted":                  {state: fresh().with(ofOwnBucket).with(onBucket(notGranted)).with(awaiting), want: stepWait, message: `waiting for access to the bucket, PavBucketAccess "a-u1"`},
		"access that is granted":                      {state: fresh().with(ofClaimedBucket).with(awaiting), want: stepRecordGranted},
		"granted, and recorded":                       {state: recorded().with(ofClaimedBucket).with(bucketShown), want: stepWritePV},
		"another object has the bucket":               {state: recorded().with(ofClaimedBucket).with(bucketShown).with(heldBy(holder("PersistentVolume", "by-hand", ""))), want: stepWait, message: `PersistentVolume "by-hand" has the bucket "h" already`},
		"not needed before it began":                  {state: fresh().with(ofOwnBucket).with(onBucket(noBucket)).with(onBucket(noAccess)).with(unwanted), want: stepForget},
		"not needed before it has a bucket":           {state: fresh().with(ofOwnBucket).with(onBucket(noBucket)).with(onBucket(noAccess)).with(awaiting).with(unwanted), want: stepForget},
		"not needed while access is granted":          {state: fresh().with(ofOwnBucket).with(onBucket(notGranted)).with(awaiting).with(unwanted), want: stepReleaseAccess},
		"not needed, while access is revoked":         {state: fresh().with(ofOwnBucket).with(onBucket(releasedAccess)).with(awaiting).with(unwanted), want: stepWait, message: `until the account of the volume is revoked: PavBucketAccess "a-u1"`},
		"not needed, and its own bucket is left":      {state: fresh().with(ofOwnBucket).with(onBucket(noAccess)).with(awaiting).with(unwanted), want: stepReleaseBucket},
		"not needed, and another object has it":       {state: fresh().with(ofOwnBucket).with(onBucket(noAccess)).with(awaiting).with(unwanted).with(heldBy(append(stagedOn("n1"), holder("PersistentVolume", "by-hand", ""))...)), want: stepWait, message: `PersistentVolume "by-hand" has the bucket "h" as its storage`},
		"not needed, and only stages of others":       {state: fresh().with(ofOwnBucket).with(onBucket(noAccess)).with(awaiting).with(unwanted).with(heldBy(stagedOn("n1")...)), want: stepReleaseBucket},
		"not needed, and its own bucket goes":         {state: fresh().with(ofOwnBucket).with(onBucket(noAccess)).with(onBucket(releasedBucket)).with(awaiting).with(unwanted), want: stepWait, message: `waiting for the bucket of the volume, PavBucket "b-u1"`},
		"not needed, and the bucket is another's":     {state: fresh().with(ofClaimedBucket).with(onBucket(noAccess)).with(awaiting).with(unwanted), want: stepForget},
		"not needed after access was granted":         {state: recorded().with(ofClaimedBucket).with(bucketShown).with(unwanted).with(withDeletionPod), want: stepHideBucket},
		"not needed after access was granted, hidden": {state: recorded().with(ofClaimedBucket).with(unwanted).with(withDeletionPod), want: stepReleaseAccess},
		"not needed, and nothing is left":             {state: recorded().with(ofClaimedBucket).with(onBucket(noAccess)).with(unwanted).with(withDeletionPod), want: stepForget},
		"not needed, and nodes are of others":         {state: fresh().with(ofClaimedBucket).with(awaiting).with(unwanted).with(heldBy(stagedOn("n1")...)), want: stepReleaseAccess},
		"its provisioner goes":                        {state: fresh().with(ofOwnBucket).with(awaiting).with(func(o *observation) { o.provisioner = nil }), want: stepReleaseAccess},

		// The volume is in use.
		"in use":                                  {state: used().with(ofClaimedBucket).with(bucketShown), want: stepDone},
		"in use, with another account":            {state: used().with(ofClaimedBucket).with(bucketShown).with(onBucket(func(b *bucket) { b.access.Status.Current.Number = 3 })), want: stepShowBucket},
		"in use, and hidden":                      {state: used().with(ofClaimedBucket), want: stepShowBucket},
		"in use, its access was removed":          {state: used().with(ofClaimedBucket).with(bucketShown).with(onBucket(noAccess)), want: stepHideBucket},
		"in use, its access was removed, hidden":  {state: used().with(ofClaimedBucket).with(onBucket(noAccess)), want: stepRecordAccess},
		"in use, and its provisioner was removed": {state: used().with(ofClaimedBucket).with(onBucket(noAccess)).with(func(o *observation) { o.provisioner = nil }), want: stepDone},
		"in use, its access is new":               {state: used().with(ofClaimedBucket).with(onBucket(notGranted)), want: stepDone},
		"in use, its bucket and access are gone":  {state: used().with(ofClaimedBucket).with(bucketShown).with(onBucket(noAccess)).with(onBucket(noBucket)), want: stepHideBucket},
		"in use, both are gone, and it is hidden": {state: used().with(ofClaimedBucket).with(onBucket(noAccess)).with(onBucket(noBucket)), want: stepWait, message: "so that the volume gets no access to it"},
		"in use, the claim of its bucket goes":    {state: used().with(ofClaimedBucket).with(bucketShown).with(onBucket(releasedBucket)), want: stepDone},
		"in use, its access was given up":         {state: used().with(ofClaimedBucket).with(bucketShown).with(onBucket(releasedAccess)), want: stepHideBucket},
		"in use, its access is being revoked":     {state: used().with(ofClaimedBucket).with(onBucket(releasedAccess)), want: stepDone},

		// Released, Delete. No deletion pod ever runs.
		"released":                              {state: in(ready, released, deletePolicy).with(withDeletionPod).with(ofClaimedBucket).with(bucketShown), want: stepMarkDeleting},
		"released, and staged":                  {state: dying().with(ofClaimedBucket).with(bucketShown).with(heldBy(stagedOn("n1")...)), want: stepWait, message: "to be unstaged on node n1"},
		"released, and unstaged":                {state: dying().with(ofClaimedBucket).with(bucketShown), want: stepHideBucket},
		"released, and hidden":                  {state: dying().with(ofClaimedBucket), want: stepReleaseAccess},
		"released, and access is revoked":       {state: dying().with(ofOwnBucket).with(onBucket(releasedAccess)), want: stepWait, message: "until the account of the volume is revoked"},
		"released, and its own bucket is left":  {state: dying().with(ofOwnBucket).with(onBucket(noAccess)), want: stepReleaseBucket},
		"released, and its own bucket goes":     {state: dying().with(ofOwnBucket).with(onBucket(noAccess)).with(onBucket(releasedBucket)), want: stepWait, message: "waiting for the bucket of the volume"},
		"released, and its own bucket is gone":  {state: dying().with(ofOwnBucket).with(onBucket(noAccess)).with(onBucket(noBucket)), want: stepMarkDeleted},
		"released, and the bucket is another's": {state: dying().with(ofClaimedBucket).with(onBucket(noAccess)), want: stepMarkDeleted},
		"released, without a provisioner":       {state: dying().with(ofClaimedBucket).with(onBucket(noAccess)).with(func(o *observation) { o.provisioner = nil }), want: stepMarkDeleted},
		"another object has its own bucket":     {state: dying().with(ofOwnBucket).with(onBucket(noAccess)).with(heldBy(holder("PersistentVolume", "by-hand", ""))), want: stepWait, message: `PersistentVolume "by-hand" has the bucket "h" as its storage`},
		"another object has what goes already":  {state: dying().with(ofOwnBucket).with(onBucket(noAccess)).with(onBucket(releasedBucket)).with(heldBy(holder("PersistentVolume", "by-hand", ""))), want: stepWait, message: "waiting for the bucket of the volume"},
		"its own bucket has snapshots": {state: dying().with(ofOwnBucket).with(onBucket(noAccess)).with(func(o *observation) { o.dependents = []string{"s"} }),
			want: stepWait, message: "1 snapshots exist"},
		"a claimed bucket has snapshots":        {state: dying().with(ofClaimedBucket).with(func(o *observation) { o.dependents = []string{"s"} }), want: stepWait, message: "1 snapshots exist"},
		"a claimed bucket is being read":        {state: dying().with(ofClaimedBucket).with(func(o *observation) { o.readers = []string{"PavSnapshot s"} }), want: stepWait, message: "waiting for PavSnapshot s, for which a pod reads the volume"},
		"the access to its own bucket can go":   {state: dying().with(ofOwnBucket).with(func(o *observation) { o.dependents = []string{"s"} }), want: stepReleaseAccess},
		"deleted, and access is left after all": {state: without(deleting, deletePolicy).with(deletedStorage).with(ofClaimedBucket), want: stepReleaseAccess},
		"deleted":                               {state: without(deleting, deletePolicy).with(deletedStorage).with(ofClaimedBucket).with(onBucket(noAccess)), want: stepForget},

		// Released, Retain.
		"retained":                                    {state: kept().with(ofOwnBucket).with(bucketShown), want: stepHideBucket},
		"retained, and staged":                        {state: kept().with(ofOwnBucket).with(bucketShown).with(heldBy(stagedOn("n1")...)), want: stepWait, message: "to be unstaged on node n1"},
		"retained, and its own bucket is left":        {state: kept().with(ofOwnBucket).with(onBucket(noAccess)), want: stepReleaseBucket},
		"retained, with snapshots":                    {state: kept().with(ofOwnBucket).with(onBucket(noAccess)).with(func(o *observation) { o.dependents = []string{"s"} }), want: stepReleaseBucket},
		"retained, and another object has it":         {state: kept().with(ofOwnBucket).with(onBucket(noAccess)).with(heldBy(holder("PersistentVolume", "by-hand", ""))), want: stepReleaseBucket},
		"retained, and so is its own bucket":          {state: kept().with(ofOwnBucket).with(onBucket(noAccess)).with(bucketIs(pavv1.BucketRetained)), want: stepRetain},
		"retained, and the bucket is another's":       {state: kept().with(ofClaimedBucket).with(onBucket(noAccess)), want: stepRetain},
		"retained, its PersistentVolume is gone":      {state: without(ready, retainPolicy).with(ofClaimedBucket), want: stepReleaseAccess},
		"retained, and a claim has the volume again":  {state: in(retained, bound, retainPolicy).with(ofClaimedBucket).with(onBucket(noAccess)).with(func(o *observation) { o.volume.Finalizers = []string{pavv1.VolumeFinalizer} }), want: stepMarkReady},
		"retained, and a claim can get it":            {state: in(retained, corev1.VolumeAvailable, retainPolicy).with(ofClaimedBucket).with(onBucket(noAccess)), want: stepDone},
		"retained, and access is left after all":      {state: in(retained, released, retainPolicy).with(ofClaimedBucket), want: stepReleaseAccess},
		"retained, both are gone, and access is left": {state: without(retained, retainPolicy).with(ofClaimedBucket), want: stepReleaseAccess},
		"had by a claim again":                        {state: in(ready, bound, retainPolicy).with(ofClaimedBucket).with(onBucket(noAccess)), want: stepRecordAccess},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := decideIn(test.state.o)
			if d.Step != test.want || !strings.Contains(d.Message, test.message) {
				t.Errorf("decided %s %q by the rule %q\nwant    %s %q", d.Step, d.Message, d.Rule, test.want, test.message)
			}
		})
	}
}

// A record of the name counts only if it is about this volume, and its bucket.
func TestIsBucketOf(t *testing.T) {
	for name, test := range map[string]struct {
		state  *state
		change func(*pavv1.PavBucket)
		want   bool
	}{
		"its own":                    {state: fresh().with(ofOwnBucket), want: true},
		"that of a former claim":     {state: fresh().with(ofOwnBucket), change: func(b *pavv1.PavBucket) { b.Spec.ClaimRef.UID = "u0" }},
		"not that of a volume":       {state: fresh().with(ofOwnBucket), change: func(b *pavv1.PavBucket) { b.Spec.API = pavv1.BucketAPIClaim }},
		"of another provisioner":     {state: fresh().with(ofOwnBucket), change: func(b *pavv1.PavBucket) { b.Spec.Provisioner = "other" }},
		"the claimed one":            {state: fresh().with(ofClaimedBucket), want: true},
		"one that was claimed again": {state: fresh().with(ofClaimedBucket), change: func(b *pavv1.PavBucket) { b.Spec.ClaimRef.UID = "c2" }},
		"another bucket":             {state: fresh().with(ofClaimedBucket), change: func(b *pavv1.PavBucket) { b.Status.BucketID = "other" }},
		"one without an identifier":  {state: fresh().with(ofClaimedBucket), change: func(b *pavv1.PavBucket) { b.Status.BucketID = "" }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			record := test.state.o.bucket.record
			if test.change != nil {
				test.change(record)
			}
			if got := isBucketOf(record, test.state.o.volume); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
