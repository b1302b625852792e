package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/albertofaria/pav/test/cluster/internal/config"
	"github.com/albertofaria/pav/test/cluster/internal/control"
	"github.com/albertofaria/pav/test/cluster/internal/kube"
	"github.com/albertofaria/pav/test/cluster/internal/paths"
	"github.com/albertofaria/pav/test/cluster/internal/process"
)

// installCRDs installs the CRDs of snapshots, and waits until they are established. After a restart of the control plane,
// it usually changes nothing.
func (c Cluster) installCRDs(ctx context.Context, node config.Node, first process.Identity, client *kube.Client) error {
	directory := paths.SnapshotCRDs(node.Bin)
	files, err := filepath.Glob(filepath.Join(directory, "*.yaml"))
	if err != nil {
		return fmt.Errorf("listing the CRDs of snapshots: %w", err)
	}
	if len(files) == 0 {
		return fmt.Errorf("listing the CRDs of snapshots: there are none in %q", directory)
	}
	for _, file := range files {
		manifest, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading a CRD: %w", err)
		}
		err = c.until(ctx, "the API server to take the CRD "+crdName(file), func() (bool, error) {
			err := client.ApplyCRD(ctx, crdName(file), manifest)
			if _, refused := errors.AsType[*kube.RefusedError](err); err == nil || refused {
				return err == nil, err
			}
			return false, healthy(ctx, node, first) // a busy server answers too late
		})
		if err != nil {
			return err
		}
	}
	for _, file := range files {
		err := c.until(ctx, "the CRD "+crdName(file), func() (bool, error) {
			if established, err := client.Established(ctx, crdName(file)); established && err == nil {
				return true, nil
			}
			return false, healthy(ctx, node, first)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// crdName returns the name of the CRD in a file. Upstream's files have the form GROUP_PLURAL.yaml.
func crdName(file string) string {
	group, plural, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "_")
	return plural + "." + group
}

// waitSnapshotController waits until the snapshot controller of a new control plane runs. It serves nothing that shows
// this. If it cannot start, it has already ended when the nodes are ready.
func (c Cluster) waitSnapshotController(ctx context.Context, node config.Node, first process.Identity) error {
	return c.until(ctx, config.SnapshotController+" on "+node.Name(), func() (bool, error) {
		states, err := control.Call(ctx, first.PID, control.Request{Operation: control.Status})
		if err != nil {
			return false, err
		}
		return runsSince(states, config.SnapshotController)
	})
}

// runsSince reports whether a component runs. It returns an error if the component has ended since the node's start.
func runsSince(states []control.State, name string) (bool, error) {
	index := slices.IndexFunc(states, func(state control.State) bool { return state.Name == name })
	if index < 0 {
		return false, fmt.Errorf("there is no component %q", name)
	}
	if state := states[index]; state.LastExit != "" {
		return false, fmt.Errorf("it ended (%s), see %s", state.LastExit, state.Log)
	}
	return states[index].Running, nil
}
