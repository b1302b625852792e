package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// stageOf returns a PavStage as a node agent writes it.
func stageOf(pv *corev1.PersistentVolume, name, node string) *pavv1.PavStage {
	return &pavv1.PavStage{
		ObjectMeta: metav1.ObjectMeta{
			Name:       name,
			Finalizers: []string{pavv1.StageFinalizer},
			Labels: map[string]string{
				pavv1.ProvisionerLabel: pv.Spec.CSI.Driver,
				pavv1.VolumeLabel:      workflow.Hash(pv.Name),
				pavv1.NodeLabel:        workflow.Hash(node),
			},
		},
		Spec: pavv1.PavStageSpec{
			Provisioner: pv.Spec.CSI.Driver, VolumeName: pv.Name, VolumeHandle: pv.Spec.CSI.VolumeHandle, NodeName: node, VolumeMode: corev1.PersistentVolumeFilesystem,
			Volume: *field(`{"kind":"PersistentVolume"}`), Claim: *field(`{"kind":"PersistentVolumeClaim"}`),
		},
	}
}

// createStaged creates the PavStage of a volume that is staged. Others are let go when no pod of their node uses the claim for seconds.
func createStaged(t *testing.T, c *cluster, stage *pavv1.PavStage) *pavv1.PavStage {
	t.Helper()
	mustPatchStatus(t, c, mustCreate(t, c, stage), func(s *pavv1.PavStage) { s.Status.Phase, s.Status.Attempt = pavv1.StageStaged, 1 })
	return stage
}

// stagingPodOf returns the pod of a stage that was written, held by PaV.
func stagingPodOf(stage *pavv1.PavStage) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: workflow.DefaultNamespace, Name: "pod-of-" + stage.Name, Finalizers: []string{pavv1.PodFinalizer},
			Labels:      map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowStaging, pavv1.StageLabel: stage.Name},
			Annotations: map[string]string{pavv1.NodeAnnotation: stage.Spec.NodeName},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: pavv1.GroupVersion.String(), Kind: "PavStage", Name: stage.Name, UID: stage.UID, Controller: new(true),
			}},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "none"}},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
					{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{stage.Spec.NodeName}},
				}}},
			}}},
		},
	}
}

func TestStagesOfGoneNodesAreReleased(t *testing.T) {
	leave := map[string]func(*testing.T, *cluster, *corev1.Node){
		"deleted": func(t *testing.T, c *cluster, node *corev1.Node) {
			t.Helper()
			mustDelete(t, c, node)
		},
		"out-of-service": func(t *testing.T, c *cluster, node *corev1.Node) {
			t.Helper()
			mustPatch(t, c, node, func(n *corev1.Node) {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
			})
		},
	}
	for how, goes := range leave {
		t.Run(how, func(t *testing.T) {
			c := start(t)
			run(t, c)
			driver(t, c, "lost-"+how)
			claim := mustCreate(t, c, claimOf("lost-"+how, "data"))
			pv, volume := bound(t, c, claim)
			var nodes [2]*corev1.Node
			var stages [2]*pavv1.PavStage
			var pods [2]*corev1.Pod
			for i, suffix := range []string{"a", "b"} {
				nodes[i] = mustCreate(t, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: how + "-" + suffix}})
				stages[i] = stageOf(pv, "stage-"+how+"-"+suffix, nodes[i].Name)
				agent := nodeAgent(t, c, nodes[i].Name)
				if err := agent.Create(t.Context(), stages[i]); err != nil {
					t.Fatal(err)
				}
				pods[i] = stagingPodOf(stages[i])
				if err := agent.Create(t.Context(), pods[i]); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { cleanPodAndNode(t, c, pods[i], nodes[i]) })
			}
			mustDelete(t, c, claim)

			goes(t, c, nodes[0])
			gone(t, c, stages[0])
			exists(t, c, pods[0], "is let go", func(p *corev1.Pod) bool { return len(p.Finalizers) == 0 })
			wantEvent(t, c, pv, "Normal", "VolumeDeletionWaiting", "unstaged on node "+nodes[1].Name)
			exists(t, c, stages[1], "is kept", func(s *pavv1.PavStage) bool { return s.DeletionTimestamp == nil })
			exists(t, c, pods[1], "is kept", func(p *corev1.Pod) bool { return len(p.Finalizers) == 1 })

			goes(t, c, nodes[1])
			gone(t, c, pv)
			gone(t, c, volume)
		})
	}
}

func cleanPodAndNode(t *testing.T, c *cluster, pod *corev1.Pod, node *corev1.Node) {
	t.Helper()
	ctx := lasting(t)
	var now int64
	if err := c.Admin.Delete(ctx, pod, &client.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Error(err)
	}
	gone(t, c, pod)
	_ = c.Admin.Delete(ctx, node) // one test has deleted it
}
