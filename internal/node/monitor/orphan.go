package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/pavdir"
	staging "github.com/albertofaria/pav/internal/node/stage"
	"github.com/albertofaria/pav/internal/protocol"
)

// stageUse identifies the users of a stage.
type stageUse struct {
	volume     staging.Volume
	volumeName string
	claim      pavv1.ClaimReference
	client     *pavdir.Client // nil if the stage is for all pods of the node
}

// endOrphan unstages a stage that kubelet has lost track of: for example, if kubelet was killed while it staged a
// volume, and the pod's directory was removed after that. Stage is nil if there is no PavStage, but perhaps a
// directory; that was read after the time began. endOrphan returns true if the stage is an orphan, or if nothing of it
// is left.
func (m *Monitor) endOrphan(ctx context.Context, name string, stage *pavv1.PavStage, began time.Time) (bool, error) {
	if err := m.stager.RestoreRecord(ctx, stage); err != nil {
		return false, err
	}
	use, err := m.useOf(ctx, name, stage)
	if err != nil {
		return false, err
	}
	if stage == nil && use == nil {
		return true, m.removeUnknown(ctx, name, began)
	}
	if stage != nil && staging.IsRecord(stage) {
		return false, nil
	}
	published, err := m.stager.IsPublished(ctx, name)
	if err != nil || published {
		return false, err // kubelet will unpublish it, and the grace period begins with that call
	}
	if left := m.graceLeft(name); left > 0 {
		m.queue.AddAfter(name, left)
		return false, nil
	}
	used, err := m.isUsed(ctx, name, use)
	if err != nil {
		return false, err
	}
	if used {
		m.setOrphan(name, false)
		m.queue.AddAfter(name, m.graceOf(name))
		return false, nil
	}
	m.unstageOrphan(ctx, name, stage, use)
	return true, nil
}

// useOf returns the stageUse of a stage, from its PavStage or else from the record in its directory; nil if there is
// neither, or if the record cannot be read.
func (m *Monitor) useOf(ctx context.Context, name string, stage *pavv1.PavStage) (*stageUse, error) {
	if stage != nil {
		spec := &stage.Spec
		use := &stageUse{volume: staging.Volume{Driver: spec.Provisioner, Handle: spec.VolumeHandle}, volumeName: spec.VolumeName, claim: spec.ClaimRef}
		if c := spec.Client; c != nil {
			use.client = &pavdir.Client{Namespace: c.Namespace, Name: c.Name, UID: c.UID, Target: c.Target}
		}
		return use, nil
	}
	record, err := m.dirs.Recorded(ctx, name)
	if errors.Is(err, pavdir.ErrTorn) {
		return nil, nil
	}
	if err != nil || record == nil {
		return nil, err
	}
	return &stageUse{
		volume: staging.Volume{Driver: record.Driver, Handle: record.Handle}, volumeName: record.VolumeName, client: record.Client,
		claim: pavv1.ClaimReference{Namespace: record.ClaimNamespace, Name: record.ClaimName, UID: record.ClaimUID},
	}, nil
}

// removeUnknown removes a directory without a PavStage and without a record, which an interrupted removal has left.
// It waits for the grace period, so that it does not meet a call that has just created the directory.
func (m *Monitor) removeUnknown(ctx context.Context, name string, began time.Time) error {
	exists, err := m.dirs.Exists(ctx, name)
	if err != nil {
		return err
	}
	if !exists {
		m.forget(name, began)
		return nil
	}
	if left := m.graceLeft(name); left > 0 {
		m.queue.AddAfter(name, left)
		return nil
	}
	m.begin(ctx, name, func(ctx context.Context) error { return m.stager.RemoveUnknown(ctx, name) })
	return nil
}

// graceLeft returns how much of the grace period of a stage is left. The agent does not know of calls that an earlier
// agent served, nor of one that has not ended: the period begins when the stage is first seen.
func (m *Monitor) graceLeft(name string) time.Duration {
	grace := m.graceOf(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	last, called := m.calls[name]
	if !called {
		last = m.now()
		m.calls[name] = last
	}
	return last.Add(grace).Sub(m.now())
}

// isUsed reports whether a pod of the node uses the volume, according to the API server or kubelet's directories, or is about
// to come to the node for it.
func (m *Monitor) isUsed(ctx context.Context, name string, use *stageUse) (bool, error) {
	uids, err := m.dirs.KubeletHas(ctx, use.volumeName)
	if err != nil {
		return false, err
	}
	if use.client == nil && len(uids) > 0 || use.client != nil && slices.Contains(uids, string(use.client.UID)) {
		return true, nil
	}
	// A pod that is bound to the node between these two looks is seen by the second one.
	if awaited, err := m.isAwaited(ctx, name); err != nil || awaited {
		return awaited, err
	}
	pods, err := m.stager.LivePods(ctx)
	return slices.ContainsFunc(pods, use.has), err
}

// has reports whether a pod uses the stage.
func (u *stageUse) has(pod corev1.Pod) bool {
	if u.client != nil {
		return pod.UID == u.client.UID
	}
	return pod.Namespace == u.claim.Namespace && protocol.Uses(&pod, u.claim.Name)
}

// setOrphan notes whether a stage is an orphan, and reports whether that has changed.
func (m *Monitor) setOrphan(name string, orphan bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.orphans[name]
	if delete(m.orphans, name); orphan {
		m.orphans[name] = true
	}
	return was != orphan
}

// unstageOrphan unstages a volume, as kubelet would have asked.
func (m *Monitor) unstageOrphan(ctx context.Context, name string, stage *pavv1.PavStage, use *stageUse) {
	if stage != nil && m.setOrphan(name, true) {
		m.stager.Report(ctx, stage, nil, corev1.EventTypeNormal, "UnstagingOrphan", fmt.Sprintf(
			"volume %s is staged on node %s, but no pod there uses it, and its kubelet has not asked for anything about it for %s: unstaging it",
			use.volumeName, m.node, m.graceOf(name)))
	}
	of := staging.Subject{Volume: use.volume}
	if use.client != nil {
		of.Target = use.client.Target
	}
	m.begin(ctx, name, func(ctx context.Context) error {
		return m.unstage(ctx, of, func(ctx context.Context) (bool, error) { return m.isIdle(ctx, name, use) })
	})
}

// isIdle reports whether no pod has the volume or is about to get it. It is asked while calls are locked out: one may
// have ended since the stage was found to be an orphan.
func (m *Monitor) isIdle(ctx context.Context, name string, use *stageUse) (bool, error) {
	if m.graceLeft(name) > 0 {
		return false, nil
	}
	published, err := m.stager.IsPublished(ctx, name)
	if err != nil || published {
		return false, err
	}
	used, err := m.isUsed(ctx, name, use)
	return err == nil && !used, err
}
