package csi

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Topology returns the topology of a node for a driver.
type Topology struct {
	// Keys are the label keys of the volumes' accessible topology. No keys means that every node can use every
	// volume.
	Keys []string

	// Nodes reads the Node from the API server, not from a cache.
	Nodes client.Reader
}

// of returns the node's labels with the keys, nil if there are none. A key that the node lacks is left out.
func (t Topology) of(ctx context.Context, nodeName string) (*csi.Topology, error) {
	if len(t.Keys) == 0 {
		return nil, nil
	}
	node := &corev1.Node{}
	if err := t.Nodes.Get(ctx, client.ObjectKey{Name: nodeName}, node); err != nil {
		return nil, fmt.Errorf("getting node %q: %w", nodeName, err)
	}
	segments := map[string]string{}
	for _, key := range t.Keys {
		if value, ok := node.Labels[key]; ok {
			segments[key] = value
		}
	}
	if len(segments) == 0 {
		return nil, nil
	}
	return &csi.Topology{Segments: segments}, nil
}
