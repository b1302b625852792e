package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// former is the directory of the version before this one: deployment.yaml, and pav.tar with its image.
// test/versions/run builds it.
var former = os.Getenv("PAV_FORMER")

// caught are the claims of a test, each in the middle of the workflow that it is named by.
var caught = []string{pavv1.WorkflowValidation, pavv1.WorkflowCreation, pavv1.WorkflowStaging, pavv1.WorkflowUnstaging, pavv1.WorkflowDeletion}

// Agents of two versions work side by side on the same volumes, in the middle of each workflow: the pod
// that runs stays the only one, and nothing is refused.
func TestAgentsOfDifferentVersions_EachWorkflowContinues(t *testing.T) {
	if former == "" {
		t.Fatal("PAV_FORMER is not set: run 'make test-versions'")
	}
	start(t)
	newSecret(t, versionsSecret)
	present, err := os.ReadFile("deployment.yaml")
	must(t, err)
	earlier, err := os.ReadFile(filepath.Join(former, "deployment.yaml"))
	must(t, err)
	t.Cleanup(func() { deploy(t, string(present), "RollingUpdate") })

	// Not subtests: the second begins where the first ends.
	unknown := catchUnknown(t)
	replaceInTheMiddle(t, "rollback", string(present), string(earlier))
	unknown.wait(t)
	replaceInTheMiddle(t, "update", string(earlier), string(present))
	unknown.end(t)
}

// versionsSecret is the name of a Secret that the staging and unstaging pods of the tests of two versions have.
const versionsSecret = "of-two-versions"

// withSecret returns the edits that give the Secret to the pods of node agents, which the controller agent judges then.
func withSecret() []edit {
	volume := "- {name: secret, secret: {secretName: " + versionsSecret + "}}"
	return []edit{with("stage volumes", volume), with("unstage volumes", volume)}
}

// replaceInTheMiddle catches a volume in each workflow, replaces the agents of one version by those of
// another, first on one of the two nodes only, and lets the volumes go.
func replaceInTheMiddle(t *testing.T, name, from, to string) {
	t.Helper()
	deploy(t, from, "RollingUpdate")
	awaitAgentsOf(t, from, nodes...)
	l := newLedger(t, "versions-"+name, withSecret()...)
	claims := map[string]*corev1.PersistentVolumeClaim{}
	pods := map[string]string{}
	for _, workflow := range caught {
		claims[workflow] = l.catch(t, workflow)
		pods[workflow] = string(l.runningPod(t, workflow, claims[workflow]).UID)
	}

	deploy(t, to, "OnDelete")
	replaceNodeAgent(t, to, nodes[0])
	mixed := l.useOnBothNodes(t, "mixed")
	l.wantSamePods(t, claims, pods)

	replaceNodeAgent(t, to, nodes[1])
	l.wantSamePods(t, claims, pods)
	for _, workflow := range caught {
		must(t, os.Remove(filepath.Join(l.directory, "hooks", "holds-"+workflow)))
	}
	awaitBound(t, claims[pavv1.WorkflowValidation])
	awaitBound(t, claims[pavv1.WorkflowCreation])
	l.awaitRunning(t, "client-"+pavv1.WorkflowStaging)
	awaitNoVolume(t, claims[pavv1.WorkflowDeletion])
	awaitNoVolume(t, mixed)
	eventually(t, "no volume is staged but one", func(ctx context.Context) error {
		stages, err := l.stages(ctx)
		if err == nil && len(stages) != 1 {
			err = fmt.Errorf("there are %d PavStages", len(stages))
		}
		return err
	})
	awaitNoVolume(t, l.useOnBothNodes(t, "after"))
	for _, workflow := range caught {
		want := []string{"create"}
		if workflow == pavv1.WorkflowDeletion {
			want = append(want, "delete")
		}
		if err := l.wantEffects(claims[workflow], want...); err != nil {
			t.Errorf("claim %s: %v", workflow, err)
		}
	}
	l.removeClaims(t)
}

// catch makes a claim whose volume stays in the middle of a workflow, until the file holds-WORKFLOW is removed.
func (l *ledger) catch(t *testing.T, workflow string) *corev1.PersistentVolumeClaim {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(l.directory, "hooks", "holds-"+workflow), nil, 0o644)) //nolint:gosec // Pods of any user read it.
	fails := ""
	if workflow == pavv1.WorkflowUnstaging { // The other version makes the next pod, whose Secret no client accounts for any more.
		fails = "; if mkdir /storage/hooks/failed; then exit 1; fi"
	}
	l.hook(t, workflow, fmt.Sprintf("if test $claim = %[1]s; then while test -e /storage/hooks/holds-%[1]s; do sleep 0.1; done%[2]s; fi", workflow, fails))
	claim := l.claim(t, workflow)
	switch workflow {
	case pavv1.WorkflowDeletion:
		awaitBound(t, claim)
		must(t, kube.Delete(t.Context(), claim))
	case pavv1.WorkflowStaging, pavv1.WorkflowUnstaging:
		client := "client-" + workflow
		l.pending(t, clientPod(client, workflow, nodes[0]))
		if workflow == pavv1.WorkflowUnstaging {
			l.awaitRunning(t, client)
			l.end(t, client)
		}
	}
	return claim
}

// wantSamePods fails the test unless the pod of each workflow still runs, and is the only one of its kind.
func (l *ledger) wantSamePods(t *testing.T, claims map[string]*corev1.PersistentVolumeClaim, want map[string]string) {
	t.Helper()
	for workflow, claim := range claims {
		pods, err := l.pods(t.Context(), workflow, claim)
		must(t, err)
		if len(pods) != 1 || string(pods[0].UID) != want[workflow] || pods[0].DeletionTimestamp != nil || pods[0].Status.Phase != corev1.PodRunning {
			t.Errorf("of claim %s there are %d pods, the first %s, want one with the UID %s that runs", workflow, len(pods), describePods(pods), want[workflow])
		}
	}
}

func describePods(pods []corev1.Pod) string {
	var found []string
	for i := range pods {
		found = append(found, fmt.Sprintf("%s (%s, %s)", pods[i].Name, pods[i].UID, pods[i].Status.Phase))
	}
	return strings.Join(found, ", ")
}

// useOnBothNodes takes one more volume through its life, with a client on each node. Its record may stay for as long as
// a creation pod runs that could have found its storage.
func (l *ledger) useOnBothNodes(t *testing.T, name string) *corev1.PersistentVolumeClaim {
	t.Helper()
	claim := l.claim(t, name)
	awaitBound(t, claim)
	var clients []string
	for _, node := range nodes {
		clients = append(clients, name+"-"+node)
		l.pending(t, clientPod(name+"-"+node, name, node))
	}
	for _, pod := range clients {
		l.awaitRunning(t, pod)
		l.sh(t, pod, "echo hello > /data/"+pod)
	}
	l.end(t, clients...)
	remove(t, claim)
	awaitNone(t, claim, &corev1.PersistentVolume{})
	if err := l.wantEffects(claim, "create", "delete"); err != nil {
		t.Error(err)
	}
	return claim
}

// deploy applies a version's deployment.yaml, takes away what only the other version has, and waits for its controller agents.
func deploy(t *testing.T, yaml, strategy string) {
	t.Helper()
	ctx, cancel := cleanupContext(t)
	defer cancel()
	edited := strings.Replace(yaml, "  updateStrategy:\n    rollingUpdate:\n      maxUnavailable: 10%\n", "  updateStrategy:\n    type: "+strategy+"\n", 1)
	if edited == yaml {
		t.Fatal("the DaemonSet has no updateStrategy of the known form")
	}
	if err := deleteWebhooks(ctx, yaml); err != nil {
		t.Fatal(err)
	}
	if _, err := kubectl(ctx, edited, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if err := deleteOthers(ctx, yaml); err != nil {
		t.Fatal(err)
	}
	if _, err := kubectl(ctx, "", "-n", "pav", "rollout", "status", "deployment/controller-agent", "--timeout=4m"); err != nil {
		t.Fatal(err)
	}
	if strategy == "RollingUpdate" {
		if _, err := kubectl(ctx, "", "-n", "pav", "rollout", "status", "daemonset/node-agent", "--timeout=4m"); err != nil {
			t.Fatal(err)
		}
	}
	if err := poll(ctx, definitionsAreJudged); err != nil {
		t.Fatal(err)
	}
}

// deleteWebhooks does what the documentation says of a rollback: the webhooks are deleted first where the version
// does not have all of them. The agents own a part of each, so that applying others would leave it in force.
func deleteWebhooks(ctx context.Context, yaml string) error {
	names, err := kubectl(ctx, "", "get", "validatingwebhookconfiguration", "pav-provisioners", "--ignore-not-found", "-o", "jsonpath={.webhooks[*].name}")
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(names) {
		if !strings.Contains(yaml, "- name: "+name+"\n") {
			_, err := kubectl(ctx, "", "delete", "validatingwebhookconfiguration", "pav-provisioners")
			return err
		}
	}
	return nil
}

// deleteOthers does what the documentation says of a rollback: the cluster's admission rules that a version
// does not have are deleted.
func deleteOthers(ctx context.Context, yaml string) error {
	for _, kind := range []string{"validatingwebhookconfiguration", "validatingadmissionpolicybinding", "validatingadmissionpolicy"} {
		out, err := kubectl(ctx, "", "get", kind, "-o", "jsonpath={.items[*].metadata.name}")
		if err != nil {
			return err
		}
		for name := range strings.FieldsSeq(out) {
			if strings.HasPrefix(name, "pav-") && !strings.Contains(yaml, "\n  name: "+name+"\n") {
				if _, err := kubectl(ctx, "", "delete", kind, name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// replaceNodeAgent deletes the agent of a node, and waits for the one of the version that was applied.
func replaceNodeAgent(t *testing.T, yaml, node string) {
	t.Helper()
	all, err := agents(t.Context())
	must(t, err)
	for i := range all {
		if component(&all[i]) == nodeAgent && all[i].Spec.NodeName == node {
			must(t, kube.Delete(t.Context(), &all[i]))
		}
	}
	awaitAgentsOf(t, yaml, node)
}

// awaitAgentsOf waits until the agents of these nodes are those of a version, and ready.
func awaitAgentsOf(t *testing.T, yaml string, on ...string) {
	t.Helper()
	image := imageOf(yaml)
	eventually(t, "the node agents have the image "+image, func(ctx context.Context) error {
		all, err := agents(ctx)
		if err != nil {
			return err
		}
		ready := 0
		for i := range all {
			pod := &all[i]
			if component(pod) != nodeAgent || !slices.Contains(on, pod.Spec.NodeName) {
				continue
			}
			if pod.DeletionTimestamp == nil && pod.Spec.Containers[0].Image == image && isReady(pod) {
				ready++
			}
		}
		if ready != len(on) {
			return fmt.Errorf("%d of %d are", ready, len(on))
		}
		return nil
	})
}

// imageOf returns the image of a version's agents.
func imageOf(yaml string) string {
	_, rest, _ := strings.Cut(yaml, "\n          image: ")
	image, _, _ := strings.Cut(rest, "\n")
	return image
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// The records that agents write bear their version.
func TestRecords_BearTheVersionThatWroteThem(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "version")
	claim := l.claim(t, "data")
	awaitBound(t, claim)
	l.run(t, clientPod("client", "data", nodes[0]))
	eventually(t, "the records bear a version", func(ctx context.Context) error {
		volume, err := volumeOf(ctx, claim)
		if err != nil {
			return err
		}
		stages, err := l.stages(ctx)
		if err != nil {
			return err
		}
		if len(stages) != 1 || stages[0].Status.AgentVersion == "" || stages[0].Status.AgentVersion != volume.Status.AgentVersion {
			return fmt.Errorf("the PavVolume's is %q, and of %d PavStages that of the first %q", volume.Status.AgentVersion, len(stages), stages[0].Status.AgentVersion)
		}
		return nil
	})
	out, err := kubectl(t.Context(), "", "-n", "pav", "get", "daemonset", "node-agent", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	must(t, err)
	volume, err := volumeOf(t.Context(), claim)
	must(t, err)
	if !strings.HasSuffix(out, ":"+volume.Status.AgentVersion) {
		t.Errorf("the records bear the version %q, and the agents are %s", volume.Status.AgentVersion, out)
	}
	remove(t, &corev1.Pod{ObjectMeta: objectMeta(l.namespace, "client")})
	removeClaim(t, claim)
}
