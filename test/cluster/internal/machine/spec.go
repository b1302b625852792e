package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/test/cluster/internal/cgroup"
	"github.com/albertofaria/pav/test/cluster/internal/process"
)

// Subcommand is the hidden subcommand of this program for a node's first process.
const Subcommand = "machine"

// specVariable is the environment variable with which the first program execution passes the spec to the second one.
const specVariable = "PAV_CLUSTER_MACHINE"

// specDescriptor is the file descriptor from which the first program execution reads the spec.
const specDescriptor = 3

// Spec describes a node's machine.
type Spec struct {
	Hostname string `json:"hostname"`
	// Cgroup is the node's directory, relative to the root of each hierarchy.
	Cgroup      string             `json:"cgroup"`
	Hierarchies []cgroup.Hierarchy `json:"hierarchies"`
	// Disk is the directory with the node's own /var/lib and so on.
	Disk string `json:"disk"`
	// Keep are directories that stay visible although the node has its own version of a directory above them.
	Keep []string `json:"keep"`
	// Shared is the directory that all nodes see as SharedDirectory. It is in one of the directories in Keep.
	Shared string `json:"shared"`
	// Files are files that replace others on the node, by the paths of the replaced files.
	Files map[string]string `json:"files"`
	// Bridge is the node's bridge. Address is its address with the length of the network's prefix. Hardware is its
	// hardware address.
	Bridge   string `json:"bridge"`
	Address  string `json:"address"`
	Hardware string `json:"hardware"`
}

// Launch starts a node's first process. The process waits for the spec and does nothing before it receives it. So if
// the caller ends before it has saved the process's identity, nothing is left behind. The process outlives the context.
func Launch(ctx context.Context, spec Spec, log, identity string) (*Launched, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the log of a node: %w", err)
	}
	defer func() { _ = output.Close() }()
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer func() { _ = writer.Close() }()
	command := exec.CommandContext(context.WithoutCancel(ctx), "/proc/self/exe", Subcommand)
	command.Args[0] = "pav-cluster-" + spec.Hostname
	command.Dir, command.Env = "/", []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	command.Stdout, command.Stderr = output, output
	command.ExtraFiles = []*os.File{reader}
	command.SysProcAttr = &unix.SysProcAttr{
		Setsid: true,
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID |
			unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
	err = command.Start()
	_ = reader.Close()
	if err != nil {
		return nil, fmt.Errorf("starting the first process of a node: %w", err)
	}
	launched := &Launched{ended: make(chan struct{})}
	go func() {
		defer close(launched.ended)
		_ = command.Wait()
	}()
	launched.Identity, err = process.Identify(command.Process.Pid)
	if err != nil {
		return nil, fmt.Errorf("identifying the first process of a node: %w", err)
	}
	if err := launched.Identity.Save(identity); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(writer).Encode(spec); err != nil {
		return nil, fmt.Errorf("handing the spec of a node over: %w", err)
	}
	return launched, nil
}

// Launched is a node's first process, for its launcher.
type Launched struct {
	Identity process.Identity

	ended chan struct{}
}

// Ended returns a channel that is closed when the process has ended.
func (l *Launched) Ended() <-chan struct{} { return l.ended }

// Main is the main function of the node's first process. It returns only with an error.
func Main(ctx context.Context) error {
	if os.Getpid() != 1 {
		return errors.New("this is the first process of a node, not a command to call")
	}
	if encoded, second := os.LookupEnv(specVariable); second {
		var spec Spec
		if err := json.Unmarshal([]byte(encoded), &spec); err != nil {
			return fmt.Errorf("decoding the spec: %w", err)
		}
		return run(ctx, spec)
	}
	var spec Spec
	pipe := os.NewFile(specDescriptor, "spec")
	if err := json.NewDecoder(pipe).Decode(&spec); err != nil {
		return fmt.Errorf("receiving the spec: %w", err)
	}
	_ = pipe.Close()
	return enterCgroups(spec)
}

func enterCgroups(spec Spec) error {
	if err := cgroup.Join(spec.Hierarchies, spec.Cgroup); err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("making a cgroup namespace: %w", err)
	}
	encoded, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encoding the spec: %w", err)
	}
	environment := append(os.Environ(), specVariable+"="+string(encoded))
	if err := unix.Exec("/proc/self/exe", os.Args, environment); err != nil {
		return fmt.Errorf("going on within the cgroup namespace: %w", err)
	}
	return nil
}
