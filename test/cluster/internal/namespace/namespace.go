package namespace

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// Kind is a namespace's name in /proc/PID/ns.
type Kind string

// The kinds of namespaces that make a node.
const (
	Cgroup  Kind = "cgroup"
	IPC     Kind = "ipc"
	UTS     Kind = "uts"
	Network Kind = "net"
	PID     Kind = "pid"
	Mount   Kind = "mnt"
)

// All lists the kinds in the order in which they are entered: the mount namespace comes last,
// because the others are found through the caller's /proc.
var All = []Kind{Cgroup, IPC, UTS, Network, PID, Mount}

// setpriv is part of util-linux.
const setpriv = "/usr/bin/setpriv"

// Start starts a command in namespaces of a process and returns a function that waits for its end.
// The command is killed when the caller ends, however that comes about.
func Start(command *exec.Cmd, pid int, kinds []Kind) (wait func() error, err error) {
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		// The thread is never unlocked, so it ends with this goroutine and no other code runs on it.
		// It has to live as long as the command: its end is what Pdeathsig reacts to.
		runtime.LockOSThread()
		if err := enter(pid, kinds); err != nil {
			started <- err
			return
		}
		dieWithCaller(command, kinds)
		if err := command.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		ended <- command.Wait()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %q in the namespaces of process %d: %w", command.Args[0], pid, err)
	}
	return func() error { return <-ended }, nil
}

// dieWithCaller has a command killed at the end of the thread that starts it. Go's own way to ask for
// that compares the command's parent with the caller, which has no number in the namespace that the
// command starts in, and takes the caller for dead; so there a program of the machine does it.
func dieWithCaller(command *exec.Cmd, kinds []Kind) {
	if slices.Contains(kinds, PID) {
		command.Args = append([]string{setpriv, "--pdeathsig", "KILL", "--", command.Path}, command.Args[1:]...)
		command.Path = setpriv
		return
	}
	if command.SysProcAttr == nil {
		command.SysProcAttr = &unix.SysProcAttr{}
	}
	command.SysProcAttr.Pdeathsig = unix.SIGKILL
}

// Dial connects from within the network namespace of a process. The address has to be a number, as
// the search for a name happens on threads that stay outside.
func Dial(ctx context.Context, pid int, network, address string) (net.Conn, error) {
	type result struct {
		connection net.Conn
		err        error
	}
	results := make(chan result, 1)
	go func() {
		runtime.LockOSThread()
		if err := enter(pid, []Kind{Network}); err != nil {
			results <- result{err: err}
			return
		}
		connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
		results <- result{connection: connection, err: err}
	}()
	dialed := <-results
	return dialed.connection, dialed.err
}

// enter moves the calling thread, which must be locked and never be used for anything else.
func enter(pid int, kinds []Kind) error {
	files := make([]*os.File, 0, len(kinds))
	defer func() {
		for _, file := range files {
			_ = file.Close()
		}
	}()
	// All are opened before any is entered, for the same reason as the order of All.
	for _, kind := range kinds {
		file, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
		if err != nil {
			return fmt.Errorf("opening a namespace: %w", err)
		}
		files = append(files, file)
	}
	// A thread that shares its working directory with others cannot enter a mount namespace.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("separating a thread's file system attributes: %w", err)
	}
	for i, kind := range kinds {
		if err := unix.Setns(int(files[i].Fd()), 0); err != nil {
			return fmt.Errorf("entering a %s namespace: %w", kind, err)
		}
	}
	return nil
}
