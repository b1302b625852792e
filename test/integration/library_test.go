package integration

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/reference"
)

// The classes of those who serve the same claims, by which the claims are named as well, and their provisioners.
const (
	byPaV       = "by-pav"
	byLibrary   = "by-library"
	pavName     = "compared"
	libraryName = "example.com/library"
)

// likeTheLibrary makes a provisioner do what the store behind the library does.
func likeTheLibrary(p *pavv1.PavProvisioner, class *storagev1.StorageClass) {
	ofBuckets(p, class)
	p.Spec.BucketValidation = &pavv1.BucketValidation{AdditionalConfig: []string{"maxSize"}}
	p.Spec.BucketCreation.Info = field(`{"endpoint": "{{ params.endpoint }}", "region": "here", "extra/tier": "gold"}`)
	p.Spec.BucketUpdate = &pavv1.BucketUpdate{PodTemplate: field(
		`{"metadata": {"annotations": {"sees": "{{ bucketName }} {{ additionalConfig.maxSize }}"}}, "spec": {"containers": [{"name": "main", "image": "none"}]}}`)}
}

// servedTwice is a claim of which there are two: one for the library, and one for PaV.
type servedTwice struct {
	name  string
	claim obcv1.ObjectBucketClaimSpec

	// class changes the classes of both.
	class func(*storagev1.StorageClass)

	// bucket is the name of the bucket; "" if it is generated.
	bucket string

	// gets and loses are the calls of the library.
	gets, loses string

	// change is what the claim asks for later.
	change map[string]string
}

var servedTwiceCases = []servedTwice{
	{name: "generated", claim: obcv1.ObjectBucketClaimSpec{GenerateBucketName: "photos"}, gets: "Provision", loses: "Delete"},
	{name: "long", claim: obcv1.ObjectBucketClaimSpec{GenerateBucketName: "photographs-of-the-last-hundred-years"}, gets: "Provision", loses: "Delete"},
	{name: "requested", claim: obcv1.ObjectBucketClaimSpec{BucketName: "requested-photos"}, bucket: "requested-photos", gets: "Provision", loses: "Delete"},
	{
		name: "both", claim: obcv1.ObjectBucketClaimSpec{BucketName: "requested-photos", GenerateBucketName: "ignored"}, bucket: "requested-photos",
		gets: "Provision", loses: "Delete",
	},
	{
		name: "existing", claim: obcv1.ObjectBucketClaimSpec{GenerateBucketName: "ignored"}, bucket: "archive", gets: "Grant", loses: "Revoke",
		class: func(class *storagev1.StorageClass) { class.Parameters[obcv1.BucketNameParameter] = "archive" },
	},
	{
		name: "retained", claim: obcv1.ObjectBucketClaimSpec{GenerateBucketName: "photos"}, gets: "Provision", loses: "Revoke",
		class: func(class *storagev1.StorageClass) { class.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain) },
	},
	{
		name: "configured", claim: obcv1.ObjectBucketClaimSpec{GenerateBucketName: "photos", AdditionalConfig: map[string]string{"maxSize": "1Gi"}},
		gets: "Provision", loses: "Delete", change: map[string]string{"maxSize": "2Gi"},
	},
}

// The library and PaV serve the same claims side by side: what users and clients see is the same but for what is written, and neither
// writes anything of the other's.
func TestObjectBucketClaim_AsTheLibraryServesIt(t *testing.T) {
	c, a := withBuckets(t)
	driver(t, c, pavName, likeTheLibrary)
	mustCreateHeld(t, c, classLike(byPaV, pavName))
	mustCreateHeld(t, c, classLike(byLibrary, libraryName))
	all := watchObjects(t, c, &obcv1.ObjectBucketClaimList{}, &obcv1.ObjectBucketList{}, &corev1.SecretList{}, &corev1.ConfigMapList{})
	controllers(t, c, "garbage-collector-controller") // the library leaves Secrets and ConfigMaps to it
	line := newForeignLine(t, c, "library")
	library := reference.Library.Start(t, nil, "-kubeconfig", line.kubeconfig, "-name", libraryName)
	written := reference.Written(t, "ObjectBucketClaims")
	for _, test := range servedTwiceCases {
		t.Run(test.name, func(t *testing.T) {
			theirs, ours := test.claimed(t, c, byLibrary, libraryName), test.claimed(t, c, byPaV, pavName)
			p := pair{t: t, servedTwice: test, library: library, all: all, written: written, theirs: theirs, ours: ours}
			p.serve()
			if test.change != nil {
				p.changeBoth()
			}
			p.end()
		})
	}
	written.CheckAll(t)
	for who, both := range map[string][2][]string{
		"the library": {naming(line.Writes(), byLibrary), naming(line.Writes(), byPaV)},
		"PaV":         {naming(a.Line.Writes(), byPaV), naming(a.Line.Writes(), byLibrary)},
	} {
		if len(both[0]) == 0 || len(both[1]) > 0 {
			t.Errorf("%s has written %d times to its own objects, and to the other's: %v", who, len(both[0]), both[1])
		}
	}
}

// classLike returns a class of a provisioner that has the parameters of all.
func classLike(name, provisioner string) *storagev1.StorageClass {
	class := classOf(name)
	class.Provisioner = provisioner
	class.Parameters = map[string]string{"endpoint": "https://s3.example:9000"}
	return class
}

// claimed makes a claim of one of both, and its class if it is not that of all.
func (s servedTwice) claimed(t *testing.T, c *cluster, by, provisioner string) *bucketClaim {
	t.Helper()
	class := by
	if s.class != nil {
		class += "-" + s.name
		like := classLike(class, provisioner)
		s.class(like)
		mustCreateHeld(t, c, like)
	}
	return claimBucket(t, c, class, by+"-"+s.name, func(claim *obcv1.ObjectBucketClaim) {
		claim.Spec = *s.claim.DeepCopy()
		claim.Spec.StorageClassName = class
	})
}

// pair are two claims with the same request.
type pair struct {
	servedTwice
	t       *testing.T
	library *reference.Process
	all     *history
	written *reference.Table

	theirs, ours           *bucketClaim
	theirBucket, ourBucket string
}

// serve lets both serve their claims, and compares what users see then.
func (p *pair) serve() {
	t, c := p.t, p.ours.c
	t.Helper()
	exists(t, c, p.theirs.object, "is bound", func(claim *obcv1.ObjectBucketClaim) bool { return claim.Status.Phase == obcv1.ClaimBound })
	p.theirBucket, p.ourBucket = p.theirs.object.Spec.BucketName, p.bucket
	if p.bucket == "" {
		prefix := p.claim.GenerateBucketName
		prefix = prefix[:min(len(prefix), 26)]
		p.ourBucket = prefix + "-" + string(p.ours.object.UID)
		if form := regexp.MustCompile("^" + prefix + "-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"); !form.MatchString(p.theirBucket) || !form.MatchString(p.ourBucket) {
			t.Errorf("the buckets are %q and %q", p.theirBucket, p.ourBucket)
		}
	}
	if p.gets == "Provision" {
		end(t, c, recordedPod(t, c, p.ours.bucket, pavv1.WorkflowBucketCreation, 1, p.ourBucket), workflow.Result{Created: true}, 0)
	}
	grant := recordedPod(t, c, p.ours.access, pavv1.WorkflowGrant, 1, p.ours.account()+" in "+grantsOf(p.ourBucket, p.ours.account()))
	result, err := sealed(grant, p.ours.account(), "secret of "+p.ours.account())
	if err != nil {
		t.Fatal(err)
	}
	end(t, c, grant, result, 0)
	exists(t, c, p.ours.object, "is bound", func(claim *obcv1.ObjectBucketClaim) bool { return claim.Status.Phase == obcv1.ClaimBound })
	p.wantCall(p.gets, p.claim.AdditionalConfig)
	p.compare()
}

// objects are those of a claim.
func (b *bucketClaim) objects() []client.Object {
	return []client.Object{b.object, b.objectBucket(), b.secret(), b.configMap()}
}

// pairs are what differs from claim to claim, and what stands for it.
func (b *bucketClaim) pairs(provisioner, bucket string) []string {
	return []string{
		bucket, "BUCKET", string(b.object.UID), "UID", b.object.Name, "NAME", b.object.Spec.StorageClassName, "CLASS",
		strings.ReplaceAll(provisioner, "/", "-"), "PROVISIONER",
	}
}

// compare compares the objects of both claims as they are.
func (p *pair) compare() {
	t, c := p.t, p.ours.c
	t.Helper()
	theirs, ours := p.theirs.objects(), p.ours.objects()
	for i := range theirs {
		for _, object := range []client.Object{theirs[i], ours[i]} {
			if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
		}
		p.written.Check(t, reference.Compare(kindOf(t, c, theirs[i]), fieldsOf(t, theirs[i], p.theirPairs()), fieldsOf(t, ours[i], p.ourPairs())))
	}
}

// comparePasts compares the statuses that the objects of both claims have had.
func (p *pair) comparePasts() {
	t := p.t
	t.Helper()
	theirs, ours := p.theirs.objects(), p.ours.objects()
	for i := range theirs {
		past := func(object client.Object) reference.Fields {
			return reference.Fields{"statuses": strings.Join(p.all.statuses(t, object), ", ")}
		}
		p.written.Check(t, reference.Compare(kindOf(t, p.ours.c, theirs[i]), past(theirs[i]), past(ours[i])))
	}
}

func (p *pair) theirPairs() []string { return p.theirs.pairs(libraryName, p.theirBucket) }
func (p *pair) ourPairs() []string   { return p.ours.pairs(pavName, p.ourBucket) }

// changeBoth asks both for something else.
func (p *pair) changeBoth() {
	t, c := p.t, p.ours.c
	t.Helper()
	for _, b := range []*bucketClaim{p.theirs, p.ours} {
		mustPatch(t, c, b.object, func(claim *obcv1.ObjectBucketClaim) { claim.Spec.AdditionalConfig = p.change })
	}
	end(t, c, recordedPod(t, c, p.ours.bucket, pavv1.WorkflowBucketUpdate, 2, p.ourBucket+" "+p.change["maxSize"]), workflow.Result{}, 0)
	exists(t, c, p.ours.bucket, "is updated", func(b *pavv1.PavBucket) bool { return b.Status.Step == "" })
	p.wantCall(p.gets, p.change)
	p.compare()
}

// wantCall waits until the library has made a call of its store.
func (p *pair) wantCall(name string, config map[string]string) {
	p.t.Helper()
	want := map[string]any{"call": name, "bucket": p.theirBucket, "user": p.theirs.account()}
	if len(config) > 0 {
		want["config"] = map[string]any{"maxSize": config["maxSize"]}
	}
	eventually(p.t, fmt.Sprintf("the library calls %v", want), func(context.Context) (bool, string) {
		calls := fmt.Sprint(p.library.Calls())
		return strings.Contains(calls, fmt.Sprint(want)), calls
	})
}

// end deletes both claims, and compares what became of them.
func (p *pair) end() {
	t, c := p.t, p.ours.c
	t.Helper()
	for _, b := range []*bucketClaim{p.theirs, p.ours} {
		mustDelete(t, c, b.object)
	}
	end(t, c, recordedPod(t, c, p.ours.access, pavv1.WorkflowRevocation, 2, p.ours.account()+" in "+grantsOf(p.ourBucket)), workflow.Result{}, 0)
	if p.loses == "Delete" {
		number := int32(2)
		if p.change != nil {
			number++
		}
		end(t, c, recordedPod(t, c, p.ours.bucket, pavv1.WorkflowBucketDeletion, number, p.ourBucket+" True"), workflow.Result{}, 0)
	}
	for _, object := range append(p.theirs.objects(), p.ours.objects()...) {
		gone(t, c, object)
	}
	gone(t, c, p.ours.access)
	if p.name == "retained" {
		exists(t, c, p.ours.bucket, "is retained", func(b *pavv1.PavBucket) bool { return b.Status.Phase == pavv1.BucketRetained })
		mustDelete(t, c, p.ours.bucket)
	}
	gone(t, c, p.ours.bucket)
	p.wantCall(p.loses, nil)
	p.comparePasts()
}
