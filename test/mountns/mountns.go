package mountns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// inNamespace is the environment variable that is set if the test binary runs in a new mount namespace.
const inNamespace = "PAV_TEST_MOUNT_NAMESPACE"

// Run is for TestMain. It runs the tests in a new mount namespace, whose mounts do not propagate to the machine. It
// returns the exit code.
func Run(m *testing.M) int {
	if os.Getenv(inNamespace) == "" {
		return reExecute()
	}
	if err := Restrict(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		return 1
	}
	return m.Run()
}

// reExecute runs this binary again in a new mount namespace. os/exec makes / private there, because Unshareflags is
// set.
func reExecute() int {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "FAIL: these tests make real mounts and must run as root")
		return 1
	}
	again := &exec.Cmd{
		Path:        "/proc/self/exe",
		Args:        os.Args,
		Env:         append(os.Environ(), inNamespace+"=1"),
		Stdin:       os.Stdin,
		Stdout:      os.Stdout,
		Stderr:      os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS},
	}
	err := again.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL: running the tests in a mount namespace:", err)
		return 1
	}
	return 0
}
