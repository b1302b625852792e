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

// Kind is the name of a namespace in /proc/PID/ns.
type Kind string

// The kinds of namespaces of a node.
const (
	Cgroup  Kind = "cgroup"
	IPC     Kind = "ipc"
	UTS     Kind = "uts"
	Network Kind = "net"
	PID     Kind = "pid"
	Mount   Kind = "mnt"
)

// All is the list of all kinds, in the order in which they are entered. The mount namespace is last, because the
// namespaces are opened through the caller's /proc.
var All = []Kind{Cgroup, IPC, UTS, Network, PID, Mount}

// setpriv is a program of the package util-linux.
const setpriv = "/usr/bin/setpriv"

// Start starts a command in the namespaces of a process and returns a function that waits for the command's end. The
// command is killed when the caller ends for any reason.
func Start(command *exec.Cmd, pid int, kinds []Kind) (wait func() error, err error) {
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		// The thread is never unlocked. So it ends with this goroutine, and no other code runs on it. It must live as
		// long as the command, because Pdeathsig kills the command when the thread ends.
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

// dieWithCaller makes the kernel kill a command at the end of the thread that started it. Go's own Pdeathsig compares
// the ID of the command's parent with the ID of the caller. In a new PID namespace the caller has no ID, so Go would
// take the caller for dead. For that case, the program setpriv sets the signal.
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

// Dial connects from within the network namespace of a process. The address must be numeric, because names are resolved
// on threads that do not enter the namespace.
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

// enter moves the calling thread into namespaces of a process. The thread must be locked and must not be used for
// anything else afterwards.
func enter(pid int, kinds []Kind) error {
	files := make([]*os.File, 0, len(kinds))
	defer func() {
		for _, file := range files {
			_ = file.Close()
		}
	}()
	// All namespaces are opened before any is entered, for the same reason as in the comment on All.
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
