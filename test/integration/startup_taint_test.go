package integration

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/agent"
	"github.com/albertofaria/pav/test/controlplane"
)

// A node is registered with the taint. It goes when all drivers are registered there, and nothing else of the node changes.
func TestStartupTaint_IsRemovedOnceAllDriversAreRegistered(t *testing.T) {
	c := start(t)
	allowStartupTaint(t, c)
	o := agent.Options(namespace)
	o.StartupTaint = true
	a := agent.Launch(t, c.agent, o, &agent.Line{})
	t.Cleanup(func() { a.Stop(t); checkNothingLeft(t, c) })
	provisioner := driver(t, c, "tainted")
	exists(t, c, provisioner, "is ready", func(p *pavv1.PavProvisioner) bool {
		return meta.IsStatusConditionTrue(p.Status.Conditions, pavv1.ProvisionerReady)
	})

	leaving := driver(t, c, "leaving")

	ours := corev1.Taint{Key: pavv1.NotReadyTaint, Effect: corev1.TaintEffectNoSchedule}
	other := corev1.Taint{Key: "example.org/other", Value: "v", Effect: corev1.TaintEffectNoExecute}
	node := mustCreate(t, c, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "new-node", Labels: map[string]string{"pool": "new"}},
		Spec:       corev1.NodeSpec{ProviderID: "provider://new", Taints: []corev1.Taint{ours, other}},
	})
	t.Cleanup(func() { mustDeleteLasting(t, c, node) })
	registered := mustCreate(t, c, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
		},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: pavv1.Driver, NodeID: node.Name}}},
	})
	t.Cleanup(func() { mustDeleteLasting(t, c, registered) })

	stolen := stolenController(t, c)
	eventually(t, "the policy is in force", func(ctx context.Context) (bool, string) {
		err := patching(node, `[{"op": "add", "path": "/metadata/labels/a", "value": "b"}]`)(ctx, client.NewDryRunClient(stolen))
		return err != nil && strings.Contains(err.Error(), "agent-not-ready"), fmt.Sprint(err)
	})
	const only = "may remove the taint pav.albertofaria.github.io/agent-not-ready of a node only"
	try(t, stolen, []attempt{
		{"it removes another taint", patching(node, `[{"op": "remove", "path": "/spec/taints/1"}]`), only},
		{"it adds a taint", patching(node, `[{"op": "add", "path": "/spec/taints/-", "value": {"key": "a", "effect": "NoExecute"}}]`), only},
		{"it cordons the node", patching(node, `[{"op": "add", "path": "/spec/unschedulable", "value": true}]`), only},
		{"it labels the node", patching(node, `[{"op": "add", "path": "/metadata/labels/a", "value": "b"}]`), only},
	})
	exists(t, c, node, "is tainted, as a driver is missing", func(n *corev1.Node) bool { return n.Spec.Taints[0].Key == pavv1.NotReadyTaint })
	others := slices.Clone(node.Spec.Taints[1:]) // Kubernetes has added one

	mustPatch(t, c, registered, func(csi *storagev1.CSINode) {
		csi.Spec.Drivers = append(csi.Spec.Drivers, storagev1.CSINodeDriver{Name: provisioner.Name, NodeID: node.Name})
	})
	exists(t, c, node, "is tainted, as another driver is missing", func(n *corev1.Node) bool { return n.Spec.Taints[0].Key == pavv1.NotReadyTaint })
	mustDelete(t, c, leaving) // nothing else happens that would tell
	exists(t, c, node, "has no taint of PaV", func(n *corev1.Node) bool {
		return slices.Equal(n.Spec.Taints, others) && n.Spec.ProviderID == "provider://new" && n.Labels["pool"] == "new"
	})
}

// allowStartupTaint installs what the chart adds for the taint.
func allowStartupTaint(t *testing.T, c *cluster) {
	t.Helper()
	for _, file := range []string{"30-controller-access", "52-policies-controller"} {
		command := exec.CommandContext(t.Context(), "../../bin/helm", "template", "pav", "../../deploy/chart", "--set", "startupTaint.enabled=true", "--show-only", "templates/"+file+".yaml")
		out, err := command.Output()
		if err != nil {
			t.Fatalf("rendering %s: %v", file, err)
		}
		objects, err := controlplane.Objects(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			switch name := object.GetName(); {
			case object.GetKind() == "ClusterRole" && name == "pav-controller-agent":
				object.SetName("pav-controller-nodes")
				binding := mustCreate(t, c, &rbacv1.ClusterRoleBinding{
					ObjectMeta: metav1.ObjectMeta{Name: object.GetName()},
					RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: object.GetName()},
					Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "controller-agent"}},
				})
				t.Cleanup(func() { mustDeleteLasting(t, c, binding) })
			case name != "pav-controller-nodes":
				continue
			}
			mustCreate(t, c, object)
			t.Cleanup(func() { mustDeleteLasting(t, c, object) })
		}
	}
}
