package workflow

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// allDefaults sets every field.
const allDefaults = `
registries: {docker.io: mirror.example.com:5000/hub}
imagePullSecrets: [{name: mirror}]
resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 64Mi}}
priorityClassName: storage
nodeSelector: {pool: storage}
tolerations: [{key: storage, operator: Exists}]
`

func defaultsOf(t *testing.T, text string) Defaults {
	t.Helper()
	var d Defaults
	if err := d.Set(text); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestBuild_AppliesDefaults_WhereTheTemplateIsSilent(t *testing.T) {
	creation := PodPolicy{Workflow: pavv1.WorkflowCreation, Name: "create-1", Defaults: defaultsOf(t, allDefaults)}
	staging := fence()
	staging.Defaults = creation.Defaults
	small := corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("10m"), "memory": resource.MustParse("16Mi")},
		Limits:   corev1.ResourceList{"memory": resource.MustParse("64Mi")},
	}
	type pod struct {
		images, secrets []string
		resources       corev1.ResourceRequirements // of the last container
		priority, pool  string
		tolerations     int
	}
	for name, test := range map[string]struct {
		template string
		policy   PodPolicy
		want     pod
	}{
		"a creation pod": {least, creation, pod{
			images: []string{"mirror.example.com:5000/hub/library/some"}, secrets: []string{"mirror"}, resources: small, priority: "storage", pool: "storage", tolerations: 1}},
		"a staging pod keeps its node and its priority": {least, staging, pod{
			images: []string{"mirror.example.com:5000/hub/library/some"}, secrets: []string{"mirror"}, resources: small, priority: nodeCritical, tolerations: 1}},
		"images of all forms": {`{spec: {initContainers: [{name: a, image: "org/name:1@sha256:` + strings.Repeat("a", 64) + `"}], containers: [{name: b, image: "quay.io/name:1"}, {name: c, image: "A:B:C"}]}}`, creation, pod{
			images:  []string{"mirror.example.com:5000/hub/org/name:1@sha256:" + strings.Repeat("a", 64), "quay.io/name:1", "A:B:C"},
			secrets: []string{"mirror"}, resources: small, priority: "storage", pool: "storage", tolerations: 1}},
		"a template that sets them": {`{spec: {
			imagePullSecrets: [{name: own}], priorityClassName: own, nodeSelector: {pool: own}, tolerations: [{operator: Exists}],
			containers: [{name: main, image: "quay.io/some", resources: {requests: {memory: 1Gi}}}]}}`, creation, pod{
			images: []string{"quay.io/some"}, secrets: []string{"own"}, priority: "own", pool: "own", tolerations: 2,
			resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"memory": resource.MustParse("1Gi")}}}},
		"a template with an account, and resources of the pod": {`{spec: {serviceAccountName: own, resources: {limits: {memory: 8Mi}}, containers: [{name: main, image: "quay.io/some"}]}}`, creation, pod{
			images: []string{"quay.io/some"}, priority: "storage", pool: "storage", tolerations: 1}},
		"a template that names its node": {`{spec: {nodeName: n1, containers: [{name: main, image: "quay.io/some"}]}}`, creation, pod{
			images: []string{"quay.io/some"}, secrets: []string{"mirror"}, resources: small, priority: "storage", tolerations: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := mustBuild(t, test.template, test.policy).Spec
			got := pod{priority: spec.PriorityClassName, pool: spec.NodeSelector["pool"], tolerations: len(spec.Tolerations)}
			eachContainer(&spec, func(c *corev1.Container) { got.images, got.resources = append(got.images, c.Image), c.Resources })
			for _, secret := range spec.ImagePullSecrets {
				got.secrets = append(got.secrets, secret.Name)
			}
			if !equality.Semantic.DeepEqual(got.resources, test.want.resources) {
				t.Errorf("resources: got %v, want %v", got.resources, test.want.resources)
			}
			got.resources, test.want.resources = corev1.ResourceRequirements{}, corev1.ResourceRequirements{}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(pod{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDefaults_OfAFlag(t *testing.T) {
	d := defaultsOf(t, allDefaults)
	again := defaultsOf(t, d.String())
	if !equality.Semantic.DeepEqual(d, again) {
		t.Errorf("got %s, then %s", d.String(), again.String())
	}
	if text := new(Defaults).String(); text != "" {
		t.Errorf("no defaults are %q", text)
	}
	for text, want := range map[string]string{
		`registry: {docker.io: m}`:                                    `unknown field "registry"`,
		`registries: {"docker.io/library": mirror.example.com}`:       `registries: "docker.io/library" is not a registry`,
		`registries: {docker.io: "https://mirror.example.com"}`:       `registries[docker.io]: "https://mirror.example.com" is not a registry with a path`,
		`registries: {docker.io: mirror}`:                             `"mirror" is not a registry with a path`,
		`imagePullSecrets: [{name: A}]`:                               `imagePullSecrets[0].name: "A": a lowercase`,
		`resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}`: `resources.requests[memory]: 2Gi is above the limit, 1Gi`,
		`resources: {limits: {cpu: "-1"}}`:                            `resources.limits[cpu]: -1 is negative`,
		`resources: {claims: [{name: gpu}]}`:                          `resources.claims: there are none for all pods`,
		`priorityClassName: High`:                                     `priorityClassName: "High"`,
		`nodeSelector: {"a b": c}`:                                    `nodeSelector: "a b"`,
		`nodeSelector: {pool: "a b"}`:                                 `nodeSelector[pool]: "a b"`,
		`tolerations: [{key: a, operator: Exsits}]`:                   `tolerations[0]: operator: "Exsits" is not one of`,
		`tolerations: [{operator: Exists, value: x}]`:                 `tolerations[0]: value: must be empty`,
		`tolerations: [{value: x}]`:                                   `tolerations[0]: key: may be empty`,
		`tolerations: [{key: a, effect: Never}]`:                      `tolerations[0]: effect: "Never"`,
		`tolerations: [{key: a, tolerationSeconds: 5}]`:               `tolerations[0]: tolerationSeconds`,
		`resources: {requests: {Cpu: 1}}`:                             `resources.requests: "Cpu" is not one of`,
		`resources: {requests: {nvidia.com/gpu: 1}}`:                  `resources.requests[nvidia.com/gpu]: of an extended resource`,
	} {
		if err := new(Defaults).Set(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
