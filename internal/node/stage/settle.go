package stage

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// SettleTime is how long a staging pod that runs may take to mount over a directory that it has called ready.
const SettleTime = 3 * time.Second

// ExchangedMessage says that a staging pod has mounted something else at /pav/volume than what it called ready.
const ExchangedMessage = "the staging pod has exchanged /pav/volume after it created /pav/ready" + tooEarly

// tooEarly says what is wrong with a staging pod whose mount came after /pav/ready.
const tooEarly = ": /pav/ready was created too early; create it when the mount is there, as after `until mountpoint -q /pav/volume; do sleep 0.1; done`"

// settling has the time at which a directory was first seen attached of which it is not clear yet whether it is
// the volume, by stage. An agent that begins anew waits anew.
type settling struct {
	mu    sync.Mutex
	since map[string]time.Time
}

func newSettling() *settling { return &settling{since: map[string]time.Time{}} }

// left returns for how long yet to wait with a stage.
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

// observeSettling gathers how long yet to wait before clients get what is attached. A pod that runs and has left
// a plain directory of the node's disk may have created /pav/ready before its daemon has mounted: that mount would
// not reach clients, who would write to the node's disk. What is a mount is served at once.
func (t *task) observeSettling(ctx context.Context, o *observation) error {
	if t.stage.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		return nil
	}
	plain, err := t.dirs.IsPlain(ctx, t.stage.Name)
	if err != nil || !plain {
		return err
	}
	o.settling = t.settling.left(t.stage.Name, t.now())
	return nil
}
