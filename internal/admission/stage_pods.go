package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
)

// A node agent's token may be stolen, and with it all that it may write: every PavStage of its node. So what a pod
// may refer to is told by what nobody on the node can write: the definition, the volume, the claim, and the client
// pod, as they are now; or by the record that the controller agent wrote when it last looked.

// standing is what the judgement of a pod of a stage depends on.
type standing struct {
	stage       *pavv1.PavStage
	provisioner *pavv1.PavProvisioner         // nil if there is none
	volume      *corev1.PersistentVolume      // nil if there is none
	claim       *corev1.PersistentVolumeClaim // nil if there is none
	used        bool                          // a pod that uses the claim is bound to the node
	older       bool                          // the stage is older than the rule that a record is needed
	record      *podplan.StageRecord          // nil if there is none
	kept        podplan.StageObjects          // what the stage keeps of the volume and the claim
}

// basis is what the definition is to be evaluated with.
type basis int

const (
	basisNone     basis = iota // nothing that can be trusted
	basisLive                  // the volume and the claim as they are
	basisCopies                // the copies that the stage has of them
	basisRecorded              // what the record has of them
)

// basis returns what the definition is to be evaluated with, or why the pod is refused.
func (s *standing) basis() (basis, string) {
	spec := &s.stage.Spec
	claim := observability.Name(spec.ClaimRef.Namespace, spec.ClaimRef.Name)
	switch {
	case s.provisioner == nil:
		return basisNone, fmt.Sprintf("PavProvisioner %q does not exist", spec.Provisioner)
	case s.record == nil && !s.used && !s.older:
		return basisNone, fmt.Sprintf("no running pod on node %s uses the claim %s, and the stage has no record that one did", spec.NodeName, claim)
	case s.agrees():
		return basisLive, ""
	case !s.matches():
		return basisNone, fmt.Sprintf("the stage's spec says of volume %q and the claim %s what its copies of them do not", spec.VolumeName, claim)
	case s.record != nil && s.record.Copies, s.older:
		return basisCopies, ""
	case s.record != nil && s.record.Objects != nil:
		return basisRecorded, ""
	}
	return basisNone, fmt.Sprintf("volume %q is not bound to the claim %s any more", spec.VolumeName, claim)
}

// agrees reports whether the stage is of the volume and the claim as they are now.
func (s *standing) agrees() bool {
	spec, volume, claim := &s.stage.Spec, s.volume, s.claim
	return volume != nil && volume.Spec.CSI != nil && claim != nil &&
		volume.Spec.CSI.Driver == spec.Provisioner && volume.Spec.CSI.VolumeHandle == spec.VolumeHandle &&
		volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.UID == claim.UID &&
		claim.UID == spec.ClaimRef.UID && claim.Spec.VolumeName == volume.Name
}

// matches reports whether the stage is of the volume and the claim that it keeps. One that an agent wrote is.
func (s *standing) matches() bool {
	text := podplan.TextAt
	spec, volume, claim := &s.stage.Spec, s.kept.Volume, s.kept.Claim
	return text(volume, "metadata", "name") == spec.VolumeName && text(volume, "spec", "claimRef", "uid") == string(spec.ClaimRef.UID) &&
		text(volume, "spec", "csi", "driver") == spec.Provisioner && text(volume, "spec", "csi", "volumeHandle") == spec.VolumeHandle &&
		text(claim, "metadata", "namespace") == spec.ClaimRef.Namespace && text(claim, "metadata", "name") == spec.ClaimRef.Name &&
		text(claim, "metadata", "uid") == string(spec.ClaimRef.UID)
}

// uses reports whether a pod, which has not ended, uses a claim.
func uses(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		switch {
		case v.PersistentVolumeClaim != nil:
			return v.PersistentVolumeClaim.ClaimName == claim.Name
		case v.Ephemeral != nil:
			return pod.Name+"-"+v.Name == claim.Name && metav1.IsControlledBy(claim, pod)
		}
		return false
	})
}

// ownerOf returns the one owner of a pod, which must be of one of the kinds.
func ownerOf(pod *corev1.Pod, kinds ...string) (*metav1.OwnerReference, error) {
	if len(pod.OwnerReferences) != 1 {
		return nil, fmt.Errorf("the pod has %d owners, not one", len(pod.OwnerReferences))
	}
	owner := &pod.OwnerReferences[0]
	if !slices.Contains(kinds, owner.Kind) || !strings.HasPrefix(owner.APIVersion, pavv1.Group+"/") {
		return nil, fmt.Errorf("the pod's owner is a %s, not a %s", owner.Kind, strings.Join(kinds, " or a "))
	}
	return owner, nil
}

// checkStage returns why a pod that the node's agent creates is not the stage's.
func checkStage(stage *pavv1.PavStage, owner *metav1.OwnerReference, pod *corev1.Pod, node string) error {
	switch {
	case stage.UID != owner.UID:
		return fmt.Errorf("PavStage %q is another one by now", stage.Name)
	case node == "" || stage.Spec.NodeName != node:
		return fmt.Errorf("PavStage %q is of node %q, and the agent of node %q", stage.Name, stage.Spec.NodeName, node)
	case pod.Labels[pavv1.StageLabel] != stage.Name || pod.Annotations[pavv1.NodeAnnotation] != node:
		return fmt.Errorf("the pod's label and annotation do not say that it is PavStage %q's on node %q", stage.Name, node)
	}
	return nil
}

// advice is what an administrator can do to have a volume unstaged of which only the node says that its stage is right.
func (s *standing) advice() string {
	if s.stage.Status.Phase != pavv1.StageUnstaging || s.provisioner == nil || !s.matches() {
		return ""
	}
	return fmt.Sprintf(`; if all of the PavStage's spec is right, say so: kubectl annotate --overwrite pavstage %s '%s={"copies":true}'`,
		s.stage.Name, pavv1.AdmittedAnnotation)
}

// maxNamed is how many references a refusal names.
const maxNamed = 5

// refusalOf says what of a pod is not planned.
func refusalOf(missing []string, definition string) string {
	return fmt.Sprintf("the pod refers to what %s does not plan: %s", definition, atMostNamed(missing))
}

func atMostNamed(references []string) string {
	more := ""
	if len(references) > maxNamed {
		more = fmt.Sprintf(" and %d more", len(references)-maxNamed)
		references = references[:maxNamed]
	}
	return strings.Join(references, ", ") + more
}

// planned returns what evaluates a definition with the objects that it is to be evaluated with.
func (h *PodHandler) planned(ctx context.Context, s *standing, objects podplan.StageObjects) (podplan.References, error) {
	stage := s.stage.DeepCopy()
	if s.volume != nil && s.volume.Spec.CSI != nil && s.claim != nil {
		// A stage cannot make what is for reading only writable.
		stage.Spec.ReadOnly = stage.Spec.ReadOnly || podplan.IsReadOnly(s.volume, s.claim)
	}
	request := podplan.StageRequest{Provisioner: s.provisioner, Templates: h.Templates, Defaults: h.PodDefaults, GetPVC: reconcile.GetPVC(h.Client)}
	return request.Planned(ctx, stage, objects, h.account)
}
