package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/reference"
)

// bySidecar is the driver beside which the sidecar runs, its classes, and how the names of its claims begin.
const bySidecar = "by-sidecar"

// startSidecar starts COSI's sidecar, with a driver.
func startSidecar(t *testing.T, c *cluster) (driver *reference.Process, line *foreignLine) {
	t.Helper()
	line = newForeignLine(t, c, "sidecar")
	socket := filepath.Join(t.TempDir(), "cosi.sock")
	driver = reference.Driver.Start(t, nil, "-name", bySidecar, "-socket", socket)
	eventually(t, "the driver serves", func(context.Context) (bool, string) {
		_, err := os.Stat(socket)
		return err == nil, errorText(err)
	})
	t.Cleanup(func() {
		mustDeleteLasting(t, c, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: bySidecar + "-cosi"}})
	})
	reference.Sidecar.Start(t, []string{"POD_NAMESPACE=default"}, "--kubeconfig", line.kubeconfig, "--driver-addr", "unix://"+socket, "--v=3")
	return driver, line
}

// asCOSIsController does what the controller of COSI v0.2.2 does for a new claim, and what the sidecar of v0.1.0 wants to do and cannot: it
// says in the claim that the bucket is ready, and adds the finalizer of the Bucket. Once that sidecar has added a finalizer, it goes on with
// the version of before, which the API server refuses, and never reads the present one.
func asCOSIsController(t *testing.T, claim *cosiClaim) {
	t.Helper()
	c, object := claim.c, claim.object
	class := &cosiv1.BucketClass{ObjectMeta: metav1.ObjectMeta{Name: object.Spec.BucketClassName}}
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(class), class); err != nil {
		t.Fatal(err)
	}
	bucket := claim.bucket()
	bucket.Finalizers = []string{cosiv1.BucketFinalizer}
	bucket.Spec = cosiv1.BucketSpec{
		DriverName: class.DriverName, BucketClassName: class.Name, DeletionPolicy: class.DeletionPolicy, Parameters: class.Parameters, Protocols: object.Spec.Protocols,
		BucketClaim: &corev1.ObjectReference{Namespace: object.Namespace, Name: object.Name, UID: object.UID},
	}
	mustPatch(t, c, object, func(b *cosiv1.BucketClaim) { controllerutil.AddFinalizer(b, cosiv1.ClaimFinalizer) })
	setStatus := func(ready bool) {
		patch := fmt.Appendf(nil, `{"status": {"bucketName": %q, "bucketReady": %t}}`, bucket.Name, ready)
		if err := c.Admin.Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
	setStatus(false)
	mustCreate(t, c, bucket)
	exists(t, c, bucket, "is ready", func(b *cosiv1.Bucket) bool { return b.Status.BucketReady })
	setStatus(true)
}

// accessForSidecar makes a BucketAccess that has its finalizer from the beginning, for the same reason.
func accessForSidecar(t *testing.T, claim *cosiClaim, name string) *cosiAccess {
	t.Helper()
	access := &cosiv1.BucketAccess{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Finalizers: []string{cosiv1.AccessFinalizer}}}
	access.Spec = cosiv1.BucketAccessSpec{
		BucketClaimName: claim.object.Name, BucketAccessClassName: claim.object.Spec.BucketClassName, CredentialsSecretName: name, Protocol: cosiv1.ProtocolS3,
	}
	a := &cosiAccess{c: claim.c, object: mustCreate(t, claim.c, access)}
	t.Cleanup(func() { removeIfFailed(t, claim.c, a.object, a.secret()) })
	return a
}

// COSI's sidecar, with a driver, and PaV serve the same claims side by side: what users and clients see is the same but for what is written.
// PaV writes nothing of the sidecar's; what the sidecar writes of PaV's is written as well, and does no harm.
func TestCOSI_AsUpstreamsSidecarServesIt(t *testing.T) {
	c, a := withCOSI(t)
	driver(t, c, byPaV, ofBuckets)
	withParameters := func(buckets *cosiv1.BucketClass, accesses *cosiv1.BucketAccessClass) {
		buckets.Parameters, accesses.Parameters = map[string]string{"tier": "gold"}, map[string]string{"tier": "silver"}
	}
	for _, name := range []string{byPaV, bySidecar} {
		cosiClasses(t, c, name, withParameters)
	}
	all := watchObjects(t, c, &cosiv1.BucketClaimList{}, &cosiv1.BucketList{}, &cosiv1.BucketAccessList{}, &corev1.SecretList{})
	store, line := startSidecar(t, c)
	written := reference.Written(t, "COSI v1alpha1")

	theirClaim, ourClaim := claimOfCOSI(t, c, bySidecar, bySidecar+"-photos"), claimOfCOSI(t, c, byPaV, byPaV+"-photos")
	asCOSIsController(t, theirClaim)
	ourClaim.serve(t)
	theirAccess, ourAccess := accessForSidecar(t, theirClaim, bySidecar+"-app"), accessOfCOSI(t, c, byPaV, ourClaim.object.Name, byPaV+"-app")
	grantLikeTheDriver(t, ourAccess, ourClaim.bucket().Name)
	theirs, ours := servedByCOSI{theirClaim, theirAccess, bySidecar}, servedByCOSI{ourClaim, ourAccess, byPaV}
	theirFields, ourFields := theirs.fields(t, all), ours.fields(t, all)
	for kind, fields := range theirFields {
		written.Check(t, reference.Compare(kind, fields, ourFields[kind]))
	}
	granted := ourAccess.secret()
	wantKept(t, c, line, granted)

	mustDelete(t, c, theirAccess.object)
	gone(t, c, theirAccess.object)
	mustDelete(t, c, theirClaim.object)
	mustDelete(t, c, theirClaim.bucket()) // as the controller does
	gone(t, c, theirClaim.object)
	ourAccess.revoke(t, ourClaim.bucket().Name)
	mustDelete(t, c, ourClaim.object)
	end(t, c, recordedPod(t, c, ourClaim.record, pavv1.WorkflowBucketDeletion, 2, ourClaim.bucket().Name+" True"), workflow.Result{}, 0)
	for _, object := range []client.Object{ourClaim.object, ourClaim.record, ourClaim.bucket()} {
		gone(t, c, object)
	}
	theirLeft, ourLeft := theirs.left(t), ours.left(t)
	for kind, fields := range theirLeft {
		written.Check(t, reference.Compare(kind, fields, ourLeft[kind]))
	}
	written.Check(t, reference.Compare("the other's", touched(line.Writes(), byPaV, ourClaim.bucket().Name), touched(a.Line.Writes(), bySidecar, theirClaim.bucket().Name)))
	written.CheckAll(t)
	bucket, account := theirClaim.bucket().Name, theirAccess.account()
	want := []map[string]any{
		{"call": "Create", "bucket": bucket, "parameters": map[string]any{"tier": "gold"}},
		{"call": "Grant", "bucket": bucket, "account": account, "parameters": map[string]any{"tier": "silver"}},
		{"call": "Delete", "bucket": bucket},
	}
	if diff := cmp.Diff(want, distinct(store.Calls())); diff != "" {
		t.Errorf("the calls of the driver (-want +got):\n%s", diff)
	}
	t.Logf("PaV wrote %d times to its access, and the sidecar %d times", len(naming(a.Line.Writes(), ourAccess.object.Name)), len(naming(line.Writes(), ourAccess.object.Name)))
}

// grantLikeTheDriver lets the grant pod of an access do what the driver beside the sidecar does.
func grantLikeTheDriver(t *testing.T, a *cosiAccess, bucket string) {
	t.Helper()
	pod := recordedPod(t, a.c, a.record, pavv1.WorkflowGrant, 1, a.account()+" in "+grantsOf(bucket, a.account()))
	result, err := sealed(pod, a.account(), "secret of "+a.account())
	if err != nil {
		t.Fatal(err)
	}
	end(t, a.c, pod, result, 0)
}

// wantKept waits until the sidecar has written to the Secret and the access of PaV, and checks that clients notice nothing.
func wantKept(t *testing.T, c *cluster, line *foreignLine, granted *corev1.Secret) {
	t.Helper()
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(granted), granted); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the sidecar has written to what is PaV's", func(context.Context) (bool, string) {
		writes := naming(line.Writes(), byPaV)
		text := strings.Join(writes, ", ")
		return strings.Contains(text, "/secrets/") && strings.Contains(text, "/bucketaccesses/"), text
	})
	now := &corev1.Secret{}
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(granted), now); err != nil || now.UID != granted.UID || !cmp.Equal(now.Data, granted.Data) || len(now.Data) == 0 {
		t.Errorf("the Secret is another: %v", err)
	}
}

// servedByCOSI is a claim with access to its bucket.
type servedByCOSI struct {
	claim  *cosiClaim
	access *cosiAccess
	by     string
}

// fields returns the fields of the objects at the time when clients have access for the first time. Finalizers are those that an object has
// had at any time.
func (s servedByCOSI) fields(t *testing.T, all *history) map[string]reference.Fields {
	t.Helper()
	bucket := first(t, all, s.claim.bucket(), "is ready, and accessed", func(b *cosiv1.Bucket) bool {
		return b.Status.BucketReady && slices.Contains(b.Finalizers, cosiv1.AccessedBucketFinalizer)
	})
	access := first(t, all, s.access.object, "is granted", func(a *cosiv1.BucketAccess) bool { return a.Status.AccessGranted })
	secret := first(t, all, s.access.secret(), "has data", func(s *corev1.Secret) bool { return len(s.Data) > 0 })
	claim := first(t, all, s.claim.object, "is ready", func(c *cosiv1.BucketClaim) bool { return c.Status.BucketReady })
	pairs := []string{
		string(s.claim.object.UID), "CLAIM-UID", string(s.access.object.UID), "ACCESS-UID", s.claim.object.Name, "CLAIM", s.access.object.Name, "ACCESS",
		s.by, "DRIVER",
	}
	found := map[string]reference.Fields{}
	for _, object := range []client.Object{bucket, access, secret, claim} {
		fields := fieldsOf(t, object, pairs).Without(".metadata.finalizers")
		fields["finalizers, at any time"] = strings.Join(all.finalizers(object), ", ")
		found[kindOf(t, s.claim.c, object)] = fields
	}
	found["Secret"].Without(".stringData." + cosiv1.BucketInfoKey)
	var info any
	if err := json.Unmarshal(secret.Data[cosiv1.BucketInfoKey], &info); err != nil {
		t.Fatal(err)
	}
	fields, err := reference.FieldsOf(map[string]any{cosiv1.BucketInfoKey: info})
	if err != nil {
		t.Fatal(err)
	}
	found[cosiv1.BucketInfoKey] = fields.Replace(pairs...)
	return found
}

// left returns which objects are left after claim and access were deleted.
func (s servedByCOSI) left(t *testing.T) map[string]reference.Fields {
	t.Helper()
	found := map[string]reference.Fields{}
	for _, object := range []client.Object{s.claim.object, s.claim.bucket(), s.access.object, s.access.secret()} {
		fields := reference.Fields{}
		switch err := s.claim.c.Admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); {
		case err == nil:
			fields["after deletion"] = "is left"
			t.Cleanup(func() { removeHeld(t, s.claim.c, object, `{"metadata": {"finalizers": null}}`) })
		case !apierrors.IsNotFound(err):
			t.Fatal(err)
		}
		found[kindOf(t, s.claim.c, object)] = fields
	}
	return found
}

// touched returns how objects are written whose names begin with one of some texts, by resource.
func touched(writes []string, names ...string) reference.Fields {
	fields := reference.Fields{}
	for _, write := range writes {
		method, path, _ := strings.Cut(write, " ")
		parts := strings.Split(path, "/")
		at := slices.IndexFunc(parts, func(part string) bool {
			return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(part, name) })
		})
		if at > 0 {
			fields[parts[at-1]] = method
		}
	}
	return fields
}

// distinct returns calls without those that are there already.
func distinct(calls []map[string]any) []map[string]any {
	var found []map[string]any
	for _, call := range calls {
		if !slices.ContainsFunc(found, func(other map[string]any) bool { return cmp.Equal(call, other) }) {
			found = append(found, call)
		}
	}
	return found
}
