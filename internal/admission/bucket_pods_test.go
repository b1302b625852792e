package admission

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

// The pods of buckets and accesses are judged with the copies in their records, the Namespace and the definition as they are.
func TestJudge_PodsOfBuckets(t *testing.T) {
	json := func(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }
	inDirectory := func(expression string) *pavv1.Template {
		return json(fmt.Sprintf(`{"spec": {"volumes": [{"name": "base", "hostPath": {"path": "/srv/{{ %s }}"}}], "containers": [{"name": "main", "image": "none"}]}}`, expression))
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{pavv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	handler := &ControllerPodHandler{
		Templates: template.NewEvaluator(template.DefaultLimits()),
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{"tier": "gold"}}},
			&pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Spec: pavv1.PavProvisionerSpec{
				ProvisioningModes:  []pavv1.ProvisioningMode{"Dynamic"},
				BucketValidation:   &pavv1.BucketValidation{PodTemplate: inDirectory("namespace.metadata.labels.tier")},
				BucketCreation:     &pavv1.BucketCreation{PodTemplate: inDirectory("claim.metadata.name")},
				BucketDeletion:     &pavv1.BucketDeletion{PodTemplate: inDirectory("bucketId")},
				BucketAccessGrant:  &pavv1.BucketAccessGrant{PodTemplate: inDirectory("accountName ~ buckets[0].grants[0].mode ~ rotation.previousAccountId")},
				BucketAccessRevoke: &pavv1.BucketAccessRevoke{PodTemplate: inDirectory("accountId or accountName")},
			}},
			&pavv1.PavBucket{
				ObjectMeta: metav1.ObjectMeta{Name: "b-1", UID: "u-b"}, Status: pavv1.PavBucketStatus{BucketID: "told"},
				Spec: pavv1.PavBucketSpec{Provisioner: "demo", BucketName: "photos-1", ClaimRef: pavv1.ClaimReference{Namespace: "team"}, Claim: json(`{"metadata": {"name": "photos"}}`)},
			},
			accessRecord("a-1", "b-1", pavv1.PavBucketAccessStatus{
				Granting: &pavv1.GrantedAccount{AccountName: "ba-2"}, Current: &pavv1.GrantedAccount{AccountName: "ba-1", AccountID: "one"},
				Former: []pavv1.GrantedAccount{{AccountName: "ba-0", AccountID: "zero"}},
			}),
			accessRecord("a-2", "gone", pavv1.PavBucketAccessStatus{Granting: &pavv1.GrantedAccount{AccountName: "ba-2"}}),
			accessRecord("a-3", "b-1", pavv1.PavBucketAccessStatus{}),
		).Build(),
	}
	for name, tt := range map[string]struct {
		kind, owner, path string
		refusal           string // words of it; none where the pod is admitted
	}{
		"a validation pod":                  {kind: "validate-bucket", owner: "b-1", path: "/srv/gold"},
		"a creation pod":                    {kind: "create-bucket", owner: "b-1", path: "/srv/photos"},
		"a creation pod with another path":  {kind: "create-bucket", owner: "b-1", path: "/srv/told", refusal: "does not plan"},
		"an update pod where none is":       {kind: "update-bucket", owner: "b-1", path: "/srv/photos", refusal: "does not plan"},
		"a deletion pod":                    {kind: "delete-bucket", owner: "b-1", path: "/srv/told"},
		"a grant pod of a bucket":           {kind: "grant", owner: "b-1", path: "/srv/ba-2", refusal: "does not plan"},
		"a grant pod":                       {kind: "grant", owner: "a-1", path: "/srv/ba-2ReadOnlyone"},
		"a grant pod of another account":    {kind: "grant", owner: "a-1", path: "/srv/ba-1ReadOnlyone", refusal: "does not plan"},
		"a grant pod without its bucket":    {kind: "grant", owner: "a-2", path: "/srv/ba-2", refusal: `a PavBucket of PavBucketAccess "a-2" does not exist any more`},
		"a grant pod without an account":    {kind: "grant", owner: "a-3", path: "/srv/ba-2", refusal: `PavBucketAccess "a-3" has no account`},
		"a revocation pod":                  {kind: "revoke", owner: "a-1", path: "/srv/zero"},
		"a revocation pod of the present":   {kind: "revoke", owner: "a-1", path: "/srv/one"},
		"a revocation pod of an attempt":    {kind: "revoke", owner: "a-1", path: "/srv/ba-2"},
		"a revocation pod without a bucket": {kind: "revoke", owner: "a-2", path: "/srv/ba-2"},
		"a revocation pod of a stranger":    {kind: "revoke", owner: "a-1", path: "/srv/other", refusal: "does not plan"},
		"a pod of a record that is gone":    {kind: "revoke", owner: "a-9", path: "/srv/one", refusal: `PavBucketAccess "a-9" does not exist`},
	} {
		t.Run(name, func(t *testing.T) {
			owner := metav1.OwnerReference{APIVersion: pavv1.GroupVersion.String(), Kind: "PavBucketAccess", Name: tt.owner, UID: "u-a"}
			if strings.HasPrefix(tt.owner, "b-") {
				owner.Kind, owner.UID = "PavBucket", "u-b"
			}
			err := handler.judge(t.Context(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{pavv1.WorkflowLabel: tt.kind}, OwnerReferences: []metav1.OwnerReference{owner}},
				Spec:       corev1.PodSpec{Volumes: []corev1.Volume{{Name: "base", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: tt.path}}}}},
			})
			var refused *RefusalError
			switch {
			case tt.refusal == "" && err != nil:
				t.Errorf("it is not admitted: %v", err)
			case tt.refusal != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), tt.refusal)):
				t.Errorf("got %v, want a refusal with %q", err, tt.refusal)
			}
		})
	}
}

// accessRecord returns the record of an access to a bucket.
func accessRecord(name, bucket string, status pavv1.PavBucketAccessStatus) *pavv1.PavBucketAccess {
	return &pavv1.PavBucketAccess{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u-a"}, Status: status,
		Spec: pavv1.PavBucketAccessSpec{
			Provisioner: "demo", Requester: pavv1.AccessRequester{Namespace: "team"}, Protocol: "S3", AuthenticationType: "Key",
			Buckets: []pavv1.AccessedBucket{{Bucket: bucket, Mode: "ReadOnly"}},
		},
	}
}
