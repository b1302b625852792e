package integration

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/agent"
)

// While no agent runs, a creation pod ends and is deleted: its effects are reverted, and it is run again, as they may be
// incomplete.
func TestPodGoesWhileNoAgentRuns(t *testing.T) {
	for name, byForce := range map[string]bool{"it is deleted, and held by its finalizer": false, "it is removed with its finalizer": true} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			current := agent.Launch(t, c.agent, agent.Options(namespace), &agent.Line{})
			t.Cleanup(func() { current.Stop(t); checkNothingLeft(t, c) })
			// The definition contains the handle: the one that the pod chose is not known once the pod is removed by force.
			driver(t, c, "away", withPods, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
				p.Spec.VolumeCreation.Handle = field(`"{{ defaultHandle }}"`)
			})
			claim := mustCreate(t, c, claimOf("away", "data"))
			pod, volume := podOf(t, c, claim, pavv1.WorkflowCreation)
			current.Stop(t)

			end(t, c, pod, workflow.Result{Handle: "made"}, 0)
			if err := c.Admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
				t.Fatal(err)
			}
			if byForce {
				mustPatch(t, c, pod, func(p *corev1.Pod) { p.Finalizers = nil })
				gone(t, c, pod)
			}

			current = agent.Launch(t, c.agent, agent.Options(namespace), &agent.Line{})
			revert, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
			end(t, c, revert, workflow.Result{}, 0)
			again, _ := podOf(t, c, claim, pavv1.WorkflowCreation)
			end(t, c, again, workflow.Result{Handle: "made"}, 0)
			bound(t, c, claim)
			if pods := podsMade(current); pods != 2 {
				t.Errorf("the next agent made %d pods, want one that reverts and one that creates", pods)
			}
			mustDelete(t, c, claim)
			deletion, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
			end(t, c, deletion, workflow.Result{}, 0)
			gone(t, c, volume)
		})
	}
}

// promised is how soon after the end of its creation pod a claim is to be bound.
const promised = 10 * time.Second

// A creation pod takes long: it remains the only one, and its claim is bound soon after its end.
func TestCreationPodThatTakesLong(t *testing.T) {
	c := start(t)
	a := run(t, c)
	driver(t, c, "takes-long", withPods)
	driver(t, c, "quick")
	slow := mustCreate(t, c, claimOf("takes-long", "slow"))
	pod, _ := podOf(t, c, slow, pavv1.WorkflowCreation)
	for _, name := range []string{"first", "second", "third"} {
		quick := mustCreate(t, c, claimOf("quick", name))
		bound(t, c, quick)
		mustDelete(t, c, quick)
		gone(t, c, volumeOf(quick))
	}
	if pods := podsMade(a); pods != 1 {
		t.Errorf("there are %d pods, want the one that takes long", pods)
	}
	end(t, c, pod, workflow.Result{Handle: "made"}, 0)
	ended := time.Now()
	bound(t, c, slow)
	if took := time.Since(ended); took > promised {
		t.Errorf("the claim was bound %s after the end of its pod, not within %s", took, promised)
	}
	mustDelete(t, c, slow)
	deletion, _ := podOf(t, c, slow, pavv1.WorkflowDeletion)
	end(t, c, deletion, workflow.Result{}, 0)
	gone(t, c, volumeOf(slow))
}
