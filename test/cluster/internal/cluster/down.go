package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/test/cluster/internal/cgroup"
	"github.com/albertofaria/pav/test/cluster/internal/config"
	"github.com/albertofaria/pav/test/cluster/internal/logind"
	"github.com/albertofaria/pav/test/cluster/internal/loop"
	"github.com/albertofaria/pav/test/cluster/internal/machine"
	"github.com/albertofaria/pav/test/cluster/internal/process"
)

// Down removes the cluster and everything that is left of it. It returns no error if there is no cluster.
func (c Cluster) Down(ctx context.Context) error {
	remains, err := c.remains()
	if err != nil {
		return err
	}
	// The nodes come from their directories, because the record of a partly created cluster may be wrong.
	directories, err := filepath.Glob(c.State.Node("*").Directory)
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	if remains {
		// The first node is stopped last, so that the other nodes have the control plane until they are stopped
		// themselves.
		for _, directory := range slices.Backward(directories) {
			if err := c.halt(ctx, filepath.Base(directory)); err != nil {
				return err
			}
		}
	}
	// The cluster's cgroups identify its processes even if the state directory was lost.
	if err := cgroup.Remove(ctx, c.cgroupPath("")); err != nil {
		return err
	}
	if !remains {
		return nil
	}
	// Some nodes may have ended on their own. The loop devices that they attached to shared files are found only now.
	if err := detach(ctx, loop.Place{Directory: c.State.Shared()}, nil); err != nil {
		return err
	}
	if err := os.RemoveAll(c.State.Directory); err != nil {
		return fmt.Errorf("removing the state directory: %w", err)
	}
	return nil
}

// halt ends a node at once, like a loss of power, and releases its cgroups and loop devices.
func (c Cluster) halt(ctx context.Context, name string) error {
	files := c.State.Node(name)
	first, err := process.Load(files.Identity())
	if err != nil && !errors.Is(err, process.ErrGone) {
		return err
	}
	place := loop.Place{Directory: files.Disk()}
	var before []loop.Device
	if err == nil && first.Running() {
		if place.Filesystems, before, err = kill(ctx, first); err != nil {
			return fmt.Errorf("ending %s: %w", name, err)
		}
	}
	if err := cgroup.Remove(ctx, c.cgroupPath(name)); err != nil {
		return err
	}
	if err := detach(ctx, place, before); err != nil {
		return err
	}
	if err := c.detachShared(ctx, before); err != nil {
		return err
	}
	if err := os.Remove(files.Identity()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forgetting the first process of %s: %w", name, err)
	}
	return nil
}

// kill kills a node's first process, and with it all processes of the node. It returns information that is not
// available afterwards: the file systems that existed only in the node and had loop devices, and all loop devices before
// its end.
func kill(ctx context.Context, first process.Identity) ([]uint64, []loop.Device, error) {
	// Without these file systems, only devices with backing files on the node's disk are found. A process that is about
	// to end has no mounts any more, and the kernel returns EINVAL for it.
	filesystems, err := loop.PrivateFilesystems(first.PID)
	if err != nil && !errors.Is(err, unix.EINVAL) && first.Running() {
		return nil, nil, err
	}
	devices, err := loop.Devices()
	if err != nil {
		return nil, nil, err
	}
	return loop.Held(filesystems, devices), devices, first.Kill(ctx)
}

// detach detaches the loop devices of a node that has ended. before is the list of devices before its end.
func detach(ctx context.Context, place loop.Place, before []loop.Device) error {
	after, err := loop.Devices()
	if err != nil {
		return err
	}
	owned, err := place.Owned(after, loop.Vanished(before, after, append(machine.Directories(), machine.SharedDirectory)))
	if err != nil {
		return err
	}
	return loop.Detach(ctx, owned)
}

// detachShared detaches the loop devices that a node attached to files of the shared directory before its end. The
// devices of other nodes stay. before is the list of devices before the node's end.
func (c Cluster) detachShared(ctx context.Context, before []loop.Device) error {
	after, err := loop.Devices()
	if err != nil {
		return err
	}
	owned, err := loop.Place{Directory: c.State.Shared()}.Owned(loop.Moved(before, after), nil)
	if err != nil {
		return err
	}
	return loop.Detach(ctx, owned)
}

// StopNode stops a node at once, like a loss of power. Its disk stays.
func (c Cluster) StopNode(ctx context.Context, name string) error {
	node, err := c.node(name)
	if err != nil {
		return err
	}
	return c.step("stop "+node.Name(), func() error { return c.halt(ctx, node.Name()) })
}

// ShutDownNode stops a node like an administrator who powers it off: kubelet can end its pods first, within the time that
// it is configured to take. The node must run logind.
func (c Cluster) ShutDownNode(ctx context.Context, name string) error {
	node, err := c.node(name)
	if err != nil {
		return err
	}
	first, err := identity(node)
	if err != nil {
		return err
	}
	return c.step("shut down "+node.Name(), func() error {
		if err := logind.Shutdown(ctx, first.PID); err != nil {
			return err
		}
		return c.halt(ctx, node.Name())
	})
}

// StartNode starts a stopped node, with a new boot ID. If it is the first node, this also starts the control plane.
func (c Cluster) StartNode(ctx context.Context, name string) error {
	node, err := c.node(name)
	if err != nil {
		return err
	}
	if _, err := identity(node); err == nil {
		c.tellf("%s is running already", name)
		return nil
	}
	return c.step("start "+node.Name(), func() error {
		// A node that ended on its own may have left processes or loop devices.
		if err := c.halt(ctx, node.Name()); err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(node.Files().Directory, bootFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("giving %s a new boot identifier: %w", node.Name(), err)
		}
		return c.startNode(ctx, node)
	})
}

// RestartNode stops and starts a node without a new boot ID, like the restart of a node that is a container on a
// running machine. The node's processes and mounts are gone afterwards.
func (c Cluster) RestartNode(ctx context.Context, name string) error {
	if err := c.StopNode(ctx, name); err != nil {
		return err
	}
	node, err := c.node(name)
	if err != nil {
		return err
	}
	return c.step("start "+node.Name()+" in the same boot", func() error { return c.startNode(ctx, node) })
}

func (c Cluster) startNode(ctx context.Context, node config.Node) error {
	first, err := c.launch(ctx, node)
	if err != nil {
		return err
	}
	if err := c.connectAll(ctx, node); err != nil {
		return err
	}
	if err := c.startRuntime(ctx, node, first); err != nil {
		return err
	}
	if node.ControlPlane() {
		if err := c.startServer(ctx, node, first); err != nil {
			return err
		}
	}
	if err := startRest(ctx, node, first); err != nil {
		return err
	}
	if _, err := identity(config.Node{Index: 1, State: c.State}); errors.Is(err, ErrNodeDown) {
		return nil // without a control plane, no node becomes ready
	}
	return c.waitReady(ctx, []config.Node{node})
}
