package csi

import (
	"context"
	"errors"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodeReader is the API server, with one Node, node1.
type nodeReader struct {
	labels map[string]string
	err    error
	calls  int
}

// Get implements client.Reader.
func (r *nodeReader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	r.calls++
	if r.err != nil {
		return r.err
	}
	if key.Name != "node1" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, key.Name)
	}
	into.(*corev1.Node).Labels = r.labels
	return nil
}

// List implements client.Reader.
func (r *nodeReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nothing is listed")
}

func TestNodeGetInfo_ReturnsTheLabelsThatTheDefinitionNames(t *testing.T) {
	labels := map[string]string{"zone": "z1", "rack": "r1", "empty": "", "other": "x"}
	for name, test := range map[string]struct {
		keys []string
		want map[string]string
	}{
		"no keys":                      {},
		"keys that the node has":       {[]string{"rack", "zone"}, map[string]string{"rack": "r1", "zone": "z1"}},
		"a label without a value":      {[]string{"empty"}, map[string]string{"empty": ""}},
		"a key that the node lacks":    {[]string{"lacking", "zone"}, map[string]string{"zone": "z1"}},
		"only keys that it lacks":      {[]string{"lacking"}, nil},
		"the node has no label at all": {[]string{"zone"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			reader := &nodeReader{labels: labels}
			if name == "the node has no label at all" {
				reader.labels = nil
			}
			s := &node{driver: "driver", nodeID: "node1", topology: Topology{Keys: test.keys, Nodes: reader}}
			info, err := s.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
			if err != nil || info.GetNodeId() != "node1" {
				t.Fatalf("got %v, %v", info, err)
			}
			if diff := cmp.Diff(test.want, info.GetAccessibleTopology().GetSegments()); diff != "" {
				t.Errorf("segments (-want +got):\n%s", diff)
			}
			if len(test.keys) == 0 && reader.calls > 0 {
				t.Error("the API server is asked for nothing")
			}
		})
	}
}

// Kubelet registers the driver again after any error.
func TestNodeGetInfo_FailsWhereTheNodeCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct {
		nodeID string
		err    error
	}{
		"the API server does not answer": {"node1", errors.New("connection refused")},
		"there is no such node":          {"node2", nil},
	} {
		s := &node{driver: "driver", nodeID: test.nodeID, topology: Topology{Keys: []string{"zone"}, Nodes: &nodeReader{err: test.err}}}
		if _, err := s.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{}); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: got %v, want the code Unavailable", name, err)
		}
	}
}

func TestDriverWithTopologyKeys_ReportsTheCapability(t *testing.T) {
	for _, constrained := range []bool{false, true} {
		s := &identity{driver: "driver", constrained: constrained}
		response, err := s.GetPluginCapabilities(t.Context(), &csi.GetPluginCapabilitiesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		said := false
		for _, capability := range response.GetCapabilities() {
			said = said || capability.GetService().GetType() == csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS
		}
		if said != constrained {
			t.Errorf("constrained: %t, said: %t", constrained, said)
		}
	}
}
