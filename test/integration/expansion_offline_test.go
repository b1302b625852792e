package integration

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/kubelet"
)

// growsOffline makes volumes grow only while no node has them staged, and lets pods of the node by hand stage them.
func growsOffline(p *pavv1.PavProvisioner, s *storagev1.StorageClass) {
	growable(p, s)
	p.Spec.VolumeExpansion.Online = new(false)
	p.Spec.VolumeDeletion = nil
	p.Spec.VolumeStaging.PodTemplate, p.Spec.VolumeUnstaging = *field(workerTemplate), &pavv1.VolumeUnstaging{PodTemplate: field(workerTemplate)}
}

// offlineWorld is a volume of such a provisioner, and a node whose pods stage it.
type offlineWorld struct {
	*node
	claim  *corev1.PersistentVolumeClaim
	pv     *corev1.PersistentVolume
	record *pavv1.PavVolume
	volume kubelet.Volume

	staged, expanding atomic.Int32 // how many stages there are, and expansion pods
}

func newOfflineWorld(t *testing.T, name string) *offlineWorld {
	t.Helper()
	c := start(t)
	run(t, c)
	driver(t, c, name, growsOffline)
	w := &offlineWorld{}
	works := workers(t, nil)
	on := fmt.Sprintf("node-%d", nodes.Add(1))
	w.node = &node{c: c, agentConfig: c.NodeAgent(on), provisioner: name}
	w.start(t, on, func(ctx context.Context, pod *kubelet.Pod) int32 {
		if pod.Workflow() == pavv1.WorkflowUnstaging {
			defer w.staged.Add(-1)
			return works(ctx, pod)
		}
		w.staged.Add(1)
		if w.expanding.Load() > 0 {
			t.Error("the volume is staged while it is expanded")
		}
		return works(ctx, pod)
	})
	w.run(t)
	runFakeKubelets(t, c, func(string, int) int32 {
		w.expanding.Add(1)
		defer w.expanding.Add(-1)
		// The API server takes its time for this.
		if stages := w.stages(t); w.staged.Load() > 0 {
			t.Errorf("the volume is expanded while it is staged: %+v", stages)
		}
		return 0
	})
	w.claim = claimOf(name, name)
	w.claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	mustCreate(t, c, w.claim)
	w.pv, w.record = bound(t, c, w.claim)
	w.volume = kubelet.Volume{Driver: name, Handle: w.pv.Spec.CSI.VolumeHandle, Name: w.pv.Name}
	return w
}

// A volume that only grows offline waits until no node has it, and no node gets it before that.
func TestExpansion_Offline_WaitsUntilNoNodeHasTheVolume(t *testing.T) {
	w := newOfflineWorld(t, "growing-offline")
	w.stage(t, w.volume)
	mustPatch(t, w.c, w.claim, requests("2Gi"))
	exists(t, w.c, w.record, "waits", func(v *pavv1.PavVolume) bool {
		condition := meta.FindStatusCondition(v.Status.Conditions, pavv1.VolumeExpanded)
		return condition != nil && condition.Reason == "Staged" && v.Status.Expansion != nil && v.Status.Expansion.Offline
	})
	wantEvent(t, w.c, w.claim, "Normal", "Resizing", "the volume is staged on "+w.Node)
	other := fmt.Sprintf("node-%d", nodes.Add(1))
	second := &node{c: w.c, agentConfig: w.c.NodeAgent(other), provisioner: w.provisioner}
	second.start(t, other, func(context.Context, *kubelet.Pod) int32 {
		t.Error("another node stages the volume")
		return 1
	})
	second.run(t)
	second.succeed(t, "the answer of another node", func(ctx context.Context) error {
		// With less time, the agent leaves itself none to answer before the call has ended.
		ctx, cancel := context.WithTimeout(ctx, 13*time.Second)
		defer cancel()
		err := second.Stage(ctx, w.volume)
		if err != nil && strings.Contains(err.Error(), "is to grow while no node has it staged, and is staged after that") {
			return nil
		}
		return fmt.Errorf("staged: %w", err)
	})
	second.unstage(t, w.volume)
	w.unstage(t, w.volume)
	wantSize(t, w.c, w.claim, "2Gi, allocated 2Gi")
	w.stage(t, w.volume)
	w.unstage(t, w.volume)
	mustDelete(t, w.c, w.claim)
	gone(t, w.c, w.pv)
}

// A pod comes at the same time as a request for more: one of them waits. Upstream calls this race unavoidable
// (external-resizer#62). It is tried a thousand times in the long suite.
func TestExpansion_Offline_NeverMeetsAPodThatComes(t *testing.T) {
	w := newOfflineWorld(t, "racing-offline")
	tries := 1000 / every(50)
	for i := 1; i <= tries; i++ {
		size := fmt.Sprintf("%dMi", 1024+i)
		staged := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		go func() {
			defer cancel()
			errs := w.Until(ctx, func(ctx context.Context) error { return w.Stage(ctx, w.volume) })
			staged <- errs[len(errs)-1]
		}()
		mustPatch(t, w.c, w.claim, requests(size))
		if err := <-staged; err != nil {
			t.Fatalf("try %d: staging: %v", i, err)
		}
		w.unstage(t, w.volume)
		wantSize(t, w.c, w.claim, size)
	}
	mustDelete(t, w.c, w.claim)
	gone(t, w.c, w.pv)
}
