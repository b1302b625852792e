package integration

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/kubelet"
)

// growsOnNodes adds a node expansion pod to a definition.
func growsOnNodes(p *pavv1.PavProvisioner) {
	p.Spec.VolumeExpansion = &pavv1.VolumeExpansion{NodePodTemplate: field(strings.Replace(workerTemplate, `"annotations": {`, `"annotations": {"capacity": "{{ newCapacity }}", `, 1))}
}

func (n *node) expand(t *testing.T, v kubelet.Volume, c kubelet.Client, capacity int64) {
	t.Helper()
	n.succeed(t, fmt.Sprintf("expanding %s to %d", v.Handle, capacity), func(ctx context.Context) error { return n.Expand(ctx, v, c, capacity) })
}

// A volume grows on its node while clients have it: once for each capacity, in each stage.
func TestNode_Expansion_RunsOnceForEachCapacity(t *testing.T) {
	for _, scope := range slices.Sorted(maps.Keys(scopes)) {
		t.Run(scope, func(t *testing.T) {
			n := newNode(t, workers(t, nil), scopes[scope], growsOnNodes)
			n.run(t)
			v := n.volume(t, "served-and-grown")
			first, second := clientOf(v, 1), clientOf(v, 2)
			n.stage(t, v)
			n.publish(t, v, first)
			n.expand(t, v, first, 2<<30)
			n.expand(t, v, first, 2<<30)
			n.expand(t, v, first, 1<<30)
			runs := map[string]int{pavv1.WorkflowStaging: 1, pavv1.WorkflowNodeExpansion: 1}
			n.wantRuns(t, v, runs)
			n.publish(t, v, second)
			n.expand(t, v, second, 2<<30)
			if strings.Contains(strings.ToLower(scope), "pod") {
				runs[pavv1.WorkflowStaging], runs[pavv1.WorkflowNodeExpansion] = 2, 2 // each client has a stage
			}
			n.wantRuns(t, v, runs)
			n.expand(t, v, second, 3<<30)
			runs[pavv1.WorkflowNodeExpansion] += runs[pavv1.WorkflowStaging]
			n.wantRuns(t, v, runs)
			for _, stage := range n.stages(t) {
				if capacity := stage.Status.Capacity; stage.Status.StagingPod != nil && (capacity == nil || capacity.Value() != 3<<30) {
					t.Errorf("PavStage %s has recorded %v", stage.Name, capacity)
				}
			}
			for _, c := range []kubelet.Client{first, second} {
				n.wantRead(t, v, c)
				n.unpublish(t, v, c)
			}
			n.unstage(t, v)
		})
	}
}

// What fails is told in the answer, an event and the record; kubelet repeats the call. Clients have the volume all the time.
func TestNode_Expansion_ThatFails(t *testing.T) {
	works := workers(t, nil)
	n := newNode(t, func(ctx context.Context, pod *kubelet.Pod) int32 {
		if pod.Workflow() != pavv1.WorkflowNodeExpansion {
			return works(ctx, pod)
		}
		file, words := "error", "no space left"
		switch pod.Annotations["capacity"] {
		case "2":
			file, words = "infeasible", "at most 1"
		case "3":
			return works(ctx, pod)
		}
		if err := os.WriteFile(filepath.Join(pod.Pav, file), []byte(words), 0o600); err != nil {
			t.Error(err)
		}
		return 7
	}, growsOnNodes)
	n.run(t)
	v := n.volume(t, "served-and-failing")
	c := clientOf(v, 1)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: v.Name}}
	exists(t, n.c, claim, "exists", func(*corev1.PersistentVolumeClaim) bool { return true })
	wants := func(capacity int64, code codes.Code, words string) {
		t.Helper()
		err := n.firstAnswer(t, func(ctx context.Context) error { return n.Expand(ctx, v, c, capacity) })
		if status.Code(err) != code || !strings.Contains(err.Error(), words) {
			t.Errorf("expanding to %d: got %v, want the code %s with %q", capacity, err, code, words)
		}
	}
	n.succeed(t, "the answer that it is not staged", func(ctx context.Context) error {
		err := n.Expand(ctx, v, c, 1)
		if status.Code(err) == codes.Unavailable && strings.Contains(err.Error(), "not staged on this node") {
			return nil
		}
		return fmt.Errorf("got %w", err)
	})
	n.stage(t, v)
	n.publish(t, v, c)
	wants(1, codes.Internal, "exit code 7: no space left")
	wants(1, codes.Internal, "exit code 7: no space left")
	n.wantEvent(t, claim, "VolumeResizeFailed", "no space left")
	wants(2, codes.OutOfRange, "at most 1")
	stages := n.stages(t)
	if len(stages) != 1 || stages[0].Status.Expansion == nil {
		t.Fatalf("got PavStages %+v", stages)
	}
	if e := stages[0].Status.Expansion; e.Attempt != 3 || e.Failure == nil || e.Failure.Reason != pavv1.FailureInfeasible || !e.Recorded || e.Target.Value() != 2 {
		t.Errorf("recorded is %+v", e)
	}
	n.wantRead(t, v, c)
	n.expand(t, v, c, 3)
	if stage := n.stages(t)[0].Status; stage.Expansion.Failure != nil || stage.Capacity == nil || stage.Capacity.Value() != 3 {
		t.Errorf("recorded is %+v, and the capacity %s", stage.Expansion, stage.Capacity)
	}
	pods := &corev1.PodList{}
	if err := n.c.Admin.List(t.Context(), pods); err != nil {
		t.Fatal(err)
	}
	grow := 0
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.Labels[pavv1.WorkflowLabel] == pavv1.WorkflowNodeExpansion && pod.DeletionTimestamp == nil {
			grow++
		}
	}
	if grow != 1 {
		t.Errorf("%d node expansion pods are kept, want the last one", grow)
	}
	n.wantRuns(t, v, map[string]int{pavv1.WorkflowStaging: 1, pavv1.WorkflowNodeExpansion: 4})
	n.unpublish(t, v, c)
	n.unstage(t, v)
}

// Definitions without a node expansion pod have nothing to do.
func TestNode_Expansion_WithoutAPod(t *testing.T) {
	n := newNode(t, workers(t, nil))
	n.run(t)
	v := n.volume(t, "made-and-grown")
	n.stage(t, v)
	n.expand(t, v, clientOf(v, 1), 1<<40)
	n.wantRuns(t, v, map[string]int{pavv1.WorkflowStaging: 1})
	n.unstage(t, v)
}

// Where staging pods grow volumes, what the PersistentVolume had when a volume was staged needs no pod; what it gets later does.
func TestNode_Expansion_OfAVolumeThatStagingGrows(t *testing.T) {
	n := newNode(t, workers(t, nil), growsOnNodes, func(p *pavv1.PavProvisioner) { p.Spec.VolumeStaging.GrowsVolumes = true })
	n.run(t)
	v := n.volume(t, "served-and-grown-by-staging")
	c := clientOf(v, 1)
	n.stage(t, v)
	n.expand(t, v, c, 1<<20)
	n.wantRuns(t, v, map[string]int{pavv1.WorkflowStaging: 1})
	n.expand(t, v, c, 2<<20)
	n.wantRuns(t, v, map[string]int{pavv1.WorkflowStaging: 1, pavv1.WorkflowNodeExpansion: 1})
	n.unstage(t, v)

	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: v.Name}}
	mustPatch(t, n.c, pv, func(pv *corev1.PersistentVolume) {
		pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("4Mi")}
	})
	n.stage(t, v)
	n.expand(t, v, c, 4<<20)
	n.wantRuns(t, v, map[string]int{pavv1.WorkflowStaging: 2, pavv1.WorkflowNodeExpansion: 1, pavv1.WorkflowUnstaging: 1})
	n.unstage(t, v)
}

// A pod that expands a volume is seen to its end before the volume is unstaged, and before its staging pod is stopped.
func TestNode_Expansion_EndsBeforeTheVolumeIsUnstaged(t *testing.T) {
	works, goOn, began := workers(t, nil), make(chan struct{}), make(chan struct{}, 1)
	n := newNode(t, func(ctx context.Context, pod *kubelet.Pod) int32 {
		if pod.Workflow() == pavv1.WorkflowNodeExpansion {
			began <- struct{}{}
			select {
			case <-goOn:
			case <-ctx.Done():
				t.Error("the node expansion pod was stopped")
			}
		}
		return works(ctx, pod)
	}, growsOnNodes)
	n.run(t)
	v := n.volume(t, "served-and-busy")
	c := clientOf(v, 1)
	n.stage(t, v)
	n.publish(t, v, c)
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() { answered <- n.Expand(ctx, v, c, 2<<30) }()
	<-began
	cancel() // kubelet gives up
	if err := <-answered; err == nil {
		t.Error("a canceled call succeeded")
	}
	n.unpublish(t, v, c)
	n.wantAnswer(t, v, "has not completed", n.Unstage)
	n.wantRuns(t, v, map[string]int{pavv1.WorkflowStaging: 1, pavv1.WorkflowNodeExpansion: 1})
	close(goOn)
	n.unstage(t, v)
	n.wantRuns(t, v, map[string]int{pavv1.WorkflowStaging: 1, pavv1.WorkflowNodeExpansion: 1, pavv1.WorkflowUnstaging: 1})
}
