package integration

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// ofBucketVolumes gives a provisioner all pods of buckets, and volumes that are buckets. A deletion pod of volumes would never run.
func ofBucketVolumes(p *pavv1.PavProvisioner, class *storagev1.StorageClass) {
	ofBuckets(p, class)
	p.Spec.VolumeCreation = &pavv1.VolumeCreation{FromBucket: true}
}

// fromBucketClaim is a claim of a class for the bucket of an ObjectBucketClaim.
func fromBucketClaim(class, name, bucket string) *corev1.PersistentVolumeClaim {
	claim := claimOf(class, name)
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: new(obcv1.GroupVersion.Group), Kind: "ObjectBucketClaim", Name: bucket}
	return claim
}

// bucketVolume is a claim for a volume that is a bucket, with the records of the bucket and of the access of the volume.
type bucketVolume struct {
	c      *cluster
	claim  *corev1.PersistentVolumeClaim
	volume *pavv1.PavVolume
	bucket *pavv1.PavBucket // of its own
	access *pavv1.PavBucketAccess
}

func claimBucketVolume(t *testing.T, c *cluster, claim *corev1.PersistentVolumeClaim) *bucketVolume {
	t.Helper()
	v := &bucketVolume{c: c, claim: mustCreate(t, c, claim)}
	v.volume = &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(claim.UID)}}
	v.bucket = &pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: "b-" + string(claim.UID)}}
	v.access = &pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: "a-" + string(claim.UID)}}
	t.Cleanup(func() { v.remove(t) })
	return v
}

// remove removes by force what a test that failed has left.
func (v *bucketVolume) remove(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		return
	}
	for _, object := range []client.Object{v.claim, v.volume, v.access, v.bucket, v.secret()} {
		removeHeld(t, v.c, object, `{"metadata": {"finalizers": null}}`)
	}
}

func (v *bucketVolume) account() string { return "ba-" + string(v.claim.UID) }

func (v *bucketVolume) pv() *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: v.volume.Name}}
}

func (v *bucketVolume) secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: workflow.DefaultNamespace, Name: v.volume.Name}}
}

// grant lets the grant pod of the volume succeed, which sees the grants, and waits until the claim is bound.
func (v *bucketVolume) grant(t *testing.T, grants string) {
	t.Helper()
	pod := recordedPod(t, v.c, v.access, pavv1.WorkflowGrant, 1, v.account()+" in "+grants)
	wantMissing(t, v.c, v.pv()) // nothing can be staged before there is an account
	result, err := sealed(pod, v.account(), canary+v.claim.Name)
	if err != nil {
		t.Fatal(err)
	}
	end(t, v.c, pod, result, 0)
	_, v.volume = bound(t, v.c, v.claim)
}

func (v *bucketVolume) revoke(t *testing.T, grants string) {
	t.Helper()
	end(t, v.c, recordedPod(t, v.c, v.access, pavv1.WorkflowRevocation, 2, v.account()+" in "+grants), workflow.Result{}, 0)
}

// wantGone waits until nothing is left of a claim that is being deleted, and checks that no pod worked for the PavVolume.
func (v *bucketVolume) wantGone(t *testing.T) {
	t.Helper()
	gone(t, v.c, v.claim)
	for _, object := range []client.Object{v.pv(), v.volume, v.access, v.bucket, v.secret()} {
		gone(t, v.c, object)
	}
	if v.volume.Status.Pods != 0 {
		t.Errorf("%d pods were made for the PavVolume", v.volume.Status.Pods)
	}
	wantNoKeys(t, v.c)
}

// wantMissing checks that an object does not exist.
func wantMissing(t *testing.T, c *cluster, object client.Object) {
	t.Helper()
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
		t.Errorf("there is the %T %q, %v", object, object.GetName(), err)
	}
}

func TestBucketVolume_OfItsOwn(t *testing.T) {
	c, a := withBuckets(t)
	driver(t, c, "bucket-own", ofBucketVolumes, func(_ *pavv1.PavProvisioner, class *storagev1.StorageClass) {
		class.Parameters = map[string]string{"pool": "gold"}
	})
	before := len(a.Line.Writes())
	v := claimBucketVolume(t, c, claimOf("bucket-own", "own"))
	name := "pvc-" + string(v.claim.UID)
	end(t, c, recordedPod(t, c, v.bucket, pavv1.WorkflowBucketCreation, 1, name), workflow.Result{BucketID: name + "-made", Created: true}, 0)
	id := name + "-made"
	v.grant(t, grantsOf(id, v.account()))
	wantOrder(t, a.Line.Writes()[before:],
		"POST /apis/"+pavv1.GroupVersion.String()+"/pavvolumes", "POST /apis/"+pavv1.GroupVersion.String()+"/pavbuckets",
		"POST /apis/"+pavv1.GroupVersion.String()+"/pavbucketaccesses", "POST /api/v1/namespaces/pav-pods/secrets", "POST /api/v1/persistentvolumes")

	pv := v.pv()
	exists(t, c, pv, "is bound", func(pv *corev1.PersistentVolume) bool { return pv.Status.Phase == corev1.VolumeBound })
	if csi := pv.Spec.CSI; csi.VolumeHandle != id || csi.VolumeAttributes["pool"] != "gold" || pv.Spec.Capacity.Storage().String() != "1Gi" {
		t.Errorf("the PersistentVolume is %+v", pv.Spec)
	}
	want := &pavv1.VolumeBucket{ID: id, Info: map[string]string{"endpoint": "https://s3.example:9000", "region": "here"}, SecretName: name}
	if diff := cmp.Diff(want, v.volume.Status.Bucket); diff != "" || *v.volume.Status.BucketAccount != 0 {
		t.Errorf("account %d, bucket (-want +got):\n%s", *v.volume.Status.BucketAccount, diff)
	}
	exists(t, c, v.bucket, "is the volume's", func(b *pavv1.PavBucket) bool {
		return b.Spec.API == pavv1.BucketAPIVolume && b.Spec.Quota.Size.String() == "1Gi" && b.Spec.Parameters["pool"] == "gold" && b.Spec.ReclaimPolicy == pavv1.BucketDelete
	})
	secret := v.secret()
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	key, data := canary+"own", map[string]string{}
	for name, value := range secret.Data {
		data[name] = string(value)
	}
	wantData := map[string]string{"accessKeyId": v.account(), "accessSecretKey": key, "AWS_ACCESS_KEY_ID": v.account(), "AWS_SECRET_ACCESS_KEY": key, "hint": "more"}
	if diff := cmp.Diff(wantData, data); diff != "" {
		t.Errorf("the Secret (-want +got):\n%s", diff)
	}
	if owner := metav1.GetControllerOf(secret); owner == nil || owner.UID != v.access.UID || owner.Kind != "PavBucketAccess" {
		t.Errorf("the Secret has the owner %v", owner)
	}

	mustDelete(t, c, v.claim)
	v.revoke(t, grantsOf(id))
	end(t, c, recordedPod(t, c, v.bucket, pavv1.WorkflowBucketDeletion, 2, id+" True"), workflow.Result{}, 0)
	v.wantGone(t)
}

// A volume on a claimed bucket has an account of its own. Its bucket outlives it, and is not deleted before it.
func TestBucketVolume_OfAClaimedBucket(t *testing.T) {
	c, _ := withBuckets(t)
	driver(t, c, "bucket-claimed", ofBuckets, withDeletionPod)
	b := claimBucket(t, c, "bucket-claimed", "photos")
	v := claimBucketVolume(t, c, fromBucketClaim("bucket-claimed", "photos", "photos"))
	wantEvent(t, c, v.claim, corev1.EventTypeWarning, "ProvisioningFailed", `ObjectBucketClaim "default/photos" has a bucket that is not ready yet`)
	name := "photos-" + string(b.object.UID)
	b.serve(t, name)
	v.grant(t, grantsOf(name, b.account(), v.account()))
	wantMissing(t, c, v.bucket)
	const node = "bucket-claimed-node"
	nodeIn(t, c, node, "none")
	pv := v.pv()
	exists(t, c, pv, "is the bucket", func(pv *corev1.PersistentVolume) bool { return pv.Spec.CSI.VolumeHandle == name })
	stage := createStaged(t, c, stageOf(pv, "stage-bucket-claimed", node))

	// The claim of the bucket goes first.
	mustDelete(t, c, b.object)
	end(t, c, recordedPod(t, c, b.access, pavv1.WorkflowRevocation, 2, b.account()+" in "+grantsOf(name, v.account())), workflow.Result{}, 0)
	wantEvent(t, c, b.object, corev1.EventTypeNormal, "BucketDeletionWaiting", fmt.Sprintf("PersistentVolume %q of claim default/photos", pv.Name))
	exists(t, c, v.volume, "has access", func(v *pavv1.PavVolume) bool { return v.Status.Bucket != nil })

	// The account is revoked when no node has the volume any more.
	mustDelete(t, c, v.claim)
	gone(t, c, v.claim)
	wantEvent(t, c, pv, corev1.EventTypeNormal, "VolumeDeletionWaiting", "waiting for the volume to be unstaged on node "+node)
	exists(t, c, v.access, "is wanted", func(a *pavv1.PavBucketAccess) bool { return !a.Spec.Released && a.Status.Current != nil })
	mustPatch(t, c, stage, func(s *pavv1.PavStage) { s.Finalizers = nil })
	mustDelete(t, c, stage)
	v.revoke(t, grantsOf(name))
	v.wantGone(t)
	end(t, c, recordedPod(t, c, b.bucket, pavv1.WorkflowBucketDeletion, 2, name+" True"), workflow.Result{}, 0)
	b.wantGone(t)
}

// A claim that may only read gets an account that may only read. With the claim of the volume, the bucket does not go.
func TestBucketVolume_ThatIsOnlyRead(t *testing.T) {
	c, _ := withBuckets(t)
	driver(t, c, "bucket-read", ofBuckets)
	b := claimBucket(t, c, "bucket-read", "read")
	name := "photos-" + string(b.object.UID)
	b.serve(t, name)
	claim := fromBucketClaim("bucket-read", "read", "read")
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
	v := claimBucketVolume(t, c, claim)
	grants := []string{b.account() + " ReadWrite", v.account() + " ReadOnly"}
	slices.Sort(grants)
	v.grant(t, name+": "+grants[0]+" "+grants[1])
	mustDelete(t, c, v.claim)
	v.revoke(t, grantsOf(name, b.account()))
	v.wantGone(t)
	exists(t, c, b.bucket, "stays", func(b *pavv1.PavBucket) bool { return b.Status.Phase == pavv1.BucketReady && !b.Spec.Released })
	mustDelete(t, c, b.object)
	end(t, c, recordedPod(t, c, b.access, pavv1.WorkflowRevocation, 2, b.account()+" in "+grantsOf(name)), workflow.Result{}, 0)
	end(t, c, recordedPod(t, c, b.bucket, pavv1.WorkflowBucketDeletion, 2, name+" True"), workflow.Result{}, 0)
	b.wantGone(t)
}

// What a tenant names that is not a bucket for its volume is refused, and nothing is made.
func TestBucketVolume_Refused(t *testing.T) {
	c, _ := withBuckets(t)
	pods := func(p *pavv1.PavProvisioner, class *storagev1.StorageClass) {
		ofBuckets(p, class)
		p.Spec.BucketValidation = &pavv1.BucketValidation{Store: field(`"{{ params.store }}"`)}
		class.Parameters = map[string]string{"store": "one"}
	}
	driver(t, c, "bucket-refused", pods)
	other := mustCreate(t, c, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "bucket-refused-two"}, Provisioner: "bucket-refused", Parameters: map[string]string{"store": "two"}})
	t.Cleanup(func() { mustDeleteLasting(t, c, other) })
	driver(t, c, "bucket-refused-other", ofBuckets)
	b := claimBucket(t, c, "bucket-refused", "refused")
	name := "photos-" + string(b.object.UID)
	b.serve(t, name)
	first := claimBucketVolume(t, c, fromBucketClaim("bucket-refused", "first", "refused"))
	first.grant(t, grantsOf(name, b.account(), first.account()))
	for text, claim := range map[string]*corev1.PersistentVolumeClaim{
		`ObjectBucketClaim "default/no-such" does not exist, or has no bucket yet`:                   fromBucketClaim("bucket-refused", "missing", "no-such"),
		`has a bucket of PavProvisioner "bucket-refused", and not of "bucket-refused-other"`:         fromBucketClaim("bucket-refused-other", "elsewhere", "refused"),
		`the bucket is in the store "one", and the StorageClass is one of the store "two"`:           fromBucketClaim("bucket-refused-two", "stored", "refused"),
		fmt.Sprintf(`spec.dataSourceRef: the handle %q is already in use by PersistentVolume`, name): fromBucketClaim("bucket-refused", "second", "refused"),
	} {
		v := claimBucketVolume(t, c, claim)
		wantEvent(t, c, v.claim, corev1.EventTypeWarning, "ProvisioningFailed", text)
		mustDelete(t, c, v.claim)
		v.wantGone(t)
	}
	mustDelete(t, c, first.claim)
	first.revoke(t, grantsOf(name, b.account()))
	first.wantGone(t)
	mustDelete(t, c, b.object)
	end(t, c, recordedPod(t, c, b.access, pavv1.WorkflowRevocation, 2, b.account()+" in "+grantsOf(name)), workflow.Result{}, 0)
	end(t, c, recordedPod(t, c, b.bucket, pavv1.WorkflowBucketDeletion, 2, name+" True"), workflow.Result{}, 0)
	b.wantGone(t)
}

// With Retain, the bucket stays, the account does not, and nothing holds the provisioner.
func TestBucketVolume_Retained(t *testing.T) {
	c, _ := withBuckets(t)
	driver(t, c, "bucket-retained", ofBucketVolumes, retain)
	v := claimBucketVolume(t, c, claimOf("bucket-retained", "kept"))
	name := "pvc-" + string(v.claim.UID)
	end(t, c, recordedPod(t, c, v.bucket, pavv1.WorkflowBucketCreation, 1, name), workflow.Result{Created: true}, 0)
	v.grant(t, grantsOf(name, v.account()))
	mustDelete(t, c, v.claim)
	v.revoke(t, grantsOf(name))
	gone(t, c, v.access)
	gone(t, c, v.secret())
	exists(t, c, v.bucket, "is retained", func(b *pavv1.PavBucket) bool {
		return b.Status.Phase == pavv1.BucketRetained && len(b.Finalizers) == 0 && b.Status.Pods == 1
	})
	exists(t, c, v.volume, "is retained", func(v *pavv1.PavVolume) bool {
		return v.Status.Phase == pavv1.VolumeRetained && len(v.Finalizers) == 0 && v.Status.Bucket == nil
	})
	mustDelete(t, c, v.bucket)
}

// The record of a volume that someone removes by force takes its account with it; its bucket stays.
func TestBucketVolume_WhoseRecordIsRemovedByForce(t *testing.T) {
	c, _ := withBuckets(t)
	driver(t, c, "bucket-forced", ofBucketVolumes)
	v := claimBucketVolume(t, c, claimOf("bucket-forced", "forced"))
	name := "pvc-" + string(v.claim.UID)
	end(t, c, recordedPod(t, c, v.bucket, pavv1.WorkflowBucketCreation, 1, name), workflow.Result{Created: true}, 0)
	v.grant(t, grantsOf(name, v.account()))
	mustDelete(t, c, v.claim)
	exists(t, c, v.access, "is released", func(a *pavv1.PavBucketAccess) bool { return a.Spec.Released })
	mustDelete(t, c, v.volume)
	mustPatch(t, c, v.volume, func(v *pavv1.PavVolume) { v.Finalizers = nil })
	v.revoke(t, grantsOf(name))
	gone(t, c, v.access)
	exists(t, c, v.bucket, "is retained", func(b *pavv1.PavBucket) bool { return b.Status.Phase == pavv1.BucketRetained })
	mustDelete(t, c, v.bucket)
}

// Without volumeStaging, there is no CSIDriver, and claims are told so.
func TestBucketVolume_OfAProvisionerWithoutVolumes(t *testing.T) {
	c, _ := withBuckets(t)
	p := driver(t, c, "bucket-only", ofBuckets, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.VolumeCreation, p.Spec.VolumeStaging = nil, pavv1.VolumeStaging{}
	})
	exists(t, c, p, "is ready", func(p *pavv1.PavProvisioner) bool {
		return slices.ContainsFunc(p.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == pavv1.ProvisionerReady && c.Status == metav1.ConditionTrue && c.Reason == "NoVolumes"
		})
	})
	wantMissing(t, c, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: p.Name}})
	claim := mustCreate(t, c, claimOf("bucket-only", "none"))
	wantEvent(t, c, claim, corev1.EventTypeWarning, "ProvisioningFailed", "has no volumes, as it has no volumeStaging")
	noVolume(t, c, claim)
	mustDelete(t, c, claim)
}

// The agent is stopped after each of its writes in turn (in the short suite, after every twenty-fourth) while a volume with a bucket of its
// own comes and goes: each pod runs once, and no account, Secret or bucket is left.
func TestBucketVolume_WithAnAgentThatIsStoppedAfterEachWrite(t *testing.T) {
	c := start(t)
	installBucketKinds(t, c)
	enableBuckets(t, c)
	want := map[string]int{pavv1.WorkflowBucketCreation: 1, pavv1.WorkflowGrant: 1, pavv1.WorkflowRevocation: 1, pavv1.WorkflowBucketDeletion: 1}
	stopAfterEachWrite(t, c, 24, func(t *testing.T) {
		t.Helper()
		h := runFakeKubelets(t, c, func(string, int) int32 { return 0 })
		const name = "crash-bucket-volume"
		driver(t, c, name, ofBucketVolumes)
		v := claimBucketVolume(t, c, claimOf(name, name))
		_, v.volume = bound(t, c, v.claim)
		exists(t, c, v.secret(), "has the credentials", func(s *corev1.Secret) bool { return string(s.Data["accessSecretKey"]) == canary })
		mustDelete(t, c, v.claim)
		v.wantGone(t)
		noPodIsLeft(t, c)
		if diff := cmp.Diff(want, h.rest()); diff != "" {
			t.Errorf("pods (-want +got):\n%s", diff)
		}
	})
}
