package integration

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/credentials"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/agent"
)

// ofBuckets gives a provisioner all pods of buckets, which have an annotation of what they see.
func ofBuckets(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
	pod := func(sees string) *pavv1.Template {
		return field(fmt.Sprintf(`{"metadata": {"annotations": {"sees": %q}}, "spec": {"containers": [{"name": "main", "image": "none"}]}}`, sees))
	}
	const grants = "{% for b in buckets %}{{ b.id }}:{% for g in b.grants %} {{ g.accountId }} {{ g.mode }}{% endfor %}{% endfor %}"
	spec := &p.Spec
	spec.ProvisioningModes = []pavv1.ProvisioningMode{pavv1.ProvisioningModeDynamic, pavv1.ProvisioningModeStatic}
	spec.BucketCreation = &pavv1.BucketCreation{PodTemplate: pod("{{ bucketName }}"), Info: field(`{"endpoint": "https://s3.example:9000", "region": "here"}`)}
	spec.BucketDeletion = &pavv1.BucketDeletion{PodTemplate: pod("{{ bucketId }} {{ created }}")}
	spec.BucketAccessGrant = &pavv1.BucketAccessGrant{PodTemplate: pod("{{ accountName }} in " + grants)}
	spec.BucketAccessRevoke = &pavv1.BucketAccessRevoke{PodTemplate: pod("{{ accountId or accountName }} in " + grants)}
}

// withBuckets returns an agent in a cluster that has buckets.
func withBuckets(t *testing.T) (*cluster, *agent.Agent) {
	t.Helper()
	c := start(t)
	installBucketKinds(t, c)
	enableBuckets(t, c)
	return c, run(t, c)
}

// bucketClaim is an ObjectBucketClaim with its records.
type bucketClaim struct {
	c      *cluster
	object *obcv1.ObjectBucketClaim
	bucket *pavv1.PavBucket
	access *pavv1.PavBucketAccess
}

// claimBucket makes an ObjectBucketClaim of a class, which asks for a bucket of a name that PaV makes unless a change asks for another.
func claimBucket(t *testing.T, c *cluster, class, name string, changes ...func(*obcv1.ObjectBucketClaim)) *bucketClaim {
	t.Helper()
	claim := &obcv1.ObjectBucketClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	claim.Spec = obcv1.ObjectBucketClaimSpec{StorageClassName: class, GenerateBucketName: "photos"}
	for _, change := range changes {
		change(claim)
	}
	b := &bucketClaim{c: c, object: mustCreate(t, c, claim)}
	b.bucket = &pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: "b-" + string(claim.UID)}}
	b.access = &pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: "a-" + string(claim.UID)}}
	t.Cleanup(func() { b.remove(t) })
	return b
}

// remove removes by force what a test that failed has left.
func (b *bucketClaim) remove(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		return
	}
	const bare = `{"metadata": {"finalizers": null}}`
	for _, object := range []client.Object{b.object, b.access, b.bucket, b.secret(), b.configMap(), b.objectBucket()} {
		removeHeld(t, b.c, object, bare)
	}
}

func requested(name string) func(*obcv1.ObjectBucketClaim) {
	return func(c *obcv1.ObjectBucketClaim) { c.Spec.GenerateBucketName, c.Spec.BucketName = "", name }
}

func (b *bucketClaim) secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.object.Namespace, Name: b.object.Name}}
}

func (b *bucketClaim) configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.object.Namespace, Name: b.object.Name}}
}

func (b *bucketClaim) objectBucket() *obcv1.ObjectBucket {
	return &obcv1.ObjectBucket{ObjectMeta: metav1.ObjectMeta{Name: obcv1.BucketOf(b.object.Namespace, b.object.Name)}}
}

// recordedPod waits for the pod of a record with a number, from 1, which is of a kind and sees something.
func recordedPod[R interface {
	client.Object
	Work() pavv1.Work
}](t *testing.T, c *cluster, record R, kind string, number int32, sees string) *corev1.Pod {
	t.Helper()
	exists(t, c, record, fmt.Sprintf("has pod %d, a %s pod", number, kind), func(r R) bool {
		work := r.Work()
		if *work.Pods > number {
			t.Fatalf("there are %d pods already, the last one of which is %+v", *work.Pods, *work.Pod)
		}
		return *work.Pods == number && *work.Pod != nil && (*work.Pod).UID != ""
	})
	ref := *record.Work().Pod
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}}
	exists(t, c, pod, "exists", func(p *corev1.Pod) bool { return p.UID == ref.UID })
	if got := pod.Labels[pavv1.WorkflowLabel]; got != kind {
		t.Fatalf("pod %d is a %s pod, not a %s pod", number, got, kind)
	}
	if got := pod.Annotations["sees"]; got != sees {
		t.Errorf("the %s pod sees %q, want %q", kind, got, sees)
	}
	return pod
}

// sealed returns the result of a grant pod with credentials of S3, as the agent of its node seals them.
func sealed(pod *corev1.Pod, id, secret string) (workflow.Result, error) {
	purpose := credentials.Purpose{Access: metav1.GetControllerOf(pod).UID, Pod: pod.UID}
	data, err := credentials.Seal(pod.Annotations[pavv1.SealAnnotation], purpose, credentials.Credentials{
		credentials.AccessKeyID: []byte(id), credentials.AccessSecretKey: []byte(secret + "\n"), "extra/hint": []byte("more"),
	})
	return workflow.Result{AccountID: id, Sealed: data}, err
}

// account is the name of the first account of a claim.
func (b *bucketClaim) account() string { return "ba-" + string(b.object.UID) }

// serve makes the bucket of a claim, and grants access to it.
func (b *bucketClaim) serve(t *testing.T, name string) {
	t.Helper()
	end(t, b.c, recordedPod(t, b.c, b.bucket, pavv1.WorkflowBucketCreation, 1, name), workflow.Result{Created: true}, 0)
	b.grant(t, name)
}

// grant lets the first grant pod succeed. The bucket has the grants of others, too.
func (b *bucketClaim) grant(t *testing.T, name string, others ...string) {
	t.Helper()
	pod := recordedPod(t, b.c, b.access, pavv1.WorkflowGrant, 1, b.account()+" in "+grantsOf(name, append(others, b.account())...))
	result, err := sealed(pod, b.account(), canary+b.object.Name)
	if err != nil {
		t.Fatal(err)
	}
	end(t, b.c, pod, result, 0)
	exists(t, b.c, b.object, "is bound", func(c *obcv1.ObjectBucketClaim) bool { return c.Status.Phase == obcv1.ClaimBound })
}

// rotate asks for another account of an access, an hour after the present one was granted.
func rotate(t *testing.T, c *cluster, record *pavv1.PavBucketAccess, requester client.Object) {
	t.Helper()
	before := record.DeepCopy()
	exists(t, c, before, "has an account", func(a *pavv1.PavBucketAccess) bool { return a.Status.Current != nil })
	aged := before.DeepCopy()
	hourAgo := metav1.NewTime(time.Now().Add(-time.Hour))
	aged.Status.Current.GrantedAt, aged.Status.Current.RequestedAt = &hourAgo, &hourAgo
	if err := c.Admin.Status().Patch(t.Context(), aged, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	asks := fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, pavv1.RotateAnnotation, time.Now().UTC().Format(pavv1.RetryFormat))
	if err := c.Admin.Patch(t.Context(), requester, client.RawPatch(types.MergePatchType, []byte(asks))); err != nil {
		t.Fatal(err)
	}
}

// grantsOf is what pods see of a bucket whose accounts may read and write.
func grantsOf(bucket string, accounts ...string) string {
	text := bucket + ":"
	slices.Sort(accounts)
	for _, account := range accounts {
		text += " " + account + " ReadWrite"
	}
	return text
}

// wantGone waits until nothing is left of a claim that is being deleted.
func (b *bucketClaim) wantGone(t *testing.T) {
	t.Helper()
	gone(t, b.c, b.object)
	for _, object := range []client.Object{b.access, b.bucket, b.objectBucket(), b.secret(), b.configMap()} {
		gone(t, b.c, object)
	}
	wantNoKeys(t, b.c)
}

// wantNoKeys checks that no attempt has left its key.
func wantNoKeys(t *testing.T, c *cluster) {
	t.Helper()
	keys := &corev1.SecretList{}
	if err := c.Admin.List(t.Context(), keys, client.InNamespace(pavv1.CredentialsNamespace)); err != nil {
		t.Fatal(err)
	}
	for i := range keys.Items {
		t.Errorf("the key %s is left", keys.Items[i].Name)
	}
}

func TestObjectBucketClaim_Life(t *testing.T) {
	c, a := withBuckets(t)
	driver(t, c, "bucketed", ofBuckets)
	before := len(a.Line.Writes())
	b := claimBucket(t, c, "bucketed", "photos")
	name := "photos-" + string(b.object.UID)
	b.serve(t, name)
	// The first write of the Secret is a dry run: whether it can be written is known before there is an account.
	wantOrder(t, a.Line.Writes()[before:],
		"POST /apis/"+pavv1.GroupVersion.String()+"/pavbuckets", "POST /apis/"+pavv1.GroupVersion.String()+"/pavbucketaccesses",
		"POST /api/v1/namespaces/pav-pods/pods", "POST /api/v1/namespaces/default/secrets", "POST /api/v1/namespaces/pav-credentials/secrets")

	secret := b.secret()
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	key := canary + "photos"
	wantData := map[string]string{"AWS_ACCESS_KEY_ID": b.account(), "AWS_SECRET_ACCESS_KEY": key, "ACCESS_KEY_ID": b.account(), "SECRET_ACCESS_KEY": key, "hint": "more"}
	gotData := map[string]string{}
	for name, value := range secret.Data {
		gotData[name] = string(value)
	}
	if diff := cmp.Diff(wantData, gotData); diff != "" {
		t.Errorf("the Secret (-want +got):\n%s", diff)
	}
	settings := b.configMap()
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(settings), settings); err != nil {
		t.Fatal(err)
	}
	wantSettings := map[string]string{"BUCKET_NAME": name, "BUCKET_HOST": "s3.example", "BUCKET_PORT": "9000", "BUCKET_REGION": "here", "BUCKET_SUBREGION": ""}
	if diff := cmp.Diff(wantSettings, settings.Data); diff != "" {
		t.Errorf("the ConfigMap (-want +got):\n%s", diff)
	}
	for _, object := range []client.Object{secret, settings} {
		if owner := metav1.GetControllerOf(object); owner == nil || owner.UID != b.object.UID || !slices.Contains(object.GetFinalizers(), obcv1.Finalizer) {
			t.Errorf("%T has the owner %v and the finalizers %v", object, owner, object.GetFinalizers())
		}
	}
	shown := b.objectBucket()
	exists(t, c, shown, "is bound", func(o *obcv1.ObjectBucket) bool { return o.Status.Phase == obcv1.BucketBound })
	if e := shown.Spec.Endpoint; e == nil || e.BucketName != name || e.BucketHost != "s3.example" || e.BucketPort != 9000 || shown.Spec.ClaimRef.UID != b.object.UID {
		t.Errorf("the ObjectBucket has %+v", shown.Spec)
	}
	if b.object.Spec.BucketName != name || b.object.Spec.ObjectBucketName != shown.Name {
		t.Errorf("the claim names %q and %q", b.object.Spec.BucketName, b.object.Spec.ObjectBucketName)
	}
	exists(t, c, b.access, "has no key any more", func(a *pavv1.PavBucketAccess) bool { return a.Status.Key == "" })
	wantNoKeys(t, c)
	wantEvent(t, c, b.object, corev1.EventTypeNormal, "AccessGranted", b.account())

	mustDelete(t, c, b.object)
	end(t, c, recordedPod(t, c, b.access, pavv1.WorkflowRevocation, 2, b.account()+" in "+grantsOf(name)), workflow.Result{}, 0)
	end(t, c, recordedPod(t, c, b.bucket, pavv1.WorkflowBucketDeletion, 2, name+" True"), workflow.Result{}, 0)
	b.wantGone(t)
}

// Two claims of an existing bucket have it together; neither takes it, or the other's access, with it.
func TestObjectBucketClaim_OfAnExistingBucket(t *testing.T) {
	c, _ := withBuckets(t)
	driver(t, c, "bucketed-existing", ofBuckets, func(_ *pavv1.PavProvisioner, class *storagev1.StorageClass) {
		class.Parameters = map[string]string{obcv1.BucketNameParameter: "archive"}
	})
	one := claimBucket(t, c, "bucketed-existing", "one")
	one.grant(t, "archive")
	two := claimBucket(t, c, "bucketed-existing", "two")
	two.grant(t, "archive", one.account())
	mustDelete(t, c, one.object)
	end(t, c, recordedPod(t, c, one.access, pavv1.WorkflowRevocation, 2, one.account()+" in "+grantsOf("archive", two.account())), workflow.Result{}, 0)
	one.wantGone(t)
	mustDelete(t, c, two.object)
	end(t, c, recordedPod(t, c, two.access, pavv1.WorkflowRevocation, 2, two.account()+" in "+grantsOf("archive")), workflow.Result{}, 0)
	two.wantGone(t)
}

// A requested name that another claim has is refused, and with the claim that asked for it goes nothing of the other's.
func TestObjectBucketClaim_NameOfAnotherClaim(t *testing.T) {
	c, _ := withBuckets(t)
	driver(t, c, "bucketed-name", ofBuckets)
	first := claimBucket(t, c, "bucketed-name", "first", requested("taken"))
	first.serve(t, "taken")
	second := claimBucket(t, c, "bucketed-name", "second", requested("taken"))
	wantEvent(t, c, second.object, corev1.EventTypeWarning, "BucketCreationFailed", `bucket "taken" is another claim's`)
	mustDelete(t, c, second.object)
	second.wantGone(t)
	exists(t, c, first.bucket, "is as before", func(b *pavv1.PavBucket) bool { return b.Status.Phase == pavv1.BucketReady && b.Status.Pods == 1 })
	mustDelete(t, c, first.object)
	end(t, c, recordedPod(t, c, first.access, pavv1.WorkflowRevocation, 2, first.account()+" in "+grantsOf("taken")), workflow.Result{}, 0)
	end(t, c, recordedPod(t, c, first.bucket, pavv1.WorkflowBucketDeletion, 2, "taken True"), workflow.Result{}, 0)
	first.wantGone(t)
}

// A claim that has the name of a Secret of another owner gets no access, and the Secret stays as it is.
func TestObjectBucketClaim_NameOfAForeignSecret(t *testing.T) {
	c, _ := withBuckets(t)
	driver(t, c, "bucketed-secret", ofBuckets)
	foreign := mustCreateHeld(t, c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "foreign"}, Data: map[string][]byte{"password": []byte("mine")}})
	b := claimBucket(t, c, "bucketed-secret", "foreign")
	name := "photos-" + string(b.object.UID)
	end(t, c, recordedPod(t, c, b.bucket, pavv1.WorkflowBucketCreation, 1, name), workflow.Result{Created: true}, 0)
	wantEvent(t, c, b.object, corev1.EventTypeWarning, "SecretNameTaken", "Secret default/foreign belongs to something else")
	mustDelete(t, c, b.object)
	end(t, c, recordedPod(t, c, b.bucket, pavv1.WorkflowBucketDeletion, 2, name+" True"), workflow.Result{}, 0)
	gone(t, c, b.object)
	gone(t, c, b.access)
	if b.access.Status.Pods != 0 {
		t.Errorf("%d pods were made for an access whose Secret cannot be written", b.access.Status.Pods)
	}
	found := &corev1.Secret{}
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(foreign), found); err != nil || !maps.EqualFunc(found.Data, foreign.Data, slices.Equal[[]byte]) {
		t.Errorf("the Secret has %v, %v", found.Data, err)
	}
}

// A grant pod that fails may have made an account: it is revoked before the next attempt, which makes another.
func TestObjectBucketClaim_GrantFails(t *testing.T) {
	c, _ := withBuckets(t)
	driver(t, c, "bucketed-fails", ofBuckets)
	b := claimBucket(t, c, "bucketed-fails", "failing")
	name := "photos-" + string(b.object.UID)
	end(t, c, recordedPod(t, c, b.bucket, pavv1.WorkflowBucketCreation, 1, name), workflow.Result{Created: true}, 0)
	failing := recordedPod(t, c, b.access, pavv1.WorkflowGrant, 1, b.account()+" in "+grantsOf(name, b.account()))
	end(t, c, failing, workflow.Result{Error: "no such store", AccountID: "half-made"}, 1)
	wantEvent(t, c, b.object, corev1.EventTypeWarning, "AccessGrantFailed", "no such store")
	end(t, c, recordedPod(t, c, b.access, pavv1.WorkflowRevocation, 2, "half-made in "+grantsOf(name)), workflow.Result{}, 0)
	next := b.account() + "-1"
	pod := recordedPod(t, c, b.access, pavv1.WorkflowGrant, 3, next+" in "+grantsOf(name, next))
	end(t, c, pod, workflow.Result{AccountID: next}, 0) // and no credentials
	wantEvent(t, c, b.object, corev1.EventTypeWarning, "AccessGrantFailed", "/pav/credentials/accessKeyId and /pav/credentials/accessSecretKey")
	end(t, c, recordedPod(t, c, b.access, pavv1.WorkflowRevocation, 4, next+" in "+grantsOf(name)), workflow.Result{}, 0)
	mustDelete(t, c, b.object)
	gone(t, c, b.access)
	end(t, c, recordedPod(t, c, b.bucket, pavv1.WorkflowBucketDeletion, 2, name+" True"), workflow.Result{}, 0)
	b.wantGone(t)
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(b.secret()), b.secret()); !apierrors.IsNotFound(err) {
		t.Errorf("there is a Secret without access: %v", err)
	}
}
