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
)

// stageUse is what of a stage tells whether anybody uses it.
type stageUse struct {
	volume     staging.Volume
	volumeName string
	claim      pavv1.ClaimReference
	client     *pavdir.Client // nil where the stage is for all pods of the node
}

// endOrphan unstages a stage that kubelet has forgotten, as it does where it was killed while it staged a
// volume and the pod's directory has gone since. Stage is nil where there is no PavStage, but may be a directory.
// It returns true where the stage is an orphan, or nothing of it is left.
func (m *Monitor) endOrphan(ctx context.Context, name string, stage *pavv1.PavStage) (bool, error) {
	if err := m.stager.RestoreRecord(ctx, stage); err != nil {
		return false, err
	}
	use, err := m.useOf(ctx, name, stage)
	if err != nil {
		return false, err
	}
	if stage == nil && use == nil {
		return true, m.sweepFolder(ctx, name)
	}
	if stage != nil && staging.IsRecord(stage) {
		return false, nil
	}
	published, err := m.stager.IsPublished(ctx, name)
	if err != nil || published {
		return false, err // Kubelet will take it away from the client, and that call is where the grace begins.
	}
	if left := m.graceLeft(name); left > 0 {
		m.queue.AddAfter(name, left)
		return false, nil
	}
	used, err := m.isUsed(ctx, use)
	if err != nil {
		return false, err
	}
	if used {
		m.setOrphan(name, false)
		m.queue.AddAfter(name, m.grace)
		return false, nil
	}
	m.unstageOrphan(ctx, name, stage, use)
	return true, nil
}

// useOf returns what tells whether a stage is used: by its PavStage, or else by the record in its directory; nil where
// neither is, or the record cannot be read.
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

// RemoveUnknown removes the directory of a stage that is neither in the ledger nor on record: what an interrupted
// removal has left. It waits for the grace, so that it meets no call that has just made it.
func (m *Monitor) sweepFolder(ctx context.Context, name string) error {
	exists, err := m.dirs.Exists(ctx, name)
	if err != nil {
		return err
	}
	if !exists {
		m.forget(name)
		return nil
	}
	if left := m.graceLeft(name); left > 0 {
		m.queue.AddAfter(name, left)
		return nil
	}
	m.begin(ctx, name, func(ctx context.Context) error { return m.stager.RemoveUnknown(ctx, name) })
	return nil
}

// graceLeft returns how much longer kubelet may say nothing about a stage.
func (m *Monitor) graceLeft(name string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, called := m.calls[name]
	if !called {
		last = m.began // What was called before, the agent does not know.
	}
	return last.Add(m.grace).Sub(m.now())
}

// isUsed reports whether a pod of the node uses the volume, by the API server or by kubelet's own directories.
func (m *Monitor) isUsed(ctx context.Context, use *stageUse) (bool, error) {
	uids, err := m.dirs.KubeletHas(ctx, use.volumeName)
	if err != nil {
		return false, err
	}
	if use.client == nil && len(uids) > 0 || use.client != nil && slices.Contains(uids, string(use.client.UID)) {
		return true, nil
	}
	pods, err := m.stager.LivePods(ctx)
	return slices.ContainsFunc(pods, use.has), err
}

// has reports whether a pod uses the stage.
func (u *stageUse) has(pod corev1.Pod) bool {
	if u.client != nil {
		return pod.UID == u.client.UID
	}
	return pod.Namespace == u.claim.Namespace && slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		switch {
		case volume.PersistentVolumeClaim != nil:
			return volume.PersistentVolumeClaim.ClaimName == u.claim.Name
		case volume.Ephemeral != nil:
			return pod.Name+"-"+volume.Name == u.claim.Name
		}
		return false
	})
}

// setOrphan notes whether nobody uses a stage, and returns whether that is news.
func (m *Monitor) setOrphan(name string, orphan bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.orphans[name]
	if delete(m.orphans, name); orphan {
		m.orphans[name] = true
	}
	return was != orphan
}

// UnstageIdle does what kubelet would have asked for.
func (m *Monitor) unstageOrphan(ctx context.Context, name string, stage *pavv1.PavStage, use *stageUse) {
	if stage != nil && m.setOrphan(name, true) {
		m.stager.Report(ctx, stage, nil, corev1.EventTypeNormal, "UnstagingOrphan", fmt.Sprintf(
			"volume %s is staged on node %s, but no pod there uses it, and its kubelet has not asked for anything about it for %s: unstaging it",
			use.volumeName, m.node, m.grace))
	}
	of := staging.Subject{Volume: use.volume}
	if use.client != nil {
		of.Target = use.client.Target
	}
	m.begin(ctx, name, func(ctx context.Context) error {
		return m.unstage(ctx, of, func(ctx context.Context) (bool, error) { return m.isIdle(ctx, name, use) })
	})
}

// isIdle reports whether nobody has the volume, nor is about to.
func (m *Monitor) isIdle(ctx context.Context, name string, use *stageUse) (bool, error) {
	published, err := m.stager.IsPublished(ctx, name)
	if err != nil || published {
		return false, err
	}
	used, err := m.isUsed(ctx, use)
	return err == nil && !used, err
}
