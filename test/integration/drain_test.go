package integration

import (
	"context"
	"fmt"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/agent"
)

// servedVolume makes a volume that a running staging pod serves on a node, and returns its claim and that pod.
func servedVolume(t *testing.T, c *cluster, driver, name, node string) (*corev1.PersistentVolumeClaim, *corev1.Pod) {
	t.Helper()
	claim := mustCreate(t, c, claimOf(driver, name))
	pv, _ := bound(t, c, claim)
	stage := stageOf(pv, "stage-"+name, node)
	stage.Spec.ClaimRef = pavv1.ClaimReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	token := nodeAgent(t, c, node)
	if err := token.Create(t.Context(), stage); err != nil {
		t.Fatal(err)
	}
	pod := stagingPodOf(stage)
	if err := token.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Admin.Patch(lasting(t), stage, client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"finalizers": null}}`))); err != nil {
			t.Error(err)
		}
		mustDeleteLasting(t, c, stage)
		if err := token.Patch(lasting(t), pod, client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"finalizers": null}}`))); err != nil {
			t.Error(err)
		}
		removeNow(t, c, pod)
	})
	stage.Status = pavv1.PavStageStatus{Phase: pavv1.StageStaged, StagingPod: &pavv1.PodReference{Namespace: pod.Namespace, Name: pod.Name}}
	if err := token.Status().Update(t.Context(), stage); err != nil {
		t.Fatal(err)
	}
	if err := c.Admin.SubResource("binding").Create(t.Context(), pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}}); err != nil {
		t.Fatal(err)
	}
	isRunning(t, c, pod)
	return claim, pod
}

// isRunning does what a kubelet would do; the node does not exist.
func isRunning(t *testing.T, c *cluster, pod *corev1.Pod) {
	t.Helper()
	if err := c.Admin.Status().Patch(t.Context(), pod, client.RawPatch("application/merge-patch+json", []byte(`{"status": {"phase": "Running"}}`))); err != nil {
		t.Fatal(err)
	}
}

// clientOn makes a running pod on a node that uses a claim, and that a controller of a kind has made.
func clientOn(t *testing.T, c *cluster, node, name, kind string, claim *corev1.PersistentVolumeClaim) *corev1.Pod {
	t.Helper()
	pod := mustCreate(t, c, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: appsv1.SchemeGroupVersion.String(), Kind: kind, Name: "owner", UID: "owner", Controller: new(true),
		}}},
		Spec: corev1.PodSpec{
			NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "none"}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
			}}},
		},
	})
	isRunning(t, c, pod)
	t.Cleanup(func() { removeNow(t, c, pod) })
	return pod
}

// Evictions of staging pods, as by kubectl drain, are allowed on a cordoned node if only pods of DaemonSets use the volume,
// and not otherwise.
func TestStagingPodsOfDaemonSetsMayBeEvicted_WhileTheirNodeIsCordoned(t *testing.T) {
	c := start(t)
	running := agent.Launch(t, c.agent, agent.Options(namespace), &agent.Line{})
	t.Cleanup(func() {
		running.Stop(t)
		checkNothingLeft(t, c)
	})
	driver(t, c, "drained")
	node := mustCreate(t, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "drained"}})
	t.Cleanup(func() { mustDeleteLasting(t, c, node) })
	shared, ofBoth := servedVolume(t, c, "drained", "drained-both", node.Name)
	own, ofDaemons := servedVolume(t, c, "drained", "drained-daemons", node.Name)
	clientOn(t, c, node.Name, "drained-daemon-1", "DaemonSet", shared)
	clientOn(t, c, node.Name, "drained-daemon-2", "DaemonSet", own)
	ordinary := clientOn(t, c, node.Name, "drained-replica", "ReplicaSet", shared)
	budget := budgetIn(workflow.DefaultNamespace)
	exists(t, c, budget, "protects", protects)
	// No disruption controller runs here; without its counts, the API server makes clients wait and try again.
	counted := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"status": {"observedGeneration": %d}}`, budget.Generation))
	if err := c.Admin.Status().Patch(t.Context(), budget, counted); err != nil {
		t.Fatal(err)
	}

	cordon := func(is bool) {
		t.Helper()
		mustPatch(t, c, node, func(n *corev1.Node) { n.Spec.Unschedulable = is })
	}
	evict := func(pod *corev1.Pod, options ...client.SubResourceCreateOption) error {
		return c.Admin.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{}, options...)
	}
	refused := func(when string, pods ...*corev1.Pod) {
		t.Helper()
		for _, pod := range pods {
			if err := evict(pod, client.DryRunAll); !apierrors.IsTooManyRequests(err) {
				t.Errorf("%s: the eviction of %s is not refused: %v", when, pod.Name, err)
			}
		}
	}
	granted := func(when string, pod *corev1.Pod) {
		t.Helper()
		eventually(t, when+": the eviction of "+pod.Name+" is granted", func(context.Context) (bool, string) {
			err := evict(pod, client.DryRunAll)
			return err == nil, "it is refused"
		})
	}
	protected := func(pod *corev1.Pod) {
		t.Helper()
		exists(t, c, pod, "is protected", func(p *corev1.Pod) bool { return p.Labels[pavv1.EvictableLabel] == "" })
	}

	refused("before the cordon", ofBoth, ofDaemons)
	cordon(true)
	granted("on the cordoned node", ofDaemons)
	refused("while an ordinary pod uses the volume", ofBoth)
	removeNow(t, c, ordinary)
	granted("when the ordinary pod has gone", ofBoth)

	cordon(false)
	protected(ofBoth)
	protected(ofDaemons)
	refused("when the node takes pods again", ofBoth, ofDaemons)

	cordon(true)
	granted("when it is cordoned again", ofBoth)
	granted("when it is cordoned again", ofDaemons)
	if err := evict(ofDaemons); err != nil {
		t.Error(err)
	}
	exists(t, c, ofDaemons, "ends", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })

	running.Stop(t)
	cordon(false)
	running = agent.Launch(t, c.agent, agent.Options(namespace), &agent.Line{})
	protected(ofBoth)
	refused("when the node takes pods again", ofBoth)
}

func TestControllerToken_SaysOfStagingPodsOnlyThatTheyMayBeEvicted(t *testing.T) {
	c := start(t)
	const only, theirs = "finalizers of a pod only", "the pods of its own workflows only"
	stage := mustCreate(t, c, &pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Name: "policed-eviction"}, Spec: stageSpec("node")})
	t.Cleanup(func() { mustDeleteLasting(t, c, stage) })
	pod := func(name, workflow string, labels map[string]string) *corev1.Pod {
		p := stagingPodOf(stage)
		p.Name, p.Labels[pavv1.WorkflowLabel], p.Finalizers = name, workflow, nil
		maps.Copy(p.Labels, labels)
		if err := nodeAgent(t, c, "node").Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { removeNow(t, c, p) })
		return p
	}
	staging, evictable := pod("policed-eviction-1", pavv1.WorkflowStaging, nil), pod("policed-eviction-2", pavv1.WorkflowStaging, map[string]string{pavv1.EvictableLabel: "true"})
	unstaging := pod("policed-eviction-3", pavv1.WorkflowUnstaging, nil)
	ordinary := mustCreate(t, c, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "policed-eviction"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	})
	t.Cleanup(func() { removeNow(t, c, ordinary) })
	set := func(value string) string {
		return `{"metadata": {"labels": {"` + pavv1.EvictableLabel + `": ` + value + `}}}`
	}
	try(t, stolenController(t, c), []attempt{
		{"it lets a staging pod be evicted", patching(staging, set(`"true"`)), ""},
		{"it protects one again", patching(evictable, set("null")), ""},
		{"it writes something else there", patching(staging, set(`"other"`)), only},
		{"it changes what is there", patching(evictable, set(`"other"`)), only},
		{"it adds another label", patching(staging, relabel), only},
		{"it adds another label, too", patching(staging, `{"metadata": {"labels": {"a": "b", "`+pavv1.EvictableLabel+`": "true"}}}`), only},
		{"it takes another label", patching(staging, `{"metadata": {"labels": {"`+pavv1.StageLabel+`": null}}}`), only},
		{"it makes an unstaging pod a staging pod", patching(unstaging, `{"metadata": {"labels": {"`+pavv1.WorkflowLabel+`": "stage"}}}`), only},
		{"it lets an unstaging pod be evicted", patching(unstaging, set(`"true"`)), only},
		{"it writes on a pod that is not PaV's", patching(ordinary, set(`"true"`)), theirs},
	})
	try(t, c.Admin, []attempt{
		{"an administrator lets a staging pod be evicted", patching(staging, set(`"true"`)), "are PaV's"},
		{"an administrator protects one again", patching(evictable, set("null")), "are PaV's"},
	})
	try(t, nodeAgent(t, c, "node"), []attempt{
		{"a node agent lets a staging pod be evicted", patching(staging, set(`"true"`)), only},
		{"a node agent protects one again", patching(evictable, set("null")), only},
	})
}
