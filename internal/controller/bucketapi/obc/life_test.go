package obc

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

func TestLife(t *testing.T) {
	claim := claimed().claim
	claim.Labels = map[string]string{"app": "x"}
	claim.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
	claim.Spec.AdditionalConfig = map[string]string{"maxSize": "1Gi"}
	c := newCluster(t, claim, theClass(), theProvisioner(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}})

	c.pass(photos)
	bucket, access := c.bucket(claimUID), c.access(claimUID)
	if bucket == nil || access == nil {
		t.Fatal("the request is not recorded")
	}
	if want := "photos-" + string(claimUID); bucket.Spec.BucketName != want || bucket.Spec.NameRequested || bucket.Spec.ExistingBucketID != "" {
		t.Errorf("the bucket is to be named %q", bucket.Spec.BucketName)
	}
	if bucket.Spec.Store != "http://s3:9000" || bucket.Spec.ReclaimPolicy != pavv1.BucketDelete || bucket.Spec.AdditionalConfig["maxSize"] != "1Gi" || bucket.Spec.Parameters["endpoint"] == "" {
		t.Errorf("the PavBucket is %+v", bucket.Spec)
	}
	for what, text := range map[string]string{"claim": string(bucket.Spec.Claim.Raw), "class": string(bucket.Spec.Class.Raw), "access": string(access.Spec.Access.Raw)} {
		if strings.Contains(text, "last-applied") || strings.Contains(text, "managedFields") || !strings.Contains(text, `"kind"`) {
			t.Errorf("the copy of the %s is %s", what, text)
		}
	}
	for _, record := range []client.Object{bucket, access} {
		if !controllerutil.ContainsFinalizer(record, pavv1.BucketFinalizer) || record.GetLabels()[pavv1.ProvisionerLabel] != "store" {
			t.Errorf("%s has the finalizers %v and the labels %v", record.GetName(), record.GetFinalizers(), record.GetLabels())
		}
	}
	want := []pavv1.AccessedBucket{{Bucket: bucket.Name, Mode: pavv1.AccessReadWrite, SecretName: "photos"}}
	if diff := cmp.Diff(want, access.Spec.Buckets); diff != "" {
		t.Errorf("the accessed buckets (-want +got):\n%s", diff)
	}
	held := c.claim(photos)
	if !controllerutil.ContainsFinalizer(held, objectbucketv1.Finalizer) || held.Labels[objectbucketv1.ProvisionerLabel] != "store" || held.Labels["app"] != "x" || held.Status.Phase != objectbucketv1.ClaimPending {
		t.Errorf("the claim is %+v", held)
	}

	// From here on, the class does not matter.
	c.must(c.Delete(t.Context(), theClass()))
	c.serve(claimUID)
	c.pass(photos)
	served := c.claim(photos)
	if served.Status.Phase != objectbucketv1.ClaimBound || served.Spec.BucketName != bucket.Spec.BucketName || served.Spec.ObjectBucketName != "obc-a-photos" || !c.told(protocol.BucketClaimBound) {
		t.Errorf("the claim is %+v", served)
	}
	if b := c.objectBucket(photos); b == nil || b.Status.Phase != objectbucketv1.BucketBound || b.Spec.ClaimRef.UID != claimUID || b.Spec.Endpoint.AdditionalConfig["maxSize"] != "1Gi" {
		t.Errorf("the ObjectBucket is %+v", b)
	}
	config := c.config(photos)
	if config == nil || config.Data["BUCKET_HOST"] != "s3" || config.Data["BUCKET_PORT"] != "9000" || config.Data["BUCKET_NAME"] != bucket.Spec.BucketName {
		t.Fatalf("the ConfigMap is %+v", config)
	}
	if owner := metav1.GetControllerOf(config); owner == nil || owner.UID != claimUID || owner.BlockOwnerDeletion != nil || config.Labels[pavv1.AccessLabel] != string(claimUID) || len(config.Labels) != 2 {
		t.Errorf("the ConfigMap has the owner %v and the labels %v", owner, config.Labels)
	}

	// It is written once, and once more by another process.
	written := c.configs
	if c.pass(photos); c.configs != written {
		t.Error("the ConfigMap is written with each pass")
	}
	c.restart()
	if c.pass(photos); c.configs != written+1 { // it exists, so it is replaced
		t.Errorf("after a restart, the ConfigMap is written %d times", c.configs-written)
	}

	c.must(c.Delete(t.Context(), c.claim(photos)))
	c.pass(photos)
	if !c.access(claimUID).Spec.Released || c.bucket(claimUID).Spec.Released || c.config(photos) == nil {
		t.Error("first, access is given up, and nothing else")
	}
	c.forget(c.access(claimUID))
	c.pass(photos)
	if !c.bucket(claimUID).Spec.Released || c.config(photos) != nil || c.objectBucket(photos).Status.Phase != objectbucketv1.BucketReleased || c.claim(photos) == nil {
		t.Error("then, the bucket is given up")
	}
	c.forget(c.bucket(claimUID))
	c.pass(photos)
	if c.objectBucket(photos) != nil || c.claim(photos) != nil {
		t.Error("in the end, nothing is left")
	}
	if len(c.reconciler.memories.of) != 0 {
		c.pass(photos)
		if len(c.reconciler.memories.of) != 0 {
			t.Errorf("the reconciler remembers %v", c.reconciler.memories.of)
		}
	}
}

// What follows the end of the PavBucket must not depend on who is left.
func TestLife_AnAgentIsKilledWhenTheBucketIsDeleted(t *testing.T) {
	for name, prepare := range map[string]func(*cluster){
		"nothing else happens":    func(*cluster) {},
		"the class is gone":       func(c *cluster) { c.must(c.Delete(c.Context(), theClass())) },
		"the provisioner is gone": func(c *cluster) { c.must(c.Delete(c.Context(), theProvisioner())) },
		"the claim is removed by force": func(c *cluster) {
			claim := c.claim(photos)
			claim.Finalizers = nil
			c.must(c.Update(c.Context(), claim))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, claimed().claim, theClass(), theProvisioner())
			c.pass(photos)
			c.serve(claimUID)
			c.pass(photos)
			c.must(c.Delete(t.Context(), c.claim(photos)))
			c.pass(photos)
			c.forget(c.access(claimUID))
			c.pass(photos)
			c.forget(c.bucket(claimUID))
			prepare(c)
			c.restart()
			c.pass(photos)
			if c.objectBucket(photos) != nil || c.claim(photos) != nil || c.config(photos) != nil {
				t.Error("something is left")
			}
		})
	}
}

// Of two claims with one name of their ObjectBuckets, the second gets nothing, and destroys nothing.
func TestLife_TwoClaimsWithTheSameObjectBucket(t *testing.T) {
	first, second := claimed().claim, claimed().claim
	first.Namespace, first.Name = "a-b", "c"
	second.Namespace, second.Name, second.UID = "a", "b-c", otherUID
	one, two := client.ObjectKeyFromObject(first), client.ObjectKeyFromObject(second)
	c := newCluster(t, first, second, theClass(), theProvisioner())
	c.pass(one)
	c.pass(two) // neither has an ObjectBucket yet
	c.serve(claimUID)
	c.serve(otherUID)
	c.pass(one)
	if after := c.pass(two); after <= 0 || !c.told(protocol.ObjectBucketNameTaken) {
		t.Error("the second claim is not told why it has no bucket")
	}
	if c.claim(one).Status.Phase != objectbucketv1.ClaimBound || c.claim(two).Status.Phase != objectbucketv1.ClaimPending || c.config(two) != nil {
		t.Error("the first has the bucket, and the second waits")
	}
	c.must(c.Delete(t.Context(), c.claim(two)))
	c.pass(two)
	c.forget(c.access(otherUID))
	c.pass(two)
	c.forget(c.bucket(otherUID))
	c.pass(two)
	if c.claim(two) != nil || c.objectBucket(one) == nil || c.config(one) == nil {
		t.Error("the second is deleted, and the first has all that it had")
	}
}

// A claim that was created again under its name gets another bucket, and what its namesake has left is cleaned up.
func TestLife_AClaimIsReplaced(t *testing.T) {
	c := newCluster(t, claimed().claim, theClass(), theProvisioner())
	c.pass(photos)
	c.serve(claimUID)
	c.pass(photos)
	former := c.claim(photos)
	former.Finalizers = nil
	c.must(c.Update(t.Context(), former))
	c.must(c.Delete(t.Context(), former))
	again := claimed().claim
	again.UID = otherUID
	c.must(c.Create(t.Context(), again))

	c.pass(photos)
	if c.bucket(otherUID) == nil || !c.access(claimUID).Spec.Released || c.access(otherUID).Spec.Released {
		t.Fatal("the new claim is recorded, and the access of the former is given up")
	}
	c.serve(otherUID)
	c.pass(photos)
	if c.claim(photos).Status.Phase == objectbucketv1.ClaimBound || !c.told(protocol.BucketClaimWaiting) {
		t.Error("the new claim waits for the former")
	}
	c.forget(c.access(claimUID))
	c.pass(photos)
	if !c.bucket(claimUID).Spec.Released || c.bucket(otherUID).Spec.Released {
		t.Error("the bucket of the former is given up")
	}
	c.forget(c.bucket(claimUID))
	c.pass(photos)
	if b := c.objectBucket(photos); c.claim(photos).Status.Phase != objectbucketv1.ClaimBound || b == nil || b.Spec.ClaimRef.UID != otherUID || c.config(photos).Labels[pavv1.AccessLabel] != string(otherUID) {
		t.Error("the new claim is bound when nothing is left of the former")
	}
}

// A ConfigMap of someone else is neither written nor deleted.
func TestLife_TheNameOfTheConfigMapIsTaken(t *testing.T) {
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "photos"}, Data: map[string]string{"k": "v"}}
	c := newCluster(t, claimed().claim, theClass(), theProvisioner(), foreign)
	c.pass(photos)
	c.serve(claimUID)
	if after := c.pass(photos); after <= 0 || !c.told(protocol.ConfigMapNameTaken) || c.claim(photos).Status.Phase != objectbucketv1.ClaimPending {
		t.Error("the claim waits, and its user is told why")
	}
	c.must(c.Delete(t.Context(), c.claim(photos)))
	c.pass(photos)
	c.forget(c.access(claimUID))
	c.pass(photos)
	c.forget(c.bucket(claimUID))
	c.pass(photos)
	if config := c.config(photos); c.claim(photos) != nil || config == nil || config.Data["k"] != "v" {
		t.Error("the claim is deleted, and the ConfigMap stays")
	}
}

// A bucket that is retained needs neither claim nor ObjectBucket.
func TestLife_TheBucketOfTheClass(t *testing.T) {
	class := theClass()
	class.Parameters[objectbucketv1.BucketNameParameter] = "old"
	c := newCluster(t, claimed().claim, class, theProvisioner())
	c.pass(photos)
	if spec := c.bucket(claimUID).Spec; spec.ExistingBucketID != "old" || spec.BucketName != "old" || spec.NameRequested || spec.ReclaimPolicy != pavv1.BucketRetain {
		t.Errorf("the PavBucket is %+v", spec)
	}
	c.serve(claimUID)
	c.pass(photos)
	if c.claim(photos).Spec.BucketName != "old" {
		t.Error("the claim does not name the bucket")
	}
	c.must(c.Delete(t.Context(), c.claim(photos)))
	c.pass(photos)
	c.forget(c.access(claimUID))
	c.pass(photos)
	retained := c.bucket(claimUID)
	retained.Status.Phase = pavv1.BucketRetained
	c.must(c.Status().Update(t.Context(), retained))
	c.pass(photos)
	if c.claim(photos) != nil || c.objectBucket(photos) != nil || c.bucket(claimUID) == nil {
		t.Error("only the PavBucket is left")
	}
}

// What a claim asks for later replaces what its record has, with all of the former copy.
func TestLife_AClaimAsksForMore(t *testing.T) {
	claim := claimed().claim
	claim.Labels = map[string]string{"former": "x"}
	claim.Spec.AdditionalConfig = map[string]string{"maxSize": "1Gi", "maxObjects": "7"}
	c := newCluster(t, claim, theClass(), theProvisioner())
	c.pass(photos)
	c.serve(claimUID)
	asking := c.claim(photos)
	delete(asking.Labels, "former")
	asking.Spec.AdditionalConfig = map[string]string{"maxSize": "2Gi"}
	asking.Annotations = map[string]string{pavv1.RotateAnnotation: noon.Format(pavv1.RetryFormat)}
	c.must(c.Update(t.Context(), asking))
	c.pass(photos)
	bucket := c.bucket(claimUID)
	if diff := cmp.Diff(map[string]string{"maxSize": "2Gi"}, bucket.Spec.AdditionalConfig); diff != "" {
		t.Errorf("additionalConfig (-want +got):\n%s", diff)
	}
	if text := string(bucket.Spec.Claim.Raw); strings.Contains(text, "former") || strings.Contains(text, "maxObjects") || !strings.Contains(text, "2Gi") {
		t.Errorf("the copy of the claim is %s", text)
	}
	if got := c.access(claimUID).Annotations[pavv1.RotateAnnotation]; got != noon.Format(pavv1.RetryFormat) {
		t.Errorf("the access has the request %q", got)
	}
	// A tenant does not make PaV write more often than once in a second.
	asking = c.claim(photos)
	asking.Spec.AdditionalConfig = map[string]string{"maxSize": "3Gi"}
	c.must(c.Update(t.Context(), asking))
	if after := c.pass(photos); after != copyInterval || c.bucket(claimUID).Spec.AdditionalConfig["maxSize"] != "2Gi" {
		t.Errorf("the next copy follows after %s", after)
	}
}

// Nothing is recorded of what cannot be served, and nothing is done to the claims of others.
func TestLife_AClaimIsNotServed(t *testing.T) {
	const pending = objectbucketv1.ClaimPending
	for name, test := range map[string]struct {
		claim       func(*objectbucketv1.ObjectBucketClaim)
		class       func(*storagev1.StorageClass)
		provisioner func(*pavv1.PavProvisioner)
		told        string
		phase       objectbucketv1.ClaimPhase
	}{
		"its class is another provisioner's": {class: func(class *storagev1.StorageClass) { class.Provisioner = "ceph.rook.io/bucket" }},
		"it was another provisioner's": {claim: func(claim *objectbucketv1.ObjectBucketClaim) {
			claim.Labels = map[string]string{objectbucketv1.ProvisionerLabel: "ceph.rook.io-bucket"}
		}, told: "belongs to"},
		"its copy is too large": {claim: func(claim *objectbucketv1.ObjectBucketClaim) {
			claim.Annotations = map[string]string{"large": strings.Repeat("x", pavv1.MaxClaimCopy)}
		}, told: "bytes", phase: pending},
		"its store cannot be evaluated": {provisioner: func(p *pavv1.PavProvisioner) {
			p.Spec.BucketValidation.Store = &pavv1.Template{Raw: []byte(`"{{ params.missing.name }}"`)}
		}, told: "store", phase: pending},
		"the provisioner has no buckets": {provisioner: func(p *pavv1.PavProvisioner) { p.Spec.BucketCreation = nil }, told: "no buckets", phase: pending},
	} {
		t.Run(name, func(t *testing.T) {
			claim, class, provisioner := claimed().claim, theClass(), theProvisioner()
			if test.claim != nil {
				test.claim(claim)
			}
			if test.class != nil {
				test.class(class)
			}
			if test.provisioner != nil {
				test.provisioner(provisioner)
			}
			labels := len(claim.Labels)
			c := newCluster(t, claim, class, provisioner)
			c.pass(photos)
			got := c.claim(photos)
			if c.bucket(claimUID) != nil || c.access(claimUID) != nil || len(got.Finalizers) > 0 || len(got.Labels) != labels {
				t.Error("something was done")
			}
			if got.Status.Phase != test.phase || test.told != "" && !c.told(test.told) || test.told == "" && c.told("") {
				t.Errorf("the phase is %q, or the user is not told", got.Status.Phase)
			}
		})
	}
}

// A cache that is behind does not give a claim's bucket up.
func TestLife_TheCacheIsBehind(t *testing.T) {
	c := newCluster(t, claimed().claim, theClass(), theProvisioner())
	c.pass(photos)
	c.serve(claimUID)
	c.pass(photos)
	c.reconciler.Client = interceptor.NewClient(c.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, cache client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, ok := object.(*objectbucketv1.ObjectBucketClaim); ok {
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			return cache.Get(ctx, key, object, options...)
		},
	})
	if after := c.pass(photos); after <= 0 || c.access(claimUID).Spec.Released {
		t.Error("the access is given up although the claim exists")
	}
}
