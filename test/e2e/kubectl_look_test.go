package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// shown is the provisioner of the volumes that the commands show. A claim with the name bad gets none.
const shown = "kubectl-shown"

func shownYAML() string {
	creation := container("echo 'asking the backend'\n{% if pvc.metadata.name == 'bad' %}\necho 'the backend is full' | tee /pav/error; exit 5\n{% endif %}")
	return strings.Replace(provisioner(shown, "mkdir /pav/volume; echo 'made available'", "true"),
		`capacity: "{{ requestedMinCapacity }}"`, `capacity: "{{ requestedMinCapacity }}"`+"\n    podTemplate:"+creation, 1)
}

// TestKubectl runs the commands that show or change volumes, on a volume in use and on one whose creation fails.
func TestKubectl(t *testing.T) {
	t.Parallel()
	namespace := &corev1.Namespace{ObjectMeta: objectMeta("", "kubectl-shown")}
	must(t, kube.Create(t.Context(), namespace))
	t.Cleanup(func() {
		if t.Failed() {
			explain(t, namespace.Name)
		}
		removeLater(t, namespace)
	})
	ns := namespace.Name
	apply(t, ns, documents(shownYAML(), storageClass(shown)))
	apply(t, ns, documents(claim("good", shown, "ReadWriteMany"), claim("bad", shown, "ReadWriteMany"), clientPod("user", "good", "node1")))
	waitRunning(t, ns, "user")
	eventually(t, "the creation of the other volume fails", func(ctx context.Context) error {
		volume, err := shownVolume(ctx, ns, "bad")
		if err == nil && (volume.Status.Failure == nil || volume.Status.Attempt < 2) {
			err = fmt.Errorf("it has not failed twice")
		}
		return err
	})
	// The group ends when all of its parallel tests have.
	t.Run("commands", func(t *testing.T) {
		for name, test := range map[string]func(t *testing.T, ns string){
			"describe a volume in use": testDescribeGood, "describe one that fails": testDescribeBad,
			"describe the provisioner": testDescribeProvisioner, "version": testVersion,
			"get": testGet, "logs": testLogs, "retry": testRetry, "lint": testLint, "render": testRender,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, ns)
			})
		}
	})
}

// shownVolume returns the PavVolume of a claim.
func shownVolume(ctx context.Context, namespace, claim string) (*pavv1.PavVolume, error) {
	list := &pavv1.PavVolumeList{}
	if err := kube.List(ctx, list, client.MatchingLabels{pavv1.ProvisionerLabel: shown}); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if ref := list.Items[i].Spec.ClaimRef; ref.Namespace == namespace && ref.Name == claim {
			return &list.Items[i], nil
		}
	}
	return nil, fmt.Errorf("no PavVolume of claim %s", claim)
}

func testDescribeGood(t *testing.T, ns string) {
	t.Helper()
	words := []string{"Claim " + ns + "/good", "HEALTHY", "Timeline", "provisioning began", "creation pod", "staging pod created", "node1", "pod user", "Ready"}
	// A node agent that does not answer for some seconds is reported as a failure.
	pavSays(t, []string{"describe", "pvc/good", "-n", ns}, 0, words...).lacks(t, "\x1b", "Next:")
	pavSays(t, []string{"describe", "pod", "user", "-n", ns}, 0, words...)
	volume, err := shownVolume(t.Context(), ns, "good")
	must(t, err)
	pavSays(t, []string{"describe", "pv/" + volume.Name}, 0, words...)
}

func testDescribeBad(t *testing.T, ns string) {
	t.Helper()
	// Between two attempts.
	pavSays(t, []string{"describe", "pvc", "bad", "-n", ns}, 1, "Claim "+ns+"/bad", "FAILING", "exit code 5", "the backend is full",
		"Log", "asking the backend", "Next:", "kubectl logs -n pav-pods create-", "kubectl pav retry pvc/bad -n "+ns).lacks(t, "\x1b")
	answer := struct {
		Subject string
		Volumes []struct{ State, Claim string }
	}{}
	pavSays(t, []string{"describe", "pvc/bad", "-n", ns, "-o", "json"}, 1).decode(t, &answer)
	if len(answer.Volumes) != 1 || !strings.EqualFold(answer.Volumes[0].State, "failing") || answer.Volumes[0].Claim != "bad" {
		t.Errorf("as JSON it is %+v", answer)
	}
	pav(t, "describe", "pvc/nobody", "-n", ns).wants(t, 1, `"nobody"`)
}

func testDescribeProvisioner(t *testing.T, ns string) {
	t.Helper()
	pavSays(t, []string{"describe", "pav", shown}, 1, "PavProvisioner "+shown, "FAILING", "the backend is full", "2 volumes", "kubectl pav describe pvc/bad -n "+ns).lacks(t, "\x1b")
	pav(t, "describe", "pav/no-such-provisioner").wants(t, 1, "no-such-provisioner")
}

func testVersion(t *testing.T, _ string) {
	t.Helper()
	pav(t, "version").wants(t, 0, "client", "controller-agent", "node-agent").lacks(t, "install that of the agents")
	pav(t, "version", "--client").wants(t, 0, "client").lacks(t, "node-agent")
}

func testGet(t *testing.T, ns string) {
	t.Helper()
	s := pav(t, "get", shown, "-n", ns).wants(t, 0)
	for _, words := range [][]string{{"good", "Ready", "node1"}, {"bad", "Pending"}} {
		if !lineWith(s.out, words) {
			t.Errorf("no line has all of %q:\n%s", words, s.out)
		}
	}
	var volumes []map[string]any
	pav(t, "get", shown, "-o", "json").decode(t, &volumes)
	if len(volumes) != 2 {
		t.Errorf("as JSON there are %d volumes", len(volumes))
	}
	pav(t, "get", "no-such-provisioner").wants(t, 1, "no-such-provisioner")
}

func lineWith(text string, words []string) bool {
next:
	for line := range strings.Lines(text) {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue next
			}
		}
		return true
	}
	return false
}

func testLogs(t *testing.T, ns string) {
	t.Helper()
	pav(t, "logs", "pvc/good", "-n", ns).wants(t, 0, "made available")
	pavSays(t, []string{"logs", "pvc/bad", "-n", ns}, 0, "asking the backend", "the backend is full")
	pav(t, "logs", "pvc/good", "-n", ns, "--phase", "staging").wants(t, 0, "made available").lacks(t, "asking")
	pav(t, "logs", "pvc/good", "-n", ns, "--phase", "nothing").wants(t, 2, "staging")
}

// Only the volume that fails is tried again. The tests of the agents show that this happens at once.
func testRetry(t *testing.T, ns string) {
	t.Helper()
	pavSays(t, []string{"retry", "pvc/bad", "-n", ns}, 0, "the next attempt starts now")
	pav(t, "retry", "pvc/good", "-n", ns).wants(t, 1, "nothing to retry")
}

func testLint(t *testing.T, _ string) {
	t.Helper()
	pav(t, "lint", "examples/1-hello-world/provisioner.yaml").wants(t, 0)
	wrong := strings.Replace(shownYAML(), "{{ requestedMinCapacity }}", "{{ requestedMinCapacty }}", 1)
	file := writeFile(t, wrong)
	before, _, _ := strings.Cut(wrong, "requestedMinCapacty")
	line := strings.Count(before, "\n") + 1
	pav(t, "lint", file).wants(t, 1, fmt.Sprintf("%s:%d:", file, line), "error: ", "spec.volumeCreation.capacity", "requestedMinCapacity")
}

func testRender(t *testing.T, _ string) {
	t.Helper()
	pav(t, "render", writeFile(t, shownYAML()), "--phase", "creation").wants(t, 0, "asking the backend", "kind: Pod").lacks(t, "the backend is full", "{%")
	wrong := writeFile(t, strings.Replace(shownYAML(), "made available", "{{ params.colour.of.it }}", 1))
	pav(t, "render", wrong, "--phase", "staging").wants(t, 1, "spec.volumeStaging.podTemplate", "has no attribute 'colour'")
}
