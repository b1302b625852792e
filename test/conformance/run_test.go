package conformance_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// runScript runs functions of the script run. The shell functions that read reports and run specs are replaced. It
// returns the output and the exit code.
func runScript(t *testing.T, results, script string, environment ...string) (string, int) {
	t.Helper()
	// os.Stat makes go test depend on the script, so that a cached test result is not used after a change of the
	// script.
	if _, err := os.Stat("run"); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "bash", "-c", `source ./run; results=$1
suite() { echo "suite ${*: -1} focus $4"; }
eval "$2"`, "run", results, script)
	command.Env = append(os.Environ(), append([]string{"PAV_CLUSTER_CACHE=" + t.TempDir(), "SHORT=", "FAILED=", "FOCUS=", "RECORD=", "REPEAT="}, environment...)...)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return out.String(), exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), 0
}

// The script continues after a driver that failed, and its exit code still shows the failure.
func TestRun_FailsWhereAReportDoes(t *testing.T) {
	for name, test := range map[string]struct {
		report string
		want   int
	}{
		"all is well":                  {report: `return 0`},
		"a spec failed":                {report: `[ "$2" = --failed ] || [ "$1" = second ]`, want: 1},
		"that of the last driver":      {report: `[ "$2" = --failed ] || [ "$1" = first ]`, want: 1},
		"a report that cannot be read": {report: `return 1`, want: 1},
	} {
		for _, run := range []string{"run_short", "run_full"} {
			t.Run(name+"/"+run, func(t *testing.T) {
				out, got := runScript(t, t.TempDir(), "report() { echo \"report $1\" >&2; "+test.report+"; }\n"+run+" first second")
				if got != test.want {
					t.Errorf("it ended with %d, want %d:\n%s", got, test.want, out)
				}
				for _, driver := range []string{"first", "second"} {
					if !strings.Contains(out, "report "+driver+"\n") {
						t.Errorf("nobody read the report of %s:\n%s", driver, out)
					}
				}
			})
		}
	}
}

// With FAILED, the script repeats only the failed specs. It runs nothing for a driver without failed specs.
func TestRun_RepeatsWhatFailed(t *testing.T) {
	results := t.TempDir()
	for driver, failed := range map[string]string{"first": "", "second": "a spec|another"} {
		if err := os.MkdirAll(filepath.Join(results, driver), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(results, driver, "failed"), []byte(failed+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, code := runScript(t, results, "report() { :; }\nrun_full first second", "FAILED=1")
	if code != 0 || strings.Contains(out, "suite first") || strings.Count(out, "suite second focus a spec|another\n") != 2 {
		t.Errorf("it ended with %d, and ran:\n%s", code, out)
	}
	if out, code := runScript(t, results, "report() { :; }\nrun_full never", "FAILED=1"); code == 0 {
		t.Errorf("without a list, it ended with %d:\n%s", code, out)
	}
}
