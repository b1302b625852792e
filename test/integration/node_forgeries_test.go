package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/albertofaria/pav/internal/admission"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/workflow"
)

// forgeries change a pod so that it refers to what no definition of these tests plans.
func (h *held) forgeries() map[string]func(*corev1.Pod) {
	return map[string]func(*corev1.Pod){
		"another Secret": func(p *corev1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes, secretVolume("of-others")) },
		"one in a variable": func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "of-others"}, Key: "k"}}}}
		},
		"all of one": func(p *corev1.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "of-others"}}}}
		},
		"a pull secret":     func(p *corev1.Pod) { p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "of-others"}} },
		"a claim":           func(p *corev1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes, userOf(h.volume, "").Spec.Volumes...) },
		"a service account": func(p *corev1.Pod) { p.Spec.ServiceAccountName = "of-others" },
		"a service's token": func(p *corev1.Pod) {
			p.Spec.ServiceAccountName = "default"
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}})
		},
		"a volume of a driver": func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "csi", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "secrets.example"}}})
		},
		"all pods kept away": func(p *corev1.Pod) {
			p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{}, NamespaceSelector: &metav1.LabelSelector{}}}}
		},
		"all pods attracted": func(p *corev1.Pod) {
			p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{}}}}
		},
	}
}

// growsWithSecret adds a node expansion pod that has a Secret to a definition.
func growsWithSecret(p *pavv1.PavProvisioner) {
	p.Spec.VolumeExpansion = &pavv1.VolumeExpansion{NodePodTemplate: field(fmt.Sprintf(secretive, "growing"))}
}

// growing returns the node expansion pod of a stage as the agent makes it.
func (h *held) growing(t *testing.T, stage *pavv1.PavStage, o podplan.StageObjects) *corev1.Pod {
	t.Helper()
	pod, err := h.request().NodeExpansion(t.Context(), stage, o, 1, 2<<30)
	if err != nil || pod == nil {
		t.Fatalf("got the pod %v, %v", pod, err)
	}
	return pod
}

// Node expansion pods can refer to nothing more than others: neither where the definition has none, nor without a client of
// the volume, nor by what the node writes about the volume.
func TestNodePods_ThatExpand(t *testing.T) {
	c := start(t)
	w := serveWebhook(t, c)
	w.launch(t, admission.DefaultLifetimes())
	t.Run("the definition has none", func(t *testing.T) {
		h := hold(t, c)
		stage, o := h.stage(t)
		forged, _ := h.pods(t, stage, o)
		forged.Name, forged.Labels[pavv1.WorkflowLabel] = workflow.Name(pavv1.WorkflowNodeExpansion, stage.Name), pavv1.WorkflowNodeExpansion
		forged.Spec.Volumes = append(forged.Spec.Volumes, secretVolume("for-growing"))
		wantForbidden(t, h.token, forged, "does not plan: volumes.secret.secretName=for-growing")
	})
	t.Run("the stage says something else of the volume", func(t *testing.T) {
		h := hold(t, c, growsWithSecret)
		stage, o := h.stage(t, func(stage *pavv1.PavStage) {
			stage.Spec.Volume.Raw = []byte(strings.ReplaceAll(string(stage.Spec.Volume.Raw), "for-growing", "of-others"))
		})
		forged := podplan.StageObjects{Volume: plain(t, json.RawMessage(stage.Spec.Volume.Raw)), Claim: o.Claim, Node: o.Node}
		wantForbidden(t, h.token, h.growing(t, stage, forged), "volumes.secret.secretName=of-others")
		mustAdmit(t, h.token, h.growing(t, stage, o))
	})
	t.Run("the client is gone", func(t *testing.T) {
		h := hold(t, c, growsWithSecret)
		stage, o := h.stage(t)
		removeNow(t, c, h.user)
		wantForbidden(t, h.token, h.growing(t, stage, o), "no running pod on node")
	})
}
