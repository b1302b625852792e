package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// These requests are made with the token of a tenant who has Kubernetes' role edit in a namespace.

func TestTenant_HasNoRightsOnPaVsKinds(t *testing.T) {
	c := start(t)
	tenant := tenantOf(t, c, "default")
	provisioner := mustCreate(t, c, provisionerOf("of-administrators"))
	t.Cleanup(func() { mustDeleteLasting(t, c, provisioner) })
	stage := &pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	volume := &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	snapshot := &pavv1.PavSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	bucket := &pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	access := &pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	try(t, tenant, []attempt{
		{"a definition is created", creating(provisionerOf("forged")), notInTheRole},
		{"a definition is changed", patching(provisioner, relabel), notInTheRole},
		{"a definition's status is changed", patching(provisioner, `{"status": {}}`, "status"), notInTheRole},
		{"a definition is deleted", deleting(provisioner), notInTheRole},
		{"a stage is created", creating(stage), notInTheRole},
		{"a stage is changed", patching(stage, relabel), notInTheRole},
		{"a stage is deleted", deleting(stage), notInTheRole},
		{"a volume is created", creating(volume), notInTheRole},
		{"a volume is changed", patching(volume, relabel), notInTheRole},
		{"a volume is deleted", deleting(volume), notInTheRole},
		{"a snapshot is created", creating(snapshot), notInTheRole},
		{"a snapshot is changed", patching(snapshot, relabel), notInTheRole},
		{"a snapshot's status is changed", patching(snapshot, `{"status": {}}`, "status"), notInTheRole},
		{"a snapshot is deleted", deleting(snapshot), notInTheRole},
		{"a bucket is created", creating(bucket), notInTheRole},
		{"a bucket is changed", patching(bucket, relabel), notInTheRole},
		{"a bucket's status is changed", patching(bucket, `{"status": {}}`, "status"), notInTheRole},
		{"a bucket is deleted", deleting(bucket), notInTheRole},
		{"an access is created", creating(access), notInTheRole},
		{"an access is changed", patching(access, relabel), notInTheRole},
		{"an access's status is changed", patching(access, `{"status": {}}`, "status"), notInTheRole},
		{"an access is deleted", deleting(access), notInTheRole},
	})
}

// inlinePod returns a pod that has so many volumes of PaV's own driver.
func inlinePod(in, name string, volumes int) *corev1.Pod {
	pod := ordinaryPod(in, name)
	for i := range volumes {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: "v" + strings.Repeat("x", i%10) + string(rune('a'+i%26)), VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: pavv1.Driver}},
		})
	}
	return pod
}

func TestTenant_HasNoPodsWithPav(t *testing.T) {
	c := start(t)
	other := ordinaryPod("default", "other")
	other.Spec.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "example.org"}}}}
	try(t, tenantOf(t, c, "default"), []attempt{
		{"with one such volume", creating(inlinePod("default", "inline", 1)), "for the pods that PaV makes"},
		{"with ten of them", creating(inlinePod("default", "inline", 10)), "for the pods that PaV makes"},
		{"an ordinary pod", creating(ordinaryPod("default", "ordinary")), ""},
		{"a pod with another driver's", creating(other), ""},
	})
}

// workflowPod makes a pod as a node agent does.
func workflowPod(t *testing.T, c *cluster, in, node string) *corev1.Pod {
	t.Helper()
	stage := mustCreate(t, c, &pavv1.PavStage{
		ObjectMeta: metav1.ObjectMeta{Name: "of-" + in, Labels: map[string]string{pavv1.NodeLabel: "n"}},
		Spec:       stageSpec(node),
	})
	t.Cleanup(func() { mustDeleteLasting(t, c, stage) })
	pod := ordinaryPod(in, workflow.Name(pavv1.WorkflowStaging, in))
	pod.Labels = map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowStaging, pavv1.StageLabel: stage.Name}
	pod.Annotations = map[string]string{pavv1.NodeAnnotation: node}
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: pavv1.GroupVersion.String(), Kind: "PavStage", Name: stage.Name, UID: stage.UID, Controller: new(true),
	}}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}},
	}}
	if err := nodeAgent(t, c, node).Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeNow(t, c, pod) })
	return pod
}

// connect requests a connection to a pod. No kubelet answers here: what matters is who refuses.
func connect(ctx context.Context, c kubernetes.Interface, pod *corev1.Pod, how string) error {
	return c.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource(how).
		Param("command", "true").Param("stdout", "true").Param("ports", "1").Do(ctx).Error()
}

func TestTenant_OfAnOpenNamespace_ReachesIntoNoWorkflowPod(t *testing.T) {
	c := start(t)
	const in, only, keys, runs = "policed-open", `needs the verb "access"`, "are PaV's", "what workflow pods run is PaV's"
	openNamespace(t, c, in, "true")
	tenant := tenantOf(t, c, in)
	pod := workflowPod(t, c, in, "policed-node")
	mine := mustCreate(t, c, ordinaryPod(in, "mine"))
	t.Cleanup(func() { removeNow(t, c, mine) })
	const debug = `{"spec": {"ephemeralContainers": [{"name": "d", "image": "i"}]}}`
	const image = `[{"op": "replace", "path": "/spec/containers/0/image", "value": "other"}]`
	binding := func(name string, annotations map[string]string) func(context.Context, client.Client) error {
		return func(ctx context.Context, tenant client.Client) error {
			return tenant.SubResource("binding").Create(ctx, ordinaryPod(in, name), &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: in, Annotations: annotations}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"},
			})
		}
	}
	try(t, tenant, []attempt{
		{"its image", patching(pod, image), runs},
		{"its deadline", patching(pod, `{"spec": {"activeDeadlineSeconds": 1}}`), runs},
		{"its labels", patching(pod, `{"metadata": {"labels": {"`+pavv1.StageLabel+`": "other"}}}`), keys},
		{"a label of the tenant's on it", patching(pod, relabel), ""},
		{"the image of the tenant's own", patching(mine, image), ""},
	})
	// Only special roles allow these requests in this namespace, such as those of schedulers or of people who debug.
	role := mustCreate(t, c, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "policed-more"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods/binding", "bindings"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"pods/ephemeralcontainers", "pods/resize", "namespaces"}, Verbs: []string{"patch", "get"}},
		{APIGroups: []string{""}, Resources: []string{"pods/proxy", "pods/exec", "pods/attach", "pods/portforward"}, Verbs: []string{"create", "get"}},
	}})
	t.Cleanup(func() { mustDeleteLasting(t, c, role) })
	bind(t, c, in, role.Name)
	special := []attempt{
		{"an ephemeral container", patching(pod, debug, "ephemeralcontainers"), only},
		{"an ephemeral container in the tenant's own", patching(mine, debug, "ephemeralcontainers"), ""},
		{"annotations by a binding", binding(mine.Name, map[string]string{pavv1.ResultAnnotation: "{}"}), keys},
	}
	if c.Minor >= 33 { // Older API servers do not have the subresource.
		const cpu = `[{"op": "replace", "path": "/spec/containers/0/resources/requests/cpu", "value": "2m"}]`
		special = append(special, attempt{"its resources", patching(pod, cpu, "resize"), only})
	}
	try(t, tenant, special)
	config := tokenFor(t, c, client.ObjectKey{Namespace: in, Name: "tenant"})
	connects, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(pod *corev1.Pod, how string) bool {
		err := connect(t.Context(), connects, pod, how)
		if err == nil || apierrors.IsForbidden(err) && !strings.Contains(err.Error(), only) {
			t.Errorf("%s of %s: %v", how, pod.Name, err)
		}
		return apierrors.IsForbidden(err)
	}
	all := []string{"exec", "attach", "portforward", "proxy"}
	for _, how := range all {
		if !refused(pod, how) {
			t.Errorf("%s into a workflow pod is not refused", how)
		}
		if refused(mine, how) {
			t.Errorf("%s into the tenant's own pod is refused", how)
		}
	}
	bind(t, c, in, "pav-access-workflow-pods")
	for _, how := range all {
		if refused(pod, how) {
			t.Errorf("%s into a workflow pod is refused in spite of the right", how)
		}
	}
}

// bind gives the tenant of a namespace a role there, and waits until they have it.
func bind(t *testing.T, c *cluster, in, role string) {
	t.Helper()
	binding := mustCreate(t, c, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: in, Name: "tenant"}},
	})
	t.Cleanup(func() { mustDeleteLasting(t, c, binding) })
	bound := &rbacv1.ClusterRole{}
	if err := c.Admin.Get(t.Context(), client.ObjectKey{Name: role}, bound); err != nil {
		t.Fatal(err)
	}
	rule := bound.Rules[len(bound.Rules)-1]
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	eventually(t, "the tenant has the role "+role, func(ctx context.Context) (bool, string) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + in + ":tenant",
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: in, Group: rule.APIGroups[0], Resource: resource, Subresource: subresource, Verb: rule.Verbs[0],
			},
		}}
		err := c.Admin.Create(ctx, review)
		return err == nil && review.Status.Allowed, fmt.Sprintf("%v %+v", err, review.Status)
	})
}

func TestOpeningANamespaceNeedsARightOfItsOwn(t *testing.T) {
	c := start(t)
	const in, only = "policed-label", `needs the verb "open"`
	namespace := openNamespace(t, c, in, "")
	closing := openNamespace(t, c, in+"-closing", "true")
	tenantOf(t, c, in)
	role := mustCreate(t, c, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "policed-namespaces"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces", "namespaces/status", "namespaces/finalize"}, Verbs: []string{"get", "create", "patch", "update"}},
	}})
	t.Cleanup(func() { mustDeleteLasting(t, c, role) })
	bindEverywhere(t, c, in, role.Name, &authorizationv1.ResourceAttributes{Resource: "namespaces", Verb: "create"})
	owner := clientWith(t, c, tokenFor(t, c, client.ObjectKey{Namespace: in, Name: "tenant"}))
	opens := `{"metadata": {"labels": {"` + pavv1.AllowPodsLabel + `": "true"}}}`
	opened := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in + "-new", Labels: map[string]string{pavv1.AllowPodsLabel: "true"}}}
	try(t, owner, []attempt{
		{"another label", patching(namespace, relabel), ""},
		{"another label of an open one", patching(closing, relabel), ""},
		{"the label", patching(namespace, opens), only},
		{"the label, by way of the status", patching(namespace, opens, "status"), only},
		{"the label of a new namespace", creating(opened), only},
		{"the label of an open one", patching(closing, `{"metadata": {"labels": null}}`), only},
	})
	bindEverywhere(t, c, in, "pav-open-namespaces", &authorizationv1.ResourceAttributes{Group: pavv1.Group, Resource: "workflownamespaces", Verb: "open"})
	try(t, owner, []attempt{
		{"the label, with the right", patching(namespace, opens), ""},
		{"the label of a new namespace, with the right", creating(opened), ""},
	})
}

// bindEverywhere gives the tenant of a namespace a role in the cluster, and waits until they may do something, unless that
// is nil.
func bindEverywhere(t *testing.T, c *cluster, in, role string, may *authorizationv1.ResourceAttributes) {
	t.Helper()
	binding := mustCreate(t, c, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: in + "-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: in, Name: "tenant"}},
	})
	t.Cleanup(func() { mustDeleteLasting(t, c, binding) })
	if may == nil {
		return
	}
	eventually(t, "the tenant has the role "+role, func(ctx context.Context) (bool, string) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "system:serviceaccount:" + in + ":tenant", ResourceAttributes: may}}
		err := c.Admin.Create(ctx, review)
		return err == nil && review.Status.Allowed, fmt.Sprintf("%v %+v", err, review.Status)
	})
}
