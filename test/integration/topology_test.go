package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

const selectedNode = "volume.kubernetes.io/selected-node"

// selectNode does what the scheduler does for a claim's first consumer.
func selectNode(t *testing.T, c *cluster, claim *corev1.PersistentVolumeClaim, node string) {
	t.Helper()
	mustPatch(t, c, claim, func(claim *corev1.PersistentVolumeClaim) {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, selectedNode, node)
	})
}

// givenBack waits until the scheduler may select another node.
func givenBack(t *testing.T, c *cluster, claim *corev1.PersistentVolumeClaim, node string) {
	t.Helper()
	exists(t, c, claim, "has no selected node", func(claim *corev1.PersistentVolumeClaim) bool {
		_, selected := claim.Annotations[selectedNode]
		return !selected
	})
	wantEvent(t, c, claim, "Normal", "Provisioning", "the volume cannot be provisioned for node "+node+": the scheduler can select another one")
}

func nodeIn(t *testing.T, c *cluster, name, zone string) {
	t.Helper()
	node := mustCreate(t, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone}}})
	t.Cleanup(func() { _ = c.Admin.Delete(lasting(t), node) })
}

// wantZones fails the test unless a volume can be used from the nodes of these zones.
func wantZones(t *testing.T, pv *corev1.PersistentVolume, zones ...string) {
	t.Helper()
	want := &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{}}
	for _, zone := range zones {
		want.Required.NodeSelectorTerms = append(want.Required.NodeSelectorTerms, corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
		})
	}
	if diff := cmp.Diff(want, pv.Spec.NodeAffinity); diff != "" {
		t.Errorf("node affinity (-want +got):\n%s", diff)
	}
}

func TestAccessibleTopology_IsTheNodeAffinityOfTheVolume(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "zonal", func(p *pavv1.PavProvisioner, s *storagev1.StorageClass) {
		p.Spec.VolumeCreation.AccessibleTopology = field(`"{% set yaml = true %}[{zone: {{ params.zone }}}, {zone: b}]"`)
		s.Parameters = map[string]string{"zone": "a"}
		s.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"b", "c"}}}}}
	})
	pv, volume := bound(t, c, mustCreate(t, c, claimOf("zonal", "data")))
	wantZones(t, pv, "a", "b")
	if diff := cmp.Diff([]pavv1.TopologyLabels{{"zone": "a"}, {"zone": "b"}}, volume.Status.AccessibleTopology); diff != "" {
		t.Errorf("accessible topology of the PavVolume (-want +got):\n%s", diff)
	}
}

func TestSelectedNodeThatCannotBeUsed_IsReleased(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "picky", func(p *pavv1.PavProvisioner, s *storagev1.StorageClass) {
		p.Spec.VolumeCreation.Handle = field(`"{{ selectedNode.metadata.name }}"`)
		p.Spec.VolumeCreation.AccessibleTopology = field(`[{"zone": "a"}]`)
		s.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	})
	nodeIn(t, c, "picky-a", "a")
	nodeIn(t, c, "picky-b", "b")
	claim := mustCreate(t, c, claimOf("picky", "data"))

	selectNode(t, c, claim, "picky-none")
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed", `node "picky-none", which the scheduler selected for the claim's first consumer, does not exist any more`)
	givenBack(t, c, claim, "picky-none")

	selectNode(t, c, claim, "picky-b")
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed",
		`spec.volumeCreation.accessibleTopology: the volume can be used from nodes with zone=a, but the scheduler chose node "picky-b" for its first consumer`)
	givenBack(t, c, claim, "picky-b")

	selectNode(t, c, claim, "picky-a")
	pv, volume := bound(t, c, claim)
	wantZones(t, pv, "a")
	if pv.Spec.CSI.VolumeHandle != "picky-a" || volume.Status.SelectedNode != "picky-a" || volume.Status.Attempt != 3 {
		t.Errorf("the handle is %q; status of the PavVolume: %+v", pv.Spec.CSI.VolumeHandle, volume.Status)
	}
}
