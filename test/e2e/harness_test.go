package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// start begins a test: it returns a namespace of the test's own, which goes with the test, after
// which nothing of any volume may be left.
func start(t *testing.T) string {
	t.Helper()
	alone.Store(t.Name(), true)
	t.Cleanup(func() { checkNothingLeft(t) })
	return newNamespace(t)
}

// beside begins a test that runs at the same time as others. Its provisioners have names of their own; what it leaves is
// searched for after the last test.
func beside(t *testing.T) string {
	t.Helper()
	t.Parallel()
	return newNamespace(t)
}

func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	eventually(t, "the test has a namespace", func(ctx context.Context) error { return kube.Create(ctx, namespace) })
	t.Cleanup(func() {
		if t.Failed() {
			explain(t, namespace.Name)
		}
		removeLater(t, namespace)
	})
	return namespace.Name
}

// alone has the tests that run alone, and makers the other tests by the names of the provisioners that they created.
var alone, makers sync.Map

// provisionerName finds the names of the provisioners in YAML.
var provisionerName = regexp.MustCompile(`(?m)^kind: PavProvisioner\nmetadata:\n  name: (\S+)`)

// apply creates the objects of the YAML, by default in the namespace, and deletes them after the test. If other tests run
// at the same time, none of them may create a provisioner of the same name.
func apply(t *testing.T, namespace, yaml string) {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	for _, found := range provisionerName.FindAllStringSubmatch(yaml, -1) {
		if _, is := alone.Load(test); is {
			break
		}
		if other, made := makers.LoadOrStore(found[1], test); made && other != test {
			t.Fatalf("%s makes a provisioner %s, too: one of them needs another name", other, found[1])
		}
	}
	t.Cleanup(func() { unapply(t, namespace, yaml) }) // also what was made before something failed
	_, err := kubectl(t.Context(), yaml, "create", "-n", namespace, "-f", "-")
	must(t, err)
}

func unapply(t *testing.T, namespace, yaml string) {
	t.Helper()
	ctx, cancel := cleanupContext(t)
	defer cancel()
	if _, err := kubectl(ctx, yaml, "delete", "-n", namespace, "--ignore-not-found", "-f", "-"); err != nil {
		t.Error(err)
	}
}

// applyFile is apply for a file of the repository.
func applyFile(t *testing.T, namespace, path string) {
	t.Helper()
	yaml, err := os.ReadFile(path)
	must(t, err)
	apply(t, namespace, string(yaml))
}

// remove deletes an object and waits until it is gone.
func remove(t *testing.T, object client.Object) {
	t.Helper()
	ctx, cancel := cleanupContext(t)
	defer cancel()
	beginRemoval(ctx, t, object)
	if err := poll(ctx, func(ctx context.Context) error { return gone(ctx, object) }); err != nil {
		t.Errorf("%T %s does not go: %v", object, object.GetName(), err)
	}
}

// removeLater deletes a namespace, which goes after the test: Kubernetes begins with its content five seconds later. The last
// test is followed by a search for such namespaces.
func removeLater(t *testing.T, namespace *corev1.Namespace) {
	t.Helper()
	ctx, cancel := cleanupContext(t)
	defer cancel()
	beginRemoval(ctx, t, namespace)
}

// beginRemoval asks the API server to delete an object, again if it does not answer.
func beginRemoval(ctx context.Context, t *testing.T, object client.Object) {
	t.Helper()
	if err := poll(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(kube.Delete(ctx, object)) }); err != nil {
		t.Error(err)
	}
}

// gone objects while an object exists: the one with its UID if it has one, and else any of its name.
func gone(ctx context.Context, object client.Object) error {
	copied := object.DeepCopyObject().(client.Object)
	err := kube.Get(ctx, client.ObjectKeyFromObject(object), copied)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case object.GetUID() != "" && copied.GetUID() != object.GetUID():
		return nil
	default:
		return fmt.Errorf("%T %s still exists", object, object.GetName())
	}
}

// cleanupContext returns a context for work after a test, when the test's own context has ended.
func cleanupContext(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(context.WithoutCancel(t.Context()), stepTimeout)
}

// eventually waits until the condition returns no error, and fails the test with the last one. It can also be used after a
// test, when the test's own context has ended.
func eventually(t *testing.T, what string, condition func(ctx context.Context) error) {
	t.Helper()
	within(t, stepTimeout, what, condition)
}

// stepTimeout is the timeout of each step: if several tests run on a slow machine, each pod may take a minute to start, and
// kubelet may wait for two minutes before it tries again.
const stepTimeout = 15 * time.Minute

// within is eventually with another limit.
func within(t *testing.T, limit time.Duration, what string, condition func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit)
	defer cancel()
	if err := poll(ctx, condition); err != nil {
		t.Fatalf("%s: not within %s: %v", what, limit, err)
	}
}

// poll tries the condition until it returns no error, or ctx ends: then it returns the last error. It tries less often as
// time passes, as many conditions run a command.
func poll(ctx context.Context, condition func(ctx context.Context) error) error {
	const shortest, longest = 150 * time.Millisecond, 600 * time.Millisecond
	var last error
	for interval := shortest; ; interval = min(interval*5/4, longest) {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err // What fails because ctx has ended says nothing.
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), last)
		case <-time.After(interval):
		}
	}
}

// onNode runs a command in a node's namespaces and returns what it printed.
func onNode(ctx context.Context, node string, command ...string) (string, error) {
	args := append([]string{"exec", "--node", node, "--"}, command...)
	var stderr strings.Builder
	c := exec.CommandContext(ctx, cluster, args...)
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s on %s: %w: %s", strings.Join(command, " "), node, err, stderr.String())
	}
	return string(out), nil
}

// inPod runs a shell command in a pod and returns its output, without standard error, where kubectl itself sometimes writes
// about its connection.
func inPod(ctx context.Context, namespace, pod, command string) (string, error) {
	return whileBusy(ctx, notBegun, func() (string, error) { return execInPod(ctx, namespace, pod, command) })
}

// whileBusy runs a command until it succeeds, or fails without the words of a busy machine. It prints each failure that it does not
// return, so that none is hidden.
func whileBusy(ctx context.Context, words *regexp.Regexp, command func() (string, error)) (out string, err error) {
	limited, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	_ = poll(limited, func(context.Context) error {
		if out, err = command(); err == nil || !words.MatchString(err.Error()) {
			return nil
		}
		fmt.Fprintln(os.Stderr, "again, after:", err)
		return err
	})
	return out, err
}

// notBegun finds kubectl's words for a command that has not begun: on a busy machine, the API server or kubelet took too long to answer,
// or the API server did not answer whether the caller may run commands.
var notBegun = regexp.MustCompile(`error dialing backend|TLS handshake timeout|dial tcp [^\n]*(i/o timeout|connection refused)|Authorization error|` +
	`\((Timeout|ServerTimeout|ServiceUnavailable|TooManyRequests)\): |etcdserver: request timed out`)

func execInPod(ctx context.Context, namespace, pod, command string) (string, error) {
	var stderr strings.Builder
	c := exec.CommandContext(ctx, "kubectl", "exec", "-n", namespace, pod, "--", "sh", "-c", command)
	// Over websockets, the answer may arrive before kubectl has registered its streams: "Unknown stream id 1, discarding
	// message".
	c.Env = append(os.Environ(), "KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false")
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("in pod %s, %s: %w: %s%s", pod, command, err, out, stderr.String())
	}
	return string(out), nil
}

// waitRunning waits until a pod runs.
func waitRunning(t *testing.T, namespace string, pods ...string) {
	t.Helper()
	for _, name := range pods {
		eventually(t, "pod "+name+" runs", func(ctx context.Context) error {
			pod := &corev1.Pod{}
			if err := kube.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
				return err
			}
			if pod.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("it is %s", pod.Status.Phase)
			}
			return nil
		})
	}
}

// stagingPods returns the staging pods of a provisioner.
func stagingPods(ctx context.Context, provisioner string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := kube.List(ctx, list, client.MatchingLabels{pavv1.ProvisionerLabel: provisioner, pavv1.WorkflowLabel: pavv1.WorkflowStaging})
	return list.Items, err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// explain logs details that help to understand a failed test. The summary of "make test" leaves out what begins like that.
func explain(t *testing.T, namespace string) {
	t.Helper()
	ctx, cancel := cleanupContext(t)
	defer cancel()
	for _, args := range [][]string{
		{"get", "pavprovisioners,pavvolumes,pavstages,pv", "-o", "wide"},
		{"get", "pavvolumes,pavbuckets,pavbucketaccesses", "-o", "custom-columns=NAME:.metadata.name,STATUS:.status"},
		{"get", "objectbucketclaims,objectbuckets", "-A", "-o", "wide"},
		{"get", "pods", "-A", "-o", "wide"},
		{"-n", namespace, "get", "events", "--sort-by=.lastTimestamp"},
		{"-n", "pav", "logs", "daemonset/node-agent", "--all-pods", "--tail=40"},
		{"-n", "pav", "logs", "deployment/controller-agent", "--all-pods", "--tail=40"},
	} {
		out, err := kubectl(ctx, "", args...)
		t.Logf("to explain the failure: kubectl %s (%v)\n%s", strings.Join(args, " "), err, out)
	}
}
