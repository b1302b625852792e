package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/queue"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/agent"
)

// comeAndGo creates and deletes volumes of a provisioner with all pods, each of which must run once.
func comeAndGo(t *testing.T, c *cluster, name string, many int) {
	t.Helper()
	driver(t, c, name, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		withAllPods(p)
		p.Spec.VolumeCreation.Handle = field(`"{{ defaultHandle }}"`)
	})
	h := runFakeKubelets(t, c, func(string, int) int32 { return 0 })
	claims := make([]*corev1.PersistentVolumeClaim, many)
	for i := range claims {
		claims[i] = mustCreate(t, c, claimOf(name, fmt.Sprintf("%s-%d", name, i)))
	}
	var left []client.Object
	for _, claim := range claims {
		pv, volume := bound(t, c, claim)
		left = append(left, pv, volume)
	}
	for _, claim := range claims {
		mustDelete(t, c, claim)
	}
	for _, object := range left {
		gone(t, c, object)
	}
	if diff := cmp.Diff(map[string]int{"validate": many, "create": many, "delete": many}, h.rest()); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

// The cache is behind, one kind at a time, by more than a pass takes: nothing is done twice or because of outdated objects,
// and limits are kept.
func TestStaleCache_EveryPodRunsOnce(t *testing.T) {
	c := start(t)
	for _, resource := range []string{"pods", "pavvolumes", "persistentvolumes", "persistentvolumeclaims", "pavprovisioners", "pavstages"} {
		t.Run(resource, func(t *testing.T) {
			o := agent.Options(namespace)
			o.Pods = queue.Limits{Overall: 2, PerProvisioner: 2}
			line := &agent.Line{Faults: agent.Faults{Late: map[string]time.Duration{resource: 700 * time.Millisecond}}}
			a := agent.Launch(t, c.agent, o, line)
			t.Cleanup(func() { a.Stop(t); checkNothingLeft(t, c) })
			comeAndGo(t, c, "late", 3)
			if late := line.Strikes().Late; late == 0 {
				t.Error("no part of a watch was late")
			} else {
				t.Logf("%d parts of watches were late", late)
			}
		})
	}
}

// launchLate starts an agent whose watch of a resource can be held.
func launchLate(t *testing.T, c *cluster, resource string) (*agent.Agent, *agent.Line) {
	t.Helper()
	line := &agent.Line{Faults: agent.Faults{Late: map[string]time.Duration{resource: 0}}}
	a := agent.Launch(t, c.agent, agent.Options(namespace), line)
	t.Cleanup(func() { a.Stop(t); checkNothingLeft(t, c) })
	return a, line
}

// The cache does not have a volume's only PavStage when the volume is to be deleted: the volume is not deleted.
func TestCacheBehind_VolumeThatIsStagedIsNotDeleted(t *testing.T) {
	const name = "stage-unseen"
	c := start(t)
	a, line := launchLate(t, c, "pavstages")
	driver(t, c, name, withDeletionPod, inPool)
	nodeIn(t, c, fakeNode, "none")
	claim := mustCreate(t, c, ownedClaim(name, "me"))
	pv, volume := bound(t, c, claim)

	release := line.Hold("pavstages")
	t.Cleanup(release)
	stage := createStaged(t, c, stageOf(pv, "stage-"+name, fakeNode))
	mustDelete(t, c, claim)
	gone(t, c, claim)
	asked := line.Lists("pavstages")
	eventually(t, "the agent asks for stages, of which no news arrives", func(context.Context) (bool, string) {
		lists, held := line.Lists("pavstages")-asked, line.Strikes().Held
		return lists >= 2 && held > 0, fmt.Sprintf("it asked %d times, and %d parts of watches are held", lists, held)
	})
	if pods := podsMade(a); pods > 0 {
		t.Errorf("%d pods were made for the deletion of a volume that is staged", pods)
	}
	isKept(t, c, pv)

	release()
	exists(t, c, volume, "is to be deleted", func(v *pavv1.PavVolume) bool { return v.Status.Phase == pavv1.VolumeDeleting })
	mustPatch(t, c, stage, func(s *pavv1.PavStage) { s.Finalizers = nil })
	mustDelete(t, c, stage)
	pod, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
	end(t, c, pod, workflow.Result{}, 0)
	gone(t, c, pv)
	gone(t, c, volume)
}

// The cache does not show yet that an expansion pod has started when its volume is released: the pod is seen to its end.
func TestCacheBehind_ExpansionPodThatHasStartedIsNotStopped(t *testing.T) {
	const name = "start-unseen"
	c := start(t)
	_, line := launchLate(t, c, "pods")
	driver(t, c, name, growable)
	claim := mustCreate(t, c, ownedClaim(name, "me"))
	pv, volume := bound(t, c, claim)
	mustPatch(t, c, claim, requests("2Gi"))
	pod, _ := podOf(t, c, claim, pavv1.WorkflowExpansion)
	mustPatchStatus(t, c, pod, func(p *corev1.Pod) { p.Status.Conditions = unscheduled })
	exists(t, c, volume, "has a pod that the agent has seen", func(v *pavv1.PavVolume) bool {
		condition := meta.FindStatusCondition(v.Status.Conditions, pavv1.VolumeExpanded)
		return condition != nil && strings.Contains(condition.Message, "is not scheduled")
	})

	release := line.Hold("pods")
	t.Cleanup(release)
	mustPatchStatus(t, c, pod, func(p *corev1.Pod) { p.Status.Phase, p.Status.Conditions = corev1.PodRunning, nil })
	mustDelete(t, c, claim)
	lost := "DELETE /api/v1/namespaces/" + pod.Namespace + "/pods/" + pod.Name
	eventually(t, "the agent tries to stop the pod in vain", func(context.Context) (bool, string) {
		return slices.Contains(line.Lost(), lost), fmt.Sprintf("it has lost %q", line.Lost())
	})
	exists(t, c, pod, "is not deleted", func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil })

	release()
	end(t, c, pod, workflow.Result{}, 0)
	deletion, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
	end(t, c, deletion, workflow.Result{}, 0)
	gone(t, c, pv)
	gone(t, c, volume)
}

// The cache does not show yet that a provisioner is being deleted. No record is written for it, as that would be
// deleted at once, and written again.
func TestCacheBehind_NoVolumeOfAProvisionerThatIsBeingDeleted(t *testing.T) {
	const name = "going-unseen"
	c := start(t)
	_, line := launchLate(t, c, "pavprovisioners")
	provisioner := driver(t, c, name)
	first := mustCreate(t, c, claimOf(name, "first"))
	pv, volume := bound(t, c, first)

	release := line.Hold("pavprovisioners")
	t.Cleanup(release)
	mustDelete(t, c, provisioner)
	second := mustCreate(t, c, claimOf(name, "second"))
	wantEvent(t, c, second, "Warning", "ProvisioningFailed", fmt.Sprintf("PavProvisioner %q is being deleted", name))
	noVolume(t, c, second)

	mustDelete(t, c, second)
	mustDelete(t, c, first)
	release()
	gone(t, c, pv)
	gone(t, c, volume)
	gone(t, c, provisioner)
}
