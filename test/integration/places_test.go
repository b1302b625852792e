package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// bindTo puts a pod onto a node on which nothing ever starts, as the scheduler would.
func bindTo(t *testing.T, c *cluster, pod *corev1.Pod, node string) {
	t.Helper()
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	if err := c.Admin.SubResource("binding").Create(t.Context(), pod.DeepCopy(), binding); err != nil {
		t.Fatal(err)
	}
}

// withCreationPod gives a provisioner creation pods that leave nothing to revert.
func withCreationPod(p *pavv1.PavProvisioner, s *storagev1.StorageClass) {
	withPods(p, s)
	p.Spec.VolumeDeletion = nil
}

// claimIn is claimOf in a namespace.
func claimIn(namespace *corev1.Namespace, class, name string) *corev1.PersistentVolumeClaim {
	claim := claimOf(class, name)
	claim.Namespace = namespace.Name
	return claim
}

func newNamespace(t *testing.T, c *cluster, prefix string) *corev1.Namespace {
	t.Helper()
	return mustCreate(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"}})
}

// Three provisioners whose pods hang on a node take all slots but one, and lose them when it is clear that their pods do
// not start.
func TestPodsThatNeverStart_KeepNoOtherProvisionersClaimsWaiting(t *testing.T) {
	const overall, each = 10, 3
	c := start(t)
	limited(t, c, overall, each)
	nodeIn(t, c, "dead-node", "none")
	other := newNamespace(t, c, "other")
	var claims []*corev1.PersistentVolumeClaim
	var hanging []*corev1.Pod
	for _, name := range []string{"broken-a", "broken-b", "broken-c", "healthy"} {
		driver(t, c, name, withCreationPod)
	}
	defer func() {
		for _, claim := range claims {
			mustDelete(t, c, claim)
		}
		for _, pod := range hanging { // as kubelet tells of those that it has ended
			mustPatchStatus(t, c, pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
			if err := c.Admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	}()
	for number := range 3 * each {
		claim := mustCreate(t, c, claimOf([]string{"broken-a", "broken-b", "broken-c"}[number%3], fmt.Sprintf("hangs-%d", number)))
		pod, _ := podOf(t, c, claim, pavv1.WorkflowCreation)
		bindTo(t, c, pod, "dead-node")
		claims, hanging = append(claims, claim), append(hanging, pod)
	}

	podOf(t, c, mustCreate(t, c, claimOf("healthy", "first")), pavv1.WorkflowCreation)
	second := mustCreate(t, c, claimOf("healthy", "second"))
	exists(t, c, volumeOf(second), "is in line", func(v *pavv1.PavVolume) bool { return v.Status.Pod != nil })
	if running := creationPods(t.Context(), t, c, "healthy"); len(running) != 1 {
		t.Errorf("%d pods, want the one of the place that is kept", len(running))
	}
	podOf(t, c, second, pavv1.WorkflowCreation)
	wantEvent(t, c, claims[0], "Warning", "Provisioning", "has not started after 30s")

	next, _ := podOf(t, c, mustCreate(t, c, claimIn(other, "broken-a", "next")), pavv1.WorkflowCreation)
	want := []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"dead-node"}},
	}}}}
	if diff := cmp.Diff(want, next.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution); diff != "" {
		t.Errorf("the nodes that the next pod prefers (-want +got):\n%s", diff)
	}
	healthy, _ := podOf(t, c, second, pavv1.WorkflowCreation)
	if healthy.Spec.Affinity != nil {
		t.Errorf("a provisioner whose pods hang has a say in where another's run: %v", healthy.Spec.Affinity)
	}
}

// A namespace with many claims does not delay another namespace's claim of the same provisioner.
func TestClaimsOfAGreedyNamespace_KeepNoOtherNamespaceWaiting(t *testing.T) {
	const limit = 10
	c := start(t)
	limited(t, c, 100, limit)
	driver(t, c, "shared", withPods)
	modest := newNamespace(t, c, "modest")
	var greedy []*corev1.PersistentVolumeClaim
	for i := range 3 * limit {
		claim := mustCreate(t, c, claimOf("shared", fmt.Sprintf("greedy-%d", i)))
		greedy = append(greedy, claim)
	}
	for _, claim := range greedy {
		exists(t, c, volumeOf(claim), "is in line", func(v *pavv1.PavVolume) bool { return v.Status.Pod != nil })
	}
	podOf(t, c, mustCreate(t, c, claimIn(modest, "shared", "single")), pavv1.WorkflowCreation)
	another := mustCreate(t, c, claimIn(modest, "shared", "another"))
	exists(t, c, volumeOf(another), "is in line", func(v *pavv1.PavVolume) bool { return v.Status.Pod != nil })

	running := creationPods(t.Context(), t, c, "shared")
	if len(running) != limit {
		t.Fatalf("%d pods run, want %d", len(running), limit)
	}
	// Of three slots that become free, one stays free, and each namespace gets one.
	for _, claim := range greedy {
		if slices.Contains(running, volumeOf(claim).Name) {
			mustDelete(t, c, claim)
			gone(t, c, volumeOf(claim))
			if running = slices.DeleteFunc(running, func(v string) bool { return v == volumeOf(claim).Name }); len(running) == limit-3 {
				break
			}
		}
	}
	podOf(t, c, another, pavv1.WorkflowCreation)
	eventually(t, "the other place is taken", func(ctx context.Context) (bool, string) {
		running := creationPods(ctx, t, c, "shared")
		return len(running) >= limit-1, fmt.Sprintf("%q run", running)
	})
}
