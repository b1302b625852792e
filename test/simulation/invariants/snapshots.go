package invariants

import (
	"errors"
	"fmt"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/test/simulation/storage"
	"github.com/albertofaria/pav/test/simulation/world"
)

// isCut reports whether a snapshot has been made.
func isCut(record *pavv1.PavSnapshot) bool {
	return record.Status.Phase != "" && record.Status.Phase != pavv1.SnapshotPending
}

// snapshotIsLetGo checks the removal of a PavSnapshot's finalizer: what its pods have made is deleted or retained.
func (i *Invariants) snapshotIsLetGo(by string, record *pavv1.PavSnapshot) {
	if record.Status.Phase == pavv1.SnapshotRetained || record.Status.Phase == pavv1.SnapshotDeleting {
		return // its storage was deleted, or is the administrator's
	}
	if made := i.storage.FindSnapshot(record.Spec.Provisioner, record.Status.Handle); made != nil && made.By == record.UID {
		i.failf(4, "%s forgets PavSnapshot %s (%s), whose snapshot is there", by, record.Name, record.Status.Phase)
	}
}

// snapshotIsCondemned checks that the storage of a snapshot is marked for deletion only if the agent has read that nobody
// wants it: the VolumeSnapshotContent and the VolumeSnapshot are being deleted or gone, and the policy is Delete.
func (i *Invariants) snapshotIsCondemned(by string, record *pavv1.PavSnapshot) {
	what := step("marks PavSnapshot %s for deletion", record.Name)
	content, _ := i.read(by, what, world.Key{Kind: "VolumeSnapshotContent", Name: record.Spec.ContentRef.Name}).(*snapshotv1.VolumeSnapshotContent)
	if content != nil && protocol.SnapshotOf(content) == record.Name {
		if content.DeletionTimestamp == nil {
			i.failf(1, "%s %s, and knows that VolumeSnapshotContent %s is not being deleted", by, what, content.Name)
		}
		if content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentRetain && record.Status.Phase != pavv1.SnapshotRetained {
			i.failf(1, "%s %s, and knows that VolumeSnapshotContent %s is to be retained", by, what, content.Name)
		}
	}
	ref := record.Spec.SnapshotRef
	if ref.UID == "" {
		return
	}
	key := world.Key{Kind: "VolumeSnapshot", Namespace: ref.Namespace, Name: ref.Name}
	if snapshot := i.read(by, what, key); snapshot != nil && snapshot.GetUID() == ref.UID && snapshot.GetDeletionTimestamp() == nil {
		i.failf(1, "%s %s, and knows that VolumeSnapshot %s/%s is not being deleted", by, what, ref.Namespace, ref.Name)
	}
}

// snapshotPodIsMade checks that a PavSnapshot has only one pod at a time, and that a deletion pod is created only for a
// snapshot that, as the agent has read, no other object has.
func (i *Invariants) snapshotPodIsMade(by string, pod *corev1.Pod, owner *metav1.OwnerReference) {
	record := world.Object[*pavv1.PavSnapshot](i.store, "", owner.Name)
	if record == nil || record.UID != owner.UID {
		return // the pod is garbage; Starting and deletingSnapshot check its effects
	}
	i.onlyPodIsMade(by, pod, record, record.Status.Pod)
	if pod.Labels[pavv1.WorkflowLabel] != pavv1.WorkflowSnapshotDeletion {
		return
	}
	script, err := storage.Parse(pod.Spec.Containers[0].Args)
	if err != nil {
		i.failf(1, "pod %s: %v", pod.Name, err)
		return
	}
	what, driver := step("makes deletion pod %s", pod.Name), record.Spec.Provisioner
	for _, other := range list[*pavv1.PavSnapshot](i, by, what, "PavSnapshot") {
		live := other.Status.Phase == pavv1.SnapshotCut || other.Status.Phase == pavv1.SnapshotReady
		if other.UID != record.UID && other.Spec.Provisioner == driver && other.Status.Handle == script.Handle && live {
			i.failf(1, "%s %s for the snapshot %q, and knows that PavSnapshot %s (%s) has it", by, what, script.Handle, other.Name, other.Status.Phase)
		}
	}
	for _, content := range list[*snapshotv1.VolumeSnapshotContent](i, by, what, "VolumeSnapshotContent") {
		if content.Spec.Driver == driver && handleIn(content) == script.Handle && content.DeletionTimestamp == nil && protocol.SnapshotOf(content) != record.Name {
			i.failf(1, "%s %s for the snapshot %q, and knows that VolumeSnapshotContent %s has it", by, what, script.Handle, content.Name)
		}
	}
}

// handleIn returns the handle of the snapshot that a VolumeSnapshotContent has, or "".
func handleIn(content *snapshotv1.VolumeSnapshotContent) string {
	if handle := content.Spec.Source.SnapshotHandle; handle != nil {
		return *handle
	}
	if content.Status == nil {
		return ""
	}
	return ptr.Deref(content.Status.SnapshotHandle, "")
}

// isShownReady reports whether a VolumeSnapshotContent says that its snapshot can be used. What an administrator has
// written is left out: PaV cannot check it.
func isShownReady(content *snapshotv1.VolumeSnapshotContent) bool {
	return content.Spec.Source.SnapshotHandle == nil && content.DeletionTimestamp == nil && content.Status != nil && ptr.Deref(content.Status.ReadyToUse, false)
}

// contentIsWritten checks that a snapshot that is reported ready exists.
func (i *Invariants) contentIsWritten(by string, content *snapshotv1.VolumeSnapshotContent) {
	if isShownReady(content) && i.storage.FindSnapshot(content.Spec.Driver, handleIn(content)) == nil {
		i.failf(1, "%s says that the snapshot of VolumeSnapshotContent %s is ready, and there is none with the handle %q", by, content.Name, handleIn(content))
	}
}

// deletingSnapshot checks each deletion of a snapshot before it takes effect. by is the UID of the PavSnapshot whose pod
// deletes it.
func (i *Invariants) deletingSnapshot(driver string, s *storage.Snapshot, by types.UID) {
	for _, record := range world.Objects[*pavv1.PavSnapshot](i.store) {
		if record.Spec.Provisioner != driver || record.Status.Handle != s.Handle || !isCut(record) {
			continue
		}
		if record.UID != by && (record.Status.Phase == pavv1.SnapshotRetained || record.Spec.SnapshotHandle != "") {
			// An administrator lets it be deleted by another VolumeSnapshotContent, or has written one for a snapshot that was
			// being deleted; snapshotPodIsMade checks what PaV could know of the latter.
			continue
		}
		if record.Status.Phase != pavv1.SnapshotDeleting {
			i.failf(1, "the snapshot %q of %s is deleted, which PavSnapshot %s (%s) has", s.Handle, driver, record.Name, record.Status.Phase)
		}
		ref := record.Spec.SnapshotRef
		if snapshot := world.Object[*snapshotv1.VolumeSnapshot](i.store, ref.Namespace, ref.Name); snapshot != nil && snapshot.UID == ref.UID && snapshot.DeletionTimestamp == nil {
			i.failf(1, "the snapshot %q of %s is deleted, which VolumeSnapshot %s/%s has", s.Handle, driver, ref.Namespace, ref.Name)
		}
	}
	i.sourceIsDeleted(driver, storage.OfSnapshot, s.Handle)
	for _, content := range world.Objects[*snapshotv1.VolumeSnapshotContent](i.store) {
		if content.Spec.Driver == driver && isShownReady(content) && handleIn(content) == s.Handle {
			i.failf(1, "the snapshot %q of %s is deleted, which VolumeSnapshotContent %s has", s.Handle, driver, content.Name)
		}
	}
}

// snapshotsDepend checks that a volume that is deleted has no snapshots that depend on it.
func (i *Invariants) snapshotsDepend(driver, handle string) {
	for _, record := range world.Objects[*pavv1.PavSnapshot](i.store) {
		made := i.storage.FindSnapshot(driver, record.Status.Handle)
		if record.Spec.Provisioner == driver && record.Spec.VolumeHandle == handle && record.Status.DependsOnVolume && isCut(record) && made != nil && made.By == record.UID {
			i.failf(1, "the storage of the handle %q of %s is deleted, on which PavSnapshot %s (%s) depends", handle, driver, record.Name, record.Status.Phase)
		}
	}
}

// snapshots returns the VolumeSnapshots that are neither ready nor say why, and those that are deleted and do not go.
func (i *Invariants) snapshots() []error {
	var problems []error
	for _, snapshot := range world.Objects[*snapshotv1.VolumeSnapshot](i.store) {
		name := snapshot.Namespace + "/" + snapshot.Name
		switch {
		case snapshot.DeletionTimestamp != nil && !i.isBeingRestored(snapshot) && i.whySnapshot(snapshot) == "":
			problems = append(problems, fmt.Errorf("VolumeSnapshot %s is deleted and does not go; finalizers %v", name, snapshot.Finalizers))
		case snapshot.DeletionTimestamp == nil && i.isRequested(snapshot) && i.whyUnready(snapshot) == "":
			problems = append(problems, fmt.Errorf("VolumeSnapshot %s is not ready, and nothing says why", name))
		}
	}
	for _, content := range world.Objects[*snapshotv1.VolumeSnapshotContent](i.store) {
		record := world.Object[*pavv1.PavSnapshot](i.store, "", protocol.SnapshotOf(content))
		if content.DeletionTimestamp != nil && world.HasFinalizer(content, protocol.SnapshotContentFinalizer) && !i.lives(content) && (record == nil || i.why(record) == "") {
			problems = append(problems, fmt.Errorf("VolumeSnapshotContent %s is deleted and does not go; its record is %v", content.Name, record))
		}
	}
	return problems
}

// lives reports whether the VolumeSnapshot of a VolumeSnapshotContent exists and is not being deleted: PaV waits for it then.
func (i *Invariants) lives(content *snapshotv1.VolumeSnapshotContent) bool {
	ref := content.Spec.VolumeSnapshotRef
	snapshot := world.Object[*snapshotv1.VolumeSnapshot](i.store, ref.Namespace, ref.Name)
	return snapshot != nil && snapshot.UID == ref.UID && snapshot.DeletionTimestamp == nil
}

// isBeingRestored reports whether the snapshot-controller keeps a VolumeSnapshot for a claim that waits.
func (i *Invariants) isBeingRestored(snapshot *snapshotv1.VolumeSnapshot) bool {
	for _, claim := range world.Objects[*corev1.PersistentVolumeClaim](i.store) {
		source := claim.Spec.DataSource
		if source != nil && source.Kind == protocol.KindSnapshot && claim.Namespace == snapshot.Namespace && source.Name == snapshot.Name && claim.Status.Phase == corev1.ClaimPending {
			return true
		}
	}
	return false
}

// isRequested reports whether a VolumeSnapshotContent of a VolumeSnapshot exists that nobody has deleted, and the
// VolumeSnapshot is not ready.
func (i *Invariants) isRequested(snapshot *snapshotv1.VolumeSnapshot) bool {
	if snapshot.Status != nil && ptr.Deref(snapshot.Status.ReadyToUse, false) {
		return false
	}
	content := world.Object[*snapshotv1.VolumeSnapshotContent](i.store, "", protocol.SnapshotContentName(snapshot.UID))
	return snapshot.Spec.Source.PersistentVolumeClaimName != nil && content != nil && content.DeletionTimestamp == nil
}

// whyUnready returns the reason that is stated for a snapshot that is not ready, or "".
func (i *Invariants) whyUnready(snapshot *snapshotv1.VolumeSnapshot) string {
	if status := snapshot.Status; status != nil && status.Error != nil {
		return ptr.Deref(status.Error.Message, "")
	}
	if record := world.Object[*pavv1.PavSnapshot](i.store, "", protocol.SnapshotName(snapshot.UID)); record != nil {
		return i.why(record)
	}
	return ""
}

// whySnapshot returns the reason that is stated for a VolumeSnapshot that is deleted and does not go, or "".
func (i *Invariants) whySnapshot(snapshot *snapshotv1.VolumeSnapshot) string {
	if record := world.Object[*pavv1.PavSnapshot](i.store, "", protocol.SnapshotName(snapshot.UID)); record != nil {
		return i.why(record)
	}
	name := ptr.Deref(snapshot.Spec.Source.VolumeSnapshotContentName, protocol.SnapshotContentName(snapshot.UID))
	content := world.Object[*snapshotv1.VolumeSnapshotContent](i.store, "", name)
	if content == nil {
		return ""
	}
	if record := world.Object[*pavv1.PavSnapshot](i.store, "", protocol.SnapshotOf(content)); record != nil {
		return i.why(record)
	}
	return ""
}

// isSource reports whether the snapshot-controller keeps a claim for a VolumeSnapshot that is not ready.
func (i *Invariants) isSource(claim *corev1.PersistentVolumeClaim) bool {
	for _, snapshot := range world.Objects[*snapshotv1.VolumeSnapshot](i.store) {
		of := snapshot.Spec.Source.PersistentVolumeClaimName
		ready := snapshot.Status != nil && ptr.Deref(snapshot.Status.ReadyToUse, false)
		if snapshot.Namespace == claim.Namespace && of != nil && *of == claim.Name && !ready && world.HasFinalizer(claim, protocol.SourceProtection) {
			return true
		}
	}
	return false
}

// leftSnapshots returns the snapshots, and their objects, that remain after all people have deleted theirs.
func (i *Invariants) leftSnapshots(warnings string) error {
	var problems []error
	named, last := map[string]bool{}, map[types.UID]*pavv1.PavSnapshot{}
	for _, record := range world.Objects[*pavv1.PavSnapshot](i.store) {
		named[record.Spec.Provisioner+"/"+record.Status.Handle] = true
		if record.Status.Phase != pavv1.SnapshotRetained {
			problems = append(problems, fmt.Errorf("PavSnapshot %s is left, in phase %q, step %q: %s", record.Name, record.Status.Phase, record.Status.Step, i.why(record)))
		}
	}
	for _, kind := range []string{"VolumeSnapshot", "VolumeSnapshotContent"} {
		for _, object := range i.store.All(kind) {
			problems = append(problems, fmt.Errorf("%s is left", i.store.KeyOf(object)))
		}
	}
	for _, e := range i.store.Events("PavSnapshot") {
		if record, ok := e.After.(*pavv1.PavSnapshot); ok {
			last[record.UID] = record
		}
	}
	for _, key := range i.storage.AllSnapshots() {
		driver, handle, _ := strings.Cut(key, "/")
		maker := last[i.storage.FindSnapshot(driver, handle).By]
		retained := maker != nil && maker.Status.Phase == pavv1.SnapshotRetained || wasRetained(last, driver, handle)
		if !named[key] && !retained && !strings.Contains(warnings, fmt.Sprintf("%q", handle)) && (maker == nil || !strings.Contains(warnings, maker.Name)) {
			problems = append(problems, fmt.Errorf("the snapshot %q of %s is left, and nobody knows", handle, driver))
		}
	}
	return errors.Join(problems...)
}

// wasRetained reports whether an administrator was left with a snapshot when its last record went.
func wasRetained(last map[types.UID]*pavv1.PavSnapshot, driver, handle string) bool {
	for _, record := range last {
		if record.Spec.Provisioner == driver && record.Status.Handle == handle && record.Status.Phase == pavv1.SnapshotRetained {
			return true
		}
	}
	return false
}
