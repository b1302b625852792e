package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// said is what "kubectl pav" wrote, and its exit status.
type said struct {
	args     string
	out, err string
	code     int
}

// pavCommand returns the command "kubectl pav" with arguments, with the plugin of this checkout.
func pavCommand(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	bin, err := filepath.Abs("bin")
	must(t, err)
	plugin, err := filepath.Abs("cmd/kubectl-pav") // has what completes
	must(t, err)
	command := exec.CommandContext(ctx, "kubectl", args...)
	command.Env = append(os.Environ(), "PATH="+strings.Join([]string{os.Getenv("PATH"), bin, plugin}, string(os.PathListSeparator)))
	return command
}

// pav runs "kubectl pav".
func pav(t *testing.T, args ...string) said {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	return finish(t, pavCommand(ctx, t, append([]string{"pav"}, args...)...))
}

func finish(t *testing.T, command *exec.Cmd) said {
	t.Helper()
	var out, stderr bytes.Buffer
	command.Stdout, command.Stderr = &out, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", strings.Join(command.Args, " "), err)
	}
	return said{args: strings.Join(command.Args, " "), out: out.String(), err: stderr.String(), code: command.ProcessState.ExitCode()}
}

// check objects unless the command ended with the status and wrote all the words.
func (s said) check(code int, words ...string) error {
	var errs []error
	if s.code != code {
		errs = append(errs, fmt.Errorf("%s ends with status %d, want %d", s.args, s.code, code))
	}
	for _, word := range words {
		if !strings.Contains(s.out+s.err, word) {
			errs = append(errs, fmt.Errorf("%s does not say %q", s.args, word))
		}
	}
	if len(errs) > 0 {
		errs = append(errs, fmt.Errorf("it wrote\n%s\n%s", s.out, s.err))
	}
	return errors.Join(errs...)
}

// wants fails the test unless the command ended with the status and wrote all the words.
func (s said) wants(t *testing.T, code int, words ...string) said {
	t.Helper()
	if err := s.check(code, words...); err != nil {
		t.Error(err)
	}
	return s
}

// pavSays runs "kubectl pav" until it ends with the status and writes all the words.
func pavSays(t *testing.T, args []string, code int, words ...string) said {
	t.Helper()
	var last said
	eventually(t, "kubectl pav "+strings.Join(args, " "), func(ctx context.Context) error {
		last = finish(t, pavCommand(ctx, t, append([]string{"pav"}, args...)...))
		return last.check(code, words...)
	})
	return last
}

// lacks fails the test if the command wrote any of the words.
func (s said) lacks(t *testing.T, words ...string) {
	t.Helper()
	for _, word := range words {
		if strings.Contains(s.out+s.err, word) {
			t.Errorf("%s says %q:\n%s\n%s", s.args, word, s.out, s.err)
		}
	}
}

// decode reads what the command wrote with -o json.
func (s said) decode(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(s.out), into); err != nil {
		t.Fatalf("%s wrote no JSON (%v):\n%s\n%s", s.args, err, s.out, s.err)
	}
}

// writeFile writes YAML to a file of the test's own.
func writeFile(t *testing.T, yaml string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "provisioner.yaml")
	must(t, os.WriteFile(file, []byte(yaml), 0o600))
	return file
}

// wantNothingOf waits until nothing is left that the test of a provisioner created.
func wantNothingOf(t *testing.T, name string) {
	t.Helper()
	eventually(t, "nothing is left of "+name, func(ctx context.Context) error {
		var errs []error
		for _, object := range []client.Object{
			&pavv1.PavProvisioner{ObjectMeta: objectMeta("", name)}, &storagev1.StorageClass{ObjectMeta: objectMeta("", name)},
			&corev1.Namespace{ObjectMeta: objectMeta("", name)},
		} {
			errs = append(errs, gone(ctx, object))
		}
		for _, list := range []client.ObjectList{&pavv1.PavVolumeList{}, &pavv1.PavStageList{}} {
			errs = append(errs, noneIn(ctx, list, client.MatchingLabels{pavv1.ProvisionerLabel: name}))
		}
		return errors.Join(append(errs, wantNoWorkflowPods(ctx, name))...)
	})
}
