package workflow

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

const field = "spec.volumeStaging.podTemplate"

func fence() PodPolicy {
	return PodPolicy{
		Workflow:    pavv1.WorkflowStaging,
		Name:        "stage-0123",
		Owner:       metav1.OwnerReference{APIVersion: "v1alpha1", Kind: "PavStage", Name: "the-stage", UID: "the-uid", Controller: new(true)},
		Labels:      map[string]string{pavv1.StageLabel: "the-stage"},
		Annotations: map[string]string{pavv1.NodeAnnotation: "the-node"},
		Node:        "the-node",
	}
}

// build builds a pod from a template in YAML.
func build(t *testing.T, template string, f PodPolicy) (*corev1.Pod, error) {
	t.Helper()
	var rendered map[string]any
	if err := yaml.Unmarshal([]byte(template), &rendered); err != nil {
		t.Fatal(err)
	}
	return Build(field, rendered, f)
}

func mustBuild(t *testing.T, template string, f PodPolicy) *corev1.Pod {
	t.Helper()
	pod, err := build(t, template, f)
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

const least = `{spec: {containers: [{name: main, image: some}]}}`

func TestBuild_OfTheLeastTemplate_IsThisPod(t *testing.T) {
	toContainer := corev1.MountPropagationHostToContainer
	want := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "stage-0123", Namespace: "pav-pods",
			Labels: map[string]string{pavv1.StageLabel: "the-stage", pavv1.WorkflowLabel: "stage"},
			Annotations: map[string]string{
				pavv1.NodeAnnotation: "the-node", "cluster-autoscaler.kubernetes.io/daemonset-pod": "true",
			},
			OwnerReferences: []metav1.OwnerReference{fence().Owner},
			Finalizers:      []string{pavv1.PodFinalizer},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false),
			NodeSelector:      map[string]string{"kubernetes.io/os": "linux"},
			PriorityClassName: "system-node-critical",
			Tolerations:       []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{onNode}}},
			}}},
			Containers: []corev1.Container{{
				Name: "main", Image: "some", TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				VolumeMounts: []corev1.VolumeMount{{Name: "pav", MountPath: "/pav", MountPropagation: &toContainer}},
			}},
			Volumes: []corev1.Volume{{Name: "pav", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: pavv1.Driver}}}},
		},
	}
	if diff := cmp.Diff(want, mustBuild(t, least, fence())); diff != "" {
		t.Errorf("the pod (-want +got):\n%s", diff)
	}
}

var onNode = corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"the-node"}}

func TestBuild_KeepsWhatTheTemplateSays(t *testing.T) {
	pod := mustBuild(t, `
metadata: {name: ignored, namespace: elsewhere, labels: {a: b}, annotations: {c: d}}
spec:
  restartPolicy: OnFailure
  automountServiceAccountToken: true
  priorityClassName: low
  nodeName: the-node
  tolerations: [{key: only, operator: Exists}]
  volumes: [{name: own, emptyDir: {}}]
  containers: [{name: main, terminationMessagePolicy: File, volumeMounts: [{name: own, mountPath: /pav/below}]}]
`, fence())
	spec := &pod.Spec
	got := map[string]any{
		"name": pod.Name, "namespace": pod.Namespace, "label": pod.Labels["a"], "annotation": pod.Annotations["c"],
		"restarts": string(spec.RestartPolicy), "token": *spec.AutomountServiceAccountToken, "class": spec.PriorityClassName,
		"nodeName": spec.NodeName, "tolerations": len(spec.Tolerations), "volumes": spec.Volumes[0].Name + spec.Volumes[1].Name,
		"messages": string(spec.Containers[0].TerminationMessagePolicy), "mounts": spec.Containers[0].VolumeMounts[0].MountPath + spec.Containers[0].VolumeMounts[1].MountPath,
	}
	want := map[string]any{
		"name": "stage-0123", "namespace": "elsewhere", "label": "b", "annotation": "d",
		"restarts": "OnFailure", "token": true, "class": "low",
		"nodeName": "", "tolerations": 2, "volumes": "ownpav",
		"messages": "File", "mounts": "/pav/below/pav",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the pod (-want +got):\n%s", diff)
	}
}

func TestBuild_LeavesAPriorityOfTheTemplateAlone(t *testing.T) {
	pod := mustBuild(t, `{spec: {priority: 7, containers: [{name: main}]}}`, fence())
	if pod.Spec.PriorityClassName != "" || *pod.Spec.Priority != 7 {
		t.Errorf("got class %q and priority %d", pod.Spec.PriorityClassName, *pod.Spec.Priority)
	}
}

// The terms of a node selector are alternatives, so each of them must select the node.
func TestBuild_BindsToTheNodeInEachTermOfTheAffinity(t *testing.T) {
	pod := mustBuild(t, `
spec:
  affinity:
    podAffinity: {}
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {}}]
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
          - matchExpressions: [{key: zone, operator: In, values: [a]}]
          - matchFields: [{key: metadata.name, operator: NotIn, values: [other]}]
  containers: [{name: main}]
`, fence())
	affinity := pod.Spec.Affinity
	if affinity.PodAffinity == nil || len(affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 1 {
		t.Error("the rest of the affinity is lost")
	}
	want := []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}},
		MatchFields:      []corev1.NodeSelectorRequirement{onNode},
	}, {
		MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"other"}}, onNode},
	}}
	if diff := cmp.Diff(want, affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms); diff != "" {
		t.Errorf("the terms (-want +got):\n%s", diff)
	}
}

func TestBuild_GivesPavToEveryContainer_BidirectionallyToThePrivilegedOnes(t *testing.T) {
	pod := mustBuild(t, `
spec:
  initContainers:
    - {name: init}
    - {name: privileged-init, securityContext: {privileged: true}}
    - {name: sidecar, restartPolicy: Always}
  containers:
    - {name: main}
    - {name: unprivileged, securityContext: {privileged: false}}
    - {name: unsaid, securityContext: {runAsUser: 1000}}
    - {name: privileged, securityContext: {privileged: true}}
`, fence())
	got := map[string]corev1.MountPropagationMode{}
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		for _, mount := range container.VolumeMounts {
			if mount.Name == "pav" && mount.MountPath == "/pav" && !mount.ReadOnly && mount.SubPath == "" {
				got[container.Name] = *mount.MountPropagation
			}
		}
	}
	const in, both = corev1.MountPropagationHostToContainer, corev1.MountPropagationBidirectional
	want := map[string]corev1.MountPropagationMode{
		"init": in, "privileged-init": both, "sidecar": in, "main": in, "unprivileged": in, "unsaid": in, "privileged": both,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mounts of /pav (-want +got):\n%s", diff)
	}
}

func TestBuild_RefusesWithTheFieldsPath(t *testing.T) {
	const main = "containers: [{name: main}]"
	for name, test := range map[string]struct {
		template, path, words string
		workflow              string // default: staging
	}{
		"a template without containers":            {template: `{spec: {}}`, path: ".spec.containers: ", words: "at least one container"},
		"an empty template":                        {template: `{}`, path: ".spec.containers: ", words: "at least one container"},
		"owners":                                   {template: `{metadata: {ownerReferences: [{name: a}]}, spec: {` + main + `}}`, path: ".metadata.ownerReferences: ", words: errClash.Error()},
		"finalizers":                               {template: `{metadata: {finalizers: [a/b]}, spec: {` + main + `}}`, path: ".metadata.finalizers: ", words: errClash.Error()},
		"a label of PaV's":                         {template: `{metadata: {labels: {` + pavv1.WorkflowLabel + `: stage}}, spec: {` + main + `}}`, path: ".metadata.labels[" + pavv1.WorkflowLabel + "]: ", words: errClash.Error()},
		"a label that could be PaV's":              {template: `{metadata: {labels: {` + pavv1.Group + `/x: z}}, spec: {` + main + `}}`, path: ".metadata.labels[" + pavv1.Group + "/x]: ", words: errClash.Error()},
		"a label below PaV's domain":               {template: `{metadata: {labels: {a.` + pavv1.Group + `/x: z}}, spec: {` + main + `}}`, path: ".metadata.labels[a." + pavv1.Group + "/x]: ", words: errClash.Error()},
		"an annotation of PaV's":                   {template: `{metadata: {annotations: {` + pavv1.AttemptAnnotation + `: "1"}}, spec: {` + main + `}}`, path: ".metadata.annotations[" + pavv1.AttemptAnnotation + "]: ", words: errClash.Error()},
		"another node":                             {template: `{spec: {nodeName: other, ` + main + `}}`, path: ".spec.nodeName: ", words: `on node "the-node", not on "other"`},
		"another volume of PaV's driver":           {template: `{spec: {volumes: [{name: a, csi: {driver: pav.albertofaria.github.io}}], ` + main + `}}`, path: ".spec.volumes[0].csi.driver: ", words: errClash.Error()},
		"a volume of the name pav":                 {template: `{spec: {volumes: [{name: a}, {name: pav}], ` + main + `}}`, path: ".spec.volumes[1].name: ", words: errClash.Error()},
		"a mount at /pav":                          {template: `{spec: {containers: [{name: a}, {name: b, volumeMounts: [{mountPath: /x}, {mountPath: /pav}]}]}}`, path: ".spec.containers[1].volumeMounts[1].mountPath: ", words: errClash.Error()},
		"a mount at /pav in other words":           {template: `{spec: {containers: [{name: a, volumeMounts: [{mountPath: /x/..//pav/}]}]}}`, path: ".spec.containers[0].volumeMounts[0].mountPath: ", words: errClash.Error()},
		"a mount at /pav without a slash":          {template: `{spec: {containers: [{name: a, volumeMounts: [{mountPath: pav}]}]}}`, path: ".spec.containers[0].volumeMounts[0].mountPath: ", words: errClash.Error()},
		"a mount at /pav of an init container":     {template: `{spec: {initContainers: [{name: a, volumeMounts: [{mountPath: /pav}]}], ` + main + `}}`, path: ".spec.initContainers[0].volumeMounts[0].mountPath: ", words: errClash.Error()},
		"an unknown field":                         {template: `{spec: {contaners: [], ` + main + `}}`, path: ": ", words: `"contaners"`},
		"a value of the wrong type":                {template: `{spec: {hostNetwork: sometimes, ` + main + `}}`, path: ": ", words: "hostNetwork"},
		"an unstaging pod that restarts forever":   {template: `{spec: {restartPolicy: Always, ` + main + `}}`, path: ".spec.restartPolicy: ", words: "never completes", workflow: pavv1.WorkflowUnstaging},
		"a field of a pod that templates have not": {template: `{status: {}, spec: {` + main + `}}`, path: ": ", words: `"status"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := fence()
			if test.workflow != "" {
				f.Workflow = test.workflow
			}
			pod, err := build(t, test.template, f)
			if err == nil {
				t.Fatalf("it is not refused: %+v", pod.Spec.Containers)
			}
			if !strings.HasPrefix(err.Error(), field+test.path) || !strings.Contains(err.Error(), test.words) {
				t.Errorf("got %q, want it to begin with %q and have %q", err, field+test.path, test.words)
			}
		})
	}
}

func TestBuild_AcceptsFieldsThatOnlyLookLikeAClash(t *testing.T) {
	for name, template := range map[string]string{
		"a mount below /pav":                     `{spec: {containers: [{name: a, volumeMounts: [{mountPath: /pav/x}]}]}}`,
		"a mount beside /pav":                    `{spec: {containers: [{name: a, volumeMounts: [{mountPath: /pavement}]}]}}`,
		"a key whose domain ends with PaV's":     `{metadata: {labels: {not` + pavv1.Group + `/x: z}}, spec: {containers: [{name: a}]}}`,
		"a key without a domain":                 `{metadata: {labels: {pav: z}}, spec: {containers: [{name: a}]}}`,
		"a staging pod that restarts forever":    `{spec: {restartPolicy: Always, containers: [{name: a}]}}`,
		"the node that the pod is for":           `{spec: {nodeName: the-node, containers: [{name: a}]}}`,
		"a volume with another name":             `{spec: {volumes: [{name: pav2}], containers: [{name: a}]}}`,
		"a name, and a prefix, which are unused": `{metadata: {name: a, generateName: b}, spec: {containers: [{name: a}]}}`,
	} {
		t.Run(name, func(t *testing.T) { mustBuild(t, template, fence()) })
	}
}

func TestBuild_DoesNotChangeItsInputs(t *testing.T) {
	var rendered map[string]any
	if err := yaml.Unmarshal([]byte(least), &rendered); err != nil {
		t.Fatal(err)
	}
	before, err := json.Marshal(rendered)
	if err != nil {
		t.Fatal(err)
	}
	f := fence()
	if _, err := Build(field, rendered, f); err != nil {
		t.Fatal(err)
	}
	after, err := json.Marshal(rendered)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("the template (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(fence(), f); diff != "" {
		t.Errorf("the fence (-before +after):\n%s", diff)
	}
}
