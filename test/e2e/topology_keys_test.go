package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Kubelet asks a driver for its topology when it registers it, so that an edit registers it again.
func TestTopologyKeys_AreThoseThatTheDefinitionNames_AlsoAfterAnEdit(t *testing.T) {
	namespace := beside(t)
	apply(t, namespace, provisioner("keyed", "mkdir /pav/volume", ""))
	keyed := &pavv1.PavProvisioner{ObjectMeta: objectMeta("", "keyed")}
	for _, step := range []struct {
		topology string // the field, as JSON
		want     []string
	}{
		{`[{"kubernetes.io/hostname": "{{ selectedNode.metadata.name }}"}]`, []string{"kubernetes.io/hostname"}},
		{`[{"kubernetes.io/hostname": "x"}, {"kubernetes.io/os": "linux", "example.org/lacking": "x"}]`, []string{"kubernetes.io/hostname", "kubernetes.io/os"}},
		{`"{% set yaml = true %}[]"`, nil},
	} {
		must(t, patching(keyed, `{"spec": {"volumeCreation": {"accessibleTopology": `+step.topology+`}}}`)(t.Context(), kube))
		for _, node := range nodes {
			eventually(t, "kubelet knows the keys", func(ctx context.Context) error {
				return wantKeys(ctx, node, "keyed", step.want)
			})
		}
	}
}

func wantKeys(ctx context.Context, node, driver string, want []string) error {
	found := &storagev1.CSINode{}
	if err := kube.Get(ctx, client.ObjectKey{Name: node}, found); err != nil {
		return err
	}
	for _, d := range found.Spec.Drivers {
		if d.Name == driver && slices.Equal(slices.Sorted(slices.Values(d.TopologyKeys)), want) {
			return nil
		}
	}
	return fmt.Errorf("on %s there are the drivers %+v", node, found.Spec.Drivers)
}
