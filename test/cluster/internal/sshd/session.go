package sshd

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"github.com/gliderlabs/ssh"
)

const (
	// failed is the exit code of a command that could not be started.
	failed = 1
	// outputTime is how long the output of a command stays open for what it left running.
	outputTime = 5 * time.Second
)

// run runs the command of a session and passes its output and exit code back. The end of the
// connection ends the command, and what it started with it.
func (s *Server) run(session ssh.Session) {
	code, err := s.execute(session)
	if err != nil {
		// The client may be gone, and then nobody misses the text.
		_, _ = fmt.Fprintf(session.Stderr(), "error: %v\n", err)
	}
	_ = session.Exit(code)
}

func (s *Server) execute(session ssh.Session) (int, error) {
	if session.RawCommand() == "" {
		return failed, fmt.Errorf("a command is needed: there is no interactive shell")
	}
	command := exec.CommandContext(session.Context(), "sh", "-c", session.RawCommand())
	command.Env, command.Dir = s.environment, "/"
	command.Stdout, command.Stderr = session, session.Stderr()
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = outputTime
	// Waiting for a command includes no input that comes this way, which may go on after its end.
	input, err := command.StdinPipe()
	if err != nil {
		return failed, fmt.Errorf("opening the input: %w", err)
	}
	if err := command.Start(); err != nil {
		return failed, fmt.Errorf("starting a shell: %w", err)
	}
	go func() {
		_, _ = io.Copy(input, session)
		_ = input.Close()
	}()
	// The state says how the command ended; the error may be about output that nobody reads.
	_ = command.Wait()
	return exitCode(command.ProcessState.Sys().(syscall.WaitStatus)), nil
}

// exitCode is what a shell would give.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
