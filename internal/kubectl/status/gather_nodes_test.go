package status

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/agent"
)

// The installer chooses the namespace of the agents.
func TestGather_FindsTheNodeAgents_InAnyNamespace(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), pavv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := bound().client("web", "n1")
	client0 := w.f.Clients[0]
	client0.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	name := metav1.ObjectMeta{Namespace: "storage", Name: agent.Node, Labels: agent.Labels(agent.Node)}
	pod := &corev1.Pod{ObjectMeta: name, Spec: corev1.PodSpec{NodeName: "n1"}}
	reader := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(w.f.Claim, w.f.PV, &client0, &appsv1.DaemonSet{ObjectMeta: name}, pod).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithIndex(&corev1.Event{}, "involvedObject.kind", func(client.Object) []string { return nil }).
		WithIndex(&corev1.Event{}, "involvedObject.name", func(client.Object) []string { return nil }).
		Build()
	f, err := Gather(t.Context(), reader, w.f.Subject, atNoon)
	if err != nil {
		t.Fatal(err)
	}
	if node := f.Nodes["n1"]; f.AgentNamespace != "storage" || node == nil || node.Agent == nil || node.Agent.Name != pod.Name {
		t.Errorf("in namespace %q, the agent of the node is not found: %+v", f.AgentNamespace, node)
	}
}
