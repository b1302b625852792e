package integration

import (
	"context"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// attempt is something that a user tries, as a dry run.
type attempt struct {
	name   string
	do     func(ctx context.Context, c client.Client) error
	denied string // words of the refusal; none where it is allowed
}

// notInTheRole are words of a refusal that no policy is needed for.
const notInTheRole = "cannot "

func try(t *testing.T, c client.Client, attempts []attempt) {
	t.Helper()
	for _, a := range attempts {
		t.Run(a.name, func(t *testing.T) {
			err := a.do(t.Context(), client.NewDryRunClient(c))
			switch {
			case a.denied == "" && err != nil:
				t.Errorf("it is not allowed: %v", err)
			case a.denied != "" && !apierrors.IsForbidden(err):
				t.Errorf("it is not denied: got error %v", err)
			case a.denied != "" && !strings.Contains(err.Error(), a.denied):
				t.Errorf("it is denied because of %v, want %q", err, a.denied)
			}
		})
	}
}

// copied returns an object to be written that nothing is shared with.
func copied[T client.Object](object T) T {
	c, _ := object.DeepCopyObject().(T)
	return c
}

func creating(object client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		o := copied(object)
		o.SetUID("")
		o.SetResourceVersion("")
		return c.Create(ctx, o)
	}
}

func deleting(object client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error { return c.Delete(ctx, copied(object)) }
}

// patching applies a patch: one of JSON where it is a list, else a merge patch.
func patching(object client.Object, patch string, subresource ...string) func(context.Context, client.Client) error {
	kind := types.MergePatchType
	if strings.HasPrefix(patch, "[") {
		kind = types.JSONPatchType
	}
	return func(ctx context.Context, c client.Client) error {
		if len(subresource) > 0 {
			return c.SubResource(subresource[0]).Patch(ctx, copied(object), client.RawPatch(kind, []byte(patch)))
		}
		return c.Patch(ctx, copied(object), client.RawPatch(kind, []byte(patch)))
	}
}

// tokenFor returns the configuration of someone with a token of a service account.
func tokenFor(t *testing.T, c *cluster, account client.ObjectKey) *rest.Config {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}
	if err := c.Admin.SubResource("token").Create(t.Context(), object, request); err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(c.Environment.Config)
	config.BearerToken, config.QPS = request.Status.Token, -1
	config.WarningHandler = rest.NoWarnings{}
	return config
}

func clientWith(t *testing.T, c *cluster, config *rest.Config) client.Client {
	t.Helper()
	made, err := client.New(config, client.Options{Scheme: c.Admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// stolenController returns a client with a token of the controller agent.
func stolenController(t *testing.T, c *cluster) client.Client {
	t.Helper()
	return clientWith(t, c, tokenFor(t, c, client.ObjectKey{Namespace: namespace, Name: "controller-agent"}))
}

// removeNow deletes a pod that nobody runs.
func removeNow(t *testing.T, c *cluster, pod *corev1.Pod) {
	t.Helper()
	if err := c.Admin.Delete(lasting(t), pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
	gone(t, c, pod)
}

// tenantOf returns a client with the token of a tenant who has Kubernetes' role edit in a namespace.
func tenantOf(t *testing.T, c *cluster, in string) client.Client {
	t.Helper()
	account := mustCreate(t, c, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "tenant"}})
	t.Cleanup(func() { mustDeleteLasting(t, c, account) })
	binding := mustCreate(t, c, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "tenant"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: in, Name: account.Name}},
	})
	t.Cleanup(func() { mustDeleteLasting(t, c, binding) })
	tenant := clientWith(t, c, tokenFor(t, c, client.ObjectKeyFromObject(account)))
	eventually(t, "the tenant has the role", func(ctx context.Context) (bool, string) {
		err := client.NewDryRunClient(tenant).Create(ctx, ordinaryPod(in, "ordinary"))
		return err == nil, "" // an error that stays is what the test waits for in vain
	})
	return tenant
}

func ordinaryPod(in, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: "busybox:1.37.0",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}},
		}}},
	}
}
