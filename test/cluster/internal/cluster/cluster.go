package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/albertofaria/pav/test/cluster/internal/cgroup"
	"github.com/albertofaria/pav/test/cluster/internal/config"
	"github.com/albertofaria/pav/test/cluster/internal/paths"
	"github.com/albertofaria/pav/test/cluster/internal/process"
)

// Cluster is a cluster that exists, or that Up can create.
type Cluster struct {
	State paths.State
	// Cache is the directory that all clusters share.
	Cache string
	// Progress receives a line for each step.
	Progress io.Writer
}

// phase is the phase of a cluster's start.
type phase string

const (
	starting phase = "starting"
	running  phase = "running"
)

// record is the content of the cluster's record, a file in the state directory.
type record struct {
	Phase phase `json:"phase"`
	// Nodes is the number of nodes.
	Nodes int `json:"nodes"`
	// Kubernetes is the version of Kubernetes.
	Kubernetes string `json:"kubernetes"`
	// Bin is the directory of the programs with which the cluster was started.
	Bin     string    `json:"bin"`
	Started time.Time `json:"started"`
}

var (
	// ErrNone means that there is no cluster in the state directory.
	ErrNone = errors.New("no cluster is up (start one with the command up)")
	// ErrNodeDown means that the node exists but does not run.
	ErrNodeDown = errors.New("node is not running")
)

// Lock locks the cluster, so that no other call of this program changes it at the same time.
func (c Cluster) Lock(ctx context.Context) (release func(), err error) {
	file, err := process.Lock(ctx, filepath.Join(c.Cache, "locks", "cluster-"+c.State.ID()), func() {
		c.tellf("waiting for another command on the same cluster")
	})
	if err != nil {
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}

func (c Cluster) load() (record, error) {
	content, err := os.ReadFile(c.State.Record())
	if errors.Is(err, os.ErrNotExist) {
		return record{}, ErrNone
	}
	if err != nil {
		return record{}, fmt.Errorf("reading the cluster's record: %w", err)
	}
	var read record
	if err := json.Unmarshal(content, &read); err != nil {
		return record{}, fmt.Errorf("decoding %q: %w", c.State.Record(), err)
	}
	return read, nil
}

// remains reports whether the state directory is that of a cluster. Usually the record shows it. But a user may have
// removed the record and only a part of the other files, and running nodes write files again. In that case, a node's
// disk shows it, if the directory has no unknown files.
func (c Cluster) remains() (bool, error) {
	entries, err := os.ReadDir(c.State.Directory)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("looking at the state directory: %w", err)
	}
	unknown := false
	for _, entry := range entries {
		if entry.Name() == filepath.Base(c.State.Record()) {
			return true, nil
		}
		ours := []string{"nodes", filepath.Base(c.State.PKI()), filepath.Base(c.State.Shared())}
		unknown = unknown || !slices.Contains(ours, entry.Name())
	}
	nodes, err := filepath.Glob(filepath.Join(c.State.Node("node[1-9]").Directory, "disk"))
	if err != nil {
		return false, fmt.Errorf("listing nodes: %w", err)
	}
	return len(nodes) > 0 && !unknown, nil
}

func (c Cluster) save(r record) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the cluster's record: %w", err)
	}
	return process.WriteFile(c.State.Record(), append(content, '\n'), 0o644)
}

// nodes returns all nodes of a recorded cluster.
func (c Cluster) nodes(r record) []config.Node {
	nodes := make([]config.Node, r.Nodes)
	for i := range nodes {
		nodes[i] = config.Node{Index: i + 1, Bin: r.Bin, State: c.State}
	}
	return nodes
}

func (c Cluster) node(name string) (config.Node, error) {
	r, err := c.load()
	if err != nil {
		return config.Node{}, err
	}
	for _, node := range c.nodes(r) {
		if node.Name() == name {
			return node, nil
		}
	}
	return config.Node{}, fmt.Errorf("there is no node %q: the cluster has node1 to node%d", name, r.Nodes)
}

// identity returns the running first process of a node.
func identity(node config.Node) (process.Identity, error) {
	found, err := process.Load(node.Files().Identity())
	if err != nil && !errors.Is(err, process.ErrGone) {
		return process.Identity{}, err
	}
	if err != nil || !found.Running() {
		return process.Identity{}, fmt.Errorf("%s: %w", node.Name(), ErrNodeDown)
	}
	return found, nil
}

// cgroupPath returns the cgroup directory of a node or, with an empty name, of the cluster.
func (c Cluster) cgroupPath(node string) string { return cgroup.Path(c.State.ID(), node) }

// step calls action and then prints how long it took.
func (c Cluster) step(title string, action func() error) error {
	start := time.Now()
	if err := action(); err != nil {
		return err
	}
	c.tellf("%-40s %5.1f s", title, time.Since(start).Seconds())
	return nil
}

// tellf writes a line of progress. It ignores errors, because a lost line is no reason to stop.
func (c Cluster) tellf(format string, arguments ...any) {
	_, _ = fmt.Fprintf(c.Progress, format+"\n", arguments...)
}
