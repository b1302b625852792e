package definition

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// root is the object as its author writes it, without the status.
type root struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              pavv1.PavProvisionerSpec `json:"spec"`
	Status            any                      `json:"status,omitempty"`
}

func (c *check) object(object map[string]any) {
	spec := node{value: object}.key("spec")
	c.unstaged = spec.key("snapshotCreation").key("whileStaged").value == string(pavv1.SnapshotWait)
	c.clones = hasText(spec.key("volumeCreation").key("dataSources"), string(pavv1.DataSourceClaim))
	(&walker{check: c}).value("", reflect.TypeFor[root](), object)
	c.kind(object)
	c.metadata(object["metadata"])
	switch spec := object["spec"].(type) {
	case nil:
		c.errorf("spec", "is missing")
	case map[string]any:
		c.modes(spec)
		c.capacities(spec)
		c.ownHandle(spec)
		c.sharedModes(spec)
		c.complete(spec)
		c.sources(spec)
		c.devices(spec)
		c.buckets(spec)
		c.bucketVolumes(node{"spec", spec})
	}
}

func (c *check) kind(object map[string]any) {
	for _, want := range []struct{ field, value string }{
		{"apiVersion", pavv1.GroupVersion.String()}, {"kind", "PavProvisioner"},
	} {
		switch got := object[want.field].(type) {
		case nil:
			c.errorf(want.field, "is missing; it must be %q", want.value)
		case string:
			if got != want.value {
				c.errorf(want.field, "must be %q, not %s", want.value, quote(got))
			}
		}
	}
}

func (c *check) metadata(value any) {
	metadata, isMapping := value.(map[string]any)
	if !isMapping && value != nil {
		return
	}
	const field = "metadata.name"
	switch name := metadata["name"].(type) {
	case nil:
		if metadata["generateName"] == nil {
			c.errorf(field, "is missing; StorageClasses refer to it in their field provisioner")
		}
	case string:
		if name == pavv1.Driver {
			c.errorf(field, "%q is PaV's own CSI driver; choose another name", name)
		} else if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			c.errorf(field, "%s must be a DNS label: at most 63 lower-case letters, digits and '-', with a letter or digit first and last", quote(name))
		}
	}
	if namespace, _ := metadata["namespace"].(string); namespace != "" {
		c.warnf("metadata.namespace", "has no effect, as PavProvisioners are not namespaced; remove it")
	}
}

// modes checks that the sections fit the provisioning modes.
func (c *check) modes(spec map[string]any) {
	const field = "spec.provisioningModes"
	modes, isList := spec["provisioningModes"].([]any)
	switch {
	case spec["provisioningModes"] == nil:
		c.errorf(field, "is missing; list Dynamic, Static or both")
		return
	case !isList:
		return
	case len(modes) == 0:
		c.errorf(field, "is empty; list Dynamic, Static or both")
		return
	}
	for _, twice := range repeated(node{field, modes}) {
		c.errorf(twice.field, "is there twice")
	}
	if slices.Contains(modes, any("Dynamic")) {
		c.created(spec)
		return
	}
	for _, name := range []string{"volumeCreation", "volumeDeletion"} {
		if spec[name] != nil {
			c.errorf("spec."+name, "may only be there if provisioningModes contains Dynamic: add Dynamic, or leave this out")
		}
	}
}

// created reports whether volumes that are provisioned dynamically can get a capacity.
func (c *check) created(spec map[string]any) {
	creation, isMapping := spec["volumeCreation"].(map[string]any)
	if !isMapping && spec["volumeCreation"] != nil || creation["capacity"] != nil || creation["podTemplate"] != nil || creation["fromBucket"] == true {
		return
	}
	if spec["volumeCreation"] == nil && servesBuckets(spec) {
		return // it creates buckets for claims
	}
	const (
		field = "spec.volumeCreation.capacity"
		words = `is missing, and there is no creation pod that could write /pav/capacity, so that no claim ever gets a volume; for most provisioners it is "{{ requestedMinCapacity }}"`
	)
	if len(spec["provisioningModes"].([]any)) == 1 {
		c.errorf(field, words)
	} else {
		c.warnf(field, words) // which works as long as nobody uses the other provisioning mode
	}
}

// complete reports missing parts that a definition must have or should have.
func (c *check) complete(spec map[string]any) {
	staging, isMapping := spec["volumeStaging"].(map[string]any)
	switch {
	case spec["volumeStaging"] == nil && servesBuckets(spec):
		c.withoutVolumes(spec)
	case spec["volumeStaging"] == nil:
		c.errorf("spec.volumeStaging", "is missing; its podTemplate makes a volume available on a node")
	case isMapping && staging["podTemplate"] == nil:
		c.errorf("spec.volumeStaging.podTemplate", "is missing; it makes a volume available on a node")
	}
	if spec["volumeUnstaging"] == nil && isPrivileged(staging["podTemplate"]) {
		c.warnf("spec.volumeUnstaging", "is missing, though the staging pod is privileged: what it mounts or sets up on the node has to be undone; if there is nothing to undo, write volumeUnstaging: {}")
	}
	c.snapshots(spec)
	creation, _ := spec["volumeCreation"].(map[string]any)
	if spec["volumeDeletion"] == nil && creation["podTemplate"] != nil {
		c.warnf("spec.volumeDeletion", "is missing, though there is a creation pod: what it creates is never deleted; if there is nothing to delete, write volumeDeletion: {}")
	}
}

// snapshots reports missing parts of the sections of snapshots.
func (c *check) snapshots(spec map[string]any) {
	creation, isMapping := spec["snapshotCreation"].(map[string]any)
	if !isMapping {
		return
	}
	if creation["podTemplate"] == nil {
		c.errorf("spec.snapshotCreation.podTemplate", "is missing; it creates the snapshot")
	}
	if spec["snapshotDeletion"] == nil {
		c.warnf("spec.snapshotDeletion", "is missing, though there is a creation pod: the snapshots that it creates are never deleted; if there is nothing to delete, write snapshotDeletion: {}")
	}
}

// devices refuses block volumes whose staging pod certainly has no privileged container: PaV publishes only devices
// of privileged pods, as an unprivileged pod could present any file as a device. A template may yield anything.
func (c *check) devices(spec map[string]any) {
	validation, _ := spec["volumeValidation"].(map[string]any)
	modes, _ := evaluated(validation["volumeModes"]).([]any)
	staging, _ := spec["volumeStaging"].(map[string]any)
	pod := node{value: evaluated(staging["podTemplate"])}
	if !slices.Contains(modes, any(string(corev1.PersistentVolumeBlock))) || !pod.isMapping() || mayBePrivileged(pod.key("spec")) {
		return
	}
	c.errorf("spec.volumeStaging.podTemplate.spec.containers",
		"volumeModes has Block, but no container is privileged: only a privileged staging pod can provide a block volume; set securityContext.privileged")
}

// mayBePrivileged reports whether a container of a pod's spec is privileged or, because of a template, may be.
func mayBePrivileged(spec node) bool {
	if !spec.isMapping() || !spec.key("containers").isKnownList() {
		return true
	}
	for _, list := range []string{"containers", "initContainers"} {
		if value := spec.key(list).value; value != nil && !spec.key(list).isKnownList() {
			return true
		}
		if slices.ContainsFunc(spec.key(list).items(), containerMayBePrivileged) {
			return true
		}
	}
	return false
}

func containerMayBePrivileged(container node) bool {
	security := container.key("securityContext")
	privileged := security.key("privileged").value
	_, isTemplate := privileged.(string)
	return !container.isMapping() || security.value != nil && !security.isMapping() || isTemplate || privileged == true
}

// isPrivileged reports whether a container of a pod template is certainly privileged.
func isPrivileged(pod any) bool {
	spec := node{value: pod}.key("spec")
	for _, list := range []string{"containers", "initContainers"} {
		for _, container := range spec.key(list).items() {
			if container.key("securityContext").key("privileged").value == true {
				return true
			}
		}
	}
	return false
}
