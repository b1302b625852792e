package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/admission"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/kubelet"
)

// secretive is a pod that has a Secret, by the volume's attribute.
const secretive = `{"spec": {"containers": [{"name": "main", "image": "busybox:1.37.0"}],
	"volumes": [{"name": "secret", "secret": {"secretName": "{{ params['%s'] }}"}}]}}`

// held is a volume, which a pod uses on a node whose agent is played by hand, with its own token.
type held struct {
	c           *cluster
	node        string
	token       client.Client
	provisioner *pavv1.PavProvisioner
	volume      kubelet.Volume
	user        *corev1.Pod
	defaults    workflow.Defaults // of all workflow pods
}

var holders atomic.Int32

// hold makes a volume that a pod uses on a node.
func hold(t *testing.T, c *cluster, changes ...func(*pavv1.PavProvisioner)) *held {
	t.Helper()
	h := &held{c: c, node: fmt.Sprintf("holder-%d", holders.Add(1))}
	h.token = nodeAgent(t, c, h.node)
	h.provisioner = provisionerOf(h.node + "-volumes")
	h.provisioner.Spec.VolumeStaging.PodTemplate = *field(fmt.Sprintf(secretive, "staging"))
	h.provisioner.Spec.VolumeUnstaging = &pavv1.VolumeUnstaging{PodTemplate: field(fmt.Sprintf(secretive, "unstaging"))}
	for _, change := range changes {
		change(h.provisioner)
	}
	mustCreate(t, c, h.provisioner)
	mustCreate(t, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: h.node}})
	h.volume = kubelet.Volume{Driver: h.provisioner.Name, Handle: "handle", Name: "pv-" + h.node}
	makeVolume(t.Context(), t, c, h.volume, func(pv *corev1.PersistentVolume) {
		pv.Spec.CSI.VolumeAttributes = map[string]string{"staging": "for-staging", "unstaging": "for-unstaging", "growing": "for-growing"}
	})
	h.user = mustCreate(t, c, userOf(h.volume, h.node))
	t.Cleanup(func() {
		ctx := lasting(t)
		for _, list := range []client.ObjectList{&corev1.PodList{}, &pavv1.PavStageList{}} {
			if err := c.Admin.List(ctx, list); err != nil {
				t.Error(err)
			}
			eachItem(t, list, func(object client.Object) {
				object.SetFinalizers(nil)
				_ = c.Admin.Update(ctx, object)
				_ = c.Admin.Delete(ctx, object, client.GracePeriodSeconds(0))
				gone(t, c, object) //nolint:contextcheck // it has its own deadline
			})
		}
		removeVolume(ctx, t, c, h.volume)
		gone(t, c, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: h.volume.Name}})
		gone(t, c, claimNamed(h.volume))
		mustDeleteLasting(t, c, h.provisioner)
		mustDeleteLasting(t, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: h.node}})
		_ = client.IgnoreNotFound(c.Admin.Delete(ctx, csiDriver(h.provisioner.Name)))
	})
	return h
}

func claimNamed(v kubelet.Volume) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: v.Name}}
}

// userOf returns a pod that uses a volume's claim and is bound to a node.
func userOf(v kubelet.Volume, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "user-of-" + v.Name},
		Spec: corev1.PodSpec{
			NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "busybox:1.37.0"}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.Name}}}},
		},
	}
}

func plain(t *testing.T, object any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	value := map[string]any{}
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// objects returns what templates see, as the API server has it.
func (h *held) objects(t *testing.T) (podplan.StageObjects, *corev1.PersistentVolume, *corev1.PersistentVolumeClaim) {
	t.Helper()
	pv, claim, node := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: h.volume.Name}}, claimNamed(h.volume), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: h.node}}
	exists(t, h.c, pv, "is bound", func(pv *corev1.PersistentVolume) bool { return pv.Status.Phase == corev1.VolumeBound })
	awaitBound(t, h.c, claim)
	exists(t, h.c, node, "is there", func(*corev1.Node) bool { return true })
	pv.ManagedFields, claim.ManagedFields = nil, nil
	pv.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}
	claim.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
	return podplan.StageObjects{Volume: plain(t, pv), Claim: plain(t, claim), Node: plain(t, node)}, pv, claim
}

// stage makes the PavStage that the agent would.
func (h *held) stage(t *testing.T, changes ...func(*pavv1.PavStage)) (*pavv1.PavStage, podplan.StageObjects) {
	t.Helper()
	o, pv, claim := h.objects(t)
	stage := &pavv1.PavStage{
		ObjectMeta: metav1.ObjectMeta{Name: podplan.StageName(pv, h.node), Labels: map[string]string{pavv1.ProvisionerLabel: h.provisioner.Name}},
		Spec:       podplan.StageSpec(pv, claim, h.node),
	}
	stage.Spec.Scope = pavv1.StagingScopeNode
	for raw, object := range map[*apiextensionsv1.JSON]map[string]any{&stage.Spec.Volume: o.Volume, &stage.Spec.Claim: o.Claim} {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		raw.Raw = text
	}
	for _, change := range changes {
		change(stage)
	}
	if err := h.token.Create(t.Context(), stage); err != nil {
		t.Fatal(err)
	}
	stage.Status.Attempt = 1
	return stage, o
}

func (h *held) request() podplan.StageRequest {
	return podplan.StageRequest{
		Provisioner: h.provisioner, Defaults: h.defaults, Templates: template.NewEvaluator(template.DefaultLimits()),
		GetPVC: func(context.Context, string, string) (map[string]any, error) { return nil, template.ErrNoClaim },
	}
}

// pods returns the pods of a stage as the agent makes them.
func (h *held) pods(t *testing.T, stage *pavv1.PavStage, o podplan.StageObjects) (staging, unstaging *corev1.Pod) {
	t.Helper()
	request := h.request()
	staging, err := request.Staging(t.Context(), stage, o)
	if err != nil {
		t.Fatal(err)
	}
	unstaging, err = request.Unstaging(t.Context(), stage, o, 1)
	if err != nil {
		t.Fatal(err)
	}
	return staging, unstaging
}

// wantForbidden fails the test unless the API server refuses a pod, in these words.
func wantForbidden(t *testing.T, token client.Client, pod *corev1.Pod, words string) {
	t.Helper()
	pod = pod.DeepCopy()
	pod.UID, pod.ResourceVersion = "", ""
	if err := token.Create(t.Context(), pod); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v, want that it is forbidden because %q", err, words)
	}
}

func mustAdmit(t *testing.T, token client.Client, pod *corev1.Pod) {
	t.Helper()
	pod = pod.DeepCopy()
	if err := token.Create(t.Context(), pod); err != nil {
		t.Errorf("pod %s is not admitted: %v", pod.Name, err)
	}
}

func secretVolume(name string) corev1.Volume {
	return corev1.Volume{Name: "more", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}
}

// With a node's token, pods can refer only to what the definition plans for volumes that pods of the node use.
func TestNodePods_ReferToWhatTheDefinitionPlans(t *testing.T) {
	c := start(t)
	w := serveWebhook(t, c)
	w.launch(t, admission.DefaultLifetimes())
	h := hold(t, c, growsWithSecret)
	stage, o := h.stage(t)
	staging, unstaging := h.pods(t, stage, o)
	growing := h.growing(t, stage, o)

	for name, change := range h.forgeries() {
		t.Run(name, func(t *testing.T) {
			for _, planned := range []*corev1.Pod{staging, growing} {
				pod := planned.DeepCopy()
				change(pod)
				wantForbidden(t, h.token, pod, "does not plan")
			}
		})
	}
	two := staging.DeepCopy()
	two.OwnerReferences = append(two.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: h.user.Name, UID: h.user.UID})
	wantForbidden(t, h.token, two, "pods of PavStages only")
	other := nodeAgent(t, c, "other-node")
	stolen := staging.DeepCopy()
	stolen.Annotations[pavv1.NodeAnnotation] = "other-node"
	stolen.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values = []string{"other-node"}
	wantForbidden(t, other, stolen, "is of node")

	// Another webhook's sidecar refers to nothing, and fields are not compared.
	injected := staging.DeepCopy()
	injected.Spec.Containers = append(injected.Spec.Containers, corev1.Container{Name: "sidecar", Image: "sidecar", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}, VolumeMounts: []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}}})
	injected.Spec.Volumes = append(injected.Spec.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	injected.Spec.TerminationGracePeriodSeconds = new(int64(7))
	delete(injected.Annotations, pavv1.AdmitAnnotation) // which the agents of former versions do not write
	mustAdmit(t, h.token, injected)
	mustAdmit(t, h.token, growing)
	mustAdmit(t, h.token, unstaging)
}

// launchWithDefaults starts a controller agent by whose defaults workflow pods have a pull secret.
func launchWithDefaults(t *testing.T, w *webhook) workflow.Defaults {
	t.Helper()
	var defaults workflow.Defaults
	if err := defaults.Set("imagePullSecrets: [{name: mirror}]"); err != nil {
		t.Fatal(err)
	}
	w.launch(t, admission.DefaultLifetimes(), func(o *controller.Options) { o.PodDefaults = defaults })
	return defaults
}

// The defaults of all workflow pods are the administrator's, so the pods of agents that have the same defaults are admitted.
func TestNodePods_HaveTheDefaultsOfTheControllerAgent(t *testing.T) {
	c := start(t)
	w := serveWebhook(t, c)
	defaults := launchWithDefaults(t, w)
	h := hold(t, c)
	stage, o := h.stage(t)
	h.defaults = defaults
	staging, unstaging := h.pods(t, stage, o)
	if secrets := staging.Spec.ImagePullSecrets; len(secrets) != 1 || secrets[0].Name != "mirror" {
		t.Errorf("the staging pod has the pull secrets %v", secrets)
	}
	other := staging.DeepCopy()
	other.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "of-others"}}
	wantForbidden(t, h.token, other, "does not plan")
	mustAdmit(t, h.token, staging)
	mustAdmit(t, h.token, unstaging)
}

// A volume was staged, and its clients are gone, before the administrator set defaults.
func TestNodePods_GetTheDefaultsWithoutARecord(t *testing.T) {
	c := start(t)
	w := serveWebhook(t, c)
	defaults := launchWithDefaults(t, w)
	h := hold(t, c, func(p *pavv1.PavProvisioner) {
		p.Spec.VolumeStaging.PodTemplate = *field(`{"spec": {"containers": [{"name": "main", "image": "busybox:1.37.0"}]}}`)
		p.Spec.VolumeUnstaging.PodTemplate = &p.Spec.VolumeStaging.PodTemplate
	})
	stage, o := h.stage(t)
	staging, _ := h.pods(t, stage, o)
	mustAdmit(t, h.token, staging)
	removeNow(t, c, h.user)
	h.defaults = defaults
	_, unstaging := h.pods(t, stage, o)
	other := unstaging.DeepCopy()
	other.Spec.ImagePullSecrets = append(other.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: "of-others"})
	wantForbidden(t, h.token, other, "no running pod on node")
	mustAdmit(t, h.token, unstaging)
}

// A stage of a volume that no pod of the node uses may refer to nothing, whatever the node writes about the volume.
func TestNodePods_OfVolumesThatNoPodOfTheNodeUses(t *testing.T) {
	c := start(t)
	w := serveWebhook(t, c)
	w.launch(t, admission.DefaultLifetimes())
	h := hold(t, c)
	stage, o := h.stage(t, func(stage *pavv1.PavStage) {
		stage.Spec.Volume.Raw = []byte(strings.ReplaceAll(string(stage.Spec.Volume.Raw), "for-staging", "of-others"))
	})
	forged := podplan.StageObjects{Volume: plain(t, json.RawMessage(stage.Spec.Volume.Raw)), Claim: o.Claim, Node: o.Node}
	staging, _ := h.pods(t, stage, forged)
	wantForbidden(t, h.token, staging, "volumes.secret.secretName=of-others")

	staging, unstaging := h.pods(t, stage, o)
	mustPatch(t, c, h.user, func(pod *corev1.Pod) { pod.Labels = map[string]string{"still": "there"} })
	h.user.Status.Phase = corev1.PodSucceeded
	if err := c.Admin.Status().Update(t.Context(), h.user); err != nil {
		t.Fatal(err)
	}
	wantForbidden(t, h.token, staging, "no running pod on node")
	wantForbidden(t, h.token, unstaging, "no running pod on node")
}

// While no replica runs, the API server asks about no pod but those of node agents that refer to more than a node has.
func TestNodePods_WithoutReplicas(t *testing.T) {
	c := start(t)
	h := hold(t, c, func(p *pavv1.PavProvisioner) { p.Spec.VolumeUnstaging = nil })
	serveWebhook(t, c)
	stage, o := h.stage(t)
	staging, _ := h.pods(t, stage, o)
	if err := h.token.Create(t.Context(), staging.DeepCopy()); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), pavv1.PodsWebhook) {
		t.Errorf("a pod with a Secret: got %v", err)
	}
	exempt := staging.DeepCopy()
	exempt.Spec.Volumes = append(exempt.Spec.Volumes[1:], corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}},
		corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		corev1.Volume{Name: "self", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}}})
	exempt.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}}
	exempt.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "busybox:1.37.0"}}
	delete(exempt.Annotations, pavv1.AdmitAnnotation)
	mustAdmit(t, h.token, exempt)

	// Of what the node's agent records that it is judged, the API server asks, whatever its defaults make of it.
	h.provisioner.Spec.VolumeStaging.PodTemplate = *field(`{"spec": {"containers": [{"name": "main", "image": "busybox:1.37.0"}], "volumes": [{"name": "scratch"}]}}`)
	defaulted, _ := h.pods(t, stage, o)
	if err := h.token.Create(t.Context(), defaulted); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), pavv1.PodsWebhook) {
		t.Errorf("a pod with a volume that has no source: got %v", err)
	}

	many := userOf(h.volume, "")
	many.Name = "many"
	many.Spec.Volumes = nil
	for i := range 100 { // as much as makes conditions of that kind too expensive, were they evaluated
		many.Spec.Volumes = append(many.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", i), VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "any"}}})
		container := corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "any"}
		for j := range 20 {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("E%d", j), ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "any"}, Key: "any"}}})
		}
		many.Spec.Containers = append(many.Spec.Containers, container)
	}
	mustCreate(t, c, many)
	strange := userOf(h.volume, "")
	strange.Name, strange.Annotations = "strange", map[string]string{"note": "text"}
	strange.Spec.ImagePullSecrets, strange.Spec.ServiceAccountName = []corev1.LocalObjectReference{{Name: "any"}}, "any"
	mustCreate(t, c, strange)
}

// A new entry in the webhook's configuration, as after an update of PaV, is used soon.
func TestNodePods_NewEntryGetsItsAuthority(t *testing.T) {
	c := start(t)
	w := serveWebhook(t, c)
	w.launch(t, admission.DefaultLifetimes())
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: admission.ConfigurationName}}
	mustPatch(t, c, configuration, func(v *admissionregistrationv1.ValidatingWebhookConfiguration) {
		v.Webhooks[1].ClientConfig.CABundle, v.Webhooks[2].ClientConfig.CABundle = nil, nil
	})
	exists(t, c, configuration, "trusts the agents", func(v *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
		return len(v.Webhooks) == 3 && len(v.Webhooks[2].ClientConfig.CABundle) > 0 && len(v.Webhooks[1].ClientConfig.CABundle) > 0 && len(v.Webhooks[0].ClientConfig.CABundle) > 0
	})
}
