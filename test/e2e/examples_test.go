package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// exampleTools and s3Tools are the images that examples/Containerfile and examples/9-buckets/Containerfile make.
const (
	exampleTools = "docker.io/albertofaria/pav-example-tools:0.2.0"
	s3Tools      = "docker.io/albertofaria/pav-s3-tools:0.2.0"
)

// imageLoads loads an archive of bin/ into the cluster, when a test first needs it.
var imageLoads = map[string]func() error{
	"example-tools.tar": sync.OnceValue(func() error { return loadImage("bin/example-tools.tar") }),
	"versitygw.tar":     sync.OnceValue(func() error { return loadImage("bin/versitygw.tar") }),
	"s3-tools.tar":      sync.OnceValue(func() error { return loadImage("bin/s3-tools.tar") }),
}

func loadImage(path string) error {
	out, err := exec.Command(cluster, "load", path).CombinedOutput() //nolint:noctx // It serves all tests, and so has the context of none.
	if err != nil {
		return fmt.Errorf("loading %s, which 'make %s' makes: %w: %s", path, path, err, out)
	}
	return nil
}

// example is one of the examples, tried by the commands of its README.
type example struct {
	// name is that of its provisioner and of its class.
	name string

	directory string

	// namespace is where the README's commands act that name none.
	namespace string

	kubeconfig string

	// blocks are the README's commands by the paragraph before them.
	blocks map[string]string
}

// newExample prepares an example. When the test ends, nothing may be left of it, and all commands of
// its README must have been followed.
func newExample(t *testing.T, directory, namespace string, images ...string) *example {
	t.Helper()
	_, name, _ := strings.Cut(directory, "-")
	e := &example{name: name, directory: filepath.Join("examples", directory), namespace: namespace, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	for _, image := range images {
		must(t, imageLoads[image]())
	}
	admin, err := os.ReadFile(os.Getenv("KUBECONFIG"))
	must(t, err)
	must(t, os.WriteFile(e.kubeconfig, admin, 0o600))
	_, err = kubectl(t.Context(), "", "--kubeconfig", e.kubeconfig, "config", "set-context", "--current", "--namespace", namespace)
	must(t, err)
	readme, err := os.ReadFile(filepath.Join(e.directory, "README.md"))
	must(t, err)
	e.blocks = commandBlocks(string(readme))
	t.Cleanup(func() {
		if t.Failed() {
			explain(t, namespace)
		}
		for paragraph := range e.blocks {
			if !t.Failed() {
				t.Errorf("the README's commands after %q were not followed", paragraph)
			}
		}
		e.removeAll(t)
		eventually(t, "nothing is left of "+e.name, e.nothingLeft)
	})
	return e
}

// exampleNamespace makes a namespace that goes with the test.
func exampleNamespace(t *testing.T, name string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: objectMeta("", "")}
	namespace.GenerateName = "e2e-" + name + "-"
	must(t, kube.Create(t.Context(), namespace))
	t.Cleanup(func() { removeLater(t, namespace) })
	return namespace.Name
}

// commandBlocks returns the indented blocks of a text by the paragraph or heading before each.
func commandBlocks(text string) map[string]string {
	blocks := map[string]string{}
	var paragraph string
	for part := range strings.SplitSeq(text, "\n\n") {
		if !strings.HasPrefix(part, "    ") {
			paragraph = strings.Join(strings.Fields(strings.TrimLeft(part, "# ")), " ")
			continue
		}
		var commands strings.Builder
		for line := range strings.Lines(part) {
			commands.WriteString(strings.TrimPrefix(line, "    "))
		}
		blocks[paragraph] += commands.String() + "\n"
	}
	return blocks
}

// follow runs the commands after the README's paragraph that has the words, and returns what they printed.
func (e *example) follow(t *testing.T, words string) string {
	t.Helper()
	for paragraph, commands := range e.blocks {
		if !strings.Contains(paragraph, words) {
			continue
		}
		delete(e.blocks, paragraph)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
		command.Dir = e.directory
		command.Env = append(os.Environ(), "KUBECONFIG="+e.kubeconfig)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("the README's commands after %q fail: %v:\n%s\n%s", paragraph, err, commands, out)
		}
		return string(out)
	}
	t.Fatalf("the README has no commands after a paragraph with %q", words)
	return ""
}

// prints fails the test unless an output has the words.
func prints(t *testing.T, out, words string) {
	t.Helper()
	if !strings.Contains(out, words) {
		t.Errorf("it does not print %q, but:\n%s", words, out)
	}
}

// removeAll takes away what a test that failed in the middle has left.
func (e *example) removeAll(t *testing.T) {
	t.Helper()
	ctx, cancel := cleanupContext(t)
	defer cancel()
	for _, args := range [][]string{
		// Volumes are deleted with the help of their server.
		{"delete", "pods", "-n", e.namespace, "--selector=app!=s3"},
		{"delete", "volumesnapshots,pvc,objectbucketclaims,bucketaccesses", "-n", e.namespace, "--all"},
		{"delete", "bucketclaims", "-n", e.namespace, "--all"},
		{"delete", "--ignore-not-found", "storageclass/" + e.name, "bucketclass/" + e.name, "bucketaccessclass/" + e.name + "-write", "bucketaccessclass/" + e.name + "-read", "volumesnapshotclass/" + e.name, "pavprovisioner/" + e.name},
	} {
		if _, err := kubectl(ctx, "", args...); err != nil {
			t.Error(err)
		}
	}
}

func (e *example) nothingLeft(ctx context.Context) error {
	if err := (&bucketStore{ledger: &ledger{name: e.name}}).wantNoRecords(ctx); err != nil {
		return err
	}
	volumes, snapshots, stages, pods := &pavv1.PavVolumeList{}, &pavv1.PavSnapshotList{}, &pavv1.PavStageList{}, &corev1.PodList{}
	for _, list := range []client.ObjectList{volumes, snapshots, stages, pods} {
		var options []client.ListOption
		if list == pods {
			options = append(options, client.MatchingLabels{pavv1.ProvisionerLabel: e.name})
		}
		if err := kube.List(ctx, list, options...); err != nil {
			return err
		}
	}
	for i := range volumes.Items {
		if v := &volumes.Items[i]; v.Spec.Provisioner == e.name {
			return fmt.Errorf("PavVolume %s is left: %+v", v.Name, v.Status)
		}
	}
	for i := range snapshots.Items {
		if s := &snapshots.Items[i]; s.Spec.Provisioner == e.name {
			return fmt.Errorf("PavSnapshot %s is left: %+v", s.Name, s.Status)
		}
	}
	for i := range stages.Items {
		if s := &stages.Items[i]; s.Spec.Provisioner == e.name {
			return fmt.Errorf("PavStage %s is left: %+v", s.Name, s.Status)
		}
	}
	if len(pods.Items) > 0 {
		return fmt.Errorf("workflow pod %s/%s is left", pods.Items[0].Namespace, pods.Items[0].Name)
	}
	return nil
}

// awaitNoStage waits until no node has a volume of the example.
func (e *example) awaitNoStage(t *testing.T) {
	t.Helper()
	(&ledger{name: e.name}).awaitNoStage(t)
}

// run makes pods, and waits until they run.
func (e *example) run(t *testing.T, pods ...string) {
	t.Helper()
	(&ledger{namespace: e.namespace}).run(t, pods...)
}

// end deletes pods, and waits until they are gone.
func (e *example) end(t *testing.T, pods ...string) {
	t.Helper()
	(&ledger{namespace: e.namespace}).end(t, pods...)
}

// sh runs a shell command in a pod and returns what it printed.
func (e *example) sh(t *testing.T, pod, command string) string {
	t.Helper()
	return (&ledger{namespace: e.namespace}).sh(t, pod, command)
}

// claim returns a claim of the example.
func (e *example) claim(t *testing.T, name string) *corev1.PersistentVolumeClaim {
	t.Helper()
	found := &corev1.PersistentVolumeClaim{}
	must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: e.namespace, Name: name}, found))
	return found
}

// nodeOf returns the node of a pod of the example.
func (e *example) nodeOf(t *testing.T, pod string) string {
	t.Helper()
	found := &corev1.Pod{}
	must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: e.namespace, Name: pod}, found))
	return found.Spec.NodeName
}

// create makes what the YAML says.
func (e *example) create(t *testing.T, yaml string) {
	t.Helper()
	_, err := kubectl(t.Context(), yaml, "create", "-n", e.namespace, "-f", "-")
	must(t, err)
}

// setSecret gives a Secret one entry.
func setSecret(t *testing.T, namespace, name, key, value string) {
	t.Helper()
	_, err := kubectl(t.Context(), "", "-n", namespace, "patch", "secret", name, "--type=merge", "-p", fmt.Sprintf(`{"stringData":{%q:%q}}`, key, value))
	must(t, err)
}
