package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Only the agent of its node can read the result of a creation pod; the next agent on the node does that, too.
func TestNodeAgentsDownWhileACreationPodEnds_ItsResultIsNotLost(t *testing.T) {
	l := newLedger(t, "untold", replacing("securityContext: {privileged: false}", "securityContext: {privileged: true}"))
	l.hook(t, "create", "mkdir /pav/left; mount -t tmpfs left /pav/left; while test -e /storage/hooks/create; do sleep 0.1; done")
	claim := l.claim(t, "data")
	pod := l.runningPod(t, pavv1.WorkflowCreation, claim)
	comeBack := withoutNodeAgents(t)
	l.unhook(t, "create")
	eventually(t, "the creation pod has ended", func(ctx context.Context) error {
		return wantPhase(ctx, pod, corev1.PodSucceeded)
	})
	if volume, err := volumeOf(t.Context(), claim); err != nil || volume.Status.Step != pavv1.StepCreating {
		t.Errorf("nobody could tell what the pod left, but the volume is %+v, %v", volume, err)
	}
	comeBack()
	pv := awaitBound(t, claim)
	if want := "ledger:" + volumeName(claim); pv.Spec.CSI.VolumeHandle != want {
		t.Errorf("the volume has the handle %q, want %q", pv.Spec.CSI.VolumeHandle, want)
	}
	must(t, l.wantEffects(claim, "create"))
	eventually(t, "nothing of the pod is left on its node", func(ctx context.Context) error {
		left, err := onNode(ctx, pod.Spec.NodeName, "sh", "-c", "ls "+pavDir+"/pods; grep "+pavDir+"/pods /proc/self/mounts || true")
		if err == nil && left != "" {
			err = fmt.Errorf("there is %s", left)
		}
		return err
	})
	removeClaim(t, claim)
}

// withoutNodeAgents removes the node agents until the returned function is called, or the test ends.
func withoutNodeAgents(t *testing.T) (comeBack func()) {
	t.Helper()
	confine := func(selector string) {
		t.Helper()
		ctx, cancel := cleanupContext(t)
		defer cancel()
		patch := `{"spec": {"template": {"spec": {"nodeSelector": ` + selector + `}}}}`
		agents := &appsv1.DaemonSet{ObjectMeta: objectMeta("pav", nodeAgent)}
		if err := kube.Patch(ctx, agents, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		confine("null")
		ctx, cancel := cleanupContext(t)
		defer cancel()
		if err := poll(ctx, func(ctx context.Context) error { return agentsReady(ctx, "") }); err != nil {
			t.Error(err)
		}
	})
	confine(`{"example.org/nowhere": "true"}`)
	eventually(t, "no node agent runs", func(ctx context.Context) error {
		all, err := agents(ctx)
		for i := range all {
			if component(&all[i]) == nodeAgent {
				err = errors.Join(err, fmt.Errorf("%s exists", all[i].Name))
			}
		}
		return err
	})
	return func() { confine("null") }
}
