package examples

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/albertofaria/pav/internal/kubectl"
	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// directories returns the directories of the examples.
func directories(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../examples/*/provisioner.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("found %q (%v)", files, err)
	}
	for i := range files {
		files[i] = filepath.Dir(files[i])
	}
	return files
}

// pav runs kubectl pav and returns its output.
func pav(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	root := kubectl.Root(&cli.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs},
		Config:    genericclioptions.NewConfigFlags(false),
	})
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

// optional are the sections of a definition that are capabilities by themselves. Copies of snapshots and of volumes are made by the other
// sections.
var optional = map[string]string{
	"volumeExpansion": "expansion", "volumeModification": "modification", "snapshotCreation": "snapshots", "snapshotDeletion": "snapshots",
	"bucketAccessGrant": "access to buckets", "bucketAccessRevoke": "the end of access",
}

var section = regexp.MustCompile(`(?m)^  ([a-zA-Z]+):`)

// linesOf returns how many lines of a definition are of each optional capability, and with the key "" those of the rest.
func linesOf(text string) map[string]int {
	lines, capability := map[string]int{}, ""
	for line := range strings.Lines(text) {
		if found := section.FindStringSubmatch(line); found != nil {
			capability = optional[found[1]]
		}
		if strings.TrimSpace(line) != "" {
			lines[capability]++
		}
	}
	return lines
}

// torn is the warning about a driver whose snapshots are copies of files: the storage suite makes snapshots of volumes in use.
const torn = "a copy of what pods write to meanwhile is torn"

// A definition has fewer than 80 lines, and at most 25 more for each capability that a volume need not have. This also holds for the
// drivers for Kubernetes' storage suite.
func TestDefinition_IsShortAndLintFindsNothing(t *testing.T) {
	drivers, err := filepath.Glob("../conformance/drivers/*")
	if err != nil || len(drivers) < 3 {
		t.Fatalf("found %q (%v)", drivers, err)
	}
	findings := map[string]string{"shared-directories": torn, "local-directories": torn}
	for _, directory := range append(directories(t), drivers...) {
		name := filepath.Base(directory)
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(directory, "provisioner.yaml")
			for capability, lines := range linesOf(read(t, file)) {
				if most := map[bool]int{true: 79, false: 25}[capability == ""]; lines > most {
					t.Errorf("it has %d lines for %q, and may have %d", lines, capability, most)
				}
			}
			out, errs, err := pav(t, "lint", file)
			found, want := out+errs, findings[name]
			wanted := want == "" && found == "" || want != "" && strings.Contains(found, want) && strings.Count(found, "\n") == 1
			if err != nil || !wanted {
				t.Errorf("lint: %v\n%s", err, found)
			}
		})
	}
}

// One definition is to serve all APIs of buckets, and volumes: what sets that up, and uses it, stays readable.
func TestBuckets_AreShort(t *testing.T) {
	const most = 120
	lines := 0
	for _, file := range []string{"provisioner.yaml", "usage.yaml", "volume.yaml"} {
		lines += strings.Count(read(t, filepath.Join("../../examples/9-buckets", file)), "\n")
	}
	if lines > most {
		t.Errorf("the files have %d lines together, and may have %d", lines, most)
	}
}

// The READMEs say what capabilities cost.
func TestReadmes_CountLines(t *testing.T) {
	for name, capabilities := range map[string][]string{"7-reflink-files": {"expansion", "snapshots"}, "8-directory-copies": {"snapshots"}} {
		directory := filepath.Join("../../examples", name)
		lines := linesOf(read(t, filepath.Join(directory, "provisioner.yaml")))
		want := fmt.Sprintf("%d for volumes", lines[""])
		for _, capability := range capabilities {
			want += fmt.Sprintf(", %d for %s", lines[capability], capability)
		}
		if !strings.Contains(read(t, filepath.Join(directory, "README.md")), want+".") {
			t.Errorf("%s/README.md does not have %q", name, want)
		}
	}
}

// Every pod can be rendered, with and without --read-only, and shellcheck finds nothing in its script. If an example's
// usage has claims of both volume modes, each claim is rendered.
func TestScripts_PassShellcheck(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Fatal("the Debian package shellcheck is missing")
	}
	for _, directory := range directories(t) {
		claims := []string{""}
		if filepath.Base(directory) == "6-loop-device" {
			claims = []string{"loop-files", "loop-block"}
		}
		for _, claim := range claims {
			for _, flags := range [][]string{nil, {"--read-only"}} {
				t.Run(strings.Join(append([]string{filepath.Base(directory), claim}, flags...), "/"), func(t *testing.T) {
					args := append([]string{"render", filepath.Join(directory, "provisioner.yaml"), usageOf(t, directory, claim), "-o", "json"}, flags...)
					out, errs, err := pav(t, args...)
					if err != nil {
						t.Fatalf("render: %v\n%s", err, errs)
					}
					found := scripts(t, out)
					if buckets := filepath.Base(directory) == "9-buckets"; buckets && len(found) != 6 {
						t.Errorf("there are the scripts %q, want six", slices.Collect(maps.Keys(found)))
					}
					for phase, script := range found {
						checkScript(t.Context(), t, phase, script)
					}
				})
			}
		}
	}
}

// usageOf returns the path of an example's usage. If claim is not empty, it returns the path of a copy in which claim
// is the only claim.
func usageOf(t *testing.T, directory, claim string) string {
	t.Helper()
	path := filepath.Join(directory, "usage.yaml")
	if claim == "" {
		return path
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		if !strings.Contains(document, "kind: PersistentVolumeClaim\n") || strings.Contains(document, "\n  name: "+claim+"\n") {
			kept = append(kept, document)
		}
	}
	path = filepath.Join(t.TempDir(), "usage.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(kept, "\n---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// script is a script of a pod, with the options of the shell that runs it.
type script struct{ shell, text string }

// scripts returns the shell scripts of rendered pods, by workflow.
func scripts(t *testing.T, rendered string) map[string]script {
	t.Helper()
	var result struct {
		Phases []struct {
			Phase string
			Pod   *struct {
				Spec struct {
					Containers []struct{ Command, Args []string }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(rendered), &result); err != nil {
		t.Fatal(err)
	}
	found := map[string]script{}
	for _, phase := range result.Phases {
		if phase.Pod == nil {
			continue
		}
		for _, container := range phase.Pod.Spec.Containers {
			words := slices.Concat(container.Command, container.Args)
			if len(words) != 3 || words[0] != "sh" && words[0] != "bash" {
				t.Errorf("the %s pod runs %q, and no script", phase.Phase, words)
				continue
			}
			options := strings.TrimSuffix(words[1], "c") // the shell ends at the first error
			found[phase.Phase] = script{words[0], "set " + options + "\n" + words[2]}
		}
	}
	if len(found) == 0 {
		t.Errorf("there is no script in %s", rendered)
	}
	return found
}

func checkScript(ctx context.Context, t *testing.T, phase string, s script) {
	t.Helper()
	// Scripts find s3.sh, which the image has, in their PATH.
	command := exec.CommandContext(ctx, "shellcheck", "--shell="+s.shell, "--external-sources", "--source-path=../objectstore", "-") //nolint:gosec // sh or bash
	command.Stdin = strings.NewReader(s.text)
	out, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		t.Errorf("shellcheck on the script of the %s pod:\n%s", phase, out)
	} else if err != nil {
		t.Fatal(err)
	}
}
