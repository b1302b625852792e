// Package invariants has the conditions that must hold in the simulated world, at all times and at the end. It watches
// the store and the storage, and changes nothing.
package invariants

import (
	"fmt"
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/test/simulation/kubernetes"
	"github.com/albertofaria/pav/test/simulation/storage"
	"github.com/albertofaria/pav/test/simulation/world"
)

// Invariants checks the invariants of one world.
type Invariants struct {
	store   *world.Store
	storage *storage.System

	// Pass returns the ID of the reconcile pass whose request takes effect now; empty if the request belongs to no
	// pass.
	Pass func() string

	// IsAgent reports whether a writer is one of PaV's agents. Leads reports whether the writer has not lost the
	// leader's lease.
	IsAgent, Leads func(by string) bool

	// Calm limits the agents' requests: faults have stopped, and the caches are up to date. Idle forbids them: nothing is
	// left to do.
	Calm, Idle bool

	failed  error
	running map[types.UID]types.UID    // for each PavVolume or PavSnapshot, its pod with a running container
	owners  map[types.UID]types.UID    // for each pod in running, its owner
	uses    []use                      // what the pods with running containers do to storage
	copied  map[types.UID]storage.Data // what was in the source of each PavVolume when it was requested
	reads   map[string]*reads          // by agent
	changed map[string]change          // the last change of each PavVolume or PavSnapshot by an agent, by name
	late    map[types.UID]bool         // pods that were created late and that their owners do not name
	minutes map[asker]minute           // since the world is calm
	speeds  map[string][]string        // those that each VolumeAttributesClass has stood for
}

// change is a change of a PavVolume or a PavSnapshot by an agent.
type change struct {
	by string
	at time.Time
}

// Watch starts to check the invariants of a world.
func Watch(store *world.Store, system *storage.System, isAgent func(by string) bool) *Invariants {
	i := &Invariants{store: store, storage: system, IsAgent: isAgent, running: map[types.UID]types.UID{}, owners: map[types.UID]types.UID{}, reads: map[string]*reads{}, changed: map[string]change{}, late: map[types.UID]bool{}, copied: map[types.UID]storage.Data{}, minutes: map[asker]minute{}, speeds: map[string][]string{}}
	store.Hook(i.write)
	system.Deleting, system.DeletingSnapshot = i.deleting, i.deletingSnapshot
	return i
}

// Failed returns the first violation, or nil.
func (i *Invariants) Failed() error { return i.failed }

func (i *Invariants) failf(number int, format string, arguments ...any) {
	if i.failed == nil {
		i.failed = fmt.Errorf("invariant %d: %s", number, fmt.Sprintf(format, arguments...))
	}
}

// write checks each write of an agent to the store.
func (i *Invariants) write(by string, before, after client.Object) error {
	if class, is := after.(*storagev1.VolumeAttributesClass); is {
		i.speeds[class.Name] = append(i.speeds[class.Name], class.Parameters["speed"])
	}
	if !i.IsAgent(by) {
		return nil
	}
	changed := after
	if changed == nil {
		changed = before
	}
	if after != nil {
		i.measure(by, after)
	}
	switch changed.(type) {
	case *pavv1.PavVolume, *pavv1.PavSnapshot:
		i.changed[changed.GetName()] = change{by: by, at: time.Now()}
	}
	if before == nil {
		i.isMade(by, after)
	} else if after != nil {
		i.isChanged(by, before, after)
	}
	return nil
}

// isMade checks each object that an agent creates.
func (i *Invariants) isMade(by string, object client.Object) {
	switch o := object.(type) {
	case *corev1.Pod:
		if o.Labels[pavv1.StageLabel] != "" {
			i.stagePodIsMade(by, o)
		} else {
			i.podIsMade(by, o)
		}
	case *corev1.PersistentVolume:
		i.pvIsMade(by, o)
		i.capacityIsShown(by, o)
		i.attributesAreShown(by, o, nil)
	case *pavv1.PavVolume:
		i.volumeIsRequested(by, o)
	}
}

// isChanged checks each object that an agent changes.
func (i *Invariants) isChanged(by string, before, after client.Object) {
	loses := func(finalizer string) bool {
		return world.HasFinalizer(before, finalizer) && !world.HasFinalizer(after, finalizer)
	}
	switch o := after.(type) {
	case *pavv1.PavVolume:
		if loses(pavv1.VolumeFinalizer) {
			i.volumeIsLetGo(by, o)
		}
	case *corev1.PersistentVolume:
		i.capacityIsShown(by, o)
	case *corev1.PersistentVolumeClaim:
		i.claimIsShown(by, o)
		if was, ok := before.(*corev1.PersistentVolumeClaim); ok && protocol.CurrentAttributesClass(was) != protocol.CurrentAttributesClass(o) {
			i.attributesAreShown(by, world.Object[*corev1.PersistentVolume](i.store, "", o.Spec.VolumeName), o)
		}
	case *pavv1.PavSnapshot:
		if before, ok := before.(*pavv1.PavSnapshot); ok && before.Status.Phase != pavv1.SnapshotDeleting && o.Status.Phase == pavv1.SnapshotDeleting {
			i.snapshotIsCondemned(by, before)
		}
		if loses(pavv1.SnapshotFinalizer) {
			i.snapshotIsLetGo(by, o)
		}
	case *snapshotv1.VolumeSnapshotContent:
		i.contentIsWritten(by, o)
	case *pavv1.PavProvisioner:
		if loses(pavv1.ProvisionerFinalizer) {
			i.provisionerIsLetGo(by, o)
		}
	}
}

// isContested reports whether a write for a PavVolume or a PavSnapshot may be late because two agents lead: either the writer
// has lost the lease, or another agent has changed the object within the last minute.
func (i *Invariants) isContested(by, name string) bool {
	last := i.changed[name]
	return !i.Leads(by) || last.by != "" && last.by != by && time.Since(last.at) < time.Minute
}

// podIsMade checks that a deletion pod is created only for storage that nothing uses, and that a PavVolume or a PavSnapshot
// has only one pod at a time.
func (i *Invariants) podIsMade(by string, pod *corev1.Pod) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return
	}
	if owner.Kind == "PavSnapshot" {
		i.snapshotPodIsMade(by, pod, owner)
		return
	}
	volume := world.Object[*pavv1.PavVolume](i.store, "", owner.Name)
	if owner.Kind != "PavVolume" || volume == nil || volume.UID != owner.UID {
		return // the pod is garbage; Starting and deleting check its effects
	}
	i.onlyPodIsMade(by, pod, volume, volume.Status.Pod)
	if pod.Labels[pavv1.WorkflowLabel] != pavv1.WorkflowDeletion {
		return
	}
	script, err := storage.Parse(pod.Spec.Containers[0].Args)
	if err != nil {
		i.failf(1, "pod %s: %v", pod.Name, err)
		return
	}
	if holder := i.holder(by, step("makes deletion pod %s", pod.Name), volume, script.Handle); holder != "" {
		i.failf(1, "deletion pod %s of PavVolume %s is made for the handle %q, which %s has", pod.Name, volume.Name, script.Handle, holder)
	}
}

// onlyPodIsMade checks that the pod of an object is created while no other one is left. The object names one of them.
func (i *Invariants) onlyPodIsMade(by string, pod *corev1.Pod, owner client.Object, named *pavv1.PodReference) {
	contested := i.isContested(by, owner.GetName())
	if contested && (named == nil || named.Namespace != pod.Namespace || named.Name != pod.Name) {
		i.late[pod.UID] = true
	}
	for _, other := range world.Objects[*corev1.Pod](i.store) {
		// Only the pod that its owner names can start: node agents refuse to mount /pav for other pods.
		if metav1.IsControlledBy(other, owner) && !isOver(other) && !exitIsTold(other) && !contested && !i.late[other.UID] {
			i.failf(2, "pod %s is made while %s of the same %s is not over", pod.Name, other.Name, i.store.KeyOf(owner).Kind)
		}
	}
}

// stagePodIsMade checks that a staging pod is created only if the volume was bound to its claim when the agent read it,
// after the agent had created the PavStage. Before the PavStage exists, the storage may be deleted. Afterwards, the
// PavStage protects it.
func (i *Invariants) stagePodIsMade(by string, pod *corev1.Pod) {
	stage := world.Object[*pavv1.PavStage](i.store, "", pod.Labels[pavv1.StageLabel])
	if pod.Labels[pavv1.WorkflowLabel] != pavv1.WorkflowStaging || stage == nil || stage.Status.Restaging {
		return
	}
	what := step("makes staging pod %s", pod.Name)
	pv := stage.Spec.VolumeName
	key := world.Key{Kind: "PersistentVolume", Name: pv}
	i.read(by, what, key) // the agent must have read it recently
	r := i.reads[by]
	if r == nil {
		return
	}
	since := r.written[stage.Name]
	if at, known := r.bound[binding{pv: pv, claim: stage.Spec.ClaimRef.UID}]; known && at >= since {
		return
	}
	if r.objects[inPass{key: key}].at < since {
		i.failf(6, "%s %s, and has not asked for PersistentVolume %s since it wrote PavStage %s", by, what, pv, stage.Name)
		return
	}
	i.failf(3, "%s %s, and knows that PersistentVolume %s is not its claim's any more", by, what, pv)
}

// holder returns the object that uses the storage of a handle, apart from a PavVolume that is about to delete it, or
// "". It evaluates the agent's last reads from the API server. An agent cannot know of later changes.
func (i *Invariants) holder(by, step string, volume *pavv1.PavVolume, handle string) string {
	driver := volume.Spec.Provisioner
	if own, ok := i.read(by, step, world.Key{Kind: "PersistentVolume", Name: volume.Name}).(*corev1.PersistentVolume); ok && isOf(own, driver, handle) {
		kept := own.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete && volume.Status.DeletionAttempt == 0
		if kept || !isReleased(own) {
			return fmt.Sprintf("its PersistentVolume (%s, %s)", own.Status.Phase, own.Spec.PersistentVolumeReclaimPolicy)
		}
	}
	for _, pv := range list[*corev1.PersistentVolume](i, by, step, "PersistentVolume") {
		if pv.Name != volume.Name && isOf(pv, driver, handle) {
			return fmt.Sprintf("PersistentVolume %s (%s)", pv.Name, pv.Status.Phase)
		}
	}
	for _, stage := range list[*pavv1.PavStage](i, by, step, "PavStage") {
		if stage.Spec.Provisioner == driver && stage.Spec.VolumeHandle == handle && stage.Status.Phase == pavv1.StageStaged {
			return "PavStage " + stage.Name
		}
	}
	for _, other := range list[*pavv1.PavVolume](i, by, step, "PavVolume") {
		if other.UID != volume.UID && other.Spec.Provisioner == driver && other.Status.Handle == handle && isMade(other) {
			return fmt.Sprintf("PavVolume %s (%s)", other.Name, other.Status.Phase)
		}
	}
	return ""
}

// isOf reports whether a PersistentVolume refers to the storage of a handle.
func isOf(pv *corev1.PersistentVolume, driver, handle string) bool {
	return pv.Spec.CSI != nil && pv.Spec.CSI.Driver == driver && pv.Spec.CSI.VolumeHandle == handle
}

// isMade reports whether the creation of a volume has completed.
func isMade(v *pavv1.PavVolume) bool {
	return v.Status.Phase != "" && v.Status.Phase != pavv1.VolumePending
}

// volumeIsLetGo checks the removal of a PavVolume's finalizer. The agent must have read the PersistentVolume of a
// volume that is not retained. No PersistentVolume with the reclaim policy Delete may remain, but for an administrator's.
func (i *Invariants) volumeIsLetGo(by string, volume *pavv1.PavVolume) {
	if volume.Status.Phase == pavv1.VolumeRetained {
		return
	}
	what := step("forgets PavVolume %s", volume.Name)
	pv, _ := i.read(by, what, world.Key{Kind: "PersistentVolume", Name: volume.Name}).(*corev1.PersistentVolume)
	if pv != nil && pv.DeletionTimestamp == nil && pv.Spec.CSI != nil && pv.Spec.CSI.Driver == volume.Spec.Provisioner &&
		pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && !volume.Spec.Static {
		i.failf(4, "%s %s, whose PersistentVolume is there", by, what)
	}
}

// provisionerIsLetGo checks the removal of a PavProvisioner's finalizer. The agent must have listed the volumes and
// stages, and none of them may still need the provisioner.
func (i *Invariants) provisionerIsLetGo(by string, p *pavv1.PavProvisioner) {
	what := step("lets PavProvisioner %s go", p.Name)
	for _, volume := range list[*pavv1.PavVolume](i, by, what, "PavVolume") {
		if volume.Spec.Provisioner == p.Name && world.HasFinalizer(volume, pavv1.VolumeFinalizer) {
			i.failf(4, "%s %s, which PavVolume %s needs", by, what, volume.Name)
		}
	}
	for _, stage := range list[*pavv1.PavStage](i, by, what, "PavStage") {
		if stage.Spec.Provisioner == p.Name && world.HasFinalizer(stage, pavv1.StageFinalizer) {
			i.failf(4, "%s %s, which PavStage %s needs", by, what, stage.Name)
		}
	}
	for _, snapshot := range list[*pavv1.PavSnapshot](i, by, what, "PavSnapshot") {
		if snapshot.Spec.Provisioner == p.Name && world.HasFinalizer(snapshot, pavv1.SnapshotFinalizer) {
			i.failf(4, "%s %s, which PavSnapshot %s needs", by, what, snapshot.Name)
		}
	}
}

func isReleased(pv *corev1.PersistentVolume) bool {
	return pv.Status.Phase == corev1.VolumeReleased || pv.DeletionTimestamp != nil && pv.Status.Phase != corev1.VolumeBound
}

// pvIsMade checks that a PersistentVolume is created for a claim that exists, and for storage that exists, that no
// other PersistentVolume refers to, and that no pod is deleting.
func (i *Invariants) pvIsMade(by string, pv *corev1.PersistentVolume) {
	volume := world.Object[*pavv1.PavVolume](i.store, "", pv.Name)
	if volume == nil {
		// A late write is no violation: the writer deletes the PersistentVolume then, or the next leader reports it.
		if !i.isContested(by, pv.Name) {
			i.failf(4, "PersistentVolume %s is made, and no PavVolume is there", pv.Name)
		}
		return
	}
	what := step("makes PersistentVolume %s", pv.Name)
	ref := volume.Spec.ClaimRef
	claim, _ := i.read(by, what, world.Key{Kind: "PersistentVolumeClaim", Namespace: ref.Namespace, Name: ref.Name}).(*corev1.PersistentVolumeClaim)
	if claim == nil || claim.UID != ref.UID || claim.DeletionTimestamp != nil {
		i.failf(4, "%s %s, and knows that nobody claims it", by, what)
	}
	handle := pv.Spec.CSI.VolumeHandle
	for _, other := range list[*corev1.PersistentVolume](i, by, what, "PersistentVolume") {
		if isOf(other, pv.Spec.CSI.Driver, handle) {
			i.failf(1, "%s %s for the handle %q, and knows that PersistentVolume %s has it", by, what, handle, other.Name)
		}
	}
	if now := world.Object[*corev1.PersistentVolumeClaim](i.store, ref.Namespace, ref.Name); now == nil || now.UID != ref.UID {
		return // the claim has gone since the agent read it, so no claim binds to this PersistentVolume
	}
	if pv.Spec.StorageClassName != "light" && i.storage.Find(pv.Spec.CSI.Driver, handle) == nil && makes(pv.Spec.CSI.Driver) {
		i.failf(1, "PersistentVolume %s is made for the handle %q, of which there is no storage", pv.Name, handle)
	}
	i.copyIsMade(volume, pv)
	for _, pod := range world.Objects[*corev1.Pod](i.store) {
		if metav1.IsControlledBy(pod, volume) && pod.Labels[pavv1.WorkflowLabel] == pavv1.WorkflowDeletion && !isOver(pod) {
			i.failf(1, "PersistentVolume %s is made while deletion pod %s runs", pv.Name, pod.Name)
		}
	}
}

// makes reports whether the provisioner of a driver has creation pods.
func makes(driver string) bool { return !strings.HasPrefix(driver, "light") }

// Clients checks that each client sees its own volume, and that all clients of a volume run on one node, as all volumes
// are ReadWriteOnce.
func (i *Invariants) Clients(nodes []*kubernetes.Node) {
	at := map[string]string{}
	for _, node := range nodes {
		for _, c := range node.Clients() {
			if c.Sees != c.Volume {
				i.failf(3, "client %s on %s, whose volume is %s, sees %q", c.Pod, node.Name, c.Volume, c.Sees)
			}
			if other := at[c.Volume]; other != "" && other != node.Name {
				i.failf(2, "the volume %s, which one node may have, has clients on %s and %s", c.Volume, other, node.Name)
			}
			at[c.Volume] = node.Name
		}
	}
}
