package integration

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Words of the policies on Secrets and ConfigMaps.
const (
	nameTaken      = "exists and is not one that the controller agent wrote for this access"
	opaqueOnly     = "Secrets of the type Opaque only"
	sealsOnly      = "Secrets whose names begin with seal- only"
	accessesOnly   = "for accesses to buckets only"
	claimsOnly     = "for ObjectBucketClaims only"
	noKeysOfOthers = "the labels pav.albertofaria.github.io/access and bucket-provisioner only"
	emptyOnly      = "may delete Secrets that are empty only"
)

// updating replaces an object, whatever it is now.
func updating(object client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		o := copied(object)
		o.SetUID("")
		o.SetResourceVersion("")
		return c.Update(ctx, o)
	}
}

// ownedByClaim returns what objects of an ObjectBucketClaim have that the controller agent writes.
func ownedByClaim(in, name string, uid types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: in, Name: name, Labels: map[string]string{pavv1.AccessLabel: string(uid), "bucket-provisioner": "policed"},
		Finalizers: []string{"objectbucket.io/finalizer"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "objectbucket.io/v1alpha1", Kind: "ObjectBucketClaim", Name: name, UID: uid, Controller: new(true), BlockOwnerDeletion: new(true),
		}},
	}
}

func secretOf(in, name string, uid types.UID, change func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: ownedByClaim(in, name, uid), Data: map[string][]byte{"AWS_SECRET_ACCESS_KEY": []byte(canary)}}
	change(s)
	return s
}

func unchanged(*corev1.Secret) {}

// owner changes the owner of a Secret.
func owner(change func(*metav1.OwnerReference)) func(*corev1.Secret) {
	return func(s *corev1.Secret) { change(&s.OwnerReferences[0]) }
}

// mustCreateHeld creates an object that may have finalizers, and is gone when the test ends.
func mustCreateHeld[T client.Object](t *testing.T, c *cluster, object T) T {
	t.Helper()
	mustCreate(t, c, object)
	t.Cleanup(func() { removeHeld(t, c, object, `{"metadata": {"finalizers": null}}`) })
	return object
}

func TestControllerToken_CreatesSecretsOfAccessesOnly(t *testing.T) {
	c := start(t)
	enableBuckets(t, c)
	uid := uuid.NewUUID()
	create := func(change func(*corev1.Secret)) func(context.Context, client.Client) error {
		return creating(secretOf("default", "policed", uid, change))
	}
	typed := func(kind corev1.SecretType, key string) func(context.Context, client.Client) error {
		return create(func(s *corev1.Secret) {
			s.Type, s.Data = kind, map[string][]byte{key: []byte("{}")}
		})
	}
	annotated := func(key string) func(context.Context, client.Client) error {
		return create(func(s *corev1.Secret) { s.Annotations = map[string]string{key: "default"} })
	}
	key := func(change func(*corev1.Secret)) func(context.Context, client.Client) error {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: credentialsNamespace, Name: "seal-" + string(uid) + "-1"}}
		change(s)
		return creating(s)
	}
	try(t, stolenController(t, c), []attempt{
		{"that of an ObjectBucketClaim", create(unchanged), ""},
		{"that of one, with another owner besides", create(func(s *corev1.Secret) {
			s.OwnerReferences = append(s.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u"})
		}), ""},
		{"that of an ObjectBucketClaim of another name", create(owner(func(o *metav1.OwnerReference) { o.Name = "other" })), accessesOnly},
		{"that of a BucketAccess", create(owner(func(o *metav1.OwnerReference) {
			o.APIVersion, o.Kind, o.Name = "objectstorage.k8s.io/v1alpha1", "BucketAccess", "other"
		})), ""},
		{"that of a PavBucketAccess", create(owner(func(o *metav1.OwnerReference) {
			o.APIVersion, o.Kind, o.Name, o.UID = pavv1.GroupVersion.String(), "PavBucketAccess", "a-"+string(uid), "another"
		})), ""},
		{"that of the PavBucketAccess of another requester", create(owner(func(o *metav1.OwnerReference) {
			o.APIVersion, o.Kind, o.Name = pavv1.GroupVersion.String(), "PavBucketAccess", "a-"+string(uuid.NewUUID())
		})), accessesOnly},
		{"one without a label", create(func(s *corev1.Secret) { delete(s.Labels, pavv1.AccessLabel) }), accessesOnly},
		{"one whose label is no UID", create(func(s *corev1.Secret) { s.Labels[pavv1.AccessLabel], s.OwnerReferences[0].UID = "mine", "mine" }), accessesOnly},
		{"one whose label is another's UID", create(func(s *corev1.Secret) { s.Labels[pavv1.AccessLabel] = string(uuid.NewUUID()) }), accessesOnly},
		{"one without an owner", create(func(s *corev1.Secret) { s.OwnerReferences = nil }), accessesOnly},
		{"one whose owner does not control it", create(owner(func(o *metav1.OwnerReference) { o.Controller = nil })), accessesOnly},
		{"one of another kind", create(owner(func(o *metav1.OwnerReference) { o.APIVersion, o.Kind = "apps/v1", "Deployment" })), accessesOnly},
		{"one of another group", create(owner(func(o *metav1.OwnerReference) { o.APIVersion = "example.org/v1" })), accessesOnly},
		{"one of a PavVolume", create(owner(func(o *metav1.OwnerReference) { o.APIVersion, o.Kind = pavv1.GroupVersion.String(), "PavVolume" })), accessesOnly},
		{"a token of a service account", create(func(s *corev1.Secret) {
			s.Type, s.Annotations = corev1.SecretTypeServiceAccountToken, map[string]string{corev1.ServiceAccountNameKey: "default"}
		}), opaqueOnly},
		{"a pull secret", typed(corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey), opaqueOnly},
		{"a password", typed(corev1.SecretTypeBasicAuth, corev1.BasicAuthPasswordKey), opaqueOnly},
		{"one of another program's type", typed("helm.sh/release.v1", "release"), opaqueOnly},
		{"one with the name of a service account", annotated(corev1.ServiceAccountNameKey), noKeysOfOthers},
		{"one with an annotation of another program", annotated("reflector.v1.k8s.emberstack.com/reflection-auto-enabled"), noKeysOfOthers},
		{"one with a label of another program", create(func(s *corev1.Secret) { s.Labels["argocd.argoproj.io/secret-type"] = "cluster" }), noKeysOfOthers},
		{"one of a name that is made", create(func(s *corev1.Secret) { s.Name, s.GenerateName = "", "policed" }), accessesOnly},
		{"that of a BucketAccess, of a name that is made", create(func(s *corev1.Secret) {
			s.Name, s.GenerateName = "", "policed"
			s.OwnerReferences[0].APIVersion, s.OwnerReferences[0].Kind = "objectstorage.k8s.io/v1alpha1", "BucketAccess"
		}), noKeysOfOthers},

		{"a key", key(unchanged), ""},
		{"a key of another name", key(func(s *corev1.Secret) { s.Name = "other" }), sealsOnly},
		{"a key of a name that is made", key(func(s *corev1.Secret) { s.Name, s.GenerateName = "", "seal-" }), noKeysOfOthers},
		{"a key of another type", key(func(s *corev1.Secret) { s.Type = "example.org/other" }), opaqueOnly},
		{"a key that another program takes for its own", key(func(s *corev1.Secret) { s.Labels = map[string]string{"owner": "helm"} }), noKeysOfOthers},
		{"a Secret of an access among the keys", creating(secretOf(credentialsNamespace, "policed", uid, unchanged)), sealsOnly},
		{"a key elsewhere", creating(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "seal-1"}}), accessesOnly},
	})
}

func TestControllerToken_ChangesAndDeletesSecretsThatItWroteOnly(t *testing.T) {
	c := start(t)
	enableBuckets(t, c)
	uid := uuid.NewUUID()
	const other = "example.org/other"
	ours := mustCreateHeld(t, c, secretOf("default", "policed", uid, func(s *corev1.Secret) {
		s.Labels["tenant"], s.Annotations = "a", map[string]string{"tenant": "a"}
	}))
	emptied := mustCreateHeld(t, c, secretOf("default", "policed-emptied", uid, func(s *corev1.Secret) { s.Data, s.Finalizers = nil, nil }))
	foreign := mustCreateHeld(t, c, secretOf("default", "policed-foreign", uid, func(s *corev1.Secret) { s.Labels, s.OwnerReferences = nil, nil }))
	lookalike := mustCreateHeld(t, c, secretOf("default", "policed-lookalike", uid, func(s *corev1.Secret) { s.Labels[pavv1.AccessLabel] = "true" }))
	another := mustCreateHeld(t, c, secretOf("default", "policed-another", uuid.NewUUID(), unchanged))
	typed := mustCreateHeld(t, c, secretOf("default", "policed-typed", uid, func(s *corev1.Secret) { s.Type, s.Data = other, nil }))
	key := mustCreateHeld(t, c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: credentialsNamespace, Name: "seal-1"}, Data: map[string][]byte{"key": {1}}})
	static := mustCreateHeld(t, c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: credentialsNamespace, Name: "static"}, Data: map[string][]byte{"key": {1}}})
	certificate := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "webhook-certificate"}}
	replace := func(s *corev1.Secret, change func(*corev1.Secret)) func(context.Context, client.Client) error {
		return updating(secretOf(s.Namespace, s.Name, uid, change))
	}
	relabelled := func(key string) func(*corev1.Secret) { return func(s *corev1.Secret) { s.Labels[key] = "b" } }
	try(t, stolenController(t, c), []attempt{
		{"it replaces its own", replace(ours, unchanged), ""},
		{"it keeps what the tenant has added", updating(ours), ""},
		{"it empties its own", replace(ours, func(s *corev1.Secret) { s.Data, s.Finalizers = nil, nil }), ""},
		{"it gives its own to another access", replace(ours, func(s *corev1.Secret) {
			s.Labels[pavv1.AccessLabel], s.OwnerReferences[0].UID = another.Labels[pavv1.AccessLabel], types.UID(another.Labels[pavv1.AccessLabel])
		}), nameTaken},
		{"it takes the label of its own", replace(ours, func(s *corev1.Secret) { delete(s.Labels, pavv1.AccessLabel) }), nameTaken},
		{"it takes the owner of its own", replace(ours, func(s *corev1.Secret) { s.OwnerReferences = nil }), accessesOnly},
		{"it gives its own to another kind", replace(ours, owner(func(o *metav1.OwnerReference) { o.APIVersion, o.Kind = "apps/v1", "Deployment" })), accessesOnly},
		{"it adds a label", replace(ours, relabelled("other")), noKeysOfOthers},
		{"it changes a label of the tenant's", replace(ours, relabelled("tenant")), noKeysOfOthers},
		{"it adds an annotation", replace(ours, func(s *corev1.Secret) { s.Annotations = map[string]string{"other": "b"} }), noKeysOfOthers},
		{"it replaces one without the label", replace(foreign, unchanged), nameTaken},
		{"it replaces one whose label is no UID", replace(lookalike, unchanged), nameTaken},
		{"it replaces another access's", replace(another, unchanged), nameTaken},
		{"it replaces another access's, for that one", updating(another), ""}, // a policy cannot tell for whom it works
		{"it replaces one of another type", updating(typed), opaqueOnly},

		{"it deletes its own", deleting(ours), emptyOnly},
		{"it deletes its own, which is empty", deleting(emptied), ""},
		{"it deletes one without the label", deleting(foreign), nameTaken},
		{"it deletes one whose label is no UID", deleting(lookalike), nameTaken},
		{"it deletes one of another type", deleting(typed), opaqueOnly},
		{"it deletes all", func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace("default"))
		}, notInTheRole},

		{"it deletes a key", deleting(key), ""},
		{"it changes a key", updating(key), sealsOnly},
		{"it changes an administrator's", updating(static), sealsOnly},
		{"it deletes an administrator's", deleting(static), sealsOnly},
		{"it deletes the certificate of its webhook", deleting(certificate), nameTaken},
		{"it changes the certificate of its webhook", patching(certificate, `{"data": {"a": "Yg=="}}`), ""},
	})
}
