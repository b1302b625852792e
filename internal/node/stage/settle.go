package stage

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/albertofaria/pav/internal/workflow"
)

// SettleTime is how long a running staging pod may take to mount over /pav/volume after it has created /pav/ready.
const SettleTime = 3 * time.Second

// ExchangedMessage says that a staging pod has replaced the mount at /pav/volume after it created /pav/ready.
const ExchangedMessage = "the staging pod has exchanged /pav/volume after it created /pav/ready" + tooEarly

// tooEarly explains the failure of a staging pod that mounted after it created /pav/ready.
const tooEarly = ": /pav/ready was created too early; create it when the mount is there, as after `until grep -q ' /pav/volume ' /proc/mounts; do sleep 0.1; done`"

// settling has, by stage, when a directory was first seen attached that may not be the volume yet. After a restart,
// the agent waits again.
type settling struct {
	mu    sync.Mutex
	since map[string]time.Time
}

func newSettling() *settling { return &settling{since: map[string]time.Time{}} }

// left returns how much longer to wait with a stage.
func (s *settling) left(stage string, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, known := s.since[stage]
	if !known {
		since = now
		s.since[stage] = now
	}
	return max(since.Add(SettleTime).Sub(now), 0)
}

func (s *settling) forget(stage string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, stage)
}

// observeSettling gathers how long to wait before clients get the attached volume. If /pav/volume is a plain directory on
// the node's disk, a pod that runs may have created /pav/ready before its daemon has mounted. That mount would not reach
// clients, which would write to the node's disk. If /pav/volume is a mount, clients get it at once.
func (t *task) observeSettling(ctx context.Context, o *observation) error {
	if t.stage.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		return nil
	}
	plain, err := t.dirs.IsPlain(ctx, t.stage.Name)
	if err != nil || !plain {
		return err
	}
	if o.stagingPod == workflow.Running {
		if o.settling = t.settling.left(t.stage.Name, t.now()); o.settling > 0 {
			return nil
		}
		// kubelet may have stopped the daemon before it mounted, as it evicts the pod, and not have reported that yet.
		runs, err := t.dirs.Runs(ctx, t.stagingPod.UID)
		if !runs {
			o.settling = SettleTime // or until the pod's status tells
		}
		return err
	}
	// All containers have ended with exit code 0. A daemon does so, too, that kubelet stops before it has mounted, because
	// it evicts the pod: only the phase tells.
	ready, err := t.dirs.Ready(ctx, t.stage.Name)
	if ready {
		o.settling = SettleTime // or until the phase is known
	}
	return err
}
