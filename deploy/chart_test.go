package deploy

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	sigsyaml "sigs.k8s.io/yaml"
)

// helm runs Helm, which "make bin/helm" builds.
func helm(t *testing.T, args ...string) (out []byte, err error) {
	t.Helper()
	var errs bytes.Buffer
	command := exec.CommandContext(t.Context(), "../bin/helm", args...)
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
	command.Stderr = &errs
	if out, err = command.Output(); err != nil {
		return out, fmt.Errorf("helm %q: %w: %s", args, err, errs.String())
	}
	return out, nil
}

// render returns the objects that the chart renders, by kind, namespace and name.
func render(t *testing.T, args ...string) map[string]map[string]any {
	t.Helper()
	out, err := helm(t, append([]string{"template", "pav", "chart", "--kube-version", "1.30.0"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return byName(t, out)
}

func byName(t *testing.T, text []byte) map[string]map[string]any {
	t.Helper()
	found := map[string]map[string]any{}
	for _, document := range documents(t, text) {
		var object map[string]any
		if err := sigsyaml.UnmarshalStrict(document, &object); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		metadata, _ := object["metadata"].(map[string]any)
		name := fmt.Sprint(object["kind"], " ", metadata["namespace"], "/", metadata["name"])
		if found[name] != nil {
			t.Errorf("there are two objects %s", name)
		}
		found[name] = object
	}
	return found
}

// as converts an object to its type, and fails if a field is unknown.
func as[T any](t *testing.T, object map[string]any) T {
	t.Helper()
	var typed T
	text, err := sigsyaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if err := sigsyaml.UnmarshalStrict(text, &typed); err != nil {
		t.Fatal(err)
	}
	return typed
}

func TestChart_HasNoMistake(t *testing.T) {
	if out, err := helm(t, "lint", "--strict", "chart"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestChart_ByDefault_AndKustomize_AreDeployment(t *testing.T) {
	want := byName(t, deployment(t))
	if diff := cmp.Diff(want, render(t, "--no-hooks")); diff != "" {
		t.Errorf("the chart (-deployment.yaml +chart):\n%s", diff)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	// Kustomize doubles line feeds of folded text, which is CEL.
	words := cmp.Transformer("words", strings.Fields)
	if diff := cmp.Diff(want, byName(t, text), cmp.FilterValues(func(a, b string) bool { return a != b }, words)); diff != "" {
		t.Errorf("kustomize (-deployment.yaml +kustomize):\n%s", diff)
	}
}

// deployment-buckets.yaml is what the chart has more, to be applied beside deployment.yaml, which stays as it is.
func TestChart_WithBuckets_IsDeploymentAndDeploymentForBuckets(t *testing.T) {
	want, more := byName(t, deployment(t)), byName(t, readFile(t, "../deployment-buckets.yaml"))
	for name, object := range more {
		if want[name] != nil {
			t.Errorf("both files have %s", name)
		}
		want[name] = object
	}
	if diff := cmp.Diff(want, render(t, "--no-hooks", "--set", "buckets.enabled=true")); diff != "" {
		t.Errorf("the chart (-files +chart):\n%s", diff)
	}
	if more["Namespace <nil>/pav-credentials"] == nil {
		t.Error("there is no namespace for credentials")
	}
}

func TestChart_PutsTheValuesIntoBothAgents(t *testing.T) {
	const values = `
namespace: storage
image: {repository: registry.example/pav, tag: v1, digest: "sha256:%s", pullPolicy: Always, pullSecrets: [{name: registry}]}
kubeletDirectory: /data/kubelet
logVerbosity: 1
podDefaults: {registries: {docker.io: mirror.example/hub}, nodeSelector: {pool: storage}}
controllerAgent:
  replicas: 3
  resources: {limits: {memory: 2Gi}}
  memoryTarget: 1800MiB
  priorityClassName: high
  nodeSelector: {pool: system}
  tolerations: [{key: pool, operator: Exists}]
  affinity: {nodeAffinity: {}}
  extraArgs: [--max-pods=200]
  extraEnv: [{name: HTTPS_PROXY, value: proxy}]
nodeAgent:
  resources: {limits: {memory: 1Gi}}
  memoryTarget: 900MiB
  priorityClassName: high
  nodeSelector: {pool: all}
  tolerations: [{key: a, operator: Exists}]
  affinity: {nodeAffinity: {}}
  maxUnavailable: 1
  extraArgs: [--orphan-grace=1m]
  extraEnv: [{name: HTTPS_PROXY, value: proxy}]
`
	const podDefaults = `--pod-defaults={"nodeSelector":{"pool":"storage"},"registries":{"docker.io":"mirror.example/hub"}}`
	file := t.TempDir() + "/values.yaml"
	digest := strings.Repeat("ab", 32)
	if err := os.WriteFile(file, fmt.Appendf(nil, values, digest), 0o600); err != nil {
		t.Fatal(err)
	}
	all := render(t, "-f", file)
	controller := as[appsv1.Deployment](t, all["Deployment storage/controller-agent"])
	node := as[appsv1.DaemonSet](t, all["DaemonSet storage/node-agent"])
	if *controller.Spec.Replicas != 3 || node.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.String() != "1" {
		t.Errorf("replicas %d, maxUnavailable %s", *controller.Spec.Replicas, node.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable)
	}
	for name, test := range map[string]struct {
		spec         corev1.PodSpec
		args         []string
		pool, target string
	}{
		"controller agent": {spec: controller.Spec.Template.Spec, args: []string{"controller", "--verbosity=1", podDefaults, "--max-pods=200"}, pool: "system", target: "1800MiB"},
		"node agent":       {spec: node.Spec.Template.Spec, args: []string{"node", "--kubelet-dir=/data/kubelet", "--verbosity=1", podDefaults, "--orphan-grace=1m"}, pool: "all", target: "900MiB"},
	} {
		t.Run(name, func(t *testing.T) { checkAgent(t, &test.spec, test.args, test.pool, test.target, digest) })
	}
	for _, volume := range node.Spec.Template.Spec.Volumes {
		if !strings.HasPrefix(volume.HostPath.Path, "/data/kubelet/") {
			t.Errorf("the node agent has the directory %s", volume.HostPath.Path)
		}
	}
	for name, object := range all {
		text, err := sigsyaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(name, " pav/") || strings.Contains(string(text), "namespace: pav\n") || strings.Contains(string(text), "serviceaccount:pav:") {
			t.Errorf("%s refers to the namespace pav", name)
		}
	}
}

func checkAgent(t *testing.T, spec *corev1.PodSpec, args []string, pool, target, digest string) {
	t.Helper()
	c := &spec.Containers[0]
	if want := "registry.example/pav:v1@sha256:" + digest; c.Image != want || c.ImagePullPolicy != corev1.PullAlways || len(spec.ImagePullSecrets) != 1 {
		t.Errorf("image %s, policy %s, secrets %v", c.Image, c.ImagePullPolicy, spec.ImagePullSecrets)
	}
	if diff := cmp.Diff(args, c.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	if env["GOMEMLIMIT"] != target || env["HTTPS_PROXY"] != "proxy" {
		t.Errorf("environment %v", env)
	}
	if spec.PriorityClassName != "high" || spec.NodeSelector["pool"] != pool || len(spec.Tolerations) != 1 || spec.Affinity.NodeAffinity == nil || spec.Affinity.PodAntiAffinity != nil || c.Resources.Limits.Memory().Value()%(1<<30) != 0 {
		t.Errorf("priority %s, selector %v, tolerations %v, affinity %v, resources %v", spec.PriorityClassName, spec.NodeSelector, spec.Tolerations, spec.Affinity, c.Resources)
	}
}

func TestChart_WithoutOptionalParts(t *testing.T) {
	all := render(t, "--set", "buckets.enabled=true,createNamespaces=false,networkPolicies.enabled=false,definitions.install=false,uninstallGuard.enabled=false")
	for name := range all {
		for _, kind := range []string{"Namespace", "NetworkPolicy", "CustomResourceDefinition", "Job"} {
			if strings.HasPrefix(name, kind+" ") {
				t.Errorf("it still has %s", name)
			}
		}
	}
	if got := render(t, "--set", "startupTaint.enabled=true"); got["ValidatingAdmissionPolicy <nil>/pav-controller-nodes"] == nil ||
		!slices.Contains(as[appsv1.Deployment](t, got["Deployment pav/controller-agent"]).Spec.Template.Spec.Containers[0].Args, "--startup-taint") {
		t.Error("the startup taint is not removed")
	} else if pod := as[appsv1.Deployment](t, got["Deployment pav/controller-agent"]).Spec.Template.Spec; !slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool { return t.Key == "pav.albertofaria.github.io/agent-not-ready" }) {
		t.Error("no controller agent starts if all nodes are new")
	}
	if got := render(t, "--set", "crossNamespaceSources.enabled=true"); !slices.Contains(as[appsv1.Deployment](t, got["Deployment pav/controller-agent"]).Spec.Template.Spec.Containers[0].Args, "--cross-namespace-sources") ||
		!slices.ContainsFunc(as[rbacv1.ClusterRole](t, got["ClusterRole <nil>/pav-controller-agent"]).Rules, func(r rbacv1.PolicyRule) bool { return slices.Equal(r.Resources, []string{"referencegrants"}) }) {
		t.Error("no sources of other namespaces can be used")
	}
	if got := as[rbacv1.ClusterRole](t, render(t, "--set", "buckets.enabled=true,buckets.aggregateToEdit=true")["ClusterRole <nil>/pav-edit-buckets"]); got.Labels["rbac.authorization.k8s.io/aggregate-to-edit"] != "true" {
		t.Error("Kubernetes' role edit does not get the rights of tenants")
	}
	if got := render(t, "--set", "buckets.aggregateToEdit=true"); got["ClusterRole <nil>/pav-edit-buckets"] != nil {
		t.Error("tenants get rights although buckets are not enabled")
	}
	wantProposal(t)
	if got := render(t, "--set", "monitoring.podMonitor.enabled=true,monitoring.podMonitor.labels.release=prometheus")["PodMonitor pav/pav"]; got == nil {
		t.Error("there is no PodMonitor")
	}
}

// wantProposal checks that nothing knows the group of COSI's first proposal by default, as in the files which kubectl create installs, and what
// does if it is asked for, beside buckets.
func wantProposal(t *testing.T) {
	t.Helper()
	group := []byte("cosi.io")
	for _, file := range []string{"../deployment.yaml", "../deployment-buckets.yaml"} {
		if bytes.Contains(readFile(t, file), group) {
			t.Errorf("%s knows the group %s", file, group)
		}
	}
	for values, want := range map[string][]string{
		"buckets.enabled=true":      nil,
		"buckets.cosiProposal=true": nil,
		"buckets.enabled=true,buckets.cosiProposal=true": {
			"ClusterRole <nil>/pav-controller-agent-buckets", "ClusterRole <nil>/pav-edit-buckets",
			"ValidatingAdmissionPolicy <nil>/pav-controller-proposed-buckets", "ValidatingAdmissionPolicy <nil>/pav-credentials",
		},
	} {
		var got []string
		for name, object := range render(t, "--set", values) {
			text, err := sigsyaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(text, group) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: what knows the group %s (-want +got):\n%s", values, group, diff)
		}
	}
}

// Namespaces may have names that YAML takes for numbers, booleans, dates or nothing.
func TestChart_NamespacesAreStrings(t *testing.T) {
	for _, name := range []string{"123", "1e3", "on", "null", "2001-01-01"} {
		t.Run(name, func(t *testing.T) {
			all := render(t, "--set-string", "namespace="+name, "--set", "monitoring.podMonitor.enabled=true,buckets.enabled=true")
			for _, object := range []string{"Namespace <nil>/" + name, "Deployment " + name + "/controller-agent", "PodMonitor " + name + "/pav", "Job " + name + "/pav-uninstall"} {
				if all[object] == nil {
					t.Errorf("there is no %s", object)
				}
			}
			for object, content := range all {
				if metadata, _ := content["metadata"].(map[string]any); metadata["name"] == nil || fmt.Sprintf("%T", metadata["name"]) != "string" {
					t.Errorf("%s has the name %v", object, metadata["name"])
				}
				for _, found := range namespaces(content) {
					if found != name && found != "pav-pods" && found != "pav-credentials" {
						t.Errorf("%s has the namespace %v, a %T", object, found, found)
					}
				}
			}
		})
	}
}

// namespaces returns the values of all fields "namespace", at any depth.
func namespaces(content any) []any {
	var found []any
	switch content := content.(type) {
	case map[string]any:
		for key, value := range content {
			if _, nested := value.(map[string]any); key == "namespace" && !nested {
				found = append(found, value)
			}
			found = append(found, namespaces(value)...)
		}
	case []any:
		for _, value := range content {
			found = append(found, namespaces(value)...)
		}
	}
	return found
}

// A wrong value is refused with its name.
func TestChart_RefusesWrongValues(t *testing.T) {
	for value, want := range map[string]string{
		"replicas=3":                     "additional properties 'replicas' not allowed",
		"controllerAgent.replicas=0":     "/controllerAgent/replicas",
		"image.digest=abc":               "/image/digest",
		"kubeletDirectory=var":           "/kubeletDirectory",
		"logVerbosity=3":                 "/logVerbosity",
		"nodeAgent.extraArgs[0]=verbose": "/nodeAgent/extraArgs/0",
		"podDefaults.registry=mirror":    "additional properties 'registry' not allowed",
		"buckets.enabled=perhaps":        "/buckets/enabled",
	} {
		if out, err := helm(t, "template", "pav", "chart", "--set", value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q; %d bytes were rendered", value, err, want, len(out))
		}
	}
}

func TestChart_HasTheVersionOfTheProduct(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var chart struct{ Version, AppVersion string }
	text, err := os.ReadFile("chart/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := sigsyaml.Unmarshal(text, &chart); err != nil {
		t.Fatal(err)
	}
	if want := "\nVERSION := " + chart.AppVersion + "\n"; chart.AppVersion == "" || chart.Version != chart.AppVersion || !strings.Contains(string(makefile), want) {
		t.Errorf("the Makefile does not have the line %q of chart %s", strings.TrimSpace(want), chart.Version)
	}
}
