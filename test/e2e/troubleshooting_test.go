package e2e

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// No other test may run at the same time: what those break is a problem of the installation, too. It looks at drivers only on
// nodes whose agents have been ready for a minute: the tests before it take that time.
func TestKubectlDoctor(t *testing.T) {
	namespace := start(t)
	const secret = "canary-of-the-bundle"
	apply(t, namespace, documents(provisioner("examined", "mkdir /pav/volume; : --token="+secret, "true"), storageClass("examined"),
		claim("data", "examined", "ReadWriteOnce"), clientPod("client", "data", "node1")))
	waitRunning(t, namespace, "client")
	isReadySince(t, "examined", 2*time.Minute)

	pavSays(t, []string{"doctor"}, 0, "definitions", "pod controller-agent-", "leads", "it is ready on 2 nodes", "2 drivers are registered on 2 nodes",
		"a Service with ready endpoints", "none of 1 volume and 1 stage fails", "all is well").lacks(t, "problem", "unknown", "\x1b")
	testBundle(t, secret)

	// Pods that exist go on, and no other ones are made meanwhile.
	const enforce = "pod-security.kubernetes.io/enforce"
	pods := &corev1.Namespace{ObjectMeta: objectMeta("", workflow.DefaultNamespace)}
	must(t, kube.Get(t.Context(), client.ObjectKeyFromObject(pods), pods))
	t.Cleanup(func() { labelNamespace(t, pods.Name, enforce, `"privileged"`) })
	labelNamespace(t, pods.Name, enforce, "null")
	report := struct {
		Result string
		Rows   []struct {
			Check, Result, Message string
			Next                   []struct{ Command string }
		}
	}{}
	pavSays(t, []string{"doctor", "-o", "json"}, 1).decode(t, &report)
	for _, row := range report.Rows {
		if (row.Result == "ok") == (row.Check == "namespaces") {
			t.Errorf("%s: %s %s", row.Check, row.Result, row.Message)
		}
		for _, next := range row.Next { // The command that it prints is the cure.
			command := strings.Fields(next.Command)
			_, err := kubectl(t.Context(), "", command[1:]...)
			must(t, err)
		}
	}
	pavSays(t, []string{"doctor"}, 0, "all is well")
}

// isReadySince makes a provisioner look as if it had been ready for some time.
func isReadySince(t *testing.T, name string, ago time.Duration) {
	t.Helper()
	eventually(t, "PavProvisioner "+name+" is ready since long", func(ctx context.Context) error {
		p := &pavv1.PavProvisioner{}
		if err := kube.Get(ctx, client.ObjectKey{Name: name}, p); err != nil {
			return err
		}
		changed := p.DeepCopy()
		ready := meta.FindStatusCondition(changed.Status.Conditions, pavv1.ProvisionerReady)
		if ready == nil || ready.Status != metav1.ConditionTrue {
			return errors.New("it is not ready")
		}
		ready.LastTransitionTime = metav1.NewTime(ready.LastTransitionTime.Add(-ago))
		return kube.Status().Patch(ctx, changed, client.MergeFromWithOptions(p, client.MergeFromWithOptimisticLock{}))
	})
}

// labelNamespace sets a label of a namespace to a value, which is JSON.
func labelNamespace(t *testing.T, name, label, value string) {
	t.Helper()
	ctx, cancel := cleanupContext(t)
	defer cancel()
	_, err := kubectl(ctx, "", "patch", "namespace", name, "-p", `{"metadata": {"labels": {"`+label+`": `+value+`}}}`)
	must(t, err)
}

// testBundle writes a bundle, which has the logs of all agents, and not the secret in the definition.
func testBundle(t *testing.T, secret string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pav.tar.gz")
	pav(t, "doctor", "--bundle", name).wants(t, 0, name)
	pav(t, "doctor", "--bundle", name).wants(t, 2, "file exists")
	files := untar(t, name)
	agents := &corev1.PodList{}
	must(t, kube.List(t.Context(), agents, client.InNamespace("pav"), client.MatchingLabels{"app.kubernetes.io/name": "pav"}))
	for i := range agents.Items {
		pod := &agents.Items[i]
		log := "pav-bundle/logs/" + pod.Name + "/" + component(pod) + ".log"
		if files[log] == "" {
			t.Errorf("the bundle does not have %s", log)
		}
	}
	for name, words := range map[string]string{"pavprovisioners": "name: examined", "pavvolumes": "provisioner: examined", "pavstages": "nodeName: node1", "workflow-pods": "stage-",
		"csinodes": "name: examined", "events": "kind: Event", "doctor": "result: ok", "versions": "component: node-agent"} {
		if !strings.Contains(files["pav-bundle/"+name+".yaml"], words) {
			t.Errorf("%s.yaml in the bundle lacks %q", name, words)
		}
	}
	for name, text := range files {
		if strings.Contains(text, secret) {
			t.Errorf("%s in the bundle has the secret", name)
		}
	}
}

// untar returns the files of a compressed archive.
func untar(t *testing.T, name string) map[string]string {
	t.Helper()
	file, err := os.Open(name)
	must(t, err)
	defer func() { must(t, file.Close()) }()
	compressed, err := gzip.NewReader(file)
	must(t, err)
	files := map[string]string{}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must(t, err)
		text, err := io.ReadAll(archive)
		must(t, err)
		files[header.Name] = string(text)
	}
}
