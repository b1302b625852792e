package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/albertofaria/pav/test/cluster/internal/config"
	"github.com/albertofaria/pav/test/cluster/internal/namespace"
	"github.com/albertofaria/pav/test/cluster/internal/process"
)

// Each further node is connected to a port of the first node's bridge. It has a bridge of its own, to which its end of
// the cable is attached. All pods of all nodes are therefore in one network:
//
//	node1: cni0 10.88.0.1 ── link-node2 ═══ eth0 ── cni0 10.88.0.2 :node2

// cable returns the name of the first node's end of the link to another node.
func cable(node config.Node) string { return "link-" + node.Name() }

// connect links two running nodes.
func connect(ctx context.Context, first, other process.Identity, node config.Node) error {
	// Devices of an earlier start may still exist, because the kernel removes them asynchronously.
	_ = ip(ctx, first, "link", "delete", cable(node))
	_ = ip(ctx, other, "link", "delete", config.Uplink)
	for _, command := range []struct {
		where     process.Identity
		arguments []string
	}{
		{first, []string{"link", "add", cable(node), "type", "veth", "peer", "name", config.Uplink, "netns", strconv.Itoa(other.PID)}},
		{first, []string{"link", "set", cable(node), "master", config.Bridge, "up"}},
		{other, []string{"link", "set", config.Uplink, "master", config.Bridge, "up"}},
	} {
		if err := ip(ctx, command.where, command.arguments...); err != nil {
			return fmt.Errorf("connecting %s: %w", node.Name(), err)
		}
	}
	return nil
}

// connectAll links a node that has just been started to the running nodes.
func (c Cluster) connectAll(ctx context.Context, started config.Node) error {
	r, err := c.load()
	if err != nil {
		return err
	}
	nodes := c.nodes(r)
	first, err := identity(nodes[0])
	if errors.Is(err, ErrNodeDown) {
		return nil // the start of the first node will connect all others
	}
	if err != nil {
		return err
	}
	for _, node := range nodes[1:] {
		if !started.ControlPlane() && node.Index != started.Index {
			continue
		}
		other, err := identity(node)
		if errors.Is(err, ErrNodeDown) {
			continue
		}
		if err != nil {
			return err
		}
		if err := connect(ctx, first, other, node); err != nil {
			return err
		}
	}
	return nil
}

// SetConnected sets a node's link to all other nodes up or down.
func (c Cluster) SetConnected(ctx context.Context, name string, connected bool) error {
	node, err := c.node(name)
	if err != nil {
		return err
	}
	if node.ControlPlane() {
		return fmt.Errorf("%s is what the other nodes are connected to: isolate those", name)
	}
	if _, err := identity(node); err != nil {
		return err
	}
	first, err := identity(config.Node{Index: 1, State: c.State})
	if err != nil {
		return err
	}
	state := "down"
	if connected {
		state = "up"
	}
	return ip(ctx, first, "link", "set", cable(node), state)
}

// isolated reports whether a node's link is down or does not exist. It returns false if the state of the link cannot be
// parsed.
func isolated(first process.Identity, node config.Node) bool {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/sys/class/net/%s/flags", first.PID, cable(node)))
	if err != nil {
		return true
	}
	flags, err := strconv.ParseUint(strings.TrimSpace(string(content)), 0, 32)
	const up = 1
	return err == nil && flags&up == 0
}

// ip runs the command ip in the network namespace of a node. Its other namespaces are the machine's, so that process
// IDs in its arguments are those of the machine.
func ip(ctx context.Context, where process.Identity, arguments ...string) error {
	var output bytes.Buffer
	command := exec.CommandContext(ctx, "ip", arguments...)
	command.Stdout, command.Stderr = &output, &output
	wait, err := namespace.Start(command, where.PID, []namespace.Kind{namespace.Network})
	if err != nil {
		return err
	}
	if err := wait(); err != nil {
		return fmt.Errorf("running ip %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(output.String()))
	}
	return nil
}

// connectable reports whether a process listens on a unix socket of a node.
func connectable(ctx context.Context, pid int, socket string) bool {
	connection, err := (&net.Dialer{}).DialContext(ctx, "unix", fmt.Sprintf("/proc/%d/root%s", pid, socket))
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}

// bootID returns the identifier of a node's current or last boot.
func bootID(node config.Node) (string, error) {
	content, err := os.ReadFile(filepath.Join(node.Files().Directory, bootFile))
	if err != nil {
		return "", fmt.Errorf("reading the boot identifier of %s: %w", node.Name(), err)
	}
	return strings.TrimSpace(string(content)), nil
}
