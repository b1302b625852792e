package objectstore

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// programs is the directory of the programs that scripts find, which are those of the image of clients. A script that
// needs more than BusyBox would fail in a pod.
var programs string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	programs, err = os.MkdirTemp("", "objectstore-")
	if err == nil {
		defer func() { _ = os.RemoveAll(programs) }()
		err = install()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		return 1
	}
	return m.Run()
}

// install links the programs, which "make packages" installs.
func install() error {
	if out, err := exec.Command("busybox", "--install", "-s", programs).CombinedOutput(); err != nil { //nolint:noctx // No test has begun.
		return fmt.Errorf("linking the commands of BusyBox: %w: %s", err, out)
	}
	for name, program := range map[string]string{"bash": "bash-static", "curl": "curl", "jq": "jq"} {
		path, err := exec.LookPath(program)
		if err != nil {
			return fmt.Errorf("finding a program that the functions need: %w", err)
		}
		if err := os.Symlink(path, filepath.Join(programs, name)); err != nil {
			return fmt.Errorf("linking %s: %w", name, err)
		}
	}
	return nil
}

// call runs a script and returns what it prints, also as errors, and whether it succeeded.
func (g *Gateway) call(t *testing.T, account Account, script string, arguments ...string) (printed string, succeeded bool) {
	t.Helper()
	command := g.Command(t.Context(), account, script, arguments...)
	command.Path, command.Env = filepath.Join(programs, "bash"), append(command.Env, "PATH="+programs)
	out, err := command.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Error(err)
	}
	return strings.TrimSpace(string(out)), err == nil
}

// do runs a script as the administrator. It must succeed.
func (g *Gateway) do(t *testing.T, script string, arguments ...string) string {
	t.Helper()
	printed, succeeded := g.call(t, Admin, script, arguments...)
	if !succeeded {
		t.Errorf("%s %q fails:\n%s", script, arguments, printed)
	}
	return printed
}

// refuses runs a script as the administrator. It must fail, with the message at the end.
func (g *Gateway) refuses(t *testing.T, message, script string, arguments ...string) {
	t.Helper()
	if printed, succeeded := g.call(t, Admin, script, arguments...); succeeded || !strings.HasSuffix(printed, message) {
		t.Errorf("%s %q: it succeeds: %t, and prints %q; want a failure with %q", script, arguments, succeeded, printed, message)
	}
}

// answer makes a request, and returns the status and the code of an error.
func (g *Gateway) answer(t *testing.T, account Account, request ...string) string {
	t.Helper()
	printed, _ := g.call(t, account, `request "$@"; echo "$status $code"`, request...)
	return printed
}

// addUser creates an account with a new secret key.
func (g *Gateway) addUser(t *testing.T, key string) Account {
	t.Helper()
	const script = `head -c 30 /dev/urandom | base64 > "$2"; reset_user "$1" "$2"; cat "$2"`
	return Account{Key: key, Secret: g.do(t, script, key, filepath.Join(t.TempDir(), "secret"))}
}
