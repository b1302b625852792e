package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// The node of a creation pod is lost, and it is unknown how far the pod came. Its effects are reverted on another node
// before the volume is created again. That is safe, as the definition contains the handle.
func TestNodeLostDuringCreation_IsRevertedAndMadeElsewhere(t *testing.T) {
	start(t)
	l := newLedger(t, "lost-node", with("creation", `handle: "{{ defaultHandle }}"`), with("create spec", `affinity:
  nodeAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 100, preference: {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node2]}]}}`))
	l.hold(t, "create")
	claim := l.claim(t, "data")
	pod := l.runningPod(t, pavv1.WorkflowCreation, claim)
	l.awaitEffects(t, claim, "create")
	if pod.Spec.NodeName != "node2" {
		t.Fatalf("the creation pod is on %s", pod.Spec.NodeName)
	}
	t.Cleanup(func() {
		onCluster(t, "node", "start", "node2")
		eventually(t, "node2 is ready again", nodeReady)
		waitAgents(t, "")
	})
	onCluster(t, "node", "stop", "node2")
	l.unhook(t, "create")
	must(t, l.wantEffects(claim, "create"))
	must(t, kube.Delete(t.Context(), &corev1.Node{ObjectMeta: objectMeta("", "node2")}))

	// Kubernetes deletes the pods of a node that does not exist only after a minute.
	wantClaimEvent(t, claim, "ProvisioningFailed", l.name, pod.Name)
	awaitBound(t, claim)
	effects, err := l.effects(true)
	must(t, err)
	if got, want := fmt.Sprint(effects[volumeName(claim)]), "[create on node2 delete on node1 create on node1]"; got != want {
		t.Errorf("what was done to the volume is %s, want %s", got, want)
	}
	eventually(t, "the lost pod is let go", func(ctx context.Context) error { return gone(ctx, pod) })
	removeClaim(t, claim)
}
