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
	// failed is the exit code for a command that could not be started.
	failed = 1
	// outputTime is how long the output of an ended command stays open for background processes of the command.
	outputTime = 5 * time.Second
)

// run runs the command of a session and returns its output and exit code to the client. If the connection ends, run
// kills the command and its child processes.
func (s *Server) run(session ssh.Session) {
	code, err := s.execute(session)
	if err != nil {
		// An error is ignored, because the client may have disconnected.
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
	// With StdinPipe, Wait does not wait for the end of the input, which may stay open after the command's end.
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
	// The process state has the exit code. The error may be about output that nobody reads.
	_ = command.Wait()
	return exitCode(command.ProcessState.Sys().(syscall.WaitStatus)), nil
}

// exitCode returns the exit code that a shell would report.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
