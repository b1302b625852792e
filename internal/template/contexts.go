package template

import (
	"fmt"
	"sync"

	"github.com/albertofaria/pav/jinja/py"
)

// Trust says who chooses the value of a variable.
type Trust int

// Who chooses a value.
const (
	// TrustCluster: Kubernetes or PaV, from a set or an alphabet that is safe anywhere: a mode, a number, a UID.
	TrustCluster Trust = iota
	// TrustAdministrator: users who may write StorageClasses, PersistentVolumes and Nodes, or the provisioner's own
	// pods.
	TrustAdministrator
	// TrustName: users who may write claims, of characters without a meaning in a shell: a name.
	TrustName
	// TrustTenant: users who may write claims.
	TrustTenant
)

// The types of variables that are Kubernetes objects.
const (
	typeClaim  = "PersistentVolumeClaim"
	typeClass  = "StorageClass"
	typeVolume = "PersistentVolume"
	typeNode   = "Node"

	typeSnapshot        = "VolumeSnapshot"
	typeSnapshotContent = "VolumeSnapshotContent"
	typeSnapshotClass   = "VolumeSnapshotClass"
)

// TypeSource is the type of the variable source, a mapping whose keys are known.
const TypeSource = "mapping"

// Variable is a name that the templates of a section can use.
type Variable struct {
	Name string

	// Type is "string", "integer", "boolean", "list of string", "mapping of strings", TypeSource, or the kind of a
	// Kubernetes object.
	Type string

	// Optional is empty if the variable always exists, or else says when: "only for claims".
	Optional string

	// Doc describes it in one sentence.
	Doc string

	// Trust says who chooses its value.
	Trust Trust
}

// NodeExpansion is the section of the one field whose context is another than that of the fields beside it.
const NodeExpansion = "volumeExpansion.nodePodTemplate"

// sections are the fields of a PavProvisioner's spec that have contexts, in the order of a volume's and of a bucket's life.
var sections = append([]string{
	"volumeValidation", "volumeCreation", "volumeExpansion", "volumeModification", "volumeDeletion", "snapshotCreation", "snapshotDeletion", "volumeStaging", NodeExpansion, "volumeUnstaging",
}, bucketSections...)

// Context returns the variables that the templates of a section, such as "volumeCreation", can use, and whether the
// section exists. Each section also has the function get_pvc.
func Context(section string) ([]Variable, bool) {
	switch section {
	case "volumeValidation":
		return validationContext(), true
	case "volumeCreation":
		return creationContext(), true
	case "volumeExpansion":
		return append(changeContext(), Variable{Name: "newCapacity", Type: "integer", Doc: "The capacity that the volume is to have at least, in bytes."}), true
	case "volumeModification":
		return append(changeContext(),
			Variable{Name: "attributes", Type: "mapping of strings", Trust: TrustAdministrator, Doc: "The parameters of the VolumeAttributesClass that the claim names."},
			Variable{Name: "oldAttributes", Type: "mapping of strings", Trust: TrustAdministrator, Doc: "The parameters of the VolumeAttributesClass that the volume has; empty if it has none."}), true
	case "volumeDeletion":
		return append(creationContext(), provisionedPVC(""), Variable{
			Name: "volumeHandle", Type: "string", Optional: "only if it is known", Trust: TrustAdministrator,
			Doc: "The volume's handle; if its creation is reverted, the one that the creation pod wrote, or the default.",
		}), true
	case "snapshotCreation", "snapshotDeletion":
		return snapshotContext(), true
	case "volumeStaging", "volumeUnstaging":
		return stagingContext(), true
	case NodeExpansion:
		return append(stagingContext(), Variable{
			Name: "newCapacity", Type: "integer", Doc: "The capacity that the volume is to have on the node, in bytes.",
		}), true
	default:
		return contextOfBuckets(section)
	}
}

const (
	onlyClaims   = "only for claims"
	onlyStatic   = "only for PersistentVolumes that an administrator created"
	onlyDynamic  = "only for dynamically provisioned volumes"
	onlySelected = "only if the scheduler has selected a node for the claim's first consumer, for which the StorageClass needs volumeBindingMode: WaitForFirstConsumer"
)

// missing are the values of the variables that do not always exist, where they do not. Nothing changes them.
var missing = sync.OnceValue(func() map[string]py.Value {
	values := map[string]py.Value{}
	for _, section := range []string{"volumeValidation", "volumeCreation", "volumeDeletion", "volumeStaging"} {
		variables, _ := Context(section)
		for _, v := range variables {
			if v.Optional != "" {
				values[v.Name] = &py.Undefined{Name: v.Name, Hint: fmt.Sprintf("'%s' is undefined: it exists %s", v.Name, v.Optional)}
			}
		}
	}
	return values
})

func provisionedPVC(optional string) Variable {
	return Variable{
		Name: "provisionedPvc", Type: typeClaim, Optional: optional, Trust: TrustTenant,
		Doc: "The claim for which the volume was created, as it was then.",
	}
}

func validationContext() []Variable {
	return []Variable{
		{Name: "requestedVolumeMode", Type: "string", Doc: "The requested mode, Filesystem or Block."},
		{Name: "requestedAccessModes", Type: "list of string", Doc: "The requested access modes."},
		{Name: "requestedMinCapacity", Type: "integer", Doc: "The minimum capacity that is requested, in bytes."},
		{Name: "requestedMaxCapacity", Type: "integer", Doc: "The maximum capacity that is requested, in bytes, or none."},
		{Name: "params", Type: "mapping of strings", Trust: TrustAdministrator, Doc: "The parameters of the StorageClass and, with precedence, attributes; or the volumeAttributes of the PersistentVolume."},
		{Name: "attributes", Type: "mapping of strings", Trust: TrustAdministrator, Doc: "The parameters of the claim's VolumeAttributesClass, as it was when provisioning began; empty if it names none."},
		{Name: "source", Type: TypeSource, Trust: TrustAdministrator, Doc: "What the volume is to be created from, or none: a mapping with kind, VolumeSnapshot or PersistentVolumeClaim; namespace and name, the tenants'; handle; capacity, in bytes, or none; params, of the VolumeSnapshotClass or the StorageClass; and accessibleTopology, a list that is empty for all nodes."},
		{Name: "handle", Type: "string", Optional: onlyStatic, Trust: TrustAdministrator, Doc: "The volume's handle."},
		{Name: "sc", Type: typeClass, Optional: onlyClaims, Trust: TrustAdministrator, Doc: "The claim's StorageClass, as it was when provisioning began."},
		{Name: "pvc", Type: typeClaim, Optional: onlyClaims, Trust: TrustTenant, Doc: "The claim that requests the volume."},
		{Name: "pv", Type: typeVolume, Optional: onlyStatic, Trust: TrustAdministrator, Doc: "The PersistentVolume."},
		selectedNode,
	}
}

var selectedNode = Variable{
	Name: "selectedNode", Type: typeNode, Optional: onlySelected, Trust: TrustAdministrator,
	Doc: "The Node on which the claim's first consumer will run.",
}

func creationContext() []Variable {
	var vars []Variable
	for _, v := range validationContext() {
		switch v.Optional {
		case onlyStatic:
			continue
		case onlyClaims:
			v.Optional = ""
		}
		vars = append(vars, v)
	}
	return append(vars, Variable{Name: "defaultHandle", Type: "string", Doc: "The default handle of the volume: pvc- and the claim's UID."})
}

// changeContext is what the contexts of changes of a volume that exists have in common.
func changeContext() []Variable {
	return []Variable{
		{Name: "volumeMode", Type: "string", Doc: "The volume's mode, Filesystem or Block."},
		{Name: "accessModes", Type: "list of string", Doc: "The access modes of the volume."},
		{Name: "capacity", Type: "integer", Doc: "The capacity that the volume has, in bytes."},
		{Name: "maxCapacity", Type: "integer", Doc: "The maximum capacity that the claim allows, in bytes, or none."},
		{Name: "stagedOn", Type: "list of string", Trust: TrustAdministrator, Doc: "The names of the nodes that have the volume staged."},
		{Name: "params", Type: "mapping of strings", Trust: TrustAdministrator, Doc: "The parameters of the StorageClass that the volume was made with; for a volume that an administrator wrote, the volumeAttributes of the PersistentVolume."},
		{Name: "handle", Type: "string", Trust: TrustAdministrator, Doc: "The volume's handle."},
		{Name: "sc", Type: typeClass, Optional: onlyDynamic, Trust: TrustAdministrator, Doc: "The StorageClass that the volume was made with, as it was then."},
		{Name: "pvc", Type: typeClaim, Trust: TrustTenant, Doc: "The claim that is bound to the volume."},
		{Name: "pv", Type: typeVolume, Trust: TrustAdministrator, Doc: "The PersistentVolume."},
	}
}

// snapshotContext is the context of creation and deletion, as a deletion pod reverts what a creation pod did. Of a snapshot for which an
// administrator wrote the VolumeSnapshotContent, it has no volume.
func snapshotContext() []Variable {
	return []Variable{
		{Name: "handle", Type: "string", Trust: TrustAdministrator, Doc: "The handle of the volume, or none if an administrator wrote the VolumeSnapshotContent."},
		{Name: "capacity", Type: "integer", Doc: "The capacity of the volume, in bytes, or none."},
		{Name: "volumeMode", Type: "string", Doc: "The volume's mode, Filesystem or Block, or none."},
		{Name: "volumeParams", Type: "mapping of strings", Trust: TrustAdministrator, Doc: "The volumeAttributes of the PersistentVolume; for a dynamically provisioned volume, the parameters of its StorageClass."},
		{Name: "params", Type: "mapping of strings", Trust: TrustAdministrator, Doc: "The parameters of the VolumeSnapshotClass; empty if there is none."},
		{Name: "defaultSnapshotHandle", Type: "string", Doc: "The default handle of the snapshot: snapshot- and the VolumeSnapshot's UID or, if an administrator wrote the VolumeSnapshotContent, snapshotcontent- and the UID of that."},
		{Name: "snapshotHandle", Type: "string", Trust: TrustAdministrator, Doc: "The snapshot's handle, or none before it is known."},
		{Name: "snapshot", Type: typeSnapshot, Trust: TrustTenant, Doc: "The VolumeSnapshot, as it was when the snapshot was requested, or none."},
		{Name: "snapshotContent", Type: typeSnapshotContent, Trust: TrustAdministrator, Doc: "The VolumeSnapshotContent, as it was then."},
		{Name: "snapshotClass", Type: typeSnapshotClass, Trust: TrustAdministrator, Doc: "The VolumeSnapshotClass, as it was then, or none."},
		{Name: "pv", Type: typeVolume, Trust: TrustAdministrator, Doc: "The PersistentVolume, as it was then, or none."},
		{Name: "pvc", Type: typeClaim, Trust: TrustTenant, Doc: "The claim that was bound to the PersistentVolume then, or none."},
	}
}

func stagingContext() []Variable {
	return []Variable{
		{Name: "volumeMode", Type: "string", Doc: "The volume's mode, Filesystem or Block."},
		{Name: "accessModes", Type: "list of string", Doc: "The access modes of the claim; the volume may have more."},
		{Name: "capacity", Type: "integer", Doc: "The volume's capacity, in bytes."},
		{Name: "params", Type: "mapping of strings", Trust: TrustAdministrator, Doc: "The volumeAttributes of the PersistentVolume; for a dynamically provisioned volume, the parameters of its StorageClass."},
		{Name: "handle", Type: "string", Trust: TrustAdministrator, Doc: "The volume's handle."},
		{Name: "readOnly", Type: "boolean", Doc: "Whether the volume must be read-only."},
		{Name: "fsType", Type: "string", Trust: TrustAdministrator, Doc: "The file system type in the PersistentVolume, or an empty string."},
		{Name: "mountOptions", Type: "list of string", Trust: TrustAdministrator, Doc: "The mount options of the PersistentVolume."},
		{Name: "bucket", Type: TypeBucketVolume, Trust: TrustAdministrator, Doc: "The bucket that the volume is, or none: a mapping with id, which is the handle; info, a mapping of what the creation of the bucket told; and secretName, the name of the Secret with the credentials of the volume's own account for it, in the namespace of the staging pod."},
		{Name: "pvc", Type: typeClaim, Trust: TrustTenant, Doc: "The claim through which the volume is used."},
		provisionedPVC(onlyDynamic),
		{Name: "pv", Type: typeVolume, Trust: TrustAdministrator, Doc: "The PersistentVolume."},
		{Name: "node", Type: typeNode, Trust: TrustAdministrator, Doc: "The Node on which the volume is staged."},
	}
}
