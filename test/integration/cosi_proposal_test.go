package integration

import (
	"context"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	cosiv0 "github.com/albertofaria/pav/internal/api/cosi/proposal"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/controlplane"
)

// installProposal installs the kinds of COSI's first proposal.
func installProposal(t *testing.T, c *cluster) {
	t.Helper()
	options := envtest.CRDInstallOptions{Paths: []string{filepath.Join("..", "..", "deploy", "cosi-proposal")}, ErrorIfPathMissing: true}
	if _, err := envtest.InstallCRDs(c.Environment.Config, options); err != nil {
		t.Fatal(err)
	}
}

// withProposal returns a cluster that has these kinds, and what the chart adds for them.
func withProposal(t *testing.T) *cluster {
	t.Helper()
	c := start(t)
	installProposal(t, c)
	arguments := []string{"template", "pav", "../../deploy/chart", "--set", "buckets.enabled=true,buckets.cosiProposal=true"}
	for _, file := range []string{"26-namespace-buckets", "27-policies-buckets", "35-access-buckets"} {
		arguments = append(arguments, "--show-only", "templates/"+file+".yaml")
	}
	out, err := exec.CommandContext(t.Context(), "../../bin/helm", arguments...).Output()
	if err != nil {
		t.Fatal("rendering the chart:", err)
	}
	objects, err := controlplane.Objects(out)
	if err != nil {
		t.Fatal(err)
	}
	enableBucketsBy(t, c, objects)
	thief := client.NewDryRunClient(stolenController(t, c))
	eventually(t, "the policy of BucketContents holds", func(ctx context.Context) (bool, string) {
		err := thief.Create(ctx, &cosiv0.BucketContent{ObjectMeta: metav1.ObjectMeta{Name: "no-label"}})
		return err != nil && strings.Contains(err.Error(), "that it created with the label"), errorText(err)
	})
	return c
}

// TestCOSIProposal plays the lives of Buckets of cosi.io.
func TestCOSIProposal(t *testing.T) {
	c := withProposal(t)
	run(t, c)
	for _, test := range []struct {
		name string
		play func(*testing.T, *cluster)
	}{
		{"Life", proposalLife},
		{"Rotation", proposalRotation},
		{"ABucketIsRetained", proposalRetained},
		{"AnExistingBucket", proposalExisting},
		{"AStaticBucket", proposalStatic},
		{"WhatCannotBeServed", proposalRefused},
	} {
		t.Run(test.name, func(t *testing.T) { test.play(t, c) })
	}
}

// proposalClass makes a BucketClass of a provisioner, which has its name.
func proposalClass(t *testing.T, c *cluster, provisioner string, changes ...func(*cosiv0.BucketClass)) {
	t.Helper()
	class := &cosiv0.BucketClass{ObjectMeta: metav1.ObjectMeta{Name: provisioner}, Provisioner: provisioner, ReleasePolicy: cosiv0.ReleaseDelete}
	for _, change := range changes {
		change(class)
	}
	mustCreateHeld(t, c, class)
}

// proposalBucket is a Bucket with its records.
type proposalBucket struct {
	c      *cluster
	object *cosiv0.Bucket
	bucket *pavv1.PavBucket
	access *pavv1.PavBucketAccess
}

// bucketOfProposal makes a Bucket of a class, whose Secret has the name of the Bucket and "-keys".
func bucketOfProposal(t *testing.T, c *cluster, class, name string) *proposalBucket {
	t.Helper()
	object := &cosiv0.Bucket{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	object.Spec = cosiv0.BucketSpec{BucketPrefix: "photos-", BucketClassName: class, SecretName: name + "-keys"}
	b := &proposalBucket{c: c, object: mustCreate(t, c, object)}
	b.bucket = &pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: "b-" + string(object.UID)}}
	b.access = &pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: "a-" + string(object.UID)}}
	t.Cleanup(func() { removeIfFailed(t, c, b.object, b.access, b.bucket, b.secret(), b.content()) })
	return b
}

// name is the name of the bucket, and account that of its first account.
func (b *proposalBucket) name() string { return "photos-" + string(b.object.UID) }

func (b *proposalBucket) account() string { return "ba-" + string(b.object.UID) }

func (b *proposalBucket) secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.object.Namespace, Name: b.object.Spec.SecretName}}
}

func (b *proposalBucket) content() *cosiv0.BucketContent {
	return &cosiv0.BucketContent{ObjectMeta: metav1.ObjectMeta{Name: cosiv0.ContentOf(b.object.Spec.BucketClassName, b.object.UID)}}
}

// serve makes the bucket, and grants access to it.
func (b *proposalBucket) serve(t *testing.T) {
	t.Helper()
	end(t, b.c, recordedPod(t, b.c, b.bucket, pavv1.WorkflowBucketCreation, 1, b.name()), workflow.Result{Created: true}, 0)
	b.grant(t, 1, b.account(), grantsOf(b.name(), b.account()))
	b.wantBound(t)
}

// grant lets a grant pod, which sees grants, succeed with an account.
func (b *proposalBucket) grant(t *testing.T, number int32, account, sees string) {
	t.Helper()
	pod := recordedPod(t, b.c, b.access, pavv1.WorkflowGrant, number, account+" in "+sees)
	result, err := sealed(pod, account, canary+b.object.Name)
	if err != nil {
		t.Fatal(err)
	}
	end(t, b.c, pod, result, 0)
}

func (b *proposalBucket) wantBound(t *testing.T) {
	t.Helper()
	exists(t, b.c, b.object, "is bound", func(o *cosiv0.Bucket) bool {
		return o.Status.Phase == cosiv0.BucketBound && o.Status.BucketContentName == b.content().Name
	})
}

// wantSecret checks the Secret of the Bucket, which has the credentials of an account for the bucket of an ID.
func (b *proposalBucket) wantSecret(t *testing.T, id, account, key string, more map[string]string) {
	t.Helper()
	secret := b.secret()
	exists(t, b.c, secret, "has the credentials of "+account, func(s *corev1.Secret) bool { return string(s.Data["COSI_S3_ACCESS_KEY_ID"]) == account })
	got := map[string]string{}
	for name, value := range secret.Data {
		got[name] = string(value)
	}
	want := map[string]string{
		"COSI_PROTOCOL": "S3", "COSI_CERTIFICATE_AUTHORITY": "", "COSI_S3_BUCKET_ID": id, "COSI_S3_ENDPOINT": "https://s3.example:9000", "COSI_S3_REGION": "here",
		"COSI_S3_ADDRESSING_STYLE": "", "COSI_S3_ACCESS_KEY_ID": account, "COSI_S3_ACCESS_SECRET_KEY": key,
	}
	maps.Copy(want, more)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the Secret (-want +got):\n%s", diff)
	}
	if owner := metav1.GetControllerOf(secret); owner == nil || owner.UID != b.object.UID || owner.APIVersion != cosiv0.GroupVersion.String() {
		t.Errorf("the Secret has the owner %v", owner)
	}
}

// revoke deletes the Bucket, and lets the revocation pod, which sees grants, succeed.
func (b *proposalBucket) revoke(t *testing.T, number int32, account, sees string) {
	t.Helper()
	mustDelete(t, b.c, b.object)
	end(t, b.c, recordedPod(t, b.c, b.access, pavv1.WorkflowRevocation, number, account+" in "+sees), workflow.Result{}, 0)
}

// wantDeleted lets the deletion pod succeed, and waits until nothing is left.
func (b *proposalBucket) wantDeleted(t *testing.T) {
	t.Helper()
	end(t, b.c, recordedPod(t, b.c, b.bucket, pavv1.WorkflowBucketDeletion, 2, b.name()+" True"), workflow.Result{}, 0)
	b.wantGone(t, b.bucket)
}

func (b *proposalBucket) wantGone(t *testing.T, more ...client.Object) {
	t.Helper()
	for _, object := range append(more, b.object, b.access, b.secret(), b.content()) {
		gone(t, b.c, object)
	}
	wantNoKeys(t, b.c)
}

func proposalLife(t *testing.T, c *cluster) {
	t.Helper()
	driver(t, c, "proposal", ofBuckets)
	proposalClass(t, c, "proposal")
	b := bucketOfProposal(t, c, "proposal", "photos0")
	exists(t, c, b.object, "says that it waits", func(o *cosiv0.Bucket) bool { return o.Status.Phase == cosiv0.BucketPending })
	b.serve(t)
	b.wantSecret(t, b.name(), b.account(), canary+"photos0", map[string]string{"hint": "more"})
	content := b.content()
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(content), content); err != nil {
		t.Fatal(err)
	}
	if ref := content.Spec.BucketRef; ref == nil || ref.ResourceVersion == "" {
		t.Fatalf("the BucketContent has the bucketRef %+v", ref)
	}
	content.Spec.BucketRef.ResourceVersion = ""
	want := cosiv0.BucketContentSpec{
		Provisioner: "proposal", ReleasePolicy: cosiv0.ReleaseDelete, AccessModes: []cosiv0.AccessMode{cosiv0.AccessReadWrite}, BucketClassName: "proposal",
		BucketRef: &cosiv0.BucketReference{Namespace: "default", Name: "photos0", UUID: b.object.UID},
		SecretRef: &cosiv0.SecretReference{Namespace: "default", Name: "photos0-keys"}, BucketIdentifier: b.name(),
	}
	if diff := cmp.Diff(want, content.Spec); diff != "" || content.Status.Phase != cosiv0.ContentBound || content.Labels[cosiv0.ProvisionerLabel] != "proposal" {
		t.Errorf("the BucketContent has the phase %q, the labels %v, and (-want +got):\n%s", content.Status.Phase, content.Labels, diff)
	}
	wantEvent(t, c, b.object, corev1.EventTypeNormal, "BucketClaimBound", b.name())
	wantEvent(t, c, b.object, corev1.EventTypeNormal, "AccessGranted", b.account())
	b.revoke(t, 2, b.account(), grantsOf(b.name()))
	exists(t, c, content, "is released", func(o *cosiv0.BucketContent) bool {
		return o.Status.Phase == cosiv0.ContentReleased && slices.Contains(o.Finalizers, cosiv0.Finalizer)
	})
	b.wantDeleted(t)
}

func proposalRotation(t *testing.T, c *cluster) {
	t.Helper()
	driver(t, c, "proposal-rotation", ofBuckets, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.BucketAccessGrant.Overlap = &metav1.Duration{}
	})
	proposalClass(t, c, "proposal-rotation")
	b := bucketOfProposal(t, c, "proposal-rotation", "rotated0")
	b.serve(t)
	first, second := b.account(), b.account()+"-1"
	rotate(t, c, b.access, b.object)
	b.grant(t, 2, second, grantsOf(b.name(), first, second))
	b.wantSecret(t, b.name(), second, canary+"rotated0", map[string]string{"hint": "more"})
	end(t, c, recordedPod(t, c, b.access, pavv1.WorkflowRevocation, 3, first+" in "+grantsOf(b.name(), second)), workflow.Result{}, 0)
	b.revoke(t, 4, second, grantsOf(b.name()))
	b.wantDeleted(t)
}

// A bucket outlives its Bucket unless the class says Delete, and only its record is left.
func proposalRetained(t *testing.T, c *cluster) {
	t.Helper()
	driver(t, c, "proposal-retained", ofBuckets)
	proposalClass(t, c, "proposal-retained", func(class *cosiv0.BucketClass) { class.ReleasePolicy = "" })
	b := bucketOfProposal(t, c, "proposal-retained", "retained0")
	b.serve(t)
	b.revoke(t, 2, b.account(), grantsOf(b.name()))
	b.wantGone(t)
	exists(t, c, b.bucket, "is retained", func(r *pavv1.PavBucket) bool {
		return r.Status.Phase == pavv1.BucketRetained && r.Status.Pods == 1 && len(r.Finalizers) == 0
	})
	mustDelete(t, c, b.bucket)
	gone(t, c, b.bucket)
}

// A bucket that exists already is neither created nor deleted, though its class says Delete. Two Buckets have it, with an account each.
func proposalExisting(t *testing.T, c *cluster) {
	t.Helper()
	driver(t, c, "proposal-existing", ofBuckets)
	proposalClass(t, c, "proposal-existing", func(class *cosiv0.BucketClass) { class.BucketIdentifier = "old-archive" })
	one := bucketOfProposal(t, c, "proposal-existing", "old-one0")
	one.grant(t, 1, one.account(), grantsOf("old-archive", one.account()))
	one.wantBound(t)
	two := bucketOfProposal(t, c, "proposal-existing", "old-two0")
	two.grant(t, 1, two.account(), grantsOf("old-archive", one.account(), two.account()))
	two.wantBound(t)
	one.revoke(t, 2, one.account(), grantsOf("old-archive", two.account()))
	one.wantGone(t, one.bucket)
	two.revoke(t, 2, two.account(), grantsOf("old-archive"))
	two.wantGone(t, two.bucket)
}

// The credentials of a static bucket are those of an administrator's Secret, which stays. No pod runs.
func proposalStatic(t *testing.T, c *cluster) {
	t.Helper()
	driver(t, c, "proposal-static", ofBuckets, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.BucketAccessGrant, p.Spec.BucketAccessRevoke = &pavv1.BucketAccessGrant{FromSecret: field(`"{{ class.secretRef.name }}"`)}, nil
	})
	proposalClass(t, c, "proposal-static", func(class *cosiv0.BucketClass) {
		class.BucketIdentifier, class.SecretRef = "old-static", &cosiv0.SecretReference{Namespace: credentialsNamespace, Name: "old-static-keys"}
	})
	keys := mustCreateHeld(t, c, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: credentialsNamespace, Name: "old-static-keys"},
		Data:       map[string][]byte{"accessKeyId": []byte("static"), "accessSecretKey": []byte(canary + "static")},
	})
	b := bucketOfProposal(t, c, "proposal-static", "static0")
	b.wantBound(t)
	b.wantSecret(t, "old-static", "static", canary+"static", nil)
	mustDelete(t, c, b.object)
	for _, object := range []client.Object{b.object, b.access, b.bucket, b.secret(), b.content()} {
		gone(t, c, object)
	}
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(keys), keys); err != nil || len(keys.Data) != 2 {
		t.Errorf("the administrator's Secret has %d keys: %v", len(keys.Data), err)
	}
	mustDelete(t, c, keys)
}

// A class whose Secret a tenant may have written gives nothing, and a BucketContent of an administrator is bound by nobody.
func proposalRefused(t *testing.T, c *cluster) {
	t.Helper()
	driver(t, c, "proposal-refused", ofBuckets)
	proposalClass(t, c, "proposal-refused", func(class *cosiv0.BucketClass) {
		class.BucketIdentifier, class.SecretRef = "old", &cosiv0.SecretReference{Namespace: "default", Name: "of-a-tenant"}
	})
	unclaimed := &cosiv0.BucketContent{ObjectMeta: metav1.ObjectMeta{Name: "unclaimed"}}
	unclaimed.Spec = cosiv0.BucketContentSpec{Provisioner: "proposal-refused", BucketClassName: "proposal-refused", BucketIdentifier: "old"}
	mustCreateHeld(t, c, unclaimed)
	b := bucketOfProposal(t, c, "proposal-refused", "refused0")
	wantEvent(t, c, b.object, corev1.EventTypeWarning, "BucketClaimRefused", `in the namespace "default"`)
	exists(t, c, b.object, "waits", func(o *cosiv0.Bucket) bool { return o.Status.Phase == cosiv0.BucketPending })
	mustDelete(t, c, b.object)
	b.wantGone(t, b.bucket)
	exists(t, c, unclaimed, "is as it was", func(o *cosiv0.BucketContent) bool {
		return o.Spec.BucketRef == nil && o.Status.Phase == "" && len(o.Finalizers) == 0
	})
}

func TestControllerToken_WritesItsOwnBucketContentsOnly(t *testing.T) {
	c := withProposal(t)
	const only, provisioner, asks, changes = "BucketContents that it created with the label", "is the name of its provisioner", "what a Bucket asks for", "finalizers of a Bucket and the label"
	content := func(name, label string) *cosiv0.BucketContent {
		o := &cosiv0.BucketContent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: cosiv0.BucketContentSpec{Provisioner: "policed"}}
		if label != "" {
			o.Labels = map[string]string{pavv1.ProvisionerLabel: label}
		}
		return o
	}
	ours, foreign := mustCreateHeld(t, c, content("policed", "policed")), mustCreateHeld(t, c, content("policed-foreign", ""))
	moved := content("policed-moved", "policed")
	moved.Spec.Provisioner = "other"
	mustCreateHeld(t, c, moved)
	bucket := &cosiv0.Bucket{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "policed"}, Spec: cosiv0.BucketSpec{BucketClassName: "c", SecretName: "s"}}
	mustCreateHeld(t, c, bucket)
	secret := func(change func(*corev1.Secret)) func(*corev1.Secret) {
		return func(s *corev1.Secret) {
			s.OwnerReferences[0].APIVersion, s.OwnerReferences[0].Kind, s.OwnerReferences[0].Name = cosiv0.GroupVersion.String(), "Bucket", "policed"
			s.Finalizers = nil
			change(s)
		}
	}
	try(t, stolenController(t, c), []attempt{
		{"it creates one", creating(content("new", "policed")), ""},
		{"it creates one without the label", creating(content("new", "")), only},
		{"it creates one of another provisioner", creating(content("new", "other")), provisioner},
		{"it changes its own", patching(ours, `{"spec": {"bucketIdentifier": "b"}}`), ""},
		{"it gives its own up", patching(ours, `{"metadata": {"labels": {"pav.albertofaria.github.io/provisioner": null}}}`), only},
		{"it changes another's", patching(foreign, `{"spec": {"bucketIdentifier": "b"}}`), only},
		{"it takes another's", patching(foreign, `{"metadata": {"labels": {"pav.albertofaria.github.io/provisioner": "policed"}}}`), only},
		{"it shows the state of its own", patching(ours, `{"status": {"phase": "Released"}}`, "status"), ""},
		{"it shows the state of another's", patching(foreign, `{"status": {"phase": "Released"}}`, "status"), only},
		{"it releases one whose provisioner was changed", patching(moved, `{"status": {"phase": "Released"}}`, "status"), ""},
		{"it changes one whose provisioner was changed", patching(moved, `{"spec": {"bucketIdentifier": "b"}}`), provisioner},
		{"it deletes its own", deleting(ours), ""},
		{"it deletes another's", deleting(foreign), only},
		{"it holds a Bucket", patching(bucket, `{"metadata": {"finalizers": ["cosi.io/finalizer"], "labels": {"cosi.io/provisioner": "policed"}}}`), ""},
		{"it shows the state of a Bucket", patching(bucket, `{"status": {"phase": "Bound"}}`, "status"), ""},
		{"it changes what a Bucket asks for", patching(bucket, `{"spec": {"secretName": "other"}}`), asks},
		{"it labels a Bucket", patching(bucket, relabel), changes},
		{"it annotates a Bucket", patching(bucket, `{"metadata": {"annotations": {"a": "b"}}}`), changes},
		{"it deletes a Bucket", deleting(bucket), notInTheRole},
		{"it creates a Bucket", creating(bucket), notInTheRole},
		{"it changes a class", patching(&cosiv0.BucketClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, relabel), notInTheRole},
		{"it creates the Secret of a Bucket", creating(secretOf("default", "policed-new", bucket.UID, secret(unchanged))), ""},
		{"it creates the Secret of another UID", creating(secretOf("default", "policed-new", bucket.UID, secret(func(s *corev1.Secret) { s.OwnerReferences[0].UID = "u" }))), accessesOnly},
		{"it creates the Secret of a class", creating(secretOf("default", "policed-new", bucket.UID, secret(func(s *corev1.Secret) { s.OwnerReferences[0].Kind = "BucketClass" }))), accessesOnly},
	})
}

// Where the chart is not asked for it, the kinds of the proposal are out of reach.
func TestControllerToken_KnowsNothingOfTheProposalByDefault(t *testing.T) {
	c := start(t)
	installProposal(t, c)
	enableBuckets(t, c)
	bucket := &cosiv0.Bucket{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}
	secret := secretOf("default", "policed-new", "00000000-0000-4000-8000-000000000001", owner(func(o *metav1.OwnerReference) {
		o.APIVersion, o.Kind = cosiv0.GroupVersion.String(), "Bucket"
	}))
	thief := stolenController(t, c)
	// The API server may go by the policies of a former test for a moment.
	eventually(t, "it creates no Secret of a Bucket", func(ctx context.Context) (bool, string) {
		err := creating(secret)(ctx, client.NewDryRunClient(thief))
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), accessesOnly), errorText(err)
	})
	try(t, thief, []attempt{{"it changes a Bucket", patching(bucket, relabel), notInTheRole}})
}
