package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/albertofaria/pav/test/cluster/internal/config"
	"github.com/albertofaria/pav/test/cluster/internal/control"
	"github.com/albertofaria/pav/test/cluster/internal/namespace"
	"github.com/albertofaria/pav/test/cluster/internal/pki"
	"github.com/albertofaria/pav/test/cluster/internal/process"
)

// Component performs an operation on a component of a running node.
func (c Cluster) Component(ctx context.Context, nodeName, component string, operation control.Operation) error {
	node, err := c.node(nodeName)
	if err != nil {
		return err
	}
	first, err := identity(node)
	if err != nil {
		return err
	}
	request := control.Request{Operation: operation, Name: component}
	if component == config.Logind {
		// A node starts without it, and so does not know how to start it.
		spec := node.Component(component)
		request.Component = &spec
	}
	if _, err := control.Call(ctx, first.PID, request); err != nil {
		return fmt.Errorf("asking %s to %s %s: %w", nodeName, operation, component, err)
	}
	return nil
}

// Load loads an image archive into the named node or, without a name, into all running nodes.
func (c Cluster) Load(ctx context.Context, archive, nodeName string) error {
	r, err := c.load()
	if err != nil {
		return err
	}
	nodes := c.nodes(r)
	if nodeName != "" {
		node, err := c.node(nodeName)
		if err != nil {
			return err
		}
		nodes = []config.Node{node}
	}
	for _, node := range nodes {
		first, err := identity(node)
		if errors.Is(err, ErrNodeDown) && nodeName == "" {
			c.tellf("%s is not running and does not get the image", node.Name())
			continue
		}
		if err != nil {
			return err
		}
		if err := importImages(ctx, node, first, []string{archive}); err != nil {
			return err
		}
	}
	return nil
}

// importImages loads archives into a node. It passes them as standard input, because a node does not see all files of
// the machine.
func importImages(ctx context.Context, node config.Node, first process.Identity, archives []string) error {
	for _, path := range archives {
		archive, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("opening an image archive: %w", err)
		}
		defer func() { _ = archive.Close() }()
		command := exec.CommandContext(ctx, node.Bin+"/ctr", "--address", config.ContainerdSocket,
			"--namespace", "k8s.io", "images", "import", "-")
		var output bytes.Buffer
		command.Stdin, command.Stdout, command.Stderr = archive, &output, &output
		command.Env, command.Dir = node.Environment(), "/"
		wait, err := namespace.Start(command, first.PID, namespace.All)
		if err == nil {
			err = wait()
		}
		if err != nil {
			return fmt.Errorf("loading %q into %s: %w: %s", path, node.Name(), err, strings.TrimSpace(output.String()))
		}
	}
	return nil
}

// Command is a command to run on a node.
type Command struct {
	Node string
	// NetworkOnly runs the command on the machine. Only its network namespace is the node's.
	NetworkOnly bool
	Arguments   []string
}

// Prepare returns the prepared command, the process whose namespaces it must be started in, and the kinds of these
// namespaces. The command is killed when the context ends.
func (c Cluster) Prepare(ctx context.Context, command Command) (*exec.Cmd, int, []namespace.Kind, error) {
	node, err := c.node(command.Node)
	if err != nil {
		return nil, 0, nil, err
	}
	first, err := identity(node)
	if err != nil {
		return nil, 0, nil, err
	}
	// The program must be searched for in the node. The simplest way is to let env do that.
	prepared := exec.CommandContext(ctx, "/usr/bin/env", append([]string{"--"}, command.Arguments...)...)
	prepared.Env = environment(os.Environ(), node.Bin, map[string]string{
		"KUBECONFIG": c.State.AdminKubeconfig(), SSHKeyVariable: c.sshKey(),
	})
	if command.NetworkOnly {
		return prepared, first.PID, []namespace.Kind{namespace.Network}, nil
	}
	prepared.Dir = "/"
	if directory, err := os.Getwd(); err == nil {
		if info, err := os.Stat(fmt.Sprintf("/proc/%d/root%s", first.PID, directory)); err == nil && info.IsDir() {
			prepared.Dir = directory
		}
	}
	return prepared, first.PID, namespace.All, nil
}

// SSHKeyVariable is the environment variable with the path of the nodes' SSH key. It is set for commands.
const SSHKeyVariable = "PAV_CLUSTER_SSH_KEY"

func (c Cluster) sshKey() string { return filepath.Join(c.State.PKI(), pki.SSHKeyFile) }

// environment returns the environment of a command: the caller's, with the cluster's programs first in PATH, and with
// files as further variables. It omits the caller's proxy variables, because the cluster's network has no route to a
// proxy.
func environment(caller []string, bin string, files map[string]string) []string {
	path := config.SystemPath
	var kept []string
	for _, variable := range caller {
		name, value, _ := strings.Cut(variable, "=")
		_, replaced := files[name]
		switch {
		case name == "PATH":
			path = value + ":" + config.SystemPath
		case replaced || strings.HasSuffix(strings.ToLower(name), "_proxy"):
		default:
			kept = append(kept, variable)
		}
	}
	kept = append(kept, "PATH="+bin+":"+path)
	for name, file := range files {
		kept = append(kept, name+"="+file)
	}
	return kept
}
