package cosi0

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cosiv0 "github.com/albertofaria/pav/internal/api/cosi/proposal"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

func TestLife(t *testing.T) {
	object := asked().object
	object.Labels = map[string]string{"app": "x"}
	object.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
	c := newCluster(t, object, theClass(), theProvisioner(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}})

	c.pass()
	bucket, access := c.bucket(bucketUID), c.access(bucketUID)
	if bucket == nil || access == nil {
		t.Fatal("the request is not recorded")
	}
	wantRecorded(t, bucket, access)
	held := c.object()
	if !controllerutil.ContainsFinalizer(held, cosiv0.Finalizer) || held.Labels[cosiv0.ProvisionerLabel] != "store" || held.Labels["app"] != "x" || held.Status.Phase != cosiv0.BucketPending || !c.told(protocol.Provisioning) {
		t.Errorf("the Bucket is %+v", held)
	}

	// From here on, the class does not matter.
	c.must(c.Delete(t.Context(), theClass()))
	c.serve(bucketUID)
	c.pass()
	if diff := cmp.Diff(cosiv0.BucketStatus{BucketContentName: contentName, Phase: cosiv0.BucketBound}, c.object().Status); diff != "" || !c.told(protocol.BucketClaimBound) {
		t.Errorf("nobody is told, or the status (-want +got):\n%s", diff)
	}
	content := c.content(contentName)
	if content == nil || content.Status.Phase != cosiv0.ContentBound || content.Spec.BucketRef.UUID != bucketUID || content.Spec.BucketIdentifier != bucketName || !controllerutil.ContainsFinalizer(content, cosiv0.Finalizer) {
		t.Fatalf("the BucketContent is %+v", content)
	}
	version := c.version()
	c.restart()
	if c.pass(); c.version() != version {
		t.Error("another process writes it once more")
	}

	c.must(c.Delete(t.Context(), c.object()))
	c.pass()
	if !c.access(bucketUID).Spec.Released || c.bucket(bucketUID).Spec.Released {
		t.Error("first, access is given up, and nothing else")
	}
	c.forget(c.access(bucketUID))
	c.pass()
	if !c.bucket(bucketUID).Spec.Released || c.content(contentName).Status.Phase != cosiv0.ContentReleased || c.object() == nil {
		t.Error("then, the bucket is given up")
	}
	c.forget(c.bucket(bucketUID))
	c.pass()
	if c.content(contentName) != nil || c.object() != nil {
		t.Error("in the end, nothing is left")
	}
	if c.pass(); c.reconciler.memory.Len() != 0 {
		t.Error("the reconciler remembers it")
	}
}

// wantRecorded checks the records of the Bucket.
func wantRecorded(t *testing.T, bucket *pavv1.PavBucket, access *pavv1.PavBucketAccess) {
	t.Helper()
	spec := &bucket.Spec
	if spec.BucketName != bucketName || spec.NameRequested || spec.ExistingBucketID != "" || spec.API != pavv1.BucketAPICOSI0 || spec.Store != "http://s3:9000" || spec.ReclaimPolicy != pavv1.BucketDelete || spec.Parameters["endpoint"] == "" {
		t.Errorf("the PavBucket is %+v", spec)
	}
	for what, text := range map[string]string{"Bucket": string(spec.Claim.Raw), "class": string(spec.Class.Raw), "access": string(access.Spec.Access.Raw)} {
		if strings.Contains(text, "last-applied") || strings.Contains(text, "managedFields") || !strings.Contains(text, `"kind"`) {
			t.Errorf("the copy of the %s is %s", what, text)
		}
	}
	for _, record := range []client.Object{bucket, access} {
		if !controllerutil.ContainsFinalizer(record, pavv1.BucketFinalizer) || record.GetLabels()[pavv1.ProvisionerLabel] != "store" {
			t.Errorf("%s has the finalizers %v and the labels %v", record.GetName(), record.GetFinalizers(), record.GetLabels())
		}
	}
	want := []pavv1.AccessedBucket{{Bucket: bucket.Name, Mode: pavv1.AccessReadWrite, SecretName: "photos-s3"}}
	if diff := cmp.Diff(want, access.Spec.Buckets); diff != "" || access.Spec.Protocol != pavv1.ProtocolS3 || access.Spec.Requester.Kind != "Bucket" {
		t.Errorf("the PavBucketAccess is of a %s by %s, and the accessed buckets are (-want +got):\n%s", access.Spec.Requester.Kind, access.Spec.Protocol, diff)
	}
}

// A class that says nothing of the policy deletes nothing, and neither does one of a bucket that exists already, whatever it says.
func TestLife_ABucketThatIsRetained(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*cosiv0.BucketClass)
		existing string
		mode     pavv1.BucketAccessMode
	}{
		"by the class":            {func(c *cosiv0.BucketClass) { c.ReleasePolicy = cosiv0.ReleaseRetain }, "", pavv1.AccessReadWrite},
		"as the class says none":  {func(c *cosiv0.BucketClass) { c.ReleasePolicy = "" }, "", pavv1.AccessReadWrite},
		"as it exists already":    {func(c *cosiv0.BucketClass) { c.BucketIdentifier = "old" }, "old", pavv1.AccessReadWrite},
		"as it exists, read-only": {func(c *cosiv0.BucketClass) { c.BucketIdentifier, c.AccessMode = "old", cosiv0.AccessReadOnly }, "old", pavv1.AccessReadOnly},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, asked().object, theClass(test.change), theProvisioner())
			c.pass()
			if spec := c.bucket(bucketUID).Spec; spec.ReclaimPolicy != pavv1.BucketRetain || spec.ExistingBucketID != test.existing || test.existing != "" && spec.BucketName != test.existing {
				t.Errorf("the PavBucket is %+v", spec)
			}
			if mode := c.access(bucketUID).Spec.Buckets[0].Mode; mode != test.mode {
				t.Errorf("the mode is %s", mode)
			}
			c.serve(bucketUID)
			c.pass()
			if content := c.content(contentName); content == nil || content.Spec.ReleasePolicy != cosiv0.ReleaseRetain {
				t.Errorf("the BucketContent is %+v", content)
			}
			c.must(c.Delete(t.Context(), c.object()))
			c.pass()
			c.forget(c.access(bucketUID))
			c.pass()
			kept := c.bucket(bucketUID)
			kept.Status.Phase = pavv1.BucketRetained
			c.must(c.Status().Update(t.Context(), kept))
			c.pass()
			if c.object() != nil || c.content(contentName) != nil || c.bucket(bucketUID) == nil {
				t.Error("only the PavBucket is left")
			}
		})
	}
}

// What follows the end of the PavBucket must not depend on who is left.
func TestLife_AnAgentIsKilledWhenTheBucketIsDeleted(t *testing.T) {
	for name, prepare := range map[string]func(*cluster){
		"nothing else happens":    func(*cluster) {},
		"the class is gone":       func(c *cluster) { c.must(c.Delete(c.Context(), theClass())) },
		"the provisioner is gone": func(c *cluster) { c.must(c.Delete(c.Context(), theProvisioner())) },
		"the Bucket is removed by force": func(c *cluster) {
			object := c.object()
			object.Finalizers = nil
			c.must(c.Update(c.Context(), object))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, asked().object, theClass(), theProvisioner())
			c.pass()
			c.serve(bucketUID)
			c.pass()
			c.must(c.Delete(t.Context(), c.object()))
			c.pass()
			c.forget(c.access(bucketUID))
			c.pass()
			c.forget(c.bucket(bucketUID))
			prepare(c)
			c.restart()
			c.pass()
			if c.content(contentName) != nil || c.object() != nil {
				t.Error("something is left")
			}
		})
	}
}

// An agent is killed between the two records, and the class is gone when it is back.
func TestLife_TheSecondRecordFollowsFromTheFirst(t *testing.T) {
	c := newCluster(t, asked().object, theClass(func(class *cosiv0.BucketClass) { class.AccessMode = cosiv0.AccessReadOnly }), theProvisioner())
	c.pass()
	c.forget(c.access(bucketUID))
	c.must(c.Delete(t.Context(), theClass()))
	c.restart()
	c.pass()
	if access := c.access(bucketUID); access == nil || access.Spec.Buckets[0].Mode != pavv1.AccessReadOnly || access.Spec.Class == nil {
		t.Errorf("the PavBucketAccess is %+v", access)
	}
}

// A Bucket that was created again under its name gets another bucket, and what its namesake has left is cleaned up.
func TestLife_ABucketIsReplaced(t *testing.T) {
	c := newCluster(t, asked().object, theClass(), theProvisioner())
	c.pass()
	c.serve(bucketUID)
	c.pass()
	former := c.object()
	former.Finalizers = nil
	c.must(c.Update(t.Context(), former))
	c.must(c.Delete(t.Context(), former))
	again := asked().object
	again.UID = otherUID
	c.must(c.Create(t.Context(), again))
	c.pass()
	if c.bucket(otherUID) == nil || !c.access(bucketUID).Spec.Released || c.access(otherUID).Spec.Released {
		t.Fatal("the new Bucket is recorded, and the access of the former is given up")
	}
	c.serve(otherUID)
	c.pass()
	c.forget(c.access(bucketUID))
	c.pass()
	c.forget(c.bucket(bucketUID))
	c.pass()
	name := cosiv0.ContentOf("s3", otherUID)
	if c.content(contentName) != nil || c.content(name) == nil || c.object().Status.BucketContentName != name {
		t.Error("the new Bucket has its BucketContent, and that of the former is gone")
	}
	c.remove(otherUID)
	if c.object() != nil || c.content(name) != nil {
		t.Error("something is left")
	}
}

// A BucketContent that PaV did not write is neither bound nor changed, also if it names the Bucket: nobody gets a bucket by that.
func TestLife_ABucketContentOfAnotherProgram(t *testing.T) {
	foreign := &cosiv0.BucketContent{ObjectMeta: metav1.ObjectMeta{Name: contentName}}
	foreign.Spec = cosiv0.BucketContentSpec{Provisioner: "store", BucketIdentifier: "old", BucketRef: &cosiv0.BucketReference{Namespace: "a", Name: "photos", UUID: bucketUID}}
	c := newCluster(t, asked().object, theClass(), theProvisioner(), foreign)
	if after := c.pass(); after <= 0 || !c.told(contentName) || c.bucket(bucketUID) != nil || c.object().Status.Phase != cosiv0.BucketPending {
		t.Error("the Bucket is refused, and its user is told why")
	}
	c.must(c.Delete(t.Context(), c.object()))
	c.pass()
	if content := c.content(contentName); c.object() != nil || content == nil || content.Status.Phase != "" || content.Spec.BucketIdentifier != "old" {
		t.Errorf("the BucketContent is %+v", content)
	}
}

// Labels and references can be copied. The copy is neither shown in the Bucket nor changed.
func TestLife_ABucketContentThatLooksLikePaVs(t *testing.T) {
	copied := newContent(granted())
	copied.Name, copied.Finalizers, copied.Spec.BucketIdentifier = "zzz", nil, "old" // the last one of the list
	c := newCluster(t, asked().object, theClass(), theProvisioner(), copied)
	c.pass()
	c.serve(bucketUID)
	c.pass()
	if got := c.object().Status.BucketContentName; got != contentName || c.content(contentName) == nil {
		t.Errorf("the Bucket names the BucketContent %q", got)
	}
	c.remove(bucketUID)
	if c.object() != nil || c.content(contentName) != nil {
		t.Error("something is left")
	}
	if content := c.content("zzz"); content == nil || content.Status.Phase != "" || content.Spec.BucketIdentifier != "old" {
		t.Errorf("the copy is %+v", content)
	}
}

// Who removes the records by force, and lets the Bucket name another class, gets a further BucketContent. None of them is left in the end.
func TestLife_TheClassOfABucketIsAnotherByNow(t *testing.T) {
	for name, retain := range map[string]bool{"it is deleted": false, "it is retained": true} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, asked().object, theClass(), theClass(func(class *cosiv0.BucketClass) { class.Name = "archive" }), theProvisioner())
			c.pass()
			c.serve(bucketUID)
			c.pass()
			c.forget(c.access(bucketUID))
			c.forget(c.bucket(bucketUID))
			changed := c.object()
			changed.Spec.BucketClassName = "archive"
			c.must(c.Update(t.Context(), changed))
			c.pass()
			c.serve(bucketUID)
			c.pass()
			second := cosiv0.ContentOf("archive", bucketUID)
			if got := c.object().Status.BucketContentName; got != second || c.content(second) == nil {
				t.Fatalf("the Bucket names the BucketContent %q", got)
			}
			c.must(c.Delete(t.Context(), c.object()))
			c.pass()
			c.forget(c.access(bucketUID))
			c.pass()
			if kept := c.bucket(bucketUID); retain {
				kept.Status.Phase = pavv1.BucketRetained
				c.must(c.Status().Update(t.Context(), kept))
			} else {
				c.forget(kept)
			}
			c.pass()
			if c.object() != nil || c.content(contentName) != nil || c.content(second) != nil {
				t.Error("something is left")
			}
		})
	}
}

// Nothing is recorded of what cannot be served, and nothing is done to the Buckets of others.
func TestLife_ABucketIsNotServed(t *testing.T) {
	for name, test := range map[string]struct {
		object      func(*cosiv0.Bucket)
		class       func(*cosiv0.BucketClass)
		provisioner func(*pavv1.PavProvisioner)
		told        string
		phase       cosiv0.BucketPhase
	}{
		"its class is another provisioner's": {class: func(c *cosiv0.BucketClass) { c.Provisioner = "elsewhere" }},
		"its class has no provisioner": {class: func(c *cosiv0.BucketClass) {
			c.Provisioner, c.SecretRef = "", &cosiv0.SecretReference{Namespace: "a", Name: "s"}
		}},
		"it was another provisioner's": {object: func(b *cosiv0.Bucket) { b.Labels = map[string]string{cosiv0.ProvisionerLabel: "elsewhere"} }, told: "belongs to"},
		"its copy is too large": {object: func(b *cosiv0.Bucket) {
			b.Annotations = map[string]string{"large": strings.Repeat("x", pavv1.MaxClaimCopy)}
		}, told: "bytes", phase: cosiv0.BucketPending},
		"its store cannot be evaluated": {provisioner: func(p *pavv1.PavProvisioner) {
			p.Spec.BucketValidation.Store = &pavv1.Template{Raw: []byte(`"{{ params.missing.name }}"`)}
		}, told: "store", phase: cosiv0.BucketPending},
		"its class has a Secret of a tenant": {class: func(c *cosiv0.BucketClass) {
			c.BucketIdentifier, c.SecretRef = "old", &cosiv0.SecretReference{Namespace: "a", Name: "s"}
		}, told: "pav-credentials", phase: cosiv0.BucketPending},
	} {
		t.Run(name, func(t *testing.T) {
			object, class, provisioner := asked().object, theClass(), theProvisioner()
			if test.object != nil {
				test.object(object)
			}
			if test.class != nil {
				test.class(class)
			}
			if test.provisioner != nil {
				test.provisioner(provisioner)
			}
			labels := len(object.Labels)
			c := newCluster(t, object, class, provisioner)
			c.pass()
			got := c.object()
			if c.bucket(bucketUID) != nil || c.access(bucketUID) != nil || len(got.Finalizers) > 0 || len(got.Labels) != labels {
				t.Error("something was done")
			}
			if got.Status.Phase != test.phase || test.told != "" && !c.told(test.told) || test.told == "" && c.told("") {
				t.Errorf("the phase is %q, or the user is not told", got.Status.Phase)
			}
		})
	}
}

// A request for another account is passed on.
func TestLife_Rotation(t *testing.T) {
	c := newCluster(t, asked().object, theClass(), theProvisioner())
	c.pass()
	c.serve(bucketUID)
	asking := c.object()
	asking.Annotations = map[string]string{pavv1.RotateAnnotation: noon.Format(pavv1.RetryFormat)}
	c.must(c.Update(t.Context(), asking))
	c.pass()
	if got := c.access(bucketUID).Annotations[pavv1.RotateAnnotation]; got != noon.Format(pavv1.RetryFormat) {
		t.Errorf("the access has the request %q", got)
	}
}

// What a Bucket waits for brings the next pass, also if it is named by a class or a provisioner only.
func TestRequests(t *testing.T) {
	waiting, served := asked().object, asked().object
	served.Name, served.UID, served.Status.Phase = "served", otherUID, cosiv0.BucketBound
	c := newCluster(t, waiting, served, theClass(), theProvisioner())
	for what, requests := range map[string]int{
		"the class":                     len(c.reconciler.ofClass(t.Context(), theClass())),
		"another class":                 len(c.reconciler.ofClass(t.Context(), &cosiv0.BucketClass{ObjectMeta: metav1.ObjectMeta{Name: "x"}})) + 1,
		"the provisioner":               len(c.reconciler.ofProvisioner(t.Context(), theProvisioner())),
		"another provisioner":           len(c.reconciler.ofProvisioner(t.Context(), &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "x"}})) + 1,
		"a BucketContent that names it": len(c.reconciler.ofContent(t.Context(), &cosiv0.BucketContent{Spec: newContent(granted()).Spec})),
		"one that has the name of its":  len(c.reconciler.ofContent(t.Context(), &cosiv0.BucketContent{ObjectMeta: metav1.ObjectMeta{Name: contentName}})),
		"a BucketContent of none":       len(c.reconciler.ofContent(t.Context(), &cosiv0.BucketContent{})) + 1,
	} {
		if requests != 1 {
			t.Errorf("%s: got %d", what, requests)
		}
	}
}
