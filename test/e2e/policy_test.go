package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Words of the refusals, so that a test sees that it is the policy that refuses, and which one.
const (
	ownStages    = "the PavStages of its own node only"
	ownPods      = "the staging, node expansion and unstaging pods of its own node only"
	ofStages     = "pods of PavStages only"
	boundPods    = "bound to its own node only"
	theirPods    = "the pods of its own workflows only"
	selectedOnly = "may take the annotation volume.kubernetes.io/selected-node from a claim"
	closed       = "not open to workflow pods"
	finalizers   = "the finalizers of"
	keysArePaVs  = "are PaV's"
	notInTheRole = "cannot "
)

// attempt is something that a user tries, as a dry run.
type attempt struct {
	name   string
	do     func(ctx context.Context, c client.Client) error
	denied string // words of the refusal; none where it is allowed
}

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

func creating(object client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, object.DeepCopyObject().(client.Object))
	}
}

func deleting(object client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error { return c.Delete(ctx, object) }
}

// patching applies a merge patch.
func patching(object client.Object, patch string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, object.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

// imaging changes the image of a pod's container.
func imaging(pod *corev1.Pod) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		patch := `[{"op": "replace", "path": "/spec/containers/0/image", "value": "example.org/other"}]`
		return c.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(patch)))
	}
}

// scene is a volume that is staged on both nodes by pods in a namespace of a tenant's, and an ordinary pod in it.
type scene struct {
	namespace string
	stages    map[string]*pavv1.PavStage // by node
	pods      map[string]*corev1.Pod     // staging pods by node
	ordinary  *corev1.Pod
}

func setScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{namespace: beside(t), stages: map[string]*pavv1.PavStage{}, pods: map[string]*corev1.Pod{}}
	_, err := kubectl(t.Context(), "", "label", "namespace", s.namespace, pavv1.AllowPodsLabel+"=true")
	must(t, err)
	driver := "policed-" + strings.TrimPrefix(s.namespace, "e2e-")
	theirs := strings.Replace(provisioner(driver, "mkdir /pav/volume", ""), "podTemplate:\n      spec:", "podTemplate:\n      metadata: {namespace: "+s.namespace+"}\n      spec:", 1)
	apply(t, s.namespace, documents(theirs, storageClass(driver)))
	apply(t, s.namespace, documents(claim("data", driver, "ReadWriteMany"), clientPod("on-node1", "data", "node1"), clientPod("on-node2", "data", "node2")))
	waitRunning(t, s.namespace, "on-node1", "on-node2")

	stages, pods := &pavv1.PavStageList{}, &corev1.PodList{}
	must(t, kube.List(t.Context(), stages, client.MatchingLabels{pavv1.ProvisionerLabel: driver}))
	must(t, kube.List(t.Context(), pods, client.InNamespace(s.namespace), client.MatchingLabels{pavv1.WorkflowLabel: pavv1.WorkflowStaging}))
	for i := range stages.Items {
		s.stages[stages.Items[i].Spec.NodeName] = &stages.Items[i]
	}
	for i := range pods.Items {
		s.pods[pods.Items[i].Annotations[pavv1.NodeAnnotation]] = &pods.Items[i]
	}
	if len(s.stages) != 2 || len(s.pods) != 2 {
		t.Fatalf("there are %d PavStages and %d staging pods, want two of each", len(s.stages), len(s.pods))
	}
	s.ordinary = &corev1.Pod{}
	must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "on-node1"}, s.ordinary))
	return s
}

// newPod returns a pod that is like the other was before it was created.
func newPod(like *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	pod := like.DeepCopy()
	pod.Name, pod.UID, pod.ResourceVersion = "forged", "", ""
	pod.Spec.NodeName = ""
	pod.Status = corev1.PodStatus{}
	change(pod)
	return pod
}

func newStage(like *pavv1.PavStage) *pavv1.PavStage {
	stage := like.DeepCopy()
	stage.Name, stage.UID, stage.ResourceVersion = "forged", "", ""
	delete(stage.Annotations, pavv1.AdmittedAnnotation) // It is the controller agent's.
	return stage
}

// withToken returns a client with a token of one of PaV's service accounts, bound to the object, if any.
func withToken(t *testing.T, account string, boundTo *authenticationv1.BoundObjectReference) client.Client {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: boundTo}}
	must(t, kube.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: objectMeta("pav", account)}, request))
	config := rest.AnonymousClientConfig(restConfig(t))
	config.BearerToken = request.Status.Token
	return newClient(t, config)
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	config.WarningHandler = rest.NoWarnings{} // PaV's pods have no claim to any security profile.
	c, err := client.New(config, client.Options{Scheme: kube.Scheme()})
	must(t, err)
	return c
}

// agentOn returns the pod of the node agent on a node.
func agentOn(t *testing.T, node string) *authenticationv1.BoundObjectReference {
	t.Helper()
	pods := &corev1.PodList{}
	must(t, kube.List(t.Context(), pods, client.InNamespace("pav"), client.MatchingLabels{"app.kubernetes.io/component": "node-agent"}))
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.Spec.NodeName == node && pod.DeletionTimestamp == nil {
			return &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
		}
	}
	t.Fatalf("no node agent runs on %s", node)
	return nil
}

func TestNodeAgentToken_WritesStagesOfItsOwnNodeOnly(t *testing.T) {
	s := setScene(t)
	record := newStage(s.stages["node2"])
	record.Name, record.Finalizers = "policy-test-record", nil
	must(t, kube.Create(t.Context(), record))
	t.Cleanup(func() { remove(t, record) })
	status := func(stage *pavv1.PavStage) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			now := &pavv1.PavStage{} // Its agent may have written it meanwhile.
			if err := kube.Get(ctx, keyOf(stage), now); err != nil {
				return err
			}
			return c.Status().Update(ctx, now)
		}
	}
	own, other := s.stages["node1"], s.stages["node2"]
	const label, free = `{"metadata": {"labels": {"a": "b"}}}`, `{"metadata": {"finalizers": null}}`
	attempts := []attempt{
		{"it creates one of its own node", creating(newStage(own)), ""},
		{"it changes one of its own node", patching(own, label), ""},
		{"it frees one of its own node", patching(own, free), ""},
		{"it writes the status of one of its own node", status(own), ""},
		{"it deletes one of its own node", deleting(own), ""},
		{"it clears away the record of another node's failure", deleting(record), ""},
		{"it creates one of another node", creating(newStage(other)), ownStages},
		{"it changes one of another node", patching(other, label), ownStages},
		{"it frees one of another node", patching(other, free), ownStages},
		{"it changes the record of another node's failure", patching(record, label), ownStages},
		{"it writes the status of one of another node", status(other), ownStages},
		{"it deletes one of another node", deleting(other), ownStages},
		{"it deletes all of them", func(ctx context.Context, c client.Client) error { return c.DeleteAllOf(ctx, &pavv1.PavStage{}) }, notInTheRole},
	}
	try(t, withToken(t, "node-agent", agentOn(t, "node1")), attempts)

	t.Run("without a node in the token, it writes none", func(t *testing.T) {
		for i := range attempts {
			attempts[i].denied = ownStages
		}
		attempts[len(attempts)-1].denied = notInTheRole
		// Any node agent may delete PavStages without finalizers, so no node is needed.
		attempts = slices.DeleteFunc(attempts, func(a attempt) bool { return strings.Contains(a.name, "clears away") })
		try(t, withToken(t, "node-agent", nil), attempts)
	})
}

// term binds a pod to a node, as one of the alternatives of its affinity.
func term(node string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}
}

func bound(pod *corev1.Pod, terms ...corev1.NodeSelectorTerm) {
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
}

func TestNodeAgentToken_CreatesWorkflowPodsOfItsOwnNodeOnly(t *testing.T) {
	s := setScene(t)
	with := func(change func(*corev1.Pod)) func(context.Context, client.Client) error {
		return creating(newPod(s.pods["node1"], change))
	}
	within := func(namespace string) func(context.Context, client.Client) error {
		return with(func(pod *corev1.Pod) { pod.Namespace = namespace })
	}
	attempts := []attempt{
		{"in PaV's namespace for workflow pods", within("pav-pods"), ""},
		{"in a namespace that is open", within(s.namespace), ""},
		{"for another node", creating(newPod(s.pods["node2"], func(*corev1.Pod) {})), ownPods},
		{"in kube-system", within("kube-system"), closed},
		{"in a namespace that is not open", within("default"), closed},
		{"in the namespace of the agents", within("pav"), closed},
		{"for its own node, but bound to another", with(func(pod *corev1.Pod) { bound(pod, term("node2")) }), boundPods},
		{"for its own node, but bound to either", with(func(pod *corev1.Pod) { bound(pod, term("node1"), term("node2")) }), boundPods},
		{"for its own node, but bound to none", with(func(pod *corev1.Pod) { pod.Spec.Affinity = nil }), boundPods},
		{"past the scheduler", with(func(pod *corev1.Pod) { pod.Spec.NodeName = "node2" }), boundPods},
		{"of a workflow that is the controller agent's", with(func(pod *corev1.Pod) { pod.Labels[pavv1.WorkflowLabel] = "create" }), ownPods},
		{"to validate a volume that one of its PavStages is of", with(func(pod *corev1.Pod) { pod.Labels[pavv1.WorkflowLabel] = "validate" }), ""},
		{"to validate one that no PavStage is of", with(func(pod *corev1.Pod) {
			pod.Labels[pavv1.WorkflowLabel] = "validate"
			delete(pod.Labels, pavv1.StageLabel)
		}), ownPods},
		{"to validate one for a PavVolume", with(func(pod *corev1.Pod) {
			pod.Labels[pavv1.WorkflowLabel], pod.OwnerReferences[0].Kind = "validate", "PavVolume"
		}), ofStages},
		{"to validate one for nobody", with(func(pod *corev1.Pod) {
			pod.Labels[pavv1.WorkflowLabel], pod.OwnerReferences = "validate", nil
		}), ofStages},
		{"to validate one for another PavStage than it says", with(func(pod *corev1.Pod) {
			pod.Labels[pavv1.WorkflowLabel], pod.OwnerReferences[0].Name = "validate", "stage-other"
		}), ofStages},
		{"without labels", with(func(pod *corev1.Pod) { pod.Labels = nil }), ownPods},
		{"without annotations", with(func(pod *corev1.Pod) { pod.Annotations = nil }), ownPods},
	}
	try(t, withToken(t, "node-agent", agentOn(t, "node1")), attempts)

	t.Run("without a node in the token, it creates none", func(t *testing.T) {
		for i := range attempts {
			attempts[i].denied = "own node only"
		}
		try(t, withToken(t, "node-agent", nil), attempts)
	})
}

const (
	freePod  = `{"metadata": {"finalizers": ["pav.albertofaria.github.io/outcome", "example.org/other"]}}`
	relabel  = `{"metadata": {"labels": {"a": "b"}}}`
	annotate = `{"metadata": {"annotations": {"a": "b"}}}`
	disown   = `{"metadata": {"ownerReferences": null}}`
)

func TestNodeAgentToken_ChangesFinalizersOfItsOwnPodsOnly(t *testing.T) {
	s := setScene(t)
	own, other := s.pods["node1"], s.pods["node2"]
	claimed := fmt.Sprintf(`{"metadata": {"labels": {%q: "stage"}, "annotations": {%q: "node1"}}}`, pavv1.WorkflowLabel, pavv1.NodeAnnotation)
	all := func(ctx context.Context, c client.Client) error {
		return c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(s.namespace))
	}
	try(t, withToken(t, "node-agent", agentOn(t, "node1")), []attempt{
		{"the finalizers of its own", patching(own, freePod), ""},
		{"the existence of its own", deleting(own), ""},
		{"a label of its own", patching(own, relabel), finalizers},
		{"an annotation of its own", patching(own, annotate), finalizers},
		{"the owner of its own", patching(own, disown), finalizers},
		{"the image of its own", imaging(own), finalizers},
		{"the finalizers of another node's", patching(other, freePod), ownPods},
		{"the image of another node's", imaging(other), ownPods},
		{"the existence of another node's", deleting(other), ownPods},
		{"the finalizers of an ordinary pod", patching(s.ordinary, freePod), ownPods},
		{"the image of an ordinary pod", imaging(s.ordinary), ownPods},
		{"whose an ordinary pod is", patching(s.ordinary, claimed), ownPods},
		{"the existence of an ordinary pod", deleting(s.ordinary), ownPods},
		{"the existence of all pods", all, notInTheRole},
	})
	t.Run("without a node in the token, it changes nothing", func(t *testing.T) {
		try(t, withToken(t, "node-agent", nil), []attempt{
			{"the finalizers of a staging pod", patching(own, freePod), ownPods},
			{"the existence of a staging pod", deleting(own), ownPods},
		})
	})
}

func TestTenant_CannotForgeWorkflowPods_AndOrdinaryPodsAreNotAffected(t *testing.T) {
	s := setScene(t)
	_, err := kubectl(t.Context(), "", "create", "rolebinding", "tenant", "-n", s.namespace, "--clusterrole=edit", "--user=tenant")
	must(t, err)
	config := restConfig(t)
	config.Impersonate = rest.ImpersonationConfig{UserName: "tenant", Groups: []string{"system:authenticated"}}
	with := func(change func(*corev1.Pod)) func(context.Context, client.Client) error {
		return creating(newPod(s.ordinary, change))
	}
	pod := s.pods["node1"]
	key := func(kind, name, value string) func(context.Context, client.Client) error {
		return patching(pod, fmt.Sprintf(`{"metadata": {%q: {%q: %s}}}`, kind, name, value))
	}
	tenant := newClient(t, config)
	eventually(t, "the tenant has its role", func(ctx context.Context) error {
		return with(func(*corev1.Pod) {})(ctx, client.NewDryRunClient(tenant))
	})
	try(t, tenant, []attempt{
		// It has keys and an inline volume, and either policy may be the first to refuse it.
		{"a copy of a workflow pod", creating(newPod(pod, func(*corev1.Pod) {})), "PaV"},
		{"a pod with a label of PaV's", with(func(pod *corev1.Pod) { pod.Labels = map[string]string{pavv1.WorkflowLabel: "stage"} }), keysArePaVs},
		{"a pod with a label that could be PaV's", with(func(pod *corev1.Pod) { pod.Labels = map[string]string{pavv1.Group + "/new": ""} }), keysArePaVs},
		{"a pod with an annotation of PaV's", with(func(pod *corev1.Pod) { pod.Annotations = map[string]string{pavv1.NodeAnnotation: "node1"} }), keysArePaVs},
		{"a label of PaV's on an ordinary pod", patching(s.ordinary, `{"metadata": {"labels": {"`+pavv1.WorkflowLabel+`": "stage"}}}`), keysArePaVs},
		{"another value of a workflow pod's label", key("labels", pavv1.StageLabel, `"other"`), keysArePaVs},
		{"one label less on a workflow pod", key("labels", pavv1.WorkflowLabel, "null"), keysArePaVs},
		{"one label more on a workflow pod", key("labels", pavv1.Group+"/new", `"new"`), keysArePaVs},
		{"another value of a workflow pod's annotation", key("annotations", pavv1.AttemptAnnotation, `"7"`), keysArePaVs},
		{"one annotation less on a workflow pod", key("annotations", pavv1.NodeAnnotation, "null"), keysArePaVs},
		{"one annotation more on a workflow pod", key("annotations", pavv1.Group+"/outcome", `"{}"`), keysArePaVs},
		{"no annotations on a workflow pod at all", patching(pod, `{"metadata": {"annotations": null}}`), keysArePaVs},

		{"a label of the tenant's on a workflow pod", patching(pod, relabel), ""},
		{"an ordinary pod", with(func(*corev1.Pod) {}), ""},
		{"an ordinary pod without labels or annotations", with(func(pod *corev1.Pod) { pod.Labels, pod.Annotations = nil, nil }), ""},
		{"a label of an ordinary pod", patching(s.ordinary, relabel), ""},
		{"an annotation of an ordinary pod", patching(s.ordinary, annotate), ""},
		{"the image of an ordinary pod", imaging(s.ordinary), ""},
		{"the end of an ordinary pod", deleting(s.ordinary), ""},
	})
}

// /pav is only for the pods that PaV makes.
func TestPodThatAsksForPav_IsRefused(t *testing.T) {
	namespace := beside(t)
	intruder := strings.Replace(clientPod("intruder", "none", ""), "persistentVolumeClaim: {claimName: none}", "csi: {driver: "+pavv1.Driver+"}", 1)
	_, err := kubectl(t.Context(), intruder, "-n", namespace, "create", "-f", "-")
	if err == nil || !strings.Contains(err.Error(), "are for the pods that PaV makes") {
		t.Errorf("a pod with an inline volume of PaV's is created: %v", err)
	}
}
