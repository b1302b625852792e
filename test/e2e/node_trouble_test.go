package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// A staging pod that cannot start is reported within seconds on the claim and on the client pod. PaV continues to wait, and
// the pod starts as soon as the cause is fixed.
func TestStagingPodCannotStart_IsReported_AndRecovers(t *testing.T) {
	t.Parallel()
	const image, missing = toolsImage, "localhost/not-there:1"
	for name, test := range map[string]struct {
		edit  edit
		words []string
		fix   func(*testing.T)
	}{
		"fits no node": {
			edit:  with("stage spec", "nodeSelector: {e2e-no-stage: 'yes'}"),
			words: []string{"not scheduled", "didn't match"},
			fix:   func(t *testing.T) { t.Helper(); label(t, "node", "node2", "e2e-no-stage", "yes") },
		},
		"has no image": {
			edit:  replacing("# stage container\n            image: "+image, "image: "+missing),
			words: []string{"not-there:1"},
			fix: func(t *testing.T) {
				t.Helper()
				_, err := onNode(t.Context(), "node2", "ctr", "-n", "k8s.io", "images", "tag", image, missing)
				must(t, err)
				t.Cleanup(func() {
					ctx, cancel := cleanupContext(t)
					defer cancel()
					if _, err := onNode(ctx, "node2", "ctr", "-n", "k8s.io", "images", "rm", missing); err != nil {
						t.Error(err)
					}
				})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newStorage(t, "stage-"+strings.ReplaceAll(name, " ", "-"), directories, test.edit)
			claim := l.volume(t, "data", directories, corev1.ReadWriteOnce)
			l.pending(t, clientPod("client", "data", "node2"))
			eventually(t, "a staging pod is made", func(ctx context.Context) error {
				_, err := onlyStagingPod(ctx, l.name)
				return err
			})
			before, err := onlyStagingPod(t.Context(), l.name)
			must(t, err)
			made := time.Now()
			words := slices.Concat(test.words, []string{l.name, before.Name})
			wantClaimEvent(t, claim, "", words...)
			eventually(t, "the client pod has an event", func(ctx context.Context) error {
				return wantEvent(ctx, l.namespace, "client", "", words...)
			})
			t.Logf("both had an event after %.1f s", time.Since(made).Seconds())

			// It is still the same pod that is waited for.
			after, err := onlyStagingPod(t.Context(), l.name)
			must(t, err)
			if after.UID != before.UID {
				t.Errorf("it is replaced by %s", after.Name)
			}
			test.fix(t)
			l.awaitRunning(t, "client")
			l.end(t, "client")
			l.awaitEffects(t, claim, "stage", "unstage")
			l.awaitNoStage(t)
		})
	}
}

// A staging pod never becomes ready: its client is deleted while it waits, and staging is reverted.
func TestStagingPodIsNeverReady_ClientCanBeDeleted(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "never-ready", fuse)
	l.hold(t, "stage")
	claim := l.volume(t, "data", fuse, corev1.ReadWriteOnce)
	l.pending(t, clientPod("client", "data", ""))
	l.runningPod(t, pavv1.WorkflowStaging, claim)
	l.end(t, "client")
	// Kubelet waits for two minutes before it checks the client again.
	eventually(t, "staging is reverted", func(context.Context) error { return l.wantEffects(claim, "stage", "unstage") })
	l.awaitNoStage(t)
	l.unhook(t, "stage")
	l.run(t, clientPod("client", "data", ""))
	l.sh(t, "client", "touch /data/file")
}

// An unstaging pod fails: that is reported, delays only its own volume, and the volume is not staged on another node before
// it succeeds.
func TestExclusiveVolume_OldNodesUnstagingFails_NeverTwoStages(t *testing.T) {
	t.Parallel()
	for _, m := range []medium{directories, ext4} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			l := newStorage(t, "moves-"+m.name, m)
			l.hook(t, "unstage", "echo 'cannot let go' > /pav/error; exit 7")
			claim := l.volume(t, "data", m, corev1.ReadWriteOnce)
			l.run(t, clientPod("first", "data", "node1"))
			l.sh(t, "first", "echo hello > /data/file")
			l.end(t, "first")
			l.pending(t, clientPod("second", "data", "node2"))
			wantClaimEvent(t, claim, "", "cannot let go", "exit code 7", "kubectl logs -n pav-pods unstage-")
			eventually(t, "the second pod has an event that names the user of the volume", func(ctx context.Context) error {
				return wantEvent(ctx, l.namespace, "second", "", "node1")
			})
			eventually(t, "unstaging is tried again", func(ctx context.Context) error {
				stages, err := l.stages(ctx)
				if err != nil {
					return err
				}
				if len(stages) != 1 || stages[0].Spec.NodeName != "node1" || stages[0].Status.UnstagingAttempt < 3 {
					return fmt.Errorf("the PavStages are %+v", stages)
				}
				return nil
			})
			must(t, l.wantEffects(claim, "stage"))

			// Others of the same node do not wait for it.
			l.volume(t, "other", m, corev1.ReadWriteOnce)
			l.run(t, clientPod("other", "other", "node1"))
			l.unhook(t, "unstage")
			l.awaitRunning(t, "second")
			if got := l.sh(t, "second", "cat /data/file"); got != "hello\n" {
				t.Errorf("the second pod reads %q", got)
			}
			l.end(t, "second", "other")
			l.awaitEffects(t, claim, "stage", "unstage", "stage", "unstage")
			must(t, l.neverTwo())
			l.awaitNoStage(t)
		})
	}
}

// neverTwo objects if a volume was staged on one node while it was on another one.
func (l *ledger) neverTwo() error {
	effects, err := l.effects(true)
	if err != nil {
		return err
	}
	for volume, done := range effects {
		on := map[string]bool{}
		for _, effect := range done {
			what, node, _ := strings.Cut(effect, " on ")
			if what != "stage" {
				delete(on, node)
				continue
			}
			on[node] = true
			if len(on) > 1 {
				return fmt.Errorf("volume %s was on two nodes: %q", volume, done)
			}
		}
	}
	return nil
}

// A node with a ReadWriteOnce volume is disconnected: its pods may still run, so the volume stays there until the node is
// back.
func TestExclusiveVolume_OldNodeIsCutOff_NeverTwoStages(t *testing.T) {
	start(t)
	l := newStorage(t, "cut-off", fuse)
	claim := l.volume(t, "data", fuse, corev1.ReadWriteOnce)
	l.run(t, clientPod("first", "data", "node2"))
	l.sh(t, "first", "echo hello > /data/file")
	t.Cleanup(func() { onCluster(t, "node", "reconnect", "node2") })
	onCluster(t, "node", "isolate", "node2")
	first := &corev1.Pod{ObjectMeta: objectMeta(l.namespace, "first")}
	must(t, kube.Delete(t.Context(), first, client.GracePeriodSeconds(0)))
	l.pending(t, clientPod("second", "data", "node1"))
	eventually(t, "the second pod has an event that names the user of the volume", func(ctx context.Context) error {
		return wantEvent(ctx, l.namespace, "second", "", "node2")
	})
	must(t, l.wantEffects(claim, "stage"))
	onCluster(t, "node", "reconnect", "node2")
	eventually(t, "the second pod runs", func(ctx context.Context) error { return l.runs(ctx, "second") })
	if got := l.sh(t, "second", "cat /data/file"); got != "hello\n" {
		t.Errorf("the second pod reads %q", got)
	}
	l.end(t, "second")
	l.awaitEffects(t, claim, "stage", "unstage", "stage", "unstage")
	must(t, l.neverTwo())
	eventually(t, "node2 is ready again", nodeReady)
	waitAgents(t, "")
}
