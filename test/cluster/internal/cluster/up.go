package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/albertofaria/pav/test/cluster/internal/config"
	"github.com/albertofaria/pav/test/cluster/internal/pki"
	"github.com/albertofaria/pav/test/cluster/internal/process"
)

// Options describes the wanted cluster.
type Options struct {
	Nodes int
	// Kubernetes is the version of Kubernetes.
	Kubernetes string
	// Bin is the directory of programs.
	Bin string
	// Images are loaded into each node before its kubelet is started.
	Images []string
}

// cleanUpTime is the timeout for the removal of a cluster whose start failed.
const cleanUpTime = time.Minute

// Up starts a cluster. If a cluster of the wanted size and version runs, Up does nothing. If another one runs, Up fails.
// Up first removes the remains of an earlier cluster that does not run completely.
func (c Cluster) Up(ctx context.Context, options Options) error {
	if options.Nodes < 1 || options.Nodes > config.MaxNodes {
		return fmt.Errorf("a cluster has 1 to %d nodes, not %d", config.MaxNodes, options.Nodes)
	}
	found, err := c.load()
	if err != nil && !errors.Is(err, ErrNone) {
		return err
	}
	if err == nil && c.complete(found) {
		if err := found.mustBe(options); err != nil {
			return err
		}
		c.tellf("the cluster is up already, with %d node(s)", found.Nodes)
		return nil
	}
	if err := c.claim(); err != nil {
		return err
	}
	start := time.Now()
	err = c.bringUp(ctx, options)
	if err != nil {
		if ctx.Err() == nil {
			c.explain(ctx, options)
		}
		// The context may have ended, and that may be the reason for the failure.
		cleanUp, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
		defer cancel()
		return errors.Join(fmt.Errorf("bringing the cluster up: %w", err), c.Down(cleanUp))
	}
	c.tellf("%-40s %5.1f s", "cluster is up, after", time.Since(start).Seconds())
	return nil
}

// mustBe returns an error if a running cluster is not the wanted one.
func (r record) mustBe(options Options) error {
	switch {
	case r.Nodes != options.Nodes:
		return fmt.Errorf("a cluster with %d node(s) is up: take it down first", r.Nodes)
	case r.Kubernetes != "" && r.Kubernetes != options.Kubernetes: // the record of an earlier program has none
		return fmt.Errorf("a cluster with Kubernetes %q is up: take it down first", r.Kubernetes)
	}
	return nil
}

// complete reports whether the cluster was started successfully and all its nodes run.
func (c Cluster) complete(r record) bool {
	if r.Phase != running {
		return false
	}
	for _, node := range c.nodes(r) {
		if _, err := identity(node); err != nil {
			return false
		}
	}
	return true
}

// claim fails if the state directory has files that are not those of a cluster. Otherwise, Up may fill it and Down may
// remove it.
func (c Cluster) claim() error {
	remains, err := c.remains()
	if err != nil || remains {
		return err
	}
	entries, err := os.ReadDir(c.State.Directory)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("looking at the state directory: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("the state directory %q has files that are not of a cluster", c.State.Directory)
	}
	return nil
}

func (c Cluster) bringUp(ctx context.Context, options Options) error {
	if err := c.step("clean up", func() error { return c.Down(ctx) }); err != nil {
		return err
	}
	r := record{
		Phase: starting, Nodes: options.Nodes, Kubernetes: options.Kubernetes, Bin: options.Bin, Started: time.Now(),
	}
	if err := os.MkdirAll(c.State.Directory, 0o755); err != nil {
		return fmt.Errorf("making the state directory: %w", err)
	}
	if err := c.save(r); err != nil {
		return err
	}
	nodes := c.nodes(r)
	if err := c.step("certificates", func() error { return c.writeCertificates(nodes) }); err != nil {
		return err
	}
	identities, err := c.launchAll(ctx, nodes)
	if err != nil {
		return err
	}
	if err := c.startAll(ctx, nodes, identities, options.Images); err != nil {
		return err
	}
	if err := c.step("nodes ready", func() error { return c.waitReady(ctx, nodes) }); err != nil {
		return err
	}
	r.Phase = running
	return c.save(r)
}

func (c Cluster) writeCertificates(nodes []config.Node) error {
	wanted := pki.Cluster{
		Server:          config.Server(),
		ServerAddresses: []net.IP{net.IPv4(127, 0, 0, 1), config.ServerAddress(), config.ServiceAddress()},
		Nodes:           map[string]net.IP{},
	}
	for _, node := range nodes {
		wanted.Nodes[node.Name()] = node.Address()
	}
	if err := wanted.Write(c.State.PKI()); err != nil {
		return err
	}
	if err := os.Link(c.State.Kubeconfig(pki.Admin), c.State.AdminKubeconfig()); err != nil {
		return fmt.Errorf("writing the administrator's kubeconfig: %w", err)
	}
	return nil
}

func (c Cluster) launchAll(ctx context.Context, nodes []config.Node) ([]process.Identity, error) {
	identities := make([]process.Identity, len(nodes))
	err := c.step("machines", func() error {
		for i, node := range nodes {
			var err error
			if identities[i], err = c.launch(ctx, node); err != nil {
				return err
			}
			if err := c.connectAll(ctx, node); err != nil {
				return err
			}
		}
		return nil
	})
	return identities, err
}

// startAll starts the components of all nodes. It loads the images while the API server starts.
func (c Cluster) startAll(ctx context.Context, nodes []config.Node, identities []process.Identity, images []string) error {
	group, groupContext := errgroup.WithContext(ctx)
	group.Go(func() error {
		return c.step("API server", func() error { return c.startServer(groupContext, nodes[0], identities[0]) })
	})
	for i, node := range nodes {
		group.Go(func() error {
			return c.step("container runtime and images of "+node.Name(), func() error {
				if err := c.startRuntime(groupContext, node, identities[i]); err != nil {
					return err
				}
				return importImages(groupContext, node, identities[i], images)
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, node := range nodes {
		if err := startRest(ctx, node, identities[i]); err != nil {
			return err
		}
	}
	return nil
}

// explain prints the last lines of the logs that are likely to show why the start of the cluster failed.
func (c Cluster) explain(ctx context.Context, options Options) {
	for _, node := range c.nodes(record{Nodes: options.Nodes}) {
		suspects := []string{"init"}
		if first, err := identity(node); err == nil {
			suspects = suspicious(ctx, first, node)
		}
		for _, name := range suspects {
			path := node.Files().Log(name)
			if text := tail(path, 15); text != "" {
				c.tellf("--- end of the log %s of %s:\n%s", filepath.Base(path), node.Name(), text)
			}
		}
	}
}
