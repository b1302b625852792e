// Package deploy tests that the manifests of PaV are as the documentation says. It has no code.
package deploy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	sigsyaml "sigs.k8s.io/yaml"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// objects returns the objects of a kind in deployment.yaml.
func objects[T any](t *testing.T, kind string) []T {
	t.Helper()
	return objectsOf[T](t, deployment(t), kind)
}

// objectsOf returns the objects of a kind in a text.
func objectsOf[T any](t *testing.T, text []byte, kind string) []T {
	t.Helper()
	var found []T
	for _, document := range documents(t, text) {
		meta := struct{ Kind string }{}
		if err := yaml.Unmarshal(document, &meta); err != nil {
			t.Fatal(err)
		}
		if meta.Kind != kind {
			continue
		}
		var object T
		if err := sigsyaml.UnmarshalStrict(document, &object); err != nil {
			t.Fatal(kind, err)
		}
		found = append(found, object)
	}
	return found
}

// deployment returns the text of deployment.yaml.
func deployment(t *testing.T) []byte {
	t.Helper()
	return readFile(t, "../deployment.yaml")
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// documents splits YAML into its documents, without those that have only comments.
func documents(t *testing.T, text []byte) [][]byte {
	t.Helper()
	var all [][]byte
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		var content map[string]any
		if err := sigsyaml.Unmarshal(document, &content); err != nil {
			t.Fatal(err)
		}
		if len(content) > 0 {
			all = append(all, document)
		}
	}
}

// podSpecs returns the pods of the agents, by account.
func podSpecs(t *testing.T) map[string]corev1.PodSpec {
	t.Helper()
	specs := map[string]corev1.PodSpec{}
	for _, d := range objects[appsv1.Deployment](t, "Deployment") {
		specs[d.Name] = d.Spec.Template.Spec
	}
	for _, d := range objects[appsv1.DaemonSet](t, "DaemonSet") {
		specs[d.Name] = d.Spec.Template.Spec
	}
	if len(specs) != 2 {
		t.Fatalf("there are %d workloads, want the two agents", len(specs))
	}
	return specs
}

func TestControllerAgent_RunsUnderTheRestrictedProfile(t *testing.T) {
	pod := podSpecs(t)["controller-agent"]
	if pod.HostNetwork || pod.HostPID || pod.HostIPC || len(pod.Volumes) > 0 || len(pod.InitContainers) > 0 {
		t.Errorf("it has more of its node than it needs: %+v", pod)
	}
	if s := pod.SecurityContext; s == nil || !ptr.Deref(s.RunAsNonRoot, false) || ptr.Deref(s.RunAsUser, 0) == 0 ||
		s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod runs as %+v", s)
	}
	for _, c := range pod.Containers {
		s := c.SecurityContext
		if s == nil || ptr.Deref(s.Privileged, false) || ptr.Deref(s.AllowPrivilegeEscalation, true) || !ptr.Deref(s.ReadOnlyRootFilesystem, false) ||
			s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
			t.Errorf("container %s runs as %+v", c.Name, s)
		}
	}
}

func TestNodeAgent_HasOnlyItsPrivileges(t *testing.T) {
	pod := podSpecs(t)["node-agent"]
	if pod.HostNetwork || pod.HostIPC || !pod.HostPID {
		t.Errorf("it has the namespaces %t %t %t of its node", pod.HostNetwork, pod.HostIPC, pod.HostPID)
	}
	for _, c := range pod.Containers {
		if s := c.SecurityContext; s == nil || !ptr.Deref(s.ReadOnlyRootFilesystem, false) {
			t.Errorf("container %s runs as %+v", c.Name, s)
		}
	}
	var paths []string
	for _, v := range pod.Volumes {
		if v.HostPath == nil {
			t.Fatalf("volume %s is none of the node's", v.Name)
		}
		paths = append(paths, v.HostPath.Path)
	}
	if diff := cmp.Diff([]string{"/var/lib/kubelet/plugins/pav.albertofaria.github.io/csi", "/var/lib/kubelet/plugins_registry"}, paths); diff != "" {
		t.Errorf("the agent has other directories of its node (-want +got):\n%s", diff)
	}
}

func TestAgents_AreBounded_AndGoKnowsTheirLimit(t *testing.T) {
	for name, pod := range podSpecs(t) {
		for _, c := range pod.Containers {
			limit := c.Resources.Limits.Memory().Value()
			if c.Resources.Requests.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() || limit == 0 {
				t.Errorf("%s has the resources %+v", name, c.Resources)
			}
			at := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
			var soft int64
			if at >= 0 {
				_, _ = fmt.Sscanf(c.Env[at].Value, "%dMiB", &soft)
			}
			if soft <<= 20; soft < limit/2 || soft > limit*9/10 {
				t.Errorf("%s: Go's limit is %d of %d bytes", name, soft, limit)
			}
			if host, _, found := strings.Cut(c.Image, "/"); !found || !strings.Contains(host, ".") {
				t.Errorf("%s: the image %s does not say where it comes from", name, c.Image)
			}
		}
	}
}

func TestAgents_AreScheduledToNodesWithLinux(t *testing.T) {
	for name, pod := range podSpecs(t) {
		if pod.NodeSelector[corev1.LabelOSStable] != "linux" {
			t.Errorf("%s: the node selector is %v", name, pod.NodeSelector)
		}
	}
}

// Kubelet's own limit is a second, in which an agent need not answer where thousands of volumes keep its node busy.
func TestAgents_AreNeitherRestartedNorUnready_BecauseTheirNodeIsBusy(t *testing.T) {
	for name, pod := range podSpecs(t) {
		for _, c := range pod.Containers {
			for kind, p := range map[string]*corev1.Probe{"liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
				if p == nil || p.TimeoutSeconds < 10 {
					t.Errorf("%s: container %s: its %s probe is %v, want one that waits for 10 s", name, c.Name, kind, p)
				}
			}
		}
	}
}

// rightsOf returns the rights that rules give an account, a line for each.
func rightsOf(account, scope string, rules []rbacv1.PolicyRule) []string {
	var lines []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				name := resource
				if group != "" {
					name += "." + group
				}
				if len(rule.ResourceNames) > 0 {
					name += " " + strings.Join(rule.ResourceNames, ",")
				}
				lines = append(lines, fmt.Sprintf("%s | %s | %s | %s", account, scope, name, strings.Join(rule.Verbs, ", ")))
			}
		}
		for _, url := range rule.NonResourceURLs {
			lines = append(lines, fmt.Sprintf("%s | %s | %s | %s", account, scope, url, strings.Join(rule.Verbs, ", ")))
		}
	}
	return lines
}

// rights returns all that roles of the chart give to accounts with any of its options, sorted.
func rights(t *testing.T) []string {
	t.Helper()
	text, err := helm(t, "template", "pav", "chart", "--kube-version", "1.30.0", "--set", "startupTaint.enabled=true,crossNamespaceSources.enabled=true,buckets.enabled=true,buckets.cosiProposal=true")
	if err != nil {
		t.Fatal(err)
	}
	clusterRoles, roles := map[string][]rbacv1.PolicyRule{}, map[string][]rbacv1.PolicyRule{}
	for _, role := range objectsOf[rbacv1.ClusterRole](t, text, "ClusterRole") {
		clusterRoles[role.Name] = role.Rules
	}
	for _, role := range objectsOf[rbacv1.Role](t, text, "Role") {
		roles[role.Namespace+"/"+role.Name] = role.Rules
	}
	var lines []string
	for _, b := range objectsOf[rbacv1.ClusterRoleBinding](t, text, "ClusterRoleBinding") {
		for _, subject := range b.Subjects {
			lines = append(lines, rightsOf(subject.Name, "cluster", clusterRoles[b.RoleRef.Name])...)
		}
	}
	for _, b := range objectsOf[rbacv1.RoleBinding](t, text, "RoleBinding") {
		for _, subject := range b.Subjects {
			lines = append(lines, rightsOf(subject.Name, b.Namespace, roles[b.Namespace+"/"+b.RoleRef.Name])...)
		}
	}
	slices.Sort(lines)
	return lines
}

// documented returns the first columns of the table of rights in the documentation, sorted. Each line has two more,
// which say what policies narrow the right to, and what a stolen token is good for.
func documented(t *testing.T) []string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(string(readFile(t, "../docs/security.md"))) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(strings.ReplaceAll(cells[i], "`", ""))
		}
		if cells[0] != "controller-agent" && cells[0] != "node-agent" && cells[0] != "pav-uninstall" || len(cells) < 4 {
			continue
		}
		if len(cells) != 6 || cells[4] == "" || cells[5] == "" {
			t.Errorf("this line does not say what the right is narrowed to, and what a stolen token is good for: %s", line)
			continue
		}
		lines = append(lines, strings.Join(cells[:4], " | "))
	}
	slices.Sort(lines)
	return lines
}

// The table must say, for each right, what an attacker with a stolen token can do with it.
func TestRights_AreThoseOfTheDocumentation(t *testing.T) {
	have := rights(t)
	if diff := cmp.Diff(documented(t), have); diff != "" {
		t.Errorf("the rights of PaV's accounts are not those of docs/security.md (-documented +roles):\n%s", diff)
	}
	for _, line := range have {
		if strings.Contains(line, "*") || strings.Contains(line, "escalate") || strings.Contains(line, "impersonate") || strings.Contains(line, "| bind") {
			t.Errorf("no agent may have this: %s", line)
		}
	}
}

// bindings returns who has which role, a line for each, with the namespace of a Role.
func bindings(t *testing.T, text []byte) []string {
	t.Helper()
	var lines []string
	for _, b := range objectsOf[rbacv1.ClusterRoleBinding](t, text, "ClusterRoleBinding") {
		for _, subject := range b.Subjects {
			lines = append(lines, fmt.Sprintf("%s: %s", subject.Name, b.RoleRef.Name))
		}
	}
	for _, b := range objectsOf[rbacv1.RoleBinding](t, text, "RoleBinding") {
		for _, subject := range b.Subjects {
			lines = append(lines, fmt.Sprintf("%s: %s/%s", subject.Name, b.Namespace, b.RoleRef.Name))
		}
	}
	return lines
}

// Anyone who may get, list, watch or patch Secrets can read them all: the answer to a patch that does not fit has the object.
func TestNobodyReadsSecrets_ButTheirOwn(t *testing.T) {
	text, err := helm(t, "template", "pav", "chart", "--kube-version", "1.30.0", "--set", "startupTaint.enabled=true,crossNamespaceSources.enabled=true,buckets.enabled=true,buckets.cosiProposal=true")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	add := func(scope string, rules []rbacv1.PolicyRule) {
		for _, rule := range rules {
			if slices.Contains(rule.Resources, "secrets") {
				got = append(got, fmt.Sprintf("%s %v: %v", scope, rule.ResourceNames, rule.Verbs))
			}
		}
	}
	for _, role := range objectsOf[rbacv1.ClusterRole](t, text, "ClusterRole") {
		add(role.Name, role.Rules)
	}
	for _, role := range objectsOf[rbacv1.Role](t, text, "Role") {
		add(role.Namespace+"/"+role.Name, role.Rules)
	}
	want := []string{
		"pav-controller-agent-buckets []: [create update delete]",
		"pav/controller-agent [webhook-certificate]: [list watch patch]",
		"pav-credentials/controller-agent []: [get create delete]",
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights on Secrets (-want +got):\n%s", diff)
	}
}

func TestDeploymentForBuckets_GivesRightsToTheAgentsOnly(t *testing.T) {
	text := readFile(t, "../deployment-buckets.yaml")
	want := []string{
		"controller-agent: pav-controller-agent-buckets", "node-agent: pav-node-agent-buckets", "controller-agent: pav-credentials/controller-agent",
	}
	if diff := cmp.Diff(want, bindings(t, text)); diff != "" {
		t.Errorf("bindings (-want +got):\n%s", diff)
	}
	for _, role := range objectsOf[rbacv1.ClusterRole](t, text, "ClusterRole") {
		if len(role.Labels) > 0 {
			t.Errorf("ClusterRole %s becomes a part of others by its labels %v", role.Name, role.Labels)
		}
	}
}

var (
	workflowLists = regexp.MustCompile(`in \["validate", "create", [^]]*\]`)
	workflowNames = regexp.MustCompile(`request\.name\.matches\("(.*)"\)`)
)

// What policies say of the controller agent's pods they say of all.
func TestPolicies_KnowAllWorkflows(t *testing.T) {
	text := string(deployment(t))
	lists := workflowLists.FindAllString(text, -1)
	if len(lists) != 2 {
		t.Errorf("there are %d lists of workflows, want one for each agent", len(lists))
	}
	want := fmt.Sprintf(`in ["%s"]`, strings.Join(pavv1.WorkflowsOfController(), `", "`))
	for _, list := range lists {
		if list != want {
			t.Errorf("a policy has the list %s, want %s", list, want)
		}
	}
	matches := workflowNames.FindAllStringSubmatch(text, -1)
	if len(matches) != 1 {
		t.Fatalf("there are %d patterns of names, want one", len(matches))
	}
	pattern := regexp.MustCompile(matches[0][1])
	for _, workflow := range append(pavv1.WorkflowsOfController(), pavv1.WorkflowStaging, pavv1.WorkflowNodeExpansion, pavv1.WorkflowUnstaging) {
		if name := workflow + "-0123456789abcdef0123"; !pattern.MatchString(name) || pattern.MatchString("a"+name) || pattern.MatchString(name+"4") {
			t.Errorf("the pattern %s does not fit the name %s", pattern, name)
		}
	}
}
