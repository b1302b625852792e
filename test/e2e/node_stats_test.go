package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Kubelet, which asks the agent once a minute, reports the sizes of volumes of both modes.
func TestVolumeStats(t *testing.T) {
	t.Parallel()
	for _, m := range []medium{directories, fuse, devices} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			l := newStorage(t, "stats-"+m.name, m)
			l.volume(t, "data", m, corev1.ReadWriteOnce)
			pod := clientPod("client", "data", "node1")
			if m.mode() == corev1.PersistentVolumeBlock {
				pod = blockPod("client", "node1")
			}
			l.run(t, pod)
			eventually(t, "kubelet tells the volume's size", l.wantStats)
		})
	}
}

// wantStats objects unless kubelet knows the size of the client's volume.
func (l *ledger) wantStats(ctx context.Context) error {
	text, err := kubectl(ctx, "", "get", "--raw", "/api/v1/nodes/node1/proxy/stats/summary")
	if err != nil {
		return err
	}
	var summary struct {
		Pods []struct {
			PodRef struct{ Namespace string }
			Volume []struct {
				Name          string
				CapacityBytes int64
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &summary); err != nil {
		return err
	}
	for _, pod := range summary.Pods {
		for _, volume := range pod.Volume {
			if pod.PodRef.Namespace == l.namespace && volume.Name == "data" && volume.CapacityBytes >= 1<<20 {
				return nil
			}
		}
	}
	return fmt.Errorf("it does not tell of the volume in %s", l.namespace)
}
