package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

const (
	hostname     = "kubernetes.io/hostname"
	selectedNode = "volume.kubernetes.io/selected-node"
)

// local makes the volumes of a ledger ones of the node that the scheduler chose, as local disks are.
// The creation pod needs more labels of the node.
func local(labels ...string) []edit {
	const chosen = hostname + `: "{{ selectedNode.metadata.labels['kubernetes.io/hostname'] }}"`
	return []edit{
		with("class", "volumeBindingMode: WaitForFirstConsumer"),
		with("creation", "accessibleTopology: [{"+chosen+"}]"),
		with("create spec", "nodeSelector: {"+strings.Join(append(labels, chosen), ", ")+"}"),
	}
}

// affinity returns the terms of a PersistentVolume's node affinity as text.
func affinity(pv *corev1.PersistentVolume) string {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return "none"
	}
	var terms []string
	for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			terms = append(terms, fmt.Sprintf("%s %s %s", e.Key, e.Operator, strings.Join(e.Values, ",")))
		}
	}
	return strings.Join(terms, "; ")
}

func TestLocalVolumes_AreMadeOnTheNodeOfTheirPod(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "local", local()...)
	for _, node := range nodes {
		claim := l.claim(t, "on-"+node)
		apply(t, l.namespace, clientPod("pod-"+node, claim.Name, node))
		waitRunning(t, l.namespace, "pod-"+node)
		pv := awaitBound(t, claim)
		if diff := cmp.Diff(hostname+" In "+node, affinity(pv)); diff != "" {
			t.Errorf("the node affinity: -want +got:\n%s", diff)
		}
		l.wantMadeOn(t, claim, node)
		volume := awaitVolume(t, claim, "ready", func(v *pavv1.PavVolume) bool { return v.Status.Phase == pavv1.VolumeReady })
		if diff := cmp.Diff([]pavv1.TopologyLabels{{hostname: node}}, volume.Status.AccessibleTopology); diff != "" || volume.Status.SelectedNode != node {
			t.Errorf("the selected node is %q, the accessible topology: -want +got:\n%s", volume.Status.SelectedNode, diff)
		}
		remove(t, &corev1.Pod{ObjectMeta: objectMeta(l.namespace, "pod-"+node)})

		// Another pod of the claim goes where the volume is.
		apply(t, l.namespace, clientPod("again-"+node, claim.Name, ""))
		waitRunning(t, l.namespace, "again-"+node)
		again := &corev1.Pod{ObjectMeta: objectMeta(l.namespace, "again-"+node)}
		must(t, kube.Get(t.Context(), keyOf(again), again))
		if again.Spec.NodeName != node {
			t.Errorf("the second pod is on %s", again.Spec.NodeName)
		}
		remove(t, again)
		removeClaim(t, claim)
	}
}

// wantMadeOn fails the test unless a claim's volume was made on a node, at once.
func (l *ledger) wantMadeOn(t *testing.T, claim *corev1.PersistentVolumeClaim, node string) {
	t.Helper()
	effects, err := l.effects(true)
	must(t, err)
	if diff := cmp.Diff([]string{"create on " + node}, effects[volumeName(claim)]); diff != "" {
		t.Errorf("where the volume of %s was made: -want +got:\n%s", claim.Name, diff)
	}
}

// The scheduler selected a node on which the volume cannot be created. It selects again, and another node only because a
// new pod is in the way.
func TestSelectedNodeWithoutRoom_IsReleased(t *testing.T) {
	t.Parallel()
	const room = "e2e-given-back"
	l := newLedger(t, "given-back", local(room+": 'yes'")...)
	label(t, "node", "node2", room, "yes")
	claim := l.claim(t, "data")
	givenBack := watchSelectedNode(t, claim)
	consumer := strings.Replace(clientPod("client", "data", ""), "spec:\n", `spec:
  affinity:
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - {weight: 100, preference: {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node1]}]}}
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {e2e: in-the-way}}}
`, 1)
	apply(t, l.namespace, consumer)
	select {
	case <-givenBack:
	case <-time.After(3 * time.Minute):
		t.Fatal("the node is not given back")
	}
	apply(t, l.namespace, inTheWay("node1"))
	waitRunning(t, l.namespace, "in-the-way", "client")
	pv := awaitBound(t, claim)
	if got, want := affinity(pv), hostname+" In node2"; got != want {
		t.Errorf("the node affinity is %s, want %s", got, want)
	}
	l.wantMadeOn(t, claim, "node2")
	remove(t, &corev1.Pod{ObjectMeta: objectMeta(l.namespace, "client")})
	removeClaim(t, claim)
}

// inTheWay returns a pod that runs on a node, so that others do not.
func inTheWay(node string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: in-the-way
  labels: {e2e: in-the-way}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 0
  containers:
    - {name: main, image: busybox:1.37.0, command: [sleep, infinity]}
`, node)
}

// watchSelectedNode returns what is closed when the scheduler has selected node1 for a claim, and that
// selection is taken back.
func watchSelectedNode(t *testing.T, claim *corev1.PersistentVolumeClaim) <-chan struct{} {
	t.Helper()
	none := func(watch.EventType, client.Object) {} // the claim has no consumer yet
	events := follow(t.Context(), t, &corev1.PersistentVolumeClaimList{}, none, client.InNamespace(claim.Namespace))
	t.Cleanup(events.Stop)
	givenBack := make(chan struct{})
	go func() {
		selected := false
		for event := range events.ResultChan() {
			now, ok := event.Object.(*corev1.PersistentVolumeClaim)
			if !ok || now.UID != claim.UID {
				continue
			}
			node := now.Annotations[selectedNode]
			if selected && node == "" {
				close(givenBack)
				return
			}
			selected = node == "node1"
		}
	}()
	return givenBack
}

func allowing(node string) edit {
	return with("class", "allowedTopologies: [{matchLabelExpressions: [{key: "+hostname+", values: ["+node+"]}]}]")
}

// With Immediate binding no node is selected: the creation pod may run on any allowed node.
func TestAllowedTopologies_ConfineTheCreationPod(t *testing.T) {
	t.Parallel()
	for _, node := range nodes {
		l := newLedger(t, "allowed-"+node, allowing(node), with("creation", "accessibleTopology: [{"+hostname+": "+node+"}]"))
		var claims []*corev1.PersistentVolumeClaim
		for i := range 3 {
			claims = append(claims, l.claim(t, fmt.Sprintf("data-%d", i)))
		}
		for _, claim := range claims {
			pv := awaitBound(t, claim)
			if got, want := affinity(pv), hostname+" In "+node; got != want {
				t.Errorf("the node affinity is %s, want %s", got, want)
			}
			l.wantMadeOn(t, claim, node)
		}
		for _, claim := range claims {
			removeClaim(t, claim)
		}
	}
}

func TestTopologyOutsideTheAllowed_IsReverted(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "outside", allowing("node2"), with("creation", "accessibleTopology: [{"+hostname+": node1}]"))
	claim := l.claim(t, "data")
	wantClaimEvent(t, claim, "ProvisioningFailed", l.name, "spec.volumeCreation.accessibleTopology", "node1")
	awaitVolume(t, claim, "is tried again", func(v *pavv1.PavVolume) bool { return v.Status.Attempt >= 2 })
	if wantBound(t.Context(), claim) == nil {
		t.Error("it is bound")
	}
	l.reapply(t, replacing("{"+hostname+": node1}", "{"+hostname+": node2}"))
	awaitBound(t, claim)
	removeClaim(t, claim)
}
