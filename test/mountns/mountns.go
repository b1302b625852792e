package mountns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// inNamespace marks the test binary that runs in a mount namespace of its own.
const inNamespace = "PAV_TEST_MOUNT_NAMESPACE"

// Run is for TestMain: it runs the tests in a new mount namespace that sends nothing back, and returns the
// code to exit with.
func Run(m *testing.M) int {
	if os.Getenv(inNamespace) == "" {
		return reExecute()
	}
	return m.Run()
}

// reExecute runs this binary again. The unsharing of os/exec makes / private.
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
