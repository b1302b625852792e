package e2e

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// adopt gives an object another owner.
const adopt = `{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "node1", "uid": "x"}]}}`

func TestControllerAgentToken_CreatesPodsOfItsWorkflows_InOpenNamespacesOnly(t *testing.T) {
	open, closedByName := beside(t), &corev1.Namespace{ObjectMeta: objectMeta("", "e2e-says-no")}
	_, err := kubectl(t.Context(), "", "label", "namespace", open, pavv1.AllowPodsLabel+"=true")
	must(t, err)
	closedByName.Labels = map[string]string{pavv1.AllowPodsLabel: "false"}
	must(t, kube.Create(t.Context(), closedByName))
	t.Cleanup(func() { remove(t, closedByName) })

	// in creates a pod of a workflow, or of none, in a namespace.
	in := func(namespace, workflow string) func(context.Context, client.Client) error {
		pod := &corev1.Pod{ObjectMeta: objectMeta(namespace, "forged")}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "busybox:1.37.0"}}
		if workflow != "" {
			pod.Labels = map[string]string{pavv1.WorkflowLabel: workflow}
		}
		return creating(pod)
	}
	var attempts []attempt
	for _, workflow := range pavv1.WorkflowsOfController() {
		attempts = append(attempts,
			attempt{workflow + " in PaV's namespace for workflow pods", in("pav-pods", workflow), ""},
			attempt{workflow + " in a namespace that is open", in(open, workflow), ""},
			attempt{workflow + " in kube-system", in("kube-system", workflow), closed},
			attempt{workflow + " in a namespace that is not open", in("default", workflow), closed},
			attempt{workflow + " in a namespace whose label says no", in(closedByName.Name, workflow), closed},
			attempt{workflow + " in the namespace of the agents", in("pav", workflow), closed},
		)
	}
	for _, workflow := range []string{pavv1.WorkflowStaging, pavv1.WorkflowUnstaging, "other", ""} {
		attempts = append(attempts,
			attempt{"of workflow '" + workflow + "' in PaV's namespace for workflow pods", in("pav-pods", workflow), theirPods},
			attempt{"of workflow '" + workflow + "' in a namespace that is open", in(open, workflow), theirPods},
		)
	}
	agent := withToken(t, "controller-agent", nil)
	eventually(t, "the namespace is known to be open", func(ctx context.Context) error {
		return in(open, pavv1.WorkflowCreation)(ctx, client.NewDryRunClient(agent))
	})
	try(t, agent, attempts)
}

func TestControllerAgentToken_ReleasesWorkflowPods_AndDeletesItsOwn(t *testing.T) {
	s := setScene(t)
	own := controllersPod(t, s.namespace, pavv1.WorkflowCreation, "node1", map[string]string{pavv1.AttemptAnnotation: "1"})
	staging := s.pods["node2"]
	workflow := func(value string) string {
		return `{"metadata": {"labels": {"` + pavv1.WorkflowLabel + `": ` + value + `}}}`
	}
	result := `{"metadata": {"annotations": {"` + pavv1.ResultAnnotation + `": "{}"}}}`
	evictable := `{"metadata": {"labels": {"` + pavv1.EvictableLabel + `": "true"}}}`
	agent := withToken(t, "controller-agent", nil)
	try(t, agent, []attempt{
		{"the finalizers of a creation pod", patching(own, freePod), ""},
		{"all finalizers of a creation pod", patching(own, `{"metadata": {"finalizers": null}}`), ""},
		{"the existence of a creation pod", deleting(own), ""},
		{"a label of a creation pod", patching(own, relabel), finalizers},
		{"the workflow of a creation pod", patching(own, workflow(`"delete"`)), finalizers},
		{"whether a creation pod is one", patching(own, workflow("null")), theirPods},
		{"an annotation of a creation pod", patching(own, annotate), finalizers},
		{"no annotations of a creation pod", patching(own, `{"metadata": {"annotations": null}}`), finalizers},
		{"the result of a creation pod", patching(own, result), finalizers},
		{"the owner of a creation pod", patching(own, adopt), finalizers},
		{"the image of a creation pod", imaging(own), finalizers},

		{"the finalizers of a staging pod", patching(staging, freePod), ""},
		{"a label of a staging pod", patching(staging, relabel), finalizers},
		{"whether a staging pod may be evicted", patching(staging, evictable), ""},
		{"whether a creation pod may be evicted", patching(own, evictable), finalizers},
		{"whether an ordinary pod may be evicted", patching(s.ordinary, evictable), theirPods},
		{"an annotation of a staging pod", patching(staging, annotate), finalizers},
		{"the owner of a staging pod", patching(staging, disown), finalizers},
		{"the image of a staging pod", imaging(staging), finalizers},
		{"the existence of a staging pod", deleting(staging), theirPods},

		{"the finalizers of an ordinary pod", patching(s.ordinary, freePod), theirPods},
		{"a label of an ordinary pod", patching(s.ordinary, relabel), theirPods},
		{"whose an ordinary pod is", patching(s.ordinary, workflow(`"create"`)), theirPods},
		{"the image of an ordinary pod", imaging(s.ordinary), theirPods},
		{"the existence of an ordinary pod", deleting(s.ordinary), theirPods},
	})
	t.Run("its role has no other ways", func(t *testing.T) {
		try(t, agent, []attempt{
			{"to delete pods", func(ctx context.Context, c client.Client) error {
				return c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(s.namespace))
			}, notInTheRole},
			{"to evict one", func(ctx context.Context, c client.Client) error {
				return c.SubResource("eviction").Create(ctx, own, &policyv1.Eviction{})
			}, notInTheRole},
			{"to say what became of one", func(ctx context.Context, c client.Client) error {
				return c.Status().Patch(ctx, own.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"status": {"phase": "Failed"}}`)))
			}, notInTheRole},
			{"to replace one", func(ctx context.Context, c client.Client) error { return c.Update(ctx, own.DeepCopy()) }, notInTheRole},
		})
	})
}

func TestControllerAgentToken_TakesTheSelectedNodeOfAClaim_AndNothingElse(t *testing.T) {
	namespace := beside(t)
	const selected = "volume.kubernetes.io/selected-node"
	claim := func(name string, annotations map[string]string) *corev1.PersistentVolumeClaim {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta(namespace, name)}
		claim.Labels, claim.Annotations = map[string]string{"app": "db"}, annotations
		claim.Spec = corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(""), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
		}
		must(t, kube.Create(t.Context(), claim))
		t.Cleanup(func() { remove(t, claim) })
		return claim
	}
	waiting := claim("waiting", map[string]string{selected: "node1", "example.org/mine": "a"})
	bare := claim("bare", map[string]string{selected: "node1"})
	unselected := claim("unselected", nil)
	annotations := func(text string) string { return `{"metadata": {"annotations": ` + text + `}}` }
	const taken = `{"volume.kubernetes.io/selected-node": null}`
	// besides removes the selected node, and something else.
	besides := func(more string) string { return `{"metadata": {"annotations": ` + taken + `, ` + more + `}}` }
	status := func(ctx context.Context, c client.Client) error {
		return c.Status().Patch(ctx, waiting.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"status": {"phase": "Lost"}}`)))
	}
	another := waiting.DeepCopy()
	another.Name, another.UID, another.ResourceVersion = "another", "", ""

	try(t, withToken(t, "controller-agent", nil), []attempt{
		{"the selected node", patching(waiting, annotations(taken)), ""},
		{"the selected node, the only annotation", patching(bare, annotations("null")), ""},
		{"another selected node", patching(waiting, annotations(`{"`+selected+`": "node2"}`)), selectedOnly},
		{"a selected node where there was none", patching(unselected, annotations(`{"`+selected+`": "node2"}`)), selectedOnly},
		{"another annotation", patching(waiting, annotations(`{"example.org/mine": null}`)), selectedOnly},
		{"all annotations", patching(waiting, annotations("null")), selectedOnly},
		{"the value of an annotation", patching(waiting, annotations(`{"example.org/mine": "b"}`)), selectedOnly},
		{"a new annotation", patching(waiting, annotate), selectedOnly},
		{"a new annotation in its place", patching(waiting, annotations(`{"`+selected+`": null, "example.org/new": ""}`)), selectedOnly},
		{"a new label", patching(waiting, relabel), selectedOnly},
		{"and a new label", patching(waiting, besides(`"labels": {"a": "b"}`)), selectedOnly},
		{"and all labels", patching(waiting, besides(`"labels": null`)), selectedOnly},
		{"and the protection", patching(waiting, besides(`"finalizers": null`)), selectedOnly},
		{"and a finalizer", patching(waiting, besides(`"finalizers": ["kubernetes.io/pvc-protection", "example.org/other"]`)), selectedOnly},
		{"and a new owner", patching(waiting, besides(`"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "node1", "uid": "x"}]`)), selectedOnly},
		{"a new owner", patching(waiting, adopt), selectedOnly},
		{"the volume", patching(waiting, `{"spec": {"volumeName": "forged"}}`), selectedOnly},
		{"the status", status, "the sizes and attributes in the status of a claim that is bound"},
		{"all of it", func(ctx context.Context, c client.Client) error { return c.Update(ctx, waiting.DeepCopy()) }, notInTheRole},
		{"its existence", deleting(waiting), notInTheRole},
		{"another claim", creating(another), notInTheRole},
	})
}
