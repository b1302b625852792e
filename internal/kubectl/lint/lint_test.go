package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/albertofaria/pav/internal/definition"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/kubectl/source"
)

const testdata = "../../definition/testdata/"

// run runs the command, and returns what it writes and its exit status.
func run(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, problems bytes.Buffer
	env := &cli.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &problems},
		Config:    genericclioptions.NewConfigFlags(true),
	}
	command := Command(env)
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	if err != nil {
		code = 1
		if exit, ok := errors.AsType[*cli.ExitError](err); ok {
			code, err = exit.Code, exit.Err
		}
		if err != nil {
			fmt.Fprintln(&problems, err)
		}
	}
	return out.String(), problems.String(), code
}

func glob(t *testing.T, pattern string, atLeast int) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) < atLeast {
		t.Fatalf("%s: there are %d files (%v), want at least %d", pattern, len(files), err, atLeast)
	}
	return files
}

// Each file says in its first lines what is wrong with it: see the README beside it.
func TestLint_FindsEachMistakeInItsLine(t *testing.T) {
	for _, file := range glob(t, testdata+"mistakes/*.yaml", 60) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			stdout, stderr, code := run(t, "", "-o", "json", "--strict", file)
			if code != 1 || stderr != "" {
				t.Errorf("exit status %d, %s", code, stderr)
			}
			result := Result{}
			if err := json.Unmarshal([]byte(stdout), &result); err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			left := result.Findings
			for line := range strings.Lines(string(raw)) {
				want, ok := strings.CutPrefix(line, "# finding: ")
				if !ok {
					continue
				}
				words := strings.SplitN(strings.TrimSpace(want), " ", 4)
				i := slices.IndexFunc(left, func(f Finding) bool {
					return string(f.Severity) == words[0] && strconv.Itoa(f.Line) == words[1] && f.Field == words[2] && strings.Contains(f.Message, words[3])
				})
				if i < 0 {
					t.Errorf("not found: %s", want)
					continue
				}
				left = slices.Delete(left, i, i+1)
			}
			for _, f := range left {
				t.Errorf("unexpected: %s %d %s %s", f.Severity, f.Line, f.Field, f.Message)
			}
		})
	}
}

func TestLint_FindsNothingInCorrectDefinitions(t *testing.T) {
	files := append(glob(t, testdata+"correct/*.yaml", 20), glob(t, "../../../examples/*/*.yaml", 2)...)
	stdout, stderr, code := run(t, "", append([]string{"--strict"}, files...)...)
	if stdout != "" || stderr != "" || code != 0 {
		t.Errorf("exit status %d:\n%s%s", code, stdout, stderr)
	}
}

const (
	good = `apiVersion: pav.albertofaria.github.io/v1alpha1
kind: PavProvisioner
metadata:
  name: good
spec:
  provisioningModes: [Static]
  volumeStaging:
    podTemplate:
      spec:
        containers:
          - name: stage
            image: busybox:1.37.0
            command: [mkdir, /pav/volume]
`
	other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
)

func TestLint(t *testing.T) {
	bad := strings.Replace(good, "            image", "            imag: x\n            image", 1)
	unpinned := strings.Replace(good, "busybox:1.37.0", "busybox", 1)
	tests := map[string]struct {
		stdin string
		args  []string
		files []string // default: standard input
		out   []string // each a part of a line
		err   string
		code  int
	}{
		"nothing to say":              {stdin: good},
		"beside others":               {stdin: other + "---\n" + good + "---\n" + other},
		"in a List":                   {stdin: "kind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(good), "\n", "\n  ")},
		"an unknown field":            {stdin: bad, code: 1, out: []string{`<stdin>:12:13: error: spec.volumeStaging.podTemplate.spec.containers[0].imag: unknown field`}},
		"in the second document":      {stdin: other + "---\n" + bad, code: 1, out: []string{`<stdin>:16:13: error: `}},
		"a warning":                   {stdin: unpinned, out: []string{`<stdin>:12:20: warning: spec.volumeStaging.podTemplate.spec.containers[0].image: "busybox"`}},
		"a warning that counts":       {stdin: unpinned, args: []string{"-W"}, code: 1, out: []string{": warning: "}},
		"no YAML":                     {stdin: "kind: PavProvisioner\n\tspec: 1\n", code: 1, out: []string{"<stdin>:2:1: error: "}},
		"a kind that is misspelled":   {stdin: strings.Replace(good, "PavProvisioner", "PavProvisoner", 1), code: 1, out: []string{"<stdin>:2:7: error: kind: "}},
		"a version that is wrong":     {stdin: strings.Replace(good, "v1alpha1", "v1", 1), code: 1, out: []string{"<stdin>:1:13: error: apiVersion: "}},
		"a key that is twice":         {stdin: good + "kind: PavProvisioner\n", code: 1, out: []string{`<stdin>:14:1: error: the key "kind" is in this mapping already, in line 2`}},
		"no provisioner":              {stdin: other, code: 2, err: "there is no PavProvisioner in -"},
		"records of buckets":          {stdin: strings.Replace(good, "PavProvisioner", "PavBucket", 1) + "---\n" + strings.Replace(good, "PavProvisioner", "PavBucketAccess", 1), code: 2, err: "there is no PavProvisioner in -"},
		"no file":                     {files: []string{"nothing.yaml"}, code: 2, err: "nothing.yaml: no such file"},
		"an empty directory":          {files: []string{t.TempDir()}, code: 2, err: "there are no files in this directory"},
		"a limit that is none":        {args: []string{"--template-max-steps=0"}, code: 2, err: "--template-max-steps: must be above 0"},
		"a definition without a name": {stdin: strings.Replace(good, "  name: good\n", "", 1), code: 1, out: []string{"<stdin>:3:1: error: metadata.name: "}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.files == nil {
				test.files = []string{"-"}
			}
			stdout, stderr, code := run(t, test.stdin, append(test.args, test.files...)...)
			if code != test.code || !strings.Contains(stderr, test.err) || test.err == "" && stderr != "" {
				t.Errorf("exit status %d, want %d; %q, want %q", code, test.code, stderr, test.err)
			}
			lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
			if stdout == "" {
				lines = nil
			}
			if len(lines) != len(test.out) {
				t.Fatalf("got %q", lines)
			}
			for i, want := range test.out {
				if !strings.Contains(lines[i], want) {
					t.Errorf("got %q, want %q", lines[i], want)
				}
			}
		})
	}
}

func TestLint_LooksIntoDirectories(t *testing.T) {
	directory := t.TempDir()
	for name, text := range map[string]string{"a.yaml": good, "b/c.yml": good, "b/d.json": `{"kind": "PavProvisioner"}`, "e.txt": "kind: PavProvisioner"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(directory, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for flag, want := range map[string]int{"--recursive=false": 1, "-R": 3} {
		stdout, _, _ := run(t, "", "-o", "json", flag, directory)
		result := Result{}
		if err := json.Unmarshal([]byte(stdout), &result); err != nil || result.Provisioners != want {
			t.Errorf("%s: %d PavProvisioners (%v), want %d", flag, result.Provisioners, err, want)
		}
	}
}

func TestPrint(t *testing.T) {
	documents, err := source.Read("f.yaml", strings.NewReader("a: x\nb: \"ä 世界 {{ foo_bar }}\"\nc: "+strings.Repeat("0123456789", 20)+"{{ foo }}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Print(&out, cli.Style{}, true, []Finding{
		At(documents[0], definition.Finding{Severity: definition.Error, Field: "b", Line: 1, Column: 9, Message: "one\x1b[31m"}),
		At(documents[0], definition.Finding{Severity: definition.Warning, Field: "c", Line: 1, Column: 204, Message: "two"}),
	}); err != nil {
		t.Fatal(err)
	}
	want := `f.yaml:2:13: error: b: one[31m
    2 | b: "ä 世界 {{ foo_bar }}"
      |               ^^^^^^^
f.yaml:3:207: warning: c: two
    3 | …567890123456789012345678901234567890123456789012345678{{ foo }}
      |                                                            ^^^
`
	want = strings.Replace(want, "…567890123456789012345678901234567890123456789012345678", "…"+strings.Repeat("0123456789", 20)[203-60:], 1)
	want = strings.Replace(want, "      |                                                            ^^^", "      | "+strings.Repeat(" ", 61)+"^^^", 1)
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
