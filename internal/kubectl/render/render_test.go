package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

var update = flag.Bool("update", false, "write the expected outputs again")

// run runs the command, and returns what it writes and its exit status.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, problems bytes.Buffer
	env := &cli.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &problems},
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

const example = "../../../examples/1-hello-world/"

// buckets is a definition that serves buckets, in all sections.
const buckets = "../../definition/testdata/correct/buckets.yaml"

// The whole output, on both streams. To write it again: go test ./internal/kubectl/render -update
func TestRender_Golden(t *testing.T) {
	tests := map[string][]string{
		"hello-world":                {example + "provisioner.yaml", example + "usage.yaml", "--node", "worker"},
		"hello-world-made-up":        {example + "provisioner.yaml"},
		"hello-world-static":         {example + "provisioner.yaml", "--pv", "testdata/static.yaml", "--read-only"},
		"static-grows":               {"testdata/grows.yaml", "--phase", "expansion"},
		"all-phases":                 {"testdata/all.yaml", "--pvc", "testdata/claims.yaml", "--sc", "testdata/class.yaml", "--node", "testdata/node.yaml"},
		"all-phases-fail":            {"testdata/all.yaml"},
		"snapshots":                  {"testdata/snapshots.yaml", "--phase", "snapshot-creation,snapshot-deletion"},
		"snapshots-made-up":          {"testdata/all.yaml", "--sc", "testdata/class.yaml", "--node", "testdata/node.yaml", "--phase", "snapshot-creation,snapshot-deletion"},
		"buckets":                    {buckets, "testdata/bucket.yaml"},
		"buckets-made-up":            {buckets, "--phase", "bucket-validation,bucket-creation,access-grant"},
		"buckets-refused":            {buckets, "testdata/bucket-policy.yaml", "--phase", "validate-bucket,delete-bucket"},
		"buckets-that-exist":         {"../../definition/testdata/correct/buckets-that-exist.yaml"},
		"buckets-as-volumes":         {"../../definition/testdata/correct/buckets-as-volumes.yaml"},
		"restored":                   {"testdata/sources.yaml", "testdata/restore.yaml", "--phase", "creation"},
		"restored-made-up":           {"testdata/sources.yaml", "--source", "VolumeSnapshot", "--phase", "creation,deletion"},
		"cloned":                     {"testdata/sources.yaml", "testdata/clone.yaml", "--phase", "creation"},
		"cloned-made-up":             {"testdata/sources.yaml", "--source", "PersistentVolumeClaim", "--phase", "creation"},
		"source-unsupported":         {"testdata/all.yaml", "--sc", "testdata/class.yaml", "--node", "testdata/node.yaml", "--source", "VolumeSnapshot", "--phase", "creation"},
		"refused":                    {"testdata/refused.yaml", "--pvc", "testdata/claims.yaml"},
		"pod-scope":                  {"testdata/scope.yaml", "--phase", "unstaging,staging", "--handle", "h"},
		"staging-fails-for-creation": {"testdata/cause.yaml", "--phase", "staging"},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := run(t, args...)
			got := fmt.Sprintf("%s\n==== standard error\n%s==== exit status %d\n", stdout, stderr, code)
			golden(t, name, got)
		})
	}
}

// golden compares an output with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRender_Structured(t *testing.T) {
	results := map[string]Result{}
	for _, format := range []string{"json", "yaml"} {
		stdout, _, code := run(t, example+"provisioner.yaml", example+"usage.yaml", "-o", format)
		result := Result{}
		if err := yaml.Unmarshal([]byte(stdout), &result); err != nil || code != 0 {
			t.Fatalf("exit status %d, %v", code, err)
		}
		results[format] = result
		if format == "json" && !json.Valid([]byte(stdout)) {
			t.Error("it is no JSON")
		}
	}
	if diff := cmp.Diff(results["json"], results["yaml"]); diff != "" {
		t.Errorf("JSON and YAML differ:\n%s", diff)
	}
	got := results["json"]
	if got.Provisioner != "hello-world" || len(got.Phases) != 2 || got.Phases[0].Capacity != "1Mi" || got.Phases[1].Pod["kind"] != "Pod" {
		t.Errorf("got %+v", got)
	}
}

func TestRender_Misuse(t *testing.T) {
	provisioner := example + "provisioner.yaml"
	tests := map[string]struct {
		args []string
		err  string
		code int
	}{
		"no such phase":         {[]string{provisioner, "--phase", "mounting"}, "--phase mounting: it is one of validation, creation, expansion, modification, snapshot-creation, snapshot-deletion, deletion, staging, node-expansion, unstaging, bucket-validation, bucket-creation, bucket-update, access-grant, access-revocation, bucket-deletion", 2},
		"no such source":        {[]string{provisioner, "--source", "Volume"}, "--source Volume: it is one of VolumeSnapshot, PersistentVolumeClaim", 2},
		"a source twice":        {[]string{"testdata/sources.yaml", "testdata/clone.yaml", "--source", "VolumeSnapshot"}, `--source cannot be used with claim "copy", which names a source`, 2},
		"a source, static":      {[]string{provisioner, "--pv", "testdata/static.yaml", "--source", "VolumeSnapshot"}, "--source cannot be used with a static volume", 2},
		"no provisioner":        {[]string{example + "usage.yaml"}, "there is no PavProvisioner in the files", 2},
		"several":               {[]string{provisioner, "testdata/all.yaml"}, "there are several PavProvisioners in the files: say which, with --provisioner, of hello-world, all", 2},
		"another name":          {[]string{provisioner, "--provisioner", "x"}, `there is no PavProvisioner "x" in the files, which have hello-world`, 2},
		"no claim in the file":  {[]string{provisioner, "--pvc", provisioner}, "there is no PersistentVolumeClaim in " + provisioner, 2},
		"another class":         {[]string{provisioner, "--sc", "testdata/class.yaml"}, `StorageClass "gold" (testdata/class.yaml:1) has the provisioner "all", not "hello-world"`, 2},
		"another volume":        {[]string{"testdata/all.yaml", "--pv", "testdata/static.yaml"}, `no PersistentVolume in testdata/static.yaml has the spec.csi.driver "all"`, 2},
		"a handle and a volume": {[]string{provisioner, "--pv", "testdata/static.yaml", "--handle", "h"}, "--handle cannot be used with a PersistentVolume", 2},
		"no such file":          {[]string{"nothing.yaml"}, "nothing.yaml: no such file", 2},
		"no such node":          {[]string{provisioner, "--node", "no/node.yaml"}, "--node no/node.yaml: there is no such file", 2},
		"a directory":           {[]string{example}, "is a directory: name its files", 2},
		"volumes alone":         {[]string{provisioner, "--volumes"}, "--volumes needs --diff", 2},
		"volumes and a claim":   {[]string{provisioner, "--diff", "--volumes", "--pvc", "testdata/claims.yaml"}, "--pvc cannot be used with --volumes", 2},
		"volumes and readOnly":  {[]string{provisioner, "--diff", "--volumes", "--read-only"}, "--read-only cannot be used with --volumes", 2},
		"a mistake and a diff":  {[]string{"../../definition/testdata/mistakes/attribute-misspelled-deep.yaml", "--diff=" + provisioner}, `attribute-misspelled-deep.yaml:17:41: error: spec.volumeStaging`, 2},
		"diff and -o":           {[]string{provisioner, "--diff=" + provisioner, "-o", "json"}, "--diff and -o cannot be used together", 2},
		"a claim that is none":  {[]string{provisioner, "--pvc", "testdata/broken.yaml"}, `testdata/broken.yaml:5:1: error: strict decoding error: unknown field "spec.resource"`, 2},
		"a wrong definition":    {[]string{"../../definition/testdata/mistakes/attribute-misspelled-deep.yaml"}, `attribute-misspelled-deep.yaml:17:41: error: spec.volumeStaging`, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := run(t, test.args...)
			if stdout != "" || code != test.code || !strings.Contains(stderr, test.err) {
				t.Errorf("exit status %d, want %d; got %q, want %q", code, test.code, stderr, test.err)
			}
		})
	}
}

func TestRender_Diff(t *testing.T) {
	raw, err := os.ReadFile(example + "provisioner.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(t.TempDir(), "new.yaml")
	text := strings.Replace(string(raw), "busybox:1.37.0", "busybox:1.38.0", 1) + "  volumeUnstaging:\n    podTemplate:\n      spec:\n        containers:\n          - {name: u, image: \"x:1\"}\n"
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECTL_EXTERNAL_DIFF", "")
	stdout, _, code := run(t, changed, "--diff="+example+"provisioner.yaml")
	for _, want := range []string{"--- OLD/staging.yaml", "-    image: busybox:1.37.0\n+    image: busybox:1.38.0\n", "+++ NEW/unstaging.yaml", "+  - image: x:1\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in:\n%s", want, stdout)
		}
	}
	if code != 1 {
		t.Errorf("where something differs, the exit status is %d", code)
	}
	if stdout, _, code = run(t, changed, "--diff="+changed); code != 0 || stdout != "" {
		t.Errorf("nothing differs: exit status %d, %s", code, stdout)
	}
	t.Setenv("KUBECTL_EXTERNAL_DIFF", "diff -q -r ;id")
	if stdout, _, code = run(t, changed, "--diff="+example+"provisioner.yaml"); code != 1 || !strings.Contains(stdout, "Files OLD/staging.yaml and NEW/staging.yaml differ") {
		t.Errorf("another program: exit status %d, %s", code, stdout)
	}
	t.Setenv("KUBECTL_EXTERNAL_DIFF", "no-such-program")
	if _, stderr, code := run(t, changed, "--diff="+changed); code != 2 || !strings.Contains(stderr, "running no-such-program") {
		t.Errorf("no program: exit status %d, %s", code, stderr)
	}
}
