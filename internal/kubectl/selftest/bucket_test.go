package selftest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

const bucketsYAML = `
apiVersion: pav.albertofaria.github.io/v1alpha1
kind: PavProvisioner
metadata: {name: mine}
spec:
  provisioningModes: [Dynamic]
  bucketCreation: {}
  bucketAccessGrant: {podTemplate: {spec: {containers: [{name: a, image: "busybox:1.37.0"}]}}}
---
`

const bucketUsageYAML = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: slow}
provisioner: mine
parameters: {endpoint: http://s3}
---
apiVersion: objectbucket.io/v1alpha1
kind: ObjectBucketClaim
metadata: {name: photos}
spec: {storageClassName: slow, bucketName: taken, additionalConfig: {maxObjects: "7"}}
---
apiVersion: objectbucket.io/v1alpha1
kind: ObjectBucketClaim
metadata: {name: others}
spec: {storageClassName: another}
---
apiVersion: objectstorage.k8s.io/v1alpha1
kind: BucketClass
metadata: {name: cosi}
driverName: mine
parameters: {endpoint: http://cosi}
---
apiVersion: objectstorage.k8s.io/v1alpha1
kind: BucketAccessClass
metadata: {name: keys}
driverName: mine
authenticationType: Key
parameters: {accessMode: ReadOnly}
---
apiVersion: objectstorage.k8s.io/v1alpha1
kind: BucketClaim
metadata: {name: films}
spec: {bucketClassName: cosi, protocols: [S3]}
---
apiVersion: objectstorage.k8s.io/v1alpha1
kind: BucketAccess
metadata: {name: films}
spec: {bucketClaimName: films, bucketAccessClassName: keys, credentialsSecretName: film-keys}
---
apiVersion: v1
kind: Pod
metadata: {name: user}
spec: {containers: [{name: a, envFrom: [{secretRef: {name: photos}}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: viewer}
spec: {volumes: [{name: a, secret: {secretName: film-keys}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: server}
spec: {containers: [{name: a, envFrom: [{secretRef: {name: admin}}]}]}
`

// What the files say of buckets is a pattern; it is not created as it is, nor are the pods that would wait for its Secrets.
func TestInput_TakesBucketsFromTheFiles(t *testing.T) {
	r := newRun(t, bucketsYAML+bucketUsageYAML, nil)
	var others []string
	for _, other := range r.input.others {
		others = append(others, other.GetKind()+" "+other.GetName())
	}
	if diff := cmp.Diff([]string{"ObjectBucketClaim others", "Pod server"}, others); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if r.input.hasVolumes() || !newRun(t, provisionerYAML, nil).input.hasVolumes() {
		t.Error("it is not known which definition has volumes")
	}
}

func TestBucketObjects(t *testing.T) {
	r := newRun(t, bucketsYAML+bucketUsageYAML, nil)
	claim := r.objectBucketClaim()
	want := objectbucketv1.ObjectBucketClaimSpec{StorageClassName: "mine-test-1", GenerateBucketName: "pav-test", AdditionalConfig: map[string]string{"maxObjects": "7"}}
	if diff := cmp.Diff(want, claim.Spec); diff != "" || claim.Namespace != "mine-test-1" || claim.Labels[instanceLabel] != "mine-test-1" {
		t.Errorf("the ObjectBucketClaim is %+v", claim)
	}
	class, access := r.bucketClass(), r.accessClass()
	if class.Name != "mine-test-1" || class.DriverName != "mine-test-1" || class.DeletionPolicy != cosiv1.DeletionPolicyDelete || class.Parameters["endpoint"] != "http://cosi" {
		t.Errorf("the BucketClass is %+v", class)
	}
	if access.DriverName != "mine-test-1" || access.AuthenticationType != cosiv1.AuthenticationTypeKey || access.Parameters["accessMode"] != "ReadOnly" {
		t.Errorf("the BucketAccessClass is %+v", access)
	}
	if b, a := r.bucketClaim(), r.bucketAccess(); b.Spec.BucketClassName != "mine-test-1" || b.Spec.Protocols[0] != cosiv1.ProtocolS3 || a.Spec.BucketClaimName != b.Name || a.Spec.ServiceAccountName != "" {
		t.Errorf("the claim is %+v, and the access %+v", b, a)
	}
	iam := newRun(t, strings.Replace(bucketsYAML, "bucketCreation: {}", "bucketCreation: {}\n  bucketValidation: {protocols: [GCS], authenticationTypes: [ServiceAccount]}", 1), func(o *options) {
		o.Parameters = map[string]string{"endpoint": "here"}
	})
	if a := iam.bucketAccess(); a.Spec.Protocol != cosiv1.ProtocolGCP || a.Spec.ServiceAccountName != "default" || iam.accessClass().AuthenticationType != cosiv1.AuthenticationTypeIAM || iam.bucketClass().Parameters["endpoint"] != "here" {
		t.Errorf("the access is %+v", a)
	}
}

// What cannot be tried is skipped, and says why.
func TestProvide_SkipsWhatCannotBeTried(t *testing.T) {
	gcs := strings.Replace(bucketsYAML, "bucketCreation: {}", "bucketCreation: {}\n  bucketValidation: {protocols: [GCS]}", 1)
	for name, test := range map[string]struct {
		yaml   string
		api    pavv1.BucketAPI
		change func(*options)
		want   string
	}{
		"no creation":        {yaml: strings.Replace(bucketsYAML, "  bucketCreation: {}\n", "", 1), api: pavv1.BucketAPIClaim, want: "the definition creates no buckets; name one that exists with --param bucketName=NAME"},
		"existing, and COSI": {yaml: bucketsYAML, api: pavv1.BucketAPICOSI1, change: func(o *options) { o.Parameters = map[string]string{"bucketName": "old"} }, want: "a bucket that exists is tried with an ObjectBucketClaim only"},
		"not S3":             {yaml: gcs, api: pavv1.BucketAPIClaim, want: "an ObjectBucketClaim is for S3 with keys only"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, test.yaml, test.change)
			definition, err := r.input.definition()
			if err != nil {
				t.Fatal(err)
			}
			got, err := (&bucketScenario{run: r, bucket: bucket{test.api}}).provide(t.Context(), definition)
			if err != nil || got.result != Skipped || got.message != test.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// A cluster may have COSI in the other version, or no claims of buckets at all.
func TestProvide_SkipsWhatTheClusterDoesNotServe(t *testing.T) {
	for api, want := range map[pavv1.BucketAPI]string{
		pavv1.BucketAPIClaim: "the cluster does not serve v1alpha1 of ObjectBucketClaim", pavv1.BucketAPICOSI1: "the cluster does not serve v1alpha1 of BucketClaim, BucketAccess",
	} {
		r := newRun(t, bucketsYAML, nil)
		r.client = fake.NewClientBuilder().WithScheme(bucketScheme(t)).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				return &meta.NoKindMatchError{}
			},
		}).Build()
		definition, err := r.input.definition()
		if err != nil {
			t.Fatal(err)
		}
		got, err := (&bucketScenario{run: r, bucket: bucket{api}}).provide(t.Context(), definition)
		if err != nil || got.result != Skipped || got.message != want {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}

func bucketScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), pavv1.AddToScheme(scheme), objectbucketv1.AddToScheme(scheme), cosiv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// PaV writes the records at the same time: no write of its may be lost.
func TestAmend_TriesAgainAfterAConflict(t *testing.T) {
	record := &pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: "a-1"}}
	conflicts := 0
	conflict := func() error {
		if conflicts++; conflicts%2 == 1 {
			return apierrors.NewConflict(schema.GroupResource{}, "a-1", errors.New("it was modified"))
		}
		return nil
	}
	c := fake.NewClientBuilder().WithScheme(bucketScheme(t)).WithObjects(record).WithStatusSubresource(record).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := conflict(); err != nil {
				return err
			}
			return c.Patch(ctx, object, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, subresource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if err := conflict(); err != nil {
				return err
			}
			return c.SubResource(subresource).Patch(ctx, object, patch, options...)
		},
	}).Build()
	read := &pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: "a-1"}}
	if err := keep(t.Context(), c, read); err != nil {
		t.Fatal(err)
	}
	if err := amendStatus(t.Context(), c, read, func(a *pavv1.PavBucketAccess) { a.Status.Former = []pavv1.GrantedAccount{{Number: 3}} }); err != nil {
		t.Fatal(err)
	}
	now := &pavv1.PavBucketAccess{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "a-1"}, now); err != nil || len(now.Finalizers) != 1 || len(now.Status.Former) != 1 || conflicts != 4 {
		t.Errorf("after %d writes: %+v, %v", conflicts, now, err)
	}
	if err := release(t.Context(), c, read); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "a-1"}, now); err != nil || len(now.Finalizers) != 0 {
		t.Errorf("it is still held: %+v, %v", now, err)
	}
	if err := release(t.Context(), c, &pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}); err != nil {
		t.Errorf("a record that is gone: %v", err)
	}
}

// The Secret is looked up, and never read.
func TestFindSecret(t *testing.T) {
	claim := &objectbucketv1.ObjectBucketClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "mine-test-1", Name: bucketName, UID: "u1"}}
	owned := []metav1.OwnerReference{{UID: "u1", Controller: new(true)}}
	secret := func(owners []metav1.OwnerReference) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "mine-test-1", Name: bucketName, OwnerReferences: owners}}
	}
	config := func(data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "mine-test-1", Name: bucketName}, Data: data}
	}
	all := map[string]string{objectbucketv1.BucketName: "b", objectbucketv1.BucketHost: "h"}
	for name, test := range map[string]struct {
		objects []client.Object
		result  Result
		err     string
	}{
		"all is there":               {objects: []client.Object{secret(owned), config(all)}, result: Passed},
		"there is no Secret":         {objects: []client.Object{config(all)}, err: "looking for Secret bucket"},
		"the Secret is another's":    {objects: []client.Object{secret(nil), config(all)}, err: "is not one of ObjectBucketClaim bucket"},
		"there is no ConfigMap":      {objects: []client.Object{secret(owned)}, err: "reading the ConfigMap"},
		"the ConfigMap lacks a host": {objects: []client.Object{secret(owned), config(map[string]string{objectbucketv1.BucketName: "b"})}, result: Warning},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, bucketsYAML, nil)
			r.client = fake.NewClientBuilder().WithScheme(bucketScheme(t)).WithObjects(test.objects...).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if _, is := object.(*corev1.Secret); is {
						t.Error("it reads the Secret")
					}
					return c.Get(ctx, key, object, options...)
				},
			}).Build()
			s := &bucketScenario{run: r, bucket: bucket{pavv1.BucketAPIClaim}, access: claim,
				granted: &pavv1.PavBucketAccess{Spec: pavv1.PavBucketAccessSpec{Buckets: []pavv1.AccessedBucket{{SecretName: bucketName}}}}}
			got, err := s.findSecret(t.Context())
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || got.result != test.result {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestLeftBuckets_SayWhatHelps(t *testing.T) {
	labels := map[string]string{pavv1.ProvisionerLabel: "mine-test-1"}
	r := newRun(t, bucketsYAML, nil)
	r.client = fake.NewClientBuilder().WithScheme(bucketScheme(t)).WithObjects(
		&pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: "b-1", Labels: labels}, Status: pavv1.PavBucketStatus{DeletionFailure: &pavv1.WorkflowFailure{Message: "busy"}}},
		&pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: "a-1", Labels: labels}, Status: pavv1.PavBucketAccessStatus{RevocationFailure: &pavv1.WorkflowFailure{Message: "denied"}}},
		&pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: "a-2", Labels: labels}, Status: pavv1.PavBucketAccessStatus{Phase: pavv1.AccessRevoking}},
		&pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: "another"}},
	).Build()
	r.leftBuckets(t.Context(), nil)
	var got []string
	for _, left := range r.report.Left {
		got = append(got, left.Name+": "+left.Why+" > "+left.Commands[len(left.Commands)-1])
	}
	want := []string{
		"a-1: an account cannot be revoked: denied > kubectl pav retry pavbucketaccess/a-1",
		"a-2: its phase is Revoking > kubectl pav describe pavbucketaccess a-2",
		"b-1: its deletion fails: busy > kubectl pav retry pavbucket/b-1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
