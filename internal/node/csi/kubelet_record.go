package csi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// KubeletRecord is what a kubelet has recorded in the API server of the drivers that it has registered. It outlives the
// agent and the kubelet, and cannot differ from what Kubernetes acts on.
type KubeletRecord struct {
	// Node is the name of the kubelet's node.
	Node string

	// Reader reads from the API server, not from a cache.
	Reader client.Reader
}

// kubeletDrivers are the drivers that a kubelet has registered.
type kubeletDrivers struct {
	keys   map[string][]string // by driver, the keys of the topology that it reported
	labels map[string]string   // of the node
}

func (k KubeletRecord) read(ctx context.Context) (kubeletDrivers, error) {
	registered, node := &storagev1.CSINode{}, &corev1.Node{}
	key := client.ObjectKey{Name: k.Node}
	// A kubelet that has registered nothing yet may have no CSINode.
	if err := errors.Join(client.IgnoreNotFound(k.Reader.Get(ctx, key, registered)), k.Reader.Get(ctx, key, node)); err != nil {
		return kubeletDrivers{}, fmt.Errorf("getting the CSINode and the Node %q: %w", k.Node, err)
	}
	drivers := kubeletDrivers{keys: map[string][]string{}, labels: node.Labels}
	for _, d := range registered.Spec.Drivers {
		drivers.keys[d.Name] = d.TopologyKeys
	}
	return drivers, nil
}

// has reports whether kubelet has registered a driver with the topology that it reports now. Keys that the node lacks are
// not reported.
func (k kubeletDrivers) has(name string, keys []string) bool {
	registered, ok := k.keys[name]
	var reported []string
	for _, key := range keys {
		if _, labelled := k.labels[key]; labelled {
			reported = append(reported, key)
		}
	}
	return ok && slices.Equal(slices.Compact(slices.Sorted(slices.Values(reported))), slices.Sorted(slices.Values(registered)))
}
