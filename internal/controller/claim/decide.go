package claim

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
)

// snapshot has everything that the decision about a claim depends on.
type snapshot struct {
	claim *corev1.PersistentVolumeClaim

	// provisioner is the one in the claim's annotation; nil if it does not exist.
	provisioner *pavv1.PavProvisioner

	// class is the claim's StorageClass; nil if it does not exist.
	class *storagev1.StorageClass

	// attributesClass is the claim's VolumeAttributesClass; nil if the claim names none, or it does not exist.
	attributesClass *storagev1.VolumeAttributesClass

	// source is what is known of the object that the claim names as its source; nil if it names none, or as long as the API server was not
	// asked. crossNamespace says that it may be in another namespace.
	source         *source
	crossNamespace bool

	// bucket is what is known of the bucket that the claim names as its source; nil if it names none.
	bucket *bucketSource

	// volume is the PavVolume of the claim's UID; nil if it does not exist.
	volume *pavv1.PavVolume
}

// action is what to do about a claim.
type action string

const (
	// ignore: the claim is not PaV's, waits for another controller, or needs nothing.
	ignore action = "Ignore"

	// leave: a volume populator will provision the claim.
	leave action = "Leave"

	// refuse: the claim cannot be provisioned; the message says why.
	refuse action = "Refuse"

	// create: write the PavVolume.
	create action = "Create"

	// copyClaim: bring the PavVolume's copy of the claim up to date.
	copyClaim action = "CopyClaim"
)

// decision is an action and, for a refusal, the reason for the claim's user.
type decision struct {
	action  action
	message string
}

// decide is pure: it does no I/O and reads no clock.
func decide(o snapshot) decision {
	if o.volume != nil {
		return decideProvisioned(o)
	}
	if !concerns(o) {
		return decision{action: ignore}
	}
	if name := protocol.ClassName(o.claim); name == "" {
		return decision{refuse, "the claim has no StorageClass; set spec.storageClassName"}
	} else if o.class == nil {
		return decision{refuse, fmt.Sprintf("StorageClass %q does not exist", name)}
	}
	// Protocol: all claims of other provisioners "MUST be ignored". A tenant could write the annotation alone.
	if o.class.Provisioner != o.provisioner.Name {
		return decision{action: ignore}
	}
	if waitsForConsumer(o) {
		return decision{action: ignore}
	}
	if source := protocol.Source(o.claim); source != nil && protocol.IsPopulators(source) && !o.namesBucket() {
		return decision{action: leave}
	}
	for _, refusal := range refusals {
		if message := refusal(o); message != "" {
			return decision{refuse, message}
		}
	}
	return decision{action: create}
}

// concerns reports whether the claim waits for a volume of a PavProvisioner.
func concerns(o snapshot) bool {
	return protocol.Unbound(o.claim) && o.claim.DeletionTimestamp == nil && o.provisioner != nil
}

func decideProvisioned(o snapshot) decision {
	same := o.volume.Spec.ClaimRef.UID == o.claim.UID
	if same && o.claim.DeletionTimestamp == nil && copiedVersion(o.volume) != o.claim.ResourceVersion {
		return decision{action: copyClaim}
	}
	return decision{action: ignore}
}

// refusals are the checks of a claim, in order. Each returns a message, or "" if the claim passes.
var refusals = []func(snapshot) string{
	refuseProvisioner,
	refuseVolumes,
	refuseSelector,
	refuseDataSource,
	refuseBucket,
	refuseAttributesClass,
}

func refuseProvisioner(o snapshot) string {
	name := o.provisioner.Name
	if o.provisioner.DeletionTimestamp != nil {
		return fmt.Sprintf("PavProvisioner %q is being deleted and provisions no more volumes", name)
	}
	if !o.provisioner.Supports(pavv1.ProvisioningModeDynamic) {
		return fmt.Sprintf("PavProvisioner %q does not provision dynamically: its spec.provisioningModes is %v, without Dynamic", name, o.provisioner.Spec.ProvisioningModes)
	}
	if message := o.provisioner.Refusal(); message != "" {
		return fmt.Sprintf("PavProvisioner %q cannot be used: %s", name, message)
	}
	return ""
}

func refuseVolumes(o snapshot) string {
	if o.provisioner.Spec.HasVolumes() {
		return ""
	}
	return fmt.Sprintf("PavProvisioner %q has no volumes, as it has no volumeStaging: it serves claims of buckets only", o.provisioner.Name)
}

// Protocol: parsing selectors "will in typical case lead to simple refusal of claims that have any selector".
func refuseSelector(o snapshot) string {
	if o.claim.Spec.Selector == nil {
		return ""
	}
	return "spec.selector: dynamic provisioning cannot honour a selector; remove it"
}

func refuseAttributesClass(o snapshot) string {
	name := protocol.AttributesClass(o.claim)
	if name == "" {
		return ""
	}
	if o.attributesClass == nil {
		return fmt.Sprintf("spec.volumeAttributesClassName: VolumeAttributesClass %q does not exist: create it, or create the claim again without it", name)
	}
	if err := podplan.CheckAttributes(o.provisioner, o.attributesClass); err != nil {
		return "spec.volumeAttributesClassName: " + err.Error()
	}
	return ""
}

// waitsForConsumer reports whether the scheduler has yet to select a node.
func waitsForConsumer(o snapshot) bool {
	return protocol.BindsLate(o.class) && o.claim.Annotations[protocol.SelectedNode] == ""
}

// copiedVersion returns the resource version of the volume's copy of its claim.
func copiedVersion(volume *pavv1.PavVolume) string {
	copied := metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(volume.Spec.Claim.Raw, &copied); err != nil {
		return "" // not a claim, so it is out of date
	}
	return copied.ResourceVersion
}
