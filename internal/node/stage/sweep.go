package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/pavdir"
)

// stageUse is what of a stage tells whether anybody uses it.
type stageUse struct {
	volume     Volume
	volumeName string
	claim      pavv1.ClaimReference
	client     *pavdir.Client // nil where the stage is for all pods of the node
}

// endOrphan unstages a stage that kubelet has forgotten, as it does where it was killed while it staged a
// volume and the pod's folder has gone since. Stage is nil where there is no PavStage, but may be a folder.
// It returns true where the stage is an orphan, or nothing of it is left.
func (k *Keeper) endOrphan(ctx context.Context, name string, stage *pavv1.PavStage) (bool, error) {
	if err := k.stager.restoreRecord(ctx, stage); err != nil {
		return false, err
	}
	use, err := k.useOf(ctx, name, stage)
	if err != nil {
		return false, err
	}
	if stage == nil && use == nil {
		return true, k.sweepFolder(ctx, name)
	}
	if stage != nil && isRecord(stage) {
		return false, nil
	}
	published, err := k.stager.isPublishedAnywhere(ctx, name)
	if err != nil || published {
		return false, err // Kubelet will take it away from the client, and that call is where the grace begins.
	}
	if left := k.graceLeft(name); left > 0 {
		k.queue.AddAfter(name, left)
		return false, nil
	}
	used, err := k.isUsed(ctx, use)
	if err != nil {
		return false, err
	}
	if used {
		k.setOrphan(name, false)
		k.queue.AddAfter(name, k.grace)
		return false, nil
	}
	k.unstageOrphan(ctx, name, stage, use)
	return true, nil
}

// useOf returns what tells whether a stage is used: by its PavStage, or else by the record in its folder; nil where
// neither is, or the record cannot be read.
func (k *Keeper) useOf(ctx context.Context, name string, stage *pavv1.PavStage) (*stageUse, error) {
	if stage != nil {
		spec := &stage.Spec
		use := &stageUse{volume: Volume{Driver: spec.Provisioner, Handle: spec.VolumeHandle}, volumeName: spec.VolumeName, claim: spec.ClaimRef}
		if c := spec.Client; c != nil {
			use.client = &pavdir.Client{Namespace: c.Namespace, Name: c.Name, UID: c.UID, Target: c.Target}
		}
		return use, nil
	}
	record, err := k.stager.dirs.Recorded(ctx, name)
	if errors.Is(err, pavdir.ErrTorn) {
		return nil, nil
	}
	if err != nil || record == nil {
		return nil, err
	}
	return &stageUse{
		volume: Volume{Driver: record.Driver, Handle: record.Handle}, volumeName: record.VolumeName, client: record.Client,
		claim: pavv1.ClaimReference{Namespace: record.ClaimNamespace, Name: record.ClaimName, UID: record.ClaimUID},
	}, nil
}

// sweepFolder removes the folder of a stage that is neither in the ledger nor on record: what an interrupted
// removal has left. It waits for the grace, so that it meets no call that has just made it.
func (k *Keeper) sweepFolder(ctx context.Context, name string) error {
	exists, err := k.stager.dirs.Exists(ctx, name)
	if err != nil {
		return err
	}
	if !exists {
		k.forget(name)
		return nil
	}
	if left := k.graceLeft(name); left > 0 {
		k.queue.AddAfter(name, left)
		return nil
	}
	k.begin(ctx, name, func(ctx context.Context) error { return k.stager.sweepFolder(ctx, name) })
	return nil
}

// sweepFolder removes the folder of a stage that nobody knows. Whether that is so is asked once more while no
// call that could make it one of a stage can come in between, and nobody may have anything of it.
func (s *Stager) sweepFolder(ctx context.Context, name string) error {
	release, err := s.inflight.all(name)
	if err != nil {
		return err
	}
	defer release()
	if known, err := s.isKnown(ctx, name); err != nil || known {
		return err
	}
	inUse, err := s.dirs.InUse(ctx, name)
	if err != nil {
		return err
	}
	published, err := s.isPublishedAnywhere(ctx, name)
	if err != nil {
		return err
	}
	if inUse || published {
		return fmt.Errorf("%w: a pod still has something of PavStage %q, which nobody knows", ErrBusy, name)
	}
	return s.dirs.Remove(ctx, name)
}

// isKnown says whether a stage is on the node's record or in the ledger.
func (s *Stager) isKnown(ctx context.Context, name string) (bool, error) {
	if has, err := s.hasRecord(ctx, name); err != nil || has {
		return has, err
	}
	stage := &pavv1.PavStage{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: name}, stage); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("getting PavStage %q: %w", name, err)
	}
	return stage.Spec.NodeName == s.node && !going(stage), nil
}

// isPublishedAnywhere says whether the stage's volume is mounted for a client. A record alone says little:
// the agent may have ended between it and the mount.
func (s *Stager) isPublishedAnywhere(ctx context.Context, name string) (bool, error) {
	publications, err := s.livePublications(ctx, name)
	if err != nil {
		return false, err
	}
	return s.anyMounted(ctx, publications)
}

// anyMounted says whether something is mounted at one of the targets.
func (s *Stager) anyMounted(ctx context.Context, publications []publication) (bool, error) {
	for i := range publications {
		mounted, err := s.mounts.Mounted(ctx, publications[i].Target)
		if err != nil || mounted {
			return mounted, err
		}
	}
	return false, nil
}

// graceLeft returns how much longer kubelet may say nothing about a stage.
func (k *Keeper) graceLeft(name string) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	last, called := k.calls[name]
	if !called {
		last = k.began // What was called before, the agent does not know.
	}
	return last.Add(k.grace).Sub(k.now())
}

// isUsed says whether a pod of the node uses the volume, by the API server or by kubelet's own folders.
func (k *Keeper) isUsed(ctx context.Context, use *stageUse) (bool, error) {
	uids, err := k.stager.dirs.KubeletHas(ctx, use.volumeName)
	if err != nil {
		return false, err
	}
	if use.client == nil && len(uids) > 0 || use.client != nil && slices.Contains(uids, string(use.client.UID)) {
		return true, nil
	}
	pods, err := k.stager.livePods(ctx)
	return slices.ContainsFunc(pods, use.has), err
}

// has says whether a pod uses the stage.
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
func (k *Keeper) setOrphan(name string, orphan bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.orphans[name]
	if delete(k.orphans, name); orphan {
		k.orphans[name] = true
	}
	return was != orphan
}

// unstageOrphan does what kubelet would have asked for.
func (k *Keeper) unstageOrphan(ctx context.Context, name string, stage *pavv1.PavStage, use *stageUse) {
	if stage != nil && k.setOrphan(name, true) {
		k.tell(ctx, stage, nil, corev1.EventTypeNormal, "UnstagingOrphan", fmt.Sprintf(
			"volume %s is staged on node %s, but no pod there uses it, and its kubelet has not asked for anything about it for %s: unstaging it",
			use.volumeName, k.stager.node, k.grace))
	}
	of := subject{Volume: use.volume}
	if use.client != nil {
		of.target = use.client.Target
	}
	k.begin(ctx, name, func(ctx context.Context) error {
		return k.unstage(ctx, of, func(ctx context.Context) (bool, error) { return k.isIdle(ctx, name, use) })
	})
}

// isIdle says whether nobody has the volume, nor is about to.
func (k *Keeper) isIdle(ctx context.Context, name string, use *stageUse) (bool, error) {
	published, err := k.stager.isPublishedAnywhere(ctx, name)
	if err != nil || published {
		return false, err
	}
	used, err := k.isUsed(ctx, use)
	return err == nil && !used, err
}

// unstageOrphan unstages as Unstage does, but gives way to kubelet's calls: somebody may want the volume
// again. Whether it is idle is asked once more while no call can come in between: whoever is scheduled to
// the node later calls later, and ends this.
func (s *Stager) unstageOrphan(ctx context.Context, of subject, idle func(context.Context) (bool, error)) error {
	yielding, end := s.inflight.yielding(ctx, of.key())
	defer end()
	release, err := s.claim(of)
	if err != nil {
		return err
	}
	defer release()
	if is, err := idle(yielding); err != nil || !is {
		return err
	}
	defer s.tell(s.namesOf(of)...)
	return s.unstage(yielding, of)
}
