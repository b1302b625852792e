package scenario

import (
	"fmt"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/test/simulation/world"
)

// copying are the definitions of PavProvisioners whose volumes can be copied, by name. Only worlds with copies have them.
var copying = map[string]string{
	"snapped": `
spec:
  provisioningModes: [Dynamic, Static]
  volumeCreation: {` + copiesAll + `, podTemplate: ` + pod("create", "{{ defaultHandle }}", sourceOf, tenantOf, sizeOf, speedOf, "ready") + `}
  volumeExpansion: {podTemplate: ` + pod("expand", "{{ handle }}", "size={{ newCapacity }}") + `}
  volumeModification: {parameters: [speed], podTemplate: ` + pod("modify", "{{ handle }}", speedOf) + `}
  volumeDeletion: {podTemplate: ` + pod("delete", "{{ volumeHandle }}") + `}
  volumeStaging: {podTemplate: ` + pod("stage", "{{ handle }}", "serve") + `}
  snapshotCreation: {podTemplate: ` + pod("take-snapshot", snapshotHandle, volumeOf, "write-handle", "ready") + `}
  snapshotDeletion: {podTemplate: ` + pod("delete-snapshot", snapshotHandle) + `}`,
	"unstaged": `
spec:
  provisioningModes: [Dynamic, Static]
  volumeCreation: {` + copiesAll + `, podTemplate: ` + pod("create", "{{ defaultHandle }}", sourceOf, tenantOf, sizeOf) + `}
  volumeExpansion: {online: false, podTemplate: ` + pod("expand", "{{ handle }}", "size={{ newCapacity }}") + `}
  volumeDeletion: {podTemplate: ` + pod("delete", "{{ volumeHandle }}") + `}
  volumeStaging: {podTemplate: ` + pod("stage", "{{ handle }}", "serve") + `}
  volumeUnstaging: {podTemplate: ` + pod("unstage", "{{ handle }}") + `}
  snapshotCreation: {whileStaged: Wait, podTemplate: ` + pod("take-snapshot", snapshotHandle, volumeOf) + `}
  snapshotDeletion: {podTemplate: ` + pod("delete-snapshot", snapshotHandle) + `}`,
	"synced": `
spec:
  provisioningModes: [Dynamic, Static]
  volumeCreation: {` + copiesAll + `, handle: "` + byClaim + `", podTemplate: ` + pod("create", byClaim, sourceOf, tenantOf, sizeOf) + `}
  volumeExpansion: {podTemplate: ` + pod("expand", "{{ handle }}", "size={{ newCapacity }}") + `, nodePodTemplate: ` + pod("expand-on-node", "{{ handle }}", "size={{ newCapacity }}") + `}
  volumeDeletion: {podTemplate: ` + pod("delete", "{{ volumeHandle }}") + `}
  volumeStaging: {podTemplate: ` + pod("stage", "{{ handle }}") + `}
  volumeUnstaging: {podTemplate: ` + pod("unstage", "{{ handle }}") + `}
  snapshotCreation: {whileStaged: Sync, handle: "` + byName + `", podTemplate: ` + pod("take-snapshot", byName, volumeOf, "ready") + `}
  snapshotDeletion: {podTemplate: ` + pod("delete-snapshot", byName) + `}`,
	"linked": `
spec:
  provisioningModes: [Dynamic, Static]
  volumeCreation: {` + copiesAll + `, dependsOnSource: true, podTemplate: ` + pod("create", "{{ defaultHandle }}", sourceOf, tenantOf, sizeOf, speedOf) + `}
  volumeExpansion: {podTemplate: ` + pod("expand", "{{ handle }}", "size={{ newCapacity }}") + `}
  volumeModification: {parameters: [speed], podTemplate: ` + pod("modify", "{{ handle }}", speedOf) + `}
  volumeDeletion: {podTemplate: ` + pod("delete", "{{ volumeHandle }}") + `}
  volumeStaging: {podTemplate: ` + pod("stage", "{{ handle }}", "serve") + `}
  snapshotCreation: {dependsOnVolume: true, podTemplate: ` + pod("take-snapshot", snapshotHandle, volumeOf) + `}
  snapshotDeletion: {podTemplate: ` + pod("delete-snapshot", snapshotHandle) + `}`,
}

// What the creation of all their volumes has in common, and the words of its script: what is copied, whose it is, how
// large it is to be, and which attribute it has.
const (
	copiesAll = `capacity: "{{ requestedMinCapacity }}", dataSources: [VolumeSnapshot, PersistentVolumeClaim]`
	sourceOf  = "from={{ source.kind ~ '/' ~ source.handle if source else '' }}"
	tenantOf  = "tenant={{ pvc.metadata.namespace }}"
	sizeOf    = "size={{ requestedMinCapacity }}"
	speedOf   = "speed={{ attributes.get('speed', '') }}"

	// volumeOf is what a snapshot is taken of, and byClaim the handle of volumes whose claims have one name, one after another.
	volumeOf = "from=PersistentVolumeClaim/{{ handle }}"
	byClaim  = "{{ pvc.metadata.namespace }}-{{ pvc.metadata.name }}"
)

// copyingNames are the names of these definitions, in alphabetical order.
var copyingNames = []string{"linked", "snapped", "synced", "unstaged"}

// Handles of snapshots: the default, and one that VolumeSnapshots of one name share, which may be made of different volumes.
// A snapshot that an administrator imports has the handle that it is imported with.
const (
	snapshotHandle = "{{ snapshotHandle or defaultSnapshotHandle }}"
	byName         = "{{ snapshotHandle or snapshot.metadata.namespace ~ '-' ~ snapshot.metadata.name }}"
)

// namesOf returns the names of the definitions of a world.
func namesOf(copies bool) []string {
	if copies {
		return slices.Concat(copyingNames, provisioners)
	}
	return provisioners
}

// addSnapshots adds what a cluster with snapshots has: the definition by which PaV knows that, and a VolumeSnapshotClass for
// each provisioner of snapshots and deletion policy.
func addSnapshots(store *world.Store) error {
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: protocol.SnapshotContentCRD}}
	if err := store.Create(people, definition); err != nil {
		return fmt.Errorf("the definition of snapshots: %w", err)
	}
	if err := world.Change(store, people, definition, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	}); err != nil {
		return fmt.Errorf("the definition of snapshots: %w", err)
	}
	for _, name := range copyingNames {
		for _, class := range []*snapshotv1.VolumeSnapshotClass{
			{ObjectMeta: metav1.ObjectMeta{Name: name}, Driver: name, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete},
			{ObjectMeta: metav1.ObjectMeta{Name: name + "-kept"}, Driver: name, DeletionPolicy: snapshotv1.VolumeSnapshotContentRetain},
		} {
			if err := store.Create(people, class); err != nil {
				return fmt.Errorf("snapshot class %s: %w", class.Name, err)
			}
		}
	}
	return nil
}
