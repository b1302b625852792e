package e2e

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tried is what "kubectl pav test -o json" writes, as far as it matters here.
type tried struct {
	Provisioner, Name string
	Passed            bool
	Steps             []struct{ Name, Result, Message string }
	Left              []struct {
		Kind, Name, Why string
		Commands        []string
	}
}

func (r *tried) step(name string) string {
	for _, s := range r.Steps {
		if s.Name == name {
			return s.Result + ": " + s.Message
		}
	}
	return "not taken"
}

func TestKubectlTest_Example_Passes(t *testing.T) {
	t.Parallel()
	s := pav(t, "test", slowly, "--name", "try-hello", "examples/1-hello-world/provisioner.yaml", "examples/1-hello-world/usage.yaml")
	s.wants(t, 0, "hello-world, tested as try-hello", "Filesystem, ReadWriteMany", "passed   write, and read back",
		"passed   refuse to write where read-only", "the data was lost when the volume left the node",
		"passed   delete", "passed   leave nothing behind", "passed   clean up", "hello-world passed: ", "2 warnings")
	s.lacks(t, "failed", "\x1b")
	wantNothingOf(t, "try-hello")
}

// slowly gives each step of a test more time than a slow machine takes.
const slowly = "--timeout=10m"

// The command names what is left, and its advice how to remove that works.
func TestKubectlTest_DeletionFails_SaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	const name = "try-stuck"
	deletion := "\n  volumeDeletion:\n    podTemplate:" + container("echo 'the backend says no' | tee /pav/error; exit 3")
	file := writeFile(t, provisioner("stuck-deletion", "mkdir /pav/volume", "")+deletion)
	s := pav(t, "test", slowly, "--name", name, "--access-mode", "ReadWriteOnce", "-o", "json", file).wants(t, 1)
	r := &tried{}
	s.decode(t, r)
	// The text that the pod wrote may be reported after its failure, but is in the description of what is left.
	if got := r.step("delete"); r.Passed || !strings.HasPrefix(got, "failed: pod ") {
		t.Errorf("the deletion is reported as %q", got)
	}
	if got := r.step("write, and read back"); !strings.HasPrefix(got, "passed: on node") {
		t.Errorf("writing is reported as %q", got)
	}
	if len(r.Left) != 2 || r.Left[0].Kind != "PavVolume" || !strings.Contains(r.Left[0].Why, "the backend says no") || r.Left[1].Name != name {
		t.Fatalf("what is left: %+v", r.Left)
	}
	last := r.Left[0].Commands[len(r.Left[0].Commands)-1]
	for _, command := range append([]string{last}, r.Left[1].Commands...) {
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	wantNothingOf(t, name)
}

func TestKubectlTest_StagingFails_DescribesTheVolume_AndCleansUp(t *testing.T) {
	t.Parallel()
	file := writeFile(t, provisioner("stuck-staging", "mkdir /pav/volume; echo 'the backend is on fire' | tee /pav/error; exit 4", ""))
	s := pav(t, "test", slowly, "--name", "try-fire", file)
	s.wants(t, 1, "failed   write, and read back", "exit code 4: the backend is on fire", "Timeline", "passed   clean up", "stuck-staging failed: ")
	s.wants(t, 1, "fix "+file+", and run the test again; with --keep, it does not remove its objects")
	s.lacks(t, "This is left", "kubectl edit pavprovisioner try-fire")
	// The failed pod is in the timeline until it is removed. Then the event of the failure is or, until that arrives, the
	// failure as it is recorded.
	_, timeline, _ := strings.Cut(s.out, "Timeline")
	if !regexp.MustCompile(`(?m)^ +\d.* (staging pod failed|FailedMount: staging on node \S+ failed: |staging failed: )`).MatchString(timeline) {
		t.Errorf("the timeline does not have the failure:\n%s", timeline)
	}
	wantNothingOf(t, "try-fire")
}

// A definition that admission would refuse is not installed.
func TestKubectlTest_WrongDefinition_SaysWhere(t *testing.T) {
	t.Parallel()
	file := writeFile(t, strings.Replace(provisioner("wrong", "mkdir /pav/volume", ""), "volumeStaging:", "volumeStagin:", 1))
	pav(t, "test", "--name", "try-wrong", file).wants(t, 1, "failed   lint", file+":", "volumeStagin", "wrong failed: ")
	wantNothingOf(t, "try-wrong")
	pav(t, "test", "no-such-file.yaml").wants(t, 2, "no-such-file.yaml")
}

func TestKubectlTest_Interrupted_CleansUp(t *testing.T) {
	t.Parallel()
	const name = "try-interrupt"
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	file := writeFile(t, provisioner("interrupted", "mkdir /pav/volume", ""))
	command := pavCommand(ctx, t, "pav", "test", slowly, "--name", name, "--access-mode", "ReadWriteOnce", file)
	ended := make(chan said)
	go func() { ended <- finish(t, command) }()
	eventually(t, "its pod is there", func(ctx context.Context) error {
		return kube.Get(ctx, client.ObjectKey{Namespace: name, Name: "filesystem-writer"}, &corev1.Pod{})
	})
	must(t, command.Process.Signal(syscall.SIGINT))
	s := <-ended
	s.wants(t, 1, "interrupted", "Interrupted: cleaning up", "passed   clean up")
	wantNothingOf(t, name)
}

func TestKubectlCompletion(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"pav des":                             "describe",
		"pav describe p":                      "pvc/",
		"pav describe -n pav pod":             "pod/",
		"pav describe -n pav pod/controller-": "pod/controller-agent-",
		"pav test -o ":                        "json",
		"pav -n pav-p":                        "pav-pods",
	} {
		words := strings.Split(typed, " ")
		// A request that takes the API server two seconds is given up without a message.
		eventually(t, "kubectl "+typed+" is completed", func(ctx context.Context) error {
			return finish(t, pavCommand(ctx, t, append([]string{"__complete"}, words...)...)).check(0, want)
		})
	}
	pav(t, "completion", "zsh").wants(t, 0, "compdef")
}
