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

// countingReader counts what is asked for. It answers only once all have asked who may ask at the same time.
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

// A pod of a tenant's can have a thousand volumes that it will never get. Kubelet asks for all of them at once, and
// again and again: the API server is asked about each pod once.
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
	// The first calls find one that has not been answered yet.
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

// What may change is not remembered: an API server that did not answer, and a pod that a record does not have yet.
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
