package integration

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// skippedSpecs is the file of the specs of csi-test's sanity suite that are skipped, and why.
const skippedSpecs = "testdata/sanity-skipped.txt"

// report is what ginkgo writes of a suite, as far as it matters here.
type report struct {
	SpecReports []struct {
		ContainerHierarchyTexts []string
		LeafNodeText            string
		LeafNodeType            string
		State                   string
		Failure                 struct{ Message string }
	}
}

// csi-test's sanity suite, for CSI's Identity and Node services, on the real agent's socket.
func TestNode_Sanity(t *testing.T) {
	program := buildSanity(t)
	want := readLines(t, skippedSpecs)
	for _, kind := range []string{"mount", "block"} {
		t.Run(kind, func(t *testing.T) {
			n := newNode(t, workers(t, newDevices(t)), growsOnNodes)
			n.run(t)
			states, skipped := n.runSanity(t, program, kind)
			if diff := cmp.Diff(want, skipped); diff != "" {
				t.Errorf("specs that were skipped, against %s (-want +got):\n%s", skippedSpecs, diff)
			}
			t.Logf("specs: %v", states)
			if states["passed"] < 20 {
				t.Errorf("only %d specs passed", states["passed"])
			}
			n.wantBalance(t)
		})
	}
}

// runSanity runs the suite and returns how many specs ended in which state, and which were skipped.
func (n *node) runSanity(t *testing.T, program, kind string) (states map[string]int, skipped []string) {
	t.Helper()
	dir, reportFile := n.serveSanity(t), filepath.Join(t.TempDir(), "report.json")
	command := exec.CommandContext(t.Context(), program,
		"-csi.endpoint", filepath.Join(dir, "csi.sock"),
		"-csi.mountdir", filepath.Join(dir, "target"), "-csi.stagingdir", filepath.Join(dir, "staging"),
		"-csi.testvolumeaccesstype", kind, "-csi.testvolumesize", "1048576",
		"-ginkgo.focus", "Node Service|Identity Service", "-ginkgo.json-report", reportFile, "-ginkgo.no-color",
	)
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("the sanity suite: %v\n%s", err, output)
	}
	raw, err := os.ReadFile(reportFile)
	if err != nil {
		t.Fatal(err)
	}
	var reports []report
	if err := json.Unmarshal(raw, &reports); err != nil {
		t.Fatal(err)
	}
	states = map[string]int{}
	reasons := map[string]bool{}
	for _, spec := range reports[0].SpecReports {
		name := strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeText), " ")
		focused := strings.HasPrefix(name, "Node Service") || strings.HasPrefix(name, "Identity Service")
		if spec.LeafNodeType != "It" || !focused {
			continue
		}
		states[spec.State]++
		if spec.State == "skipped" {
			reasons[name+": "+spec.Failure.Message] = true
		}
	}
	return states, slices.Sorted(maps.Keys(reasons))
}

// wantBalance fails the test unless every volume was staged, and unstaged as often.
func (n *node) wantBalance(t *testing.T) {
	t.Helper()
	n.checkLeft(t)
	all := n.Journal.Runs("")
	if all[pavv1.WorkflowStaging] == 0 || all[pavv1.WorkflowStaging] != all[pavv1.WorkflowUnstaging] {
		t.Errorf("runs of pods: %v", all)
	}
}

// buildSanity builds csi-test's program, of the version that its own module names.
func buildSanity(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "csi-sanity")
	command := exec.CommandContext(t.Context(), "go", "-C", filepath.Join("..", "tools", "csi-sanity"), "build", "-o", program,
		"github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building the sanity suite: %v\n%s", err, output)
	}
	return program
}

func readLines(t *testing.T, path string) []string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}
