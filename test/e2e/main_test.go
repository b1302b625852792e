package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/agent"
	"github.com/albertofaria/pav/test/scrape"
)

// nodes are the nodes of the cluster. The first has the control plane.
var nodes = []string{"node1", "node2"}

var (
	kube    client.Client // reads the API server, not a cache
	cluster string        // the program that runs the cluster
	scraper *scrape.Scraper
	kept    *keeper // what is searched for secrets after all tests
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	cluster = os.Getenv("PAV_E2E_CLUSTER")
	if cluster == "" {
		return 1, fmt.Errorf("PAV_E2E_CLUSTER is not set: run 'make test-e2e'")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return 1, fmt.Errorf("reading KUBECONFIG: %w", err)
	}
	config.QPS = -1 // An objection must not be hidden by the wait for a turn.
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return 1, err
	}
	if err := errors.Join(pavv1.AddToScheme(scheme), snapshotv1.AddToScheme(scheme), obcv1.AddToScheme(scheme), cosiv1.AddToScheme(scheme)); err != nil {
		return 1, err
	}
	if kube, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return 1, err
	}
	agent.KeepLibraryLogs()
	ctx := context.Background() //nolint:forbidigo // There is no test here that has a context.
	if kept, err = newKeeper(ctx, config); err != nil {
		return 1, err
	}
	if err := install(ctx); err != nil {
		return 1, err
	}
	if scraper, err = scrape.New(ctx, kube); err != nil {
		return 1, err
	}
	code := m.Run()

	// Tests that run at the same time can check only their own leftovers.
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	left := errors.Join(poll(ctx, wantNothingLeft), poll(ctx, namespacesAreGone))
	if left != nil {
		left = fmt.Errorf("after all tests, something is left: %w", left)
	}
	if err := errors.Join(left, kept.check(ctx), scraper.Close(ctx)); err != nil {
		return 1, err
	}
	return code, nil
}

// bucketsManifest is what buckets need besides deployment.yaml, and foreignKinds are the definitions of the kinds of other programs by
// which buckets are claimed.
const (
	bucketsManifest = "deployment-buckets.yaml"
	foreignKinds    = "deploy/foreign"
)

// install installs PaV as the README says, with buckets, unless it is installed.
func install(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*stepTimeout)
	defer cancel()
	namespace := &corev1.Namespace{}
	if err := kube.Get(ctx, client.ObjectKey{Name: "pav"}, namespace); client.IgnoreNotFound(err) != nil {
		return err
	} else if err != nil {
		manifests, err := os.ReadFile("deployment.yaml")
		if err != nil {
			return err
		}
		for _, step := range []struct {
			input string
			args  []string
		}{
			{"", []string{"apply", "-R", "-f", foreignKinds}}, // an uninstallation leaves them
			{verbose(string(manifests)), []string{"create", "-f", "-"}},
			{"", []string{"create", "-f", bucketsManifest}},
		} {
			if _, err := kubectl(ctx, step.input, step.args...); err != nil {
				return err
			}
		}
	}
	for _, workload := range []string{"deployment/controller-agent", "daemonset/node-agent"} {
		if _, err := kubectl(ctx, "", "-n", "pav", "rollout", "status", workload); err != nil {
			return err
		}
	}
	// The API server can reach the webhook a little later than its pods are ready.
	return poll(ctx, definitionsAreJudged)
}

// verbose lets the agents log all that they can, as the search for secrets is in what they log.
func verbose(manifests string) string {
	changed := strings.NewReplacer(
		"            - controller\n", "            - controller\n            - -v=1\n", "            - node\n", "            - node\n            - -v=1\n",
		"args: [controller]", "args: [controller, -v=1]", "args: [node]", "args: [node, -v=1]", // of the former version
	).Replace(manifests)
	if strings.Count(changed, "-v=1") != 2 {
		panic("the manifests do not have the arguments of both agents")
	}
	return changed
}

// kubectl runs kubectl with the text as its standard input, and returns what it printed. It does so again if the API server
// says that it has not done all of this in time, or has not answered.
func kubectl(ctx context.Context, input string, args ...string) (string, error) {
	return whileBusy(ctx, late, func() (string, error) {
		out, err := tryKubectl(ctx, input, args...)
		if args[0] == "create" && slices.Contains(args, "-f") && !slices.Contains(args, "--raw") {
			args = append([]string{"apply"}, args[1:]...) // the next time, as some of the objects may exist by then
		}
		return out, err
	})
}

// late finds the words for a request that took too long on a busy machine: the API server waits ten seconds for a webhook, for
// instance, and ends connections whose requests took a minute.
var late = regexp.MustCompile(`(?s)TLS handshake timeout|i/o timeout|unexpected EOF|connection reset|client connection lost|` +
	`\((InternalError|Timeout|ServerTimeout|ServiceUnavailable|TooManyRequests)\): .*(deadline exceeded|[Tt]imeout|timed out|try again)`)

func tryKubectl(ctx context.Context, input string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "kubectl", args...)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
