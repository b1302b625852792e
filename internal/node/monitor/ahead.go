package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	staging "github.com/albertofaria/pav/internal/node/stage"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

const (
	// aheadWithin is how long after a volume was provisioned it may be staged ahead, and how long that may take.
	aheadWithin = 30 * time.Second

	// aheadGrace is how long a volume that was staged ahead may have neither a call of kubelet nor a pod that is on the node
	// or about to come there, before it is unstaged: another node may wait for the volume.
	aheadGrace = 10 * time.Second

	// awaitedFor is how long a volume stays staged for a pod that has to wait for other volumes.
	awaitedFor = time.Minute

	// aheadAtOnce is how many volumes are staged ahead at once. Others wait for kubelet's calls.
	aheadAtOnce = 8
)

// expectation is a volume that is to be staged ahead, and since when.
type expectation struct {
	staging.Expected

	since time.Time
}

// CacheOptions limits a cache to the volumes that were provisioned for pods of a node. The monitor has a cache of its own for
// them, as nothing else needs them, and nothing must wait for them.
func CacheOptions(nodeName string) (cache.Options, error) {
	ours, err := labels.Parse(pavv1.NodeLabel + "=" + workflow.Hash(nodeName))
	if err != nil {
		return cache.Options{}, fmt.Errorf("selecting the node's volumes: %w", err)
	}
	return cache.Options{ByObject: map[client.Object]cache.ByObject{&pavv1.PavVolume{}: {Label: ours, Transform: trimVolume}}}, nil
}

// WatchVolumes stages volumes ahead: those that were provisioned for a pod for which the scheduler has chosen this node.
// With the binding mode WaitForFirstConsumer, the scheduler looks only once a second whether a claim is bound, and binds the
// pod to the node after that. The volume is staged meanwhile. Volumes has CacheOptions.
func WatchVolumes(ctx context.Context, volumes cache.Cache, m *Monitor) error {
	informer, err := volumes.GetInformer(ctx, &pavv1.PavVolume{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching PavVolumes: %w", err)
	}
	expect := func(before, after any) {
		old, known := before.(*pavv1.PavVolume)
		volume, ok := after.(*pavv1.PavVolume)
		now := m.clusterTime()
		if ok && (!known || !isDueAhead(old, m.node, now)) && isDueAhead(volume, m.node, now) {
			m.expect(expectedOf(volume))
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		// A volume may have been provisioned before the watch began, or while it was interrupted.
		AddFunc:    func(volume any) { expect(nil, volume) },
		UpdateFunc: expect,
	}); err != nil {
		return fmt.Errorf("watching PavVolumes: %w", err)
	}
	return nil
}

// trimVolume removes from a PavVolume everything that does not decide whether it is to be staged ahead.
func trimVolume(object any) (any, error) {
	volume, ok := object.(*pavv1.PavVolume)
	if !ok {
		return object, nil
	}
	kept := &pavv1.PavVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: volume.Name, UID: volume.UID, ResourceVersion: volume.ResourceVersion, DeletionTimestamp: volume.DeletionTimestamp,
		},
		Spec:   pavv1.PavVolumeSpec{Provisioner: volume.Spec.Provisioner},
		Status: pavv1.PavVolumeStatus{Phase: volume.Status.Phase, Handle: volume.Status.Handle},
	}
	if provisioned := meta.FindStatusCondition(volume.Status.Conditions, pavv1.VolumeProvisioned); provisioned != nil {
		kept.Status.Conditions = []metav1.Condition{{Type: provisioned.Type, Status: provisioned.Status, LastTransitionTime: provisioned.LastTransitionTime}}
	}
	claim := claimOf(volume)
	raw, err := json.Marshal(corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{protocol.SelectedNode: claim.Annotations[protocol.SelectedNode]}},
		Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: claim.Spec.AccessModes, VolumeName: claim.Spec.VolumeName},
	})
	kept.Spec.Claim.Raw = raw
	return kept, err
}

// claimOf returns a PavVolume's copy of its claim; an empty claim if it cannot be read.
func claimOf(volume *pavv1.PavVolume) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{}
	if err := json.Unmarshal(volume.Spec.Claim.Raw, claim); err != nil {
		return &corev1.PersistentVolumeClaim{}
	}
	return claim
}

// isDueAhead reports whether a volume is to be staged on a node ahead of its first pod. Only one node at a time can have
// such a volume, so that no other pod needs it elsewhere meanwhile.
func isDueAhead(volume *pavv1.PavVolume, node string, now time.Time) bool {
	provisioned := meta.FindStatusCondition(volume.Status.Conditions, pavv1.VolumeProvisioned)
	if volume.DeletionTimestamp != nil || volume.Status.Phase != pavv1.VolumeReady || volume.Status.Handle == "" ||
		provisioned == nil || now.Sub(provisioned.LastTransitionTime.Time) > aheadWithin {
		return false
	}
	claim := claimOf(volume)
	return claim.Annotations[protocol.SelectedNode] == node && claim.Spec.VolumeName == volume.Name && podplan.IsExclusive(claim.Spec.AccessModes)
}

func expectedOf(volume *pavv1.PavVolume) staging.Expected {
	return staging.Expected{Volume: staging.Volume{Driver: volume.Spec.Provisioner, Handle: volume.Status.Handle}, Name: volume.Name}
}

// expect queues a volume to be staged ahead, unless kubelet has called for it already. It never blocks.
func (m *Monitor) expect(of staging.Expected) {
	_, name := podplan.StageNames(of.Driver, of.Handle, m.node)
	m.mu.Lock()
	_, called := m.calls[name]
	if !called {
		m.expected[name] = expectation{Expected: of, since: m.now()}
	}
	m.mu.Unlock()
	if !called {
		m.queue.Add(name)
	}
}

// beginAhead begins to stage a volume if it is expected and the node has nothing of it, and reports whether it has begun.
func (m *Monitor) beginAhead(ctx context.Context, name string, unknown bool) bool {
	e, is := m.takeExpected(name, unknown)
	if !is {
		return false
	}
	began := m.begin(ctx, name, func(ctx context.Context) error {
		defer m.countAhead(-1)
		ctx, cancel := context.WithTimeout(ctx, aheadWithin)
		defer cancel()
		return m.stageAhead(ctx, e)
	})
	if !began {
		m.countAhead(-1) // It is checked now, as all other stages are.
	}
	return began
}

// takeExpected returns the volume of a stage if it is to be staged ahead now, and counts and remembers that. What is left of an
// earlier use of the volume is for kubelet's call: kubelet may be about to have that unstaged.
func (m *Monitor) takeExpected(name string, unknown bool) (staging.Expected, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, is := m.expected[name]
	delete(m.expected, name)
	if _, called := m.calls[name]; !is || called || !unknown || m.now().Sub(e.since) > aheadGrace {
		return e.Expected, false // Kubelet has called already, or the check came too late.
	}
	if m.aheadNow >= aheadAtOnce {
		return e.Expected, false
	}
	m.aheadNow++
	// If the work ends half-way, no call of kubelet continues it.
	m.ahead[name], m.listed[name], m.calls[name] = e.Expected, true, m.now()
	return e.Expected, true
}

func (m *Monitor) countAhead(more int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.aheadNow += more
}

// graceOf returns how long kubelet may make no call for a stage that no pod uses before it is unstaged.
func (m *Monitor) graceOf(name string) time.Duration {
	if _, ahead := m.staged(name); ahead {
		return min(aheadGrace, m.grace)
	}
	return m.grace
}

// staged returns the volume of a stage that was staged ahead, if no call for it has ended yet.
func (m *Monitor) staged(name string) (staging.Expected, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ahead := m.ahead[name]
	return e, ahead
}

// isAwaited reports whether a pod is about to come for which a volume was staged ahead. It may have to wait for other volumes,
// but does not keep this one from other nodes for long: a second pod that uses it may be on one of them.
func (m *Monitor) isAwaited(ctx context.Context, name string) (bool, error) {
	e, ahead := m.staged(name)
	m.mu.Lock()
	since := m.now().Sub(m.calls[name])
	m.mu.Unlock()
	if !ahead || since > awaitedFor {
		return false, nil
	}
	return m.awaited(ctx, e)
}
