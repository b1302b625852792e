package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/albertofaria/pav/test/cluster/internal/cgroup"
	"github.com/albertofaria/pav/test/cluster/internal/config"
	"github.com/albertofaria/pav/test/cluster/internal/control"
	"github.com/albertofaria/pav/test/cluster/internal/kube"
	"github.com/albertofaria/pav/test/cluster/internal/machine"
	"github.com/albertofaria/pav/test/cluster/internal/process"
)

// period is how often a condition is looked at. Looking is cheap, and the machine is small.
const period = 100 * time.Millisecond

// patience is how long one thing may take to become ready on a slow and busy machine.
const patience = 3 * time.Minute

// bootFile has the identifier of a node's current or last boot.
const bootFile = "boot-id"

// tooManyStarts is when a component that ends again and again is given up.
const tooManyStarts = 6

// launch starts a node without any component.
func (c Cluster) launch(ctx context.Context, node config.Node) (process.Identity, error) {
	files := node.Files()
	for _, directory := range []string{files.Disk(), filepath.Dir(files.Log("init")), c.State.Shared()} {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return process.Identity{}, fmt.Errorf("making the directories of %s: %w", node.Name(), err)
		}
	}
	if err := node.Write(); err != nil {
		return process.Identity{}, err
	}
	spec, err := c.spec(node)
	if err != nil {
		return process.Identity{}, err
	}
	launched, err := machine.Launch(ctx, spec, files.Log("init"), files.Identity())
	if err != nil {
		return process.Identity{}, fmt.Errorf("launching %s: %w", node.Name(), err)
	}
	err = c.until(ctx, fmt.Sprintf("%s to set itself up", node.Name()), func() (bool, error) {
		select {
		case <-launched.Ended():
			return false, fmt.Errorf("its first process ended, see %s", files.Log("init"))
		default:
		}
		_, err := control.Call(ctx, launched.Identity.PID, control.Request{Operation: control.Status})
		return err == nil, nil
	})
	return launched.Identity, err
}

// spec also makes the files that the node sees in the place of the machine's.
func (c Cluster) spec(node config.Node) (machine.Spec, error) {
	hierarchies, err := cgroup.Hierarchies()
	if err != nil {
		return machine.Spec{}, err
	}
	files, err := writeIdentity(node)
	if err != nil {
		return machine.Spec{}, fmt.Errorf("writing the identity of %s: %w", node.Name(), err)
	}
	maps.Copy(files, node.Replaced())
	return machine.Spec{
		Hostname: node.Name(), Cgroup: c.cgroupPath(node.Name()), Hierarchies: hierarchies,
		Disk: node.Files().Disk(), Keep: []string{c.State.Directory, node.Bin},
		Shared: c.State.Shared(), Files: files,
		Bridge: config.Bridge, Address: fmt.Sprintf("%s/%d", node.Address(), config.PrefixLength),
		Hardware: fmt.Sprintf("0a:58:0a:58:00:%02x", node.Index),
	}, nil
}

// writeIdentity gives a node an identifier of its own and, unless it has kept one, one of this boot, which
// within a real machine come from the machine and its kernel. It returns the files by what they stand in for.
func writeIdentity(node config.Node) (map[string]string, error) {
	directory := node.Files().Directory
	boot, id := filepath.Join(directory, bootFile), filepath.Join(directory, "machine-id")
	if _, err := os.Stat(boot); errors.Is(err, os.ErrNotExist) {
		if err := process.WriteFile(boot, []byte(formatUUID(newUUID())+"\n"), 0o444); err != nil {
			return nil, err
		}
	}
	if _, err := os.Stat(id); errors.Is(err, os.ErrNotExist) {
		if err := process.WriteFile(id, fmt.Appendf(nil, "%x\n", newUUID()), 0o444); err != nil {
			return nil, err
		}
	}
	return map[string]string{"/proc/sys/kernel/random/boot_id": boot, "/etc/machine-id": id}, nil
}

func newUUID() [16]byte {
	var number [16]byte
	_, _ = rand.Read(number[:]) // documented never to fail
	number[6], number[8] = number[6]&0x0f|0x40, number[8]&0x3f|0x80
	return number
}

func formatUUID(number [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", number[:4], number[4:6], number[6:8], number[8:10], number[10:])
}

// start starts components of a running node.
func start(ctx context.Context, node config.Node, first process.Identity, names ...string) error {
	for _, name := range names {
		component := node.Component(name)
		request := control.Request{Operation: control.Start, Name: name, Component: &component}
		if _, err := control.Call(ctx, first.PID, request); err != nil {
			return fmt.Errorf("starting %s on %s: %w", name, node.Name(), err)
		}
	}
	return nil
}

// startRuntime starts containerd and waits until it answers.
func (c Cluster) startRuntime(ctx context.Context, node config.Node, first process.Identity) error {
	if err := start(ctx, node, first, config.Containerd); err != nil {
		return err
	}
	return c.until(ctx, "containerd on "+node.Name(), func() (bool, error) {
		if connectable(ctx, first.PID, config.ContainerdSocket) {
			return true, nil
		}
		return false, healthy(ctx, node, first)
	})
}

// startServer starts the API server and waits until it is ready.
func (c Cluster) startServer(ctx context.Context, node config.Node, first process.Identity) error {
	if err := start(ctx, node, first, config.Etcd, config.APIServer); err != nil {
		return err
	}
	client, err := kube.New(c.State.PKI(), config.Server(), first.PID)
	if err != nil {
		return err
	}
	defer client.Close()
	return c.until(ctx, "the API server", func() (bool, error) {
		if client.Ready(ctx) == nil {
			return true, nil
		}
		return false, healthy(ctx, node, first)
	})
}

// startRest starts what needs the API server, and the SSH server, which nothing waits for.
func startRest(ctx context.Context, node config.Node, first process.Identity) error {
	if node.ControlPlane() {
		if err := start(ctx, node, first, config.ControllerManager, config.Scheduler); err != nil {
			return err
		}
	}
	return start(ctx, node, first, config.Proxy, config.Kubelet, config.SSHD)
}

// healthy fails when waiting any longer for a node is in vain.
func healthy(ctx context.Context, node config.Node, first process.Identity) error {
	if !first.Running() {
		return fmt.Errorf("%s: %w", node.Name(), ErrNodeDown)
	}
	states, err := control.Call(ctx, first.PID, control.Request{Operation: control.Status})
	if err != nil {
		return err
	}
	for _, state := range states {
		if state.Starts >= tooManyStarts {
			return fmt.Errorf("%s on %s ended %d times (%s), see %s", state.Name, node.Name(), state.Starts-1, state.LastExit, state.Log)
		}
	}
	return nil
}

// waitReady waits until nodes are ready as they were started this time: the API server remembers
// what they reported before.
func (c Cluster) waitReady(ctx context.Context, nodes []config.Node) error {
	controlPlane, err := identity(config.Node{Index: 1, State: c.State})
	if err != nil {
		return err
	}
	client, err := kube.New(c.State.PKI(), config.Server(), controlPlane.PID)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, node := range nodes {
		first, err := identity(node)
		if err != nil {
			return err
		}
		boot, err := bootID(node)
		if err != nil {
			return err
		}
		err = c.until(ctx, node.Name()+" to be ready", func() (bool, error) {
			reported, err := client.Nodes(ctx)
			if err == nil && reported[node.Name()].Ready && reported[node.Name()].BootID == boot {
				return true, nil
			}
			return false, healthy(ctx, node, first)
		})
		if err != nil {
			return err
		}
	}
	return c.until(ctx, "the default service account", func() (bool, error) {
		return client.HasServiceAccount(ctx) == nil, nil
	})
}

// until waits for a condition for as long as anything may take here.
func (c Cluster) until(ctx context.Context, what string, condition func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := process.Until(ctx, period, condition); err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}
