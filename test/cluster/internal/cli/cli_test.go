package cli

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/albertofaria/pav/test/cluster/internal/cluster"
	"github.com/albertofaria/pav/test/cluster/internal/paths"
)

// call runs the program with an empty cache and an empty state directory.
func call(t *testing.T, arguments ...string) error {
	t.Helper()
	t.Setenv(paths.CacheVariable, filepath.Join(t.TempDir(), "cache"))
	t.Setenv(paths.StateVariable, filepath.Join(t.TempDir(), "state"))
	root := newRoot()
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	root.SetArgs(arguments)
	return root.Execute()
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	for line, want := range map[string]string{
		"up now":                          "unknown command",
		"up --nodes few":                  "invalid argument",
		"exec":                            "requires at least 1 arg",
		"load":                            "requires at least 1 arg",
		"image out.tar":                   "required flag",
		"status -o yaml":                  "unknown format",
		"node kubelet halt node1":         "unknown argument",
		"node kubelet stop":               "accepts 2 arg",
		"node reboot":                     "accepts 1 arg",
		"exec --node node1 -- kubectl -v": "no cluster is up",
		"exec kubectl --help":             "no cluster is up",
		"load missing.tar":                "no cluster is up",
	} {
		err := call(t, strings.Fields(line)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", line, err, want)
		}
	}
}

func TestFirstProcessOfANodeIsNoCommandToCall(t *testing.T) {
	if err := call(t, "machine"); err == nil {
		t.Error("got no error")
	}
}

func TestImageIsMade(t *testing.T) {
	directory := t.TempDir()
	binary := filepath.Join(directory, "program")
	if err := os.WriteFile(binary, []byte("binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(directory, "image.tar")
	if err := call(t, "image", "--ref", "localhost/pav:dev", "--binary", binary, "--entrypoint", "/pav", output); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(output); err != nil {
		t.Error(err)
	}
}

func TestExitCodesAreThoseOfAShell(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -TERM $$": 143} {
		command := exec.CommandContext(t.Context(), "sh", "-c", script)
		_ = command.Run() // only the state matters
		if got := exitCode(command.ProcessState); got != want {
			t.Errorf("%q: got %d, want %d", script, got, want)
		}
	}
}

func TestStatusIsPrinted(t *testing.T) {
	var output bytes.Buffer
	err := printStatus(&output, cluster.Status{Phase: "running", Nodes: []cluster.NodeStatus{
		{Name: "node1", Running: true}, {Name: "node2", Running: true, Isolated: true}, {Name: "node3"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"running", "isolated", "stopped"} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("%q is missing in\n%s", want, output.String())
		}
	}
}
