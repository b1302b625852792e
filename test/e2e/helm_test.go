package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// The chart takes over what deployment.yaml has installed. A volume is in use all the time, until it would be lost by an
// uninstallation, which is refused.
func TestUninstall_WithHelm_AfterUpgradeAndRollback(t *testing.T) {
	namespace := startUninstall(t)
	_, err := kubectl(t.Context(), provisioner("charted", "mkdir /pav/volume; echo kept >/pav/volume/file", ""), "create", "-f", "-")
	must(t, err)
	apply(t, namespace, documents(storageClass("charted"), claim("data", "charted", "ReadWriteOnce"), clientPod("client", "data", "")))
	waitRunning(t, namespace, "client")

	_, err = kubectl(t.Context(), "", "delete", "-f", bucketsManifest) // the chart does not have it by default
	must(t, err)
	helm(t, "install", "pav", "deploy/chart", "--take-ownership", "--force-conflicts", "--wait")
	wantArgs(t, namespace)
	helm(t, "upgrade", "pav", "deploy/chart", "--set", "logVerbosity=1", "--set-json", `podDefaults={"imagePullSecrets":[{"name":"mirror"}]}`, "--wait")
	wantArgs(t, namespace, "--verbosity=1", `--pod-defaults={"imagePullSecrets":[{"name":"mirror"}]}`)
	wantDefaults(t, namespace)
	if out, err := tryHelm(t.Context(), "upgrade", "pav", "deploy/chart", "--set", "namespace=other"); err == nil || !strings.Contains(out, `run in the namespace "pav"`) {
		t.Errorf("the agents are moved to another namespace: %s", out)
	}
	helm(t, "rollback", "pav", "1", "--wait")
	wantArgs(t, namespace)

	if out, err := tryHelm(t.Context(), "uninstall", "pav"); err == nil {
		t.Errorf("PaV was uninstalled while it had a volume: %s", out)
	}
	says, err := kubectl(t.Context(), "", "-n", "pav", "logs", "job/pav-uninstall")
	if err != nil || !strings.Contains(says, "1 PavVolume(s), 1 PavStage(s); run: kubectl delete crd pavprovisioners.pav.albertofaria.github.io") {
		t.Errorf("the pod says %q, %v", says, err)
	}
	wantArgs(t, namespace)
	helm(t, "rollback", "pav", "3", "--wait") // Helm upgrades no release whose uninstallation was refused.
	helm(t, "upgrade", "pav", "deploy/chart", "--set", "startupTaint.enabled=true", "--force-conflicts", "--wait")
	wantUntainted(t, "node1")
	helm(t, "upgrade", "pav", "deploy/chart", "--set", "startupTaint.enabled=false", "--force-conflicts", "--wait")
	wantArgs(t, namespace)

	remove(t, &corev1.Pod{ObjectMeta: objectMeta(namespace, "client")})
	remove(t, &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta(namespace, "data")})
	deleteProvisioners(t)
	helm(t, "uninstall", "pav")
	// What an uninstallation keeps are the definitions of records, and the namespaces.
	kept := []string{"delete", "namespace/pav", "namespace/pav-pods"}
	for _, records := range []string{"pavvolumes", "pavstages", "pavsnapshots", "pavbuckets", "pavbucketaccesses"} {
		kept = append(kept, "crd/"+records+"."+pavv1.Group)
	}
	_, err = kubectl(t.Context(), "", kept...)
	must(t, err)
	wantUninstalled(t)
	wantWorksAgain(t, namespace)
}

func helm(t *testing.T, args ...string) {
	t.Helper()
	_, err := tryHelm(t.Context(), args...)
	must(t, err)
}

func tryHelm(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, uninstallWithin)
	defer cancel()
	args = append(args, "--namespace", "default", "--timeout", uninstallWithin.String())
	out, err := exec.CommandContext(ctx, "bin/helm", args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("helm %s: %w: %s", strings.Join(args, " "), errors.Join(err, ctx.Err()), out)
	}
	return string(out), nil
}

// wantDefaults fails the test unless the staging pod of a new volume has the defaults of all workflow pods.
func wantDefaults(t *testing.T, namespace string) {
	t.Helper()
	apply(t, namespace, documents(claim("defaults", "charted", "ReadWriteOnce"), clientPod("defaults", "defaults", "")))
	waitRunning(t, namespace, "defaults")
	secrets, err := kubectl(t.Context(), "", "-n", "pav-pods", "get", "pods", "-l", pavv1.WorkflowLabel+"="+pavv1.WorkflowStaging, "-o", "jsonpath={.items[*].spec.imagePullSecrets[*].name}")
	if err != nil || secrets != "mirror" {
		t.Errorf("the staging pods have the pull secrets %q, %v", secrets, err)
	}
	remove(t, &corev1.Pod{ObjectMeta: objectMeta(namespace, "defaults")})
	remove(t, &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta(namespace, "defaults")})
}

// wantUntainted gives a node the startup taint, and fails the test unless the controller agent removes it.
func wantUntainted(t *testing.T, node string) {
	t.Helper()
	_, err := kubectl(t.Context(), "", "taint", "node", node, pavv1.NotReadyTaint+"=:NoSchedule")
	must(t, err)
	eventually(t, node+" has no taint of PaV", func(ctx context.Context) error {
		taints, err := kubectl(ctx, "", "get", "node", node, "-o", "jsonpath={.spec.taints[*].key}")
		if err == nil && strings.Contains(taints, pavv1.NotReadyTaint) {
			err = fmt.Errorf("it has the taints %s", taints)
		}
		return err
	})
}

// wantArgs fails the test unless both agents have these arguments after their command, and the client still has its volume.
func wantArgs(t *testing.T, namespace string, arguments ...string) {
	t.Helper()
	const args = `jsonpath={range .items[*]}{.spec.template.spec.containers[0].args}{"\n"}{end}`
	out, err := kubectl(t.Context(), "", "-n", "pav", "get", "deployments,daemonsets", "-o", args)
	must(t, err)
	if want := strings.ReplaceAll(`["controller"ARG]`+"\n"+`["node"ARG]`+"\n", "ARG", quoted(arguments)); out != want {
		t.Errorf("the agents have the arguments %q, want %q", out, want)
	}
	if text, err := inPod(t.Context(), namespace, "client", "cat /data/file"); err != nil || text != "kept\n" {
		t.Errorf("the client reads %q, %v", text, err)
	}
}

// quoted returns arguments as they follow others in JSON.
func quoted(arguments []string) string {
	text := ""
	for _, argument := range arguments {
		text += fmt.Sprintf(",%q", argument)
	}
	return text
}
