package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/agent"
	"github.com/albertofaria/pav/test/seed"
)

// fakeKubelets act as scheduler, kubelet and node agent for all workflow pods: they end each pod as soon as it exists.
type fakeKubelets struct {
	stop func()
	done chan struct{}

	mu    sync.Mutex
	ended map[string]int // pods by workflow

	// accounts are those that grant pods have made and that no revocation pod has deleted.
	accounts map[string]bool
}

// goesOn is the exit code of a pod that does not end.
const goesOn = -1

// runFakeKubelets ends pods with the exit code that code returns for the how many-th pod of a workflow, from 1.
func runFakeKubelets(t *testing.T, c *cluster, code func(workflow string, number int) int32) *fakeKubelets {
	t.Helper()
	ctx, node := lasting(t), nodeAgent(t, c, fakeNode)
	pods, err := c.Admin.Watch(ctx, &corev1.PodList{}, client.HasLabels{pavv1.WorkflowLabel})
	if err != nil {
		t.Fatal(err)
	}
	h := &fakeKubelets{stop: pods.Stop, done: make(chan struct{}), ended: map[string]int{}, accounts: map[string]bool{}}
	go func() {
		defer close(h.done)
		for event := range pods.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || event.Type != watch.Added || pod.DeletionTimestamp != nil || pod.Labels[pavv1.StageLabel] != "" {
				continue
			}
			kind := pod.Labels[pavv1.WorkflowLabel]
			h.mu.Lock()
			h.ended[kind]++
			number := h.ended[kind]
			h.mu.Unlock()
			exitCode := code(kind, number)
			if exitCode == goesOn {
				continue
			}
			h.keepAccount(kind, pod)
			result, err := resultByHand(kind, pod)
			if err == nil {
				err = endPod(ctx, c.Admin, node, pod, result, exitCode)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}()
	t.Cleanup(func() { h.rest() })
	return h
}

// resultByHand returns what a pod of a workflow leaves in /pav.
func resultByHand(kind string, pod *corev1.Pod) (workflow.Result, error) {
	switch kind {
	case pavv1.WorkflowExpansion, pavv1.WorkflowModification:
		return workflow.Result{}, nil
	case pavv1.WorkflowBucketCreation:
		return workflow.Result{Created: true}, nil
	case pavv1.WorkflowGrant:
		return sealed(pod, accountIn(pod), canary)
	default:
		return workflow.Result{Handle: "made by hand", Capacity: "2Gi"}, nil
	}
}

// accountIn returns the account that a grant or revocation pod of a provisioner of ofBuckets is about.
func accountIn(pod *corev1.Pod) string {
	account, _, _ := strings.Cut(pod.Annotations["sees"], " in ")
	return account
}

// keepAccount keeps a store's account of a pod that ends, as far as the pod is about one.
func (h *fakeKubelets) keepAccount(kind string, pod *corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch kind {
	case pavv1.WorkflowGrant:
		h.accounts[accountIn(pod)] = true
	case pavv1.WorkflowRevocation:
		delete(h.accounts, accountIn(pod))
	}
}

// left returns the accounts that are left in the store.
func (h *fakeKubelets) left() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.accounts))
}

// rest stops the fake kubelets and returns how many pods of each workflow they have ended.
func (h *fakeKubelets) rest() map[string]int {
	h.stop()
	<-h.done
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.ended)
}

// withAllPods gives a provisioner validation, creation and deletion pods.
func withAllPods(p *pavv1.PavProvisioner) {
	pod := field(`{"spec": {"containers": [{"name": "main", "image": "none"}]}}`)
	p.Spec.VolumeValidation = &pavv1.VolumeValidation{PodTemplate: pod}
	p.Spec.VolumeCreation = &pavv1.VolumeCreation{PodTemplate: pod}
	p.Spec.VolumeDeletion = &pavv1.VolumeDeletion{PodTemplate: pod}
}

// liveWithPods takes a volume of a provisioner with all pods through its life, and returns what it was.
func liveWithPods(t *testing.T, c *cluster) string {
	t.Helper()
	const name = "crash-pods"
	driver(t, c, name, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) { withAllPods(p) })
	exists(t, c, provisionerOf(name), "is there", func(*pavv1.PavProvisioner) bool { return true })
	claim := mustCreate(t, c, claimOf(name, name))
	pv, volume := bound(t, c, claim)
	seen := pv.Spec.CSI.VolumeHandle + " " + pv.Spec.Capacity.Storage().String()
	mustDelete(t, c, claim)
	for _, object := range []client.Object{claim, pv, volume} {
		gone(t, c, object)
	}
	noPodIsLeft(t, c)
	return seen
}

// noPodIsLeft waits until there is no workflow pod: the agent does not wait for that before it goes on.
func noPodIsLeft(t *testing.T, c *cluster) {
	t.Helper()
	eventually(t, "no workflow pod is left", func(ctx context.Context) (bool, string) {
		pods := &corev1.PodList{}
		err := c.Admin.List(ctx, pods, client.HasLabels{pavv1.WorkflowLabel})
		return err == nil && len(pods.Items) == 0, fmt.Sprint(len(pods.Items), err)
	})
}

// The agent is stopped after each of its writes in turn (in the short suite, after every third) while pods validate,
// create, revert and delete a volume: each pod runs exactly once.
func TestAgentStoppedAfterEachWrite_WithPods(t *testing.T) {
	c := start(t)
	tests := map[string]struct {
		code func(workflow string, number int) int32
		want map[string]int
	}{
		"all succeed": {
			code: func(string, int) int32 { return 0 },
			want: map[string]int{"validate": 1, "create": 1, "delete": 1},
		},
		"the first creation fails, and its revert once": {
			code: func(workflow string, number int) int32 {
				if workflow != pavv1.WorkflowValidation && number == 1 {
					return 3
				}
				return 0
			},
			want: map[string]int{"validate": 2, "create": 2, "delete": 3},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stopAfterEachWrite(t, c, 3, func(t *testing.T) {
				t.Helper()
				h := runFakeKubelets(t, c, test.code)
				seen := liveWithPods(t, c)
				if diff := cmp.Diff(test.want, h.rest()); diff != "" {
					t.Errorf("pods (-want +got):\n%s", diff)
				}
				if seen != "made by hand 2Gi" {
					t.Errorf("the volume was %s", seen)
				}
			})
		})
	}
}

// stopAfterEachWrite lives a life without a disturbance, and then again with an agent that is stopped after each of the writes
// of that life in turn; in the short suite, after some: every third, for example.
func stopAfterEachWrite(t *testing.T, c *cluster, few int, life func(t *testing.T)) {
	t.Helper()
	var writes []string
	var cuts agent.Cuts
	live := func(t *testing.T, k int) {
		t.Helper()
		s := agent.Supervise(t, c.agent, agent.Options(namespace), k)
		t.Cleanup(func() {
			ended := s.Stop(t).Line.Writes()
			checkNothingLeft(t, c)
			if k == 0 {
				writes = ended
			} else {
				cuts.Add(t, s, k)
			}
		})
		life(t)
	}
	t.Run("undisturbed", func(t *testing.T) { live(t, 0) })
	if len(writes) < 15 {
		t.Fatalf("the agent wrote only %q", writes)
	}
	every := every(few)
	for k := 1 + seed.Random(t).IntN(every); k <= len(writes); k += every {
		t.Run(fmt.Sprintf("after write %d", k), func(t *testing.T) { live(t, k) })
	}
	cuts.Check(t)
	t.Logf("undisturbed, the agent writes %q", writes)
}
