package csi

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// countingReader counts the reads. They wait until first is closed, so that all concurrent ones have begun.
type countingReader struct {
	client.Reader
	asked atomic.Int32
	first chan struct{}
}

func (r *countingReader) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	r.asked.Add(1)
	<-r.first
	return r.Reader.Get(ctx, key, into, options...)
}

// A pod of a tenant can have a thousand volumes that it will never get. Kubelet requests all of them at once, again and
// again. The API server is asked only once about each pod.
func TestManyForeignVolumes_CostOneLookUpPerPod(t *testing.T) {
	const pods, volumes, rounds = 10, 100, 3
	w := newWorld()
	w.pod.OwnerReferences = nil
	reader := &countingReader{Reader: w, first: make(chan struct{})}
	node := w.node()
	node.client = reader
	publish := func(pod, volume int) {
		_, err := node.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
			VolumeId: fmt.Sprintf("id-%d-%d", pod, volume), TargetPath: "/target", VolumeContext: map[string]string{
				ephemeralKey: "true", podNamespaceKey: "ns", podNameKey: "stage-1", podUIDKey: fmt.Sprintf("uid-%d", pod),
			}})
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("volume %d of pod %d: got %v", volume, pod, err)
		}
	}
	// The first read is not answered for a while, so that other calls find it in progress.
	time.AfterFunc(200*time.Millisecond, func() { close(reader.first) })
	for range rounds {
		var calls sync.WaitGroup
		for pod := range pods {
			for volume := range volumes {
				calls.Go(func() { publish(pod, volume) })
			}
		}
		calls.Wait()
	}
	if asked := reader.asked.Load(); asked != pods {
		t.Errorf("the API server was asked %d times for %d volumes of %d pods", asked, rounds*pods*volumes, pods)
	}
	if len(w.published)+len(w.collector.calls) > 0 {
		t.Errorf("%s %s is published", w.published, w.collector.calls)
	}
}

// A refusal that may change is not cached: the API server did not answer, or the pod is not recorded yet.
func TestARefusalThatMayChangeIsNotCached(t *testing.T) {
	w := newWorld()
	node := w.node()
	publish := func() error {
		_, err := node.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
			VolumeId: "id", TargetPath: "/target", VolumeContext: map[string]string{
				ephemeralKey: "true", podNamespaceKey: "ns", podNameKey: "stage-1", podUIDKey: "pod-uid",
			}})
		return err
	}
	w.err = context.DeadlineExceeded
	if err := publish(); err == nil {
		t.Error("it is published although the API server does not answer")
	}
	w.err = nil
	recorded := w.stage.Status.StagingPod
	w.stage.Status.StagingPod = nil
	if err := publish(); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a pod that is not on record: %v", err)
	}
	w.stage.Status.StagingPod = recorded
	if err := publish(); err != nil {
		t.Errorf("a pod that is on record by now: %v", err)
	}
}
