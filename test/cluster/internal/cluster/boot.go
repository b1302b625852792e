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

// period is the time between two checks of a condition. A check is cheap, and the machine is small.
const period = 100 * time.Millisecond

// bootTimeout is the timeout of each wait. It is long enough for a slow and busy machine.
const bootTimeout = 3 * time.Minute

// bootFile is the file with the identifier of a node's current or last boot.
const bootFile = "boot-id"

// tooManyStarts is the number of starts of one component after which waiting for its node fails.
const tooManyStarts = 6

// launch starts a node without any components.
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

// spec returns the spec of a node. It also creates the files that replace files of the machine on the node.
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

// writeIdentity creates a machine ID and a boot ID for a node, each unless its file exists already. A real machine and
// its kernel have such identifiers of their own. The result maps each replaced path to the file that replaces it.
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
	_, _ = rand.Read(number[:]) // its documentation says that it never fails
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

// startServer starts the API server, waits until it is ready, and installs the CRDs of snapshots.
func (c Cluster) startServer(ctx context.Context, node config.Node, first process.Identity) error {
	if err := start(ctx, node, first, config.Etcd, config.APIServer); err != nil {
		return err
	}
	client, err := kube.New(c.State.PKI(), config.Server(), first.PID)
	if err != nil {
		return err
	}
	defer client.Close()
	err = c.until(ctx, "the API server", func() (bool, error) {
		if client.Ready(ctx) == nil {
			return true, nil
		}
		return false, healthy(ctx, node, first)
	})
	if err != nil {
		return err
	}
	return c.installCRDs(ctx, node, first, client)
}

// startRest starts the components that need the API server, and the SSH server. It does not wait for any of them.
func startRest(ctx context.Context, node config.Node, first process.Identity) error {
	if node.ControlPlane() {
		if err := start(ctx, node, first, config.ControllerManager, config.Scheduler, config.SnapshotController); err != nil {
			return err
		}
	}
	return start(ctx, node, first, config.Proxy, config.Kubelet, config.SSHD)
}

// healthy returns an error if there is no point in waiting for a node any longer.
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

// waitReady waits until nodes are ready in their current boot. It compares boot identifiers, because the API server
// still has the state that a node reported before its restart.
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
	err = c.until(ctx, "the default service account", func() (bool, error) {
		return client.HasServiceAccount(ctx) == nil, nil
	})
	if err != nil || !nodes[0].ControlPlane() {
		return err
	}
	return c.waitSnapshotController(ctx, nodes[0], controlPlane)
}

// until waits until a condition holds, fails, or times out.
func (c Cluster) until(ctx context.Context, what string, condition func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	if err := process.Until(ctx, period, condition); err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}
