package integration

import (
	"context"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Why the controller agent has no right to patch Secrets, and that the policy would hold if it had.

// grantSecrets gives an account rights on all Secrets, for the duration of a test.
func grantSecrets(t *testing.T, c *cluster, account client.ObjectKey, verbs ...string) {
	t.Helper()
	name := strings.Join(append([]string{"secrets", account.Namespace, account.Name}, verbs...), "-")
	role := mustCreate(t, c, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: verbs},
	}})
	t.Cleanup(func() { mustDeleteLasting(t, c, role) })
	binding := mustCreate(t, c, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	})
	t.Cleanup(func() { mustDeleteLasting(t, c, binding) })
	eventually(t, account.String()+" has its rights", func(ctx context.Context) (bool, string) {
		for _, verb := range verbs {
			if allowed, why := mayDo(ctx, c, account, &authorizationv1.ResourceAttributes{Namespace: "default", Resource: "secrets", Verb: verb}); !allowed {
				return false, why
			}
		}
		return true, ""
	})
}

// mayDo reports whether a service account may do something.
func mayDo(ctx context.Context, c *cluster, account client.ObjectKey, what *authorizationv1.ResourceAttributes) (allowed bool, why string) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + account.Namespace + ":" + account.Name, ResourceAttributes: what,
		Groups: []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + account.Namespace},
	}}
	err := c.Admin.Create(ctx, review)
	return err == nil && review.Status.Allowed, errorText(err) + " " + review.Status.Reason
}

var controllerAccount = client.ObjectKey{Namespace: namespace, Name: "controller-agent"}

// Server-side apply needs the right to patch, and with it the controller agent would read every Secret of the cluster: if a patch does
// not fit, the answer has the object, and it is made before any policy is asked. This is why its role has update. If this test fails
// because nothing is told any more, apply may be thought about again.
func TestPatchOfSecrets_IsAsGoodAsGet(t *testing.T) {
	c := start(t)
	enableBuckets(t, c)
	grantSecrets(t, c, controllerAccount, "patch")
	w := newWire(t, tokenFor(t, c, controllerAccount))
	uid := uuid.NewUUID()
	ours := mustCreateHeld(t, c, secretOf("default", "patched", uid, unchanged))
	foreign := mustCreateHeld(t, c, secretOf("default", "patched-foreign", uid, func(s *corev1.Secret) { s.Labels = nil }))
	path := func(s *corev1.Secret) string { return "/api/v1/namespaces/default/secrets/" + s.Name }
	for _, told := range []struct{ method, body string }{
		{mergePatch, `{"data": {"a": 5}}`},
		{jsonPatch, `[{"op": "add", "path": "/data/a", "value": 5}]`},
		{jsonPatch, `[{"op": "copy", "from": "/data/AWS_SECRET_ACCESS_KEY", "path": "/type"}]`},
	} {
		for _, accept := range []string{wholeObjects, metadataOnly} {
			if code, answer := w.request(t, told.method, path(foreign), accept, told.body); code != http.StatusUnprocessableEntity || !tells(answer) {
				t.Errorf("%s %s tells nothing of a foreign Secret: %d %s", told.method, told.body, code, answer)
			}
		}
	}
	// A patch that does fit is refused by the policy for a foreign Secret, and tells all of one that PaV wrote, unless only metadata is
	// asked for.
	if code, answer := w.request(t, mergePatch, path(foreign), wholeObjects, `{}`); code != http.StatusForbidden || tells(answer) {
		t.Errorf("a patch of a foreign Secret: %d %s", code, answer)
	}
	if code, answer := w.request(t, mergePatch, path(ours), wholeObjects, `{}`); code != http.StatusOK || !tells(answer) {
		t.Errorf("a patch of PaV's Secret: %d %s", code, answer)
	}
	if code, answer := w.request(t, mergePatch, path(ours), metadataOnly, `{}`); code != http.StatusOK || tells(answer) {
		t.Errorf("a patch of PaV's Secret that asks for metadata: %d %s", code, answer)
	}
}

// applying applies a Secret, by the controller agent's field manager.
func applying(t *testing.T, secret *corev1.Secret, options ...client.PatchOption) func(context.Context, client.Client) error {
	t.Helper()
	body := []byte(text(t, secret))
	return func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, copied(secret), client.RawPatch(types.ApplyPatchType, body), append(options, client.FieldOwner("pav"))...)
	}
}

// Apply creates what does not exist, for which it needs the right to create, too, and none to get.
func TestApplyOfSecrets_NeedsTheRightToCreate(t *testing.T) {
	c := start(t)
	account := client.ObjectKeyFromObject(mustCreate(t, c, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "applier"}}))
	t.Cleanup(func() {
		mustDeleteLasting(t, c, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "applier"}})
	})
	grantSecrets(t, c, account, "patch")
	applier := clientWith(t, c, tokenFor(t, c, account))
	secret := secretOf("default", "applied", uuid.NewUUID(), func(s *corev1.Secret) { s.Finalizers = nil })
	t.Cleanup(func() { mustDeleteLasting(t, c, copied(secret)) })
	apply := applying(t, secret)
	wantRefusedAs(t, "cannot create", apply(t.Context(), applier))
	grantSecrets(t, c, account, "create")
	if err := apply(t.Context(), applier); err != nil {
		t.Error(err)
	}
	if err := apply(t.Context(), applier); err != nil {
		t.Error(err)
	}
}

// The policy holds whatever the request is.
func TestControllerToken_AppliesSecretsOfAccessesOnly(t *testing.T) {
	c := start(t)
	enableBuckets(t, c)
	grantSecrets(t, c, controllerAccount, "patch")
	uid := uuid.NewUUID()
	thief := stolenController(t, c)
	apply := func(name string, change func(*corev1.Secret), options ...client.PatchOption) func(context.Context, client.Client) error {
		return applying(t, secretOf("default", name, uid, change), options...)
	}
	ours := secretOf("default", "applied-ours", uid, unchanged)
	if err := applying(t, ours)(t.Context(), thief); err != nil {
		t.Fatal("a Secret that does not exist:", err)
	}
	t.Cleanup(func() { removeHeld(t, c, ours, `{"metadata": {"finalizers": null}}`) })
	if err := patching(ours, `{"metadata": {"labels": {"tenant": "a"}}}`)(t.Context(), c.Admin); err != nil {
		t.Fatal(err)
	}
	foreign := mustCreateHeld(t, c, secretOf("default", "applied-foreign", uid, func(s *corev1.Secret) { s.Labels, s.OwnerReferences, s.Data = nil, nil, nil }))
	another := mustCreateHeld(t, c, secretOf("default", "applied-another", uuid.NewUUID(), func(s *corev1.Secret) { s.Data = nil }))
	const other = "AWS_ACCESS_KEY_ID"
	changed := func(s *corev1.Secret) { s.Data[other] = []byte("b") }
	try(t, thief, []attempt{
		{"its own, which a tenant has labelled", apply(ours.Name, changed), ""},
		{"a foreign one", apply(foreign.Name, unchanged), nameTaken},
		{"a foreign one, by force", apply(foreign.Name, unchanged, client.ForceOwnership), nameTaken},
		{"another access's, by force", apply(another.Name, func(s *corev1.Secret) { s.OwnerReferences = another.OwnerReferences }, client.ForceOwnership), nameTaken},
		{"one without an owner", apply("applied-new", func(s *corev1.Secret) { s.OwnerReferences = nil }), accessesOnly},
		{"one of another kind", apply("applied-new", owner(func(o *metav1.OwnerReference) { o.APIVersion, o.Kind = "apps/v1", "Deployment" })), accessesOnly},
		{"a token of a service account", apply("applied-new", func(s *corev1.Secret) {
			s.Type, s.Annotations = corev1.SecretTypeServiceAccountToken, map[string]string{corev1.ServiceAccountNameKey: "default"}
		}), opaqueOnly},
		{"the label of a foreign one", patching(foreign, `{"metadata": {"labels": {"`+pavv1.AccessLabel+`": "`+string(uid)+`"}}}`), nameTaken},
		{"a label of its own", patching(ours, `{"metadata": {"labels": {"other": "b"}}}`), noKeysOfOthers},
		{"the finalizers of its own", patching(ours, `{"metadata": {"finalizers": null}}`), ""},
		{"the finalizers of a foreign one", patching(foreign, `{"metadata": {"finalizers": null}}`), nameTaken},
	})
	has(t, c, foreign, "AWS_SECRET_ACCESS_KEY", "")
	has(t, c, another, "AWS_SECRET_ACCESS_KEY", "")

	// What another manager wrote is a conflict, which names the field and not its value.
	if err := patching(ours, `{"data": {"`+other+`": "`+"dGhlaXJz"+`"}}`)(t.Context(), c.Admin); err != nil {
		t.Fatal(err)
	}
	code, answer := newWire(t, tokenFor(t, c, controllerAccount)).request(t, applyPatch,
		"/api/v1/namespaces/default/secrets/"+ours.Name+"?fieldManager=pav", metadataOnly, text(t, secretOf("default", ours.Name, uid, changed)))
	if code != http.StatusConflict || !strings.Contains(answer, ".data."+other) || strings.Contains(answer, "dGhlaXJz") {
		t.Errorf("a field that the tenant has changed: %d %s", code, answer)
	}
}
