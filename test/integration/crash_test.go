package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/agent"
	"github.com/albertofaria/pav/test/seed"
)

// life is what a volume is at each stage of its life, without names, times and versions.
type life struct {
	Bound, Released any
}

// liveAndDie takes a volume through its life and returns what was seen of it.
func liveAndDie(t *testing.T, c *cluster, policy corev1.PersistentVolumeReclaimPolicy, name string) life {
	t.Helper()
	driver(t, c, name, func(_ *pavv1.PavProvisioner, class *storagev1.StorageClass) { class.ReclaimPolicy = &policy })
	exists(t, c, provisionerOf(name), "is there", func(*pavv1.PavProvisioner) bool { return true })
	claim := mustCreate(t, c, claimOf(name, name))
	pv, volume := bound(t, c, claim)
	exists(t, c, volume, "has an up-to-date copy of the claim", func(v *pavv1.PavVolume) bool {
		current := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		exists(t, c, current, "exists", func(*corev1.PersistentVolumeClaim) bool { return true })
		return copiedVersion(t, v) == current.ResourceVersion
	})
	exists(t, c, pv, "is held as its policy says", func(pv *corev1.PersistentVolume) bool {
		return slices.Contains(pv.Finalizers, pavv1.PVFinalizer) == (policy == corev1.PersistentVolumeReclaimDelete)
	})
	seen := life{Bound: essence(pv, volume)}
	mustDelete(t, c, claim)
	gone(t, c, claim)
	if policy == corev1.PersistentVolumeReclaimRetain {
		exists(t, c, volume, "is retained", func(v *pavv1.PavVolume) bool {
			return v.Status.Phase == pavv1.VolumeRetained && len(v.Finalizers) == 0
		})
		exists(t, c, pv, "is released", func(pv *corev1.PersistentVolume) bool { return pv.Status.Phase == corev1.VolumeReleased })
		seen.Released = essence(pv, volume)
		return seen
	}
	gone(t, c, pv)
	gone(t, c, volume)
	return seen
}

// essence returns what must be the same in every life of a volume.
func essence(pv *corev1.PersistentVolume, volume *pavv1.PavVolume) any {
	conditions := map[string]string{}
	for _, c := range volume.Status.Conditions {
		conditions[c.Type] = string(c.Status) + " " + c.Reason + " " + c.Message
	}
	return map[string]any{
		"pv finalizers": pv.Finalizers, "pv policy": pv.Spec.PersistentVolumeReclaimPolicy, "pv phase": pv.Status.Phase,
		"pv capacity": pv.Spec.Capacity.Storage().String(), "own handle": pv.Spec.CSI.VolumeHandle == pv.Name,
		"finalizers": volume.Finalizers, "policy": volume.Spec.ReclaimPolicy, "phase": volume.Status.Phase,
		"same handle": volume.Status.Handle == pv.Name, "capacity": volume.Status.Capacity.String(), "conditions": conditions,
	}
}

// The agent is stopped after each of its writes in turn (in the short suite, after every third), without the answer to it.
func TestAgentStoppedAfterEachWrite(t *testing.T) {
	c := start(t)
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain} {
		t.Run(string(policy), func(t *testing.T) {
			var want life
			var writes []string
			var cuts agent.Cuts
			t.Run("undisturbed", func(t *testing.T) {
				s := agent.Supervise(t, c.agent, agent.Options(namespace), 0)
				t.Cleanup(func() { writes = s.Stop(t).Line.Writes(); checkNothingLeft(t, c) })
				want = liveAndDie(t, c, policy, "crash")
			})
			if len(writes) < 5 {
				t.Fatalf("the agent wrote only %q", writes)
			}
			every := every(3)
			for k := 1 + seed.Random(t).IntN(every); k <= len(writes); k += every {
				t.Run(fmt.Sprintf("after write %d", k), func(t *testing.T) {
					s := agent.Supervise(t, c.agent, agent.Options(namespace), k)
					t.Cleanup(func() { s.Stop(t); cuts.Add(t, s, k); checkNothingLeft(t, c) })
					if diff := cmp.Diff(want, liveAndDie(t, c, policy, "crash")); diff != "" {
						t.Errorf("another life than the undisturbed one (-want +got):\n%s", diff)
					}
				})
			}
			cuts.Check(t)
			t.Logf("undisturbed, the agent writes %q", writes)
		})
	}
}

// A second agent takes over when the leader ends.
func TestLeaderIsReplaced(t *testing.T) {
	c := start(t)
	o := agent.Options(namespace)
	o.LeaderElect = true // The lease is released when the leader ends, so that its duration is not waited for.
	first, second := agent.Launch(t, c.agent, o, &agent.Line{}), agent.Launch(t, c.agent, o, &agent.Line{})
	t.Cleanup(func() { second.Stop(t); checkNothingLeft(t, c) })
	driver(t, c, "led")
	bound(t, c, mustCreate(t, c, claimOf("led", "before")))
	leader, other := first, second
	if len(second.Line.Writes()) > 0 {
		leader, other = second, first
	}
	if writes := other.Line.Writes(); len(writes) > 0 {
		t.Errorf("an agent that does not lead has written: %q", writes)
	}
	leader.Stop(t)
	second = other
	bound(t, c, mustCreate(t, c, claimOf("led", "after")))
	if len(other.Line.Writes()) == 0 {
		t.Error("nobody has taken over")
	}
}

// Many claims at once are all bound, with few requests each.
func TestManyClaims(t *testing.T) {
	const many = 100
	c := start(t)
	a := run(t, c)
	driver(t, c, "many")
	claims := make([]*corev1.PersistentVolumeClaim, many)
	began := time.Now()
	for i := range claims {
		claims[i] = mustCreate(t, c, claimOf("many", fmt.Sprintf("data-%d", i)))
	}
	for _, claim := range claims {
		bound(t, c, claim)
	}
	boundAfter, requests := time.Since(began), a.Line.Requests()
	began = time.Now()
	for _, claim := range claims {
		mustDelete(t, c, claim)
	}
	eventually(t, "no PavVolume is left", func(ctx context.Context) (bool, string) {
		list := &pavv1.PavVolumeList{}
		err := c.Admin.List(ctx, list)
		return err == nil && len(list.Items) == 0, fmt.Sprint(len(list.Items), err)
	})
	goneAfter := time.Since(began)
	deletes := a.Line.Requests() - requests
	t.Logf("%d claims: all bound after %s, %.1f requests each; all gone after %s, %.1f requests each",
		many, boundAfter.Round(10*time.Millisecond), float64(requests)/many, goneAfter.Round(10*time.Millisecond), float64(deletes)/many)
	if perVolume := float64(requests+deletes) / many; perVolume > 40 {
		t.Errorf("%.1f requests per volume", perVolume)
	}
}
