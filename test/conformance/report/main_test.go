package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2/types"
)

const recorded = `# How many specs of each suite run and are skipped: written with conformance-report --record.
suites:
  subPath: {passed: 1, skipped: 1}
`

// world creates a directory with a driver definition, records and reports, and makes it the working directory.
func world(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	report := func(states ...types.SpecState) string {
		report := types.Report{SuiteSucceeded: true}
		for i, state := range states {
			spec := types.SpecReport{
				ContainerHierarchyTexts: []string{"External Storage [Driver: shared]", "[Testpattern: Dynamic PV (default fs)] subPath"},
				LeafNodeType:            types.NodeTypeIt, LeafNodeText: string(rune('a' + i)), State: state,
			}
			switch {
			case state.Is(types.SpecStateSkipped):
				spec.Failure.Message = "Driver shared doesn't support it"
			case state.Is(types.SpecStatePending):
				spec.State = types.SpecStateSkipped
			case spec.Failed():
				report.SuiteSucceeded = false
			}
			report.SpecReports = append(report.SpecReports, spec)
		}
		data, err := json.Marshal([]types.Report{report})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for name, text := range map[string]string{
		"driver.yaml":   "DriverInfo: {Name: shared, Capabilities: {exec: true}}\n",
		"expected.yaml": recorded,
		"other.yaml":    "suites: {subPath: {passed: 2, skipped: 0}}\n",
		"parallel.json": report(types.SpecStatePassed, types.SpecStatePending),
		"serial.json":   report(types.SpecStatePending, types.SpecStateSkipped),
		"failed.json":   report(types.SpecStatePending, types.SpecStateFailed),
		"none.json":     report(types.SpecStatePending, types.SpecStatePending),
		"no.json":       "{",
		"empty.json":    "[]",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

// call runs the program and returns its output and the text of its error.
func call(t *testing.T, line string) (out, failure string) {
	t.Helper()
	s, err := parse(strings.Fields(line), io.Discard)
	var written strings.Builder
	if err == nil {
		err = run(s, &written)
	}
	if err != nil {
		return written.String(), err.Error()
	}
	return written.String(), ""
}

func TestRun_Verdict(t *testing.T) {
	for name, test := range map[string]struct{ line, want string }{
		"as recorded":         {"--driver driver.yaml --expected expected.yaml parallel.json serial.json", ""},
		"a part":              {"--driver driver.yaml --partial parallel.json", ""},
		"a part with failure": {"--driver driver.yaml --partial parallel.json failed.json", "specs that failed: 1"},
		"other numbers": {"--driver driver.yaml --expected other.yaml parallel.json serial.json",
			"other numbers of specs than recorded in other.yaml:\n" +
				"Suite subPath: recorded 2 specs that ran and 0 skipped, now 1 and 1.\n" +
				"A mistyped capability or key in driver.yaml switches specs off without a word. If the change is meant, record it with --record."},
		"a failure is no other number": {"--driver driver.yaml --expected other.yaml parallel.json failed.json", "specs that failed: 1"},
		"no record":                    {"--driver driver.yaml --expected new.yaml parallel.json", "open new.yaml: no such file or directory; --record makes it"},
		"no report":                    {"--driver driver.yaml --partial", "no report is given"},
		"no such report":               {"--driver driver.yaml --partial x.json", "open x.json: no such file or directory"},
		"half a report":                {"--driver driver.yaml --partial no.json", "reading report no.json: unexpected end of JSON input"},
		"an empty report":              {"--driver driver.yaml --partial parallel.json empty.json", "report empty.json is empty: the suite ended before it could write one"},
		"a focus on nothing":           {"--driver driver.yaml --partial none.json", "the focus matches no spec"},
		"no driver":                    {"--partial parallel.json", "--driver is missing"},
		"nothing to compare with":      {"--driver driver.yaml parallel.json", "--expected is missing; a run with a focus needs --partial instead"},
		"a record of a part":           {"--driver driver.yaml --expected x.yaml --record --partial parallel.json", "--record and --partial exclude each other: a part says nothing about the whole"},
	} {
		t.Run(name, func(t *testing.T) {
			world(t)
			if _, got := call(t, test.line); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestRun_TheSummaryIsShownWhateverTheVerdict(t *testing.T) {
	for _, line := range []string{
		"--driver driver.yaml --expected expected.yaml --output summary.md --commit abc parallel.json serial.json",
		"--driver driver.yaml --expected new.yaml --output summary.md --commit abc parallel.json failed.json",
	} {
		world(t)
		out, _ := call(t, line)
		if !strings.HasPrefix(out, "## shared\n") || !strings.Contains(out, "| abc ") {
			t.Errorf("%s: got %q", line, out)
		}
		file, err := os.ReadFile("summary.md")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(out, string(file)); diff != "" {
			t.Errorf("(-shown +written):\n%s", diff)
		}
	}
}

func TestRun_OnlyARunWithoutFailuresIsRecorded(t *testing.T) {
	world(t)
	if _, got := call(t, "--driver driver.yaml --expected new.yaml --record parallel.json failed.json"); !strings.Contains(got, "not recorded") {
		t.Errorf("got %q", got)
	}
	if _, err := os.Stat("new.yaml"); !os.IsNotExist(err) {
		t.Errorf("a run with a failure was recorded: %v", err)
	}
	if _, got := call(t, "--driver driver.yaml --expected new.yaml --record parallel.json serial.json"); got != "" {
		t.Error(got)
	}
	file, err := os.ReadFile("new.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(recorded, string(file)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRun_FailedSpecsAreListedAsAFocus(t *testing.T) {
	world(t)
	out, failure := call(t, "--driver driver.yaml --failed parallel.json failed.json")
	want := `External Storage \[Driver: shared\] \[Testpattern: Dynamic PV \(default fs\)\] subPath b` + "\n"
	if out != want || failure != "" {
		t.Errorf("got %q and error %q, want %q", out, failure, want)
	}
}
