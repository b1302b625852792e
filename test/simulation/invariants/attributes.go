package invariants

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/test/simulation/world"
)

// attributesAreShown checks that a PersistentVolume names no VolumeAttributesClass whose attributes its storage does not have,
// and the same of the status of its claim, if there is one. The next modification may have begun.
func (i *Invariants) attributesAreShown(by string, pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	if pv == nil || pv.Spec.CSI == nil {
		return
	}
	what, class, next := "PersistentVolume "+pv.Name, ptr.Deref(pv.Spec.VolumeAttributesClassName, ""), ""
	if claim != nil {
		what, class = "claim "+claim.Namespace+"/"+claim.Name, protocol.CurrentAttributesClass(claim)
	}
	if volume := world.Object[*pavv1.PavVolume](i.store, "", pv.Name); volume != nil && volume.Status.Modification != nil {
		next = volume.Status.Modification.Target.Class
	}
	made := i.storage.Find(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)
	if class == "" || made == nil || i.hasStoodFor(class, made.Speed) || next != "" && i.hasStoodFor(next, made.Speed) {
		return
	}
	i.failf(1, "%s says that %s has the attributes of %s, which are %q, and its storage has speed %q", by, what, class, i.speeds[class], made.Speed)
}

func (i *Invariants) hasStoodFor(class, speed string) bool {
	return slices.Contains(i.speeds[class], speed)
}

// unattributed reports whether a warning says that a claim cannot have the attributes that it names.
func unattributed(warnings []string) bool {
	return slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "VolumeAttributesClass") })
}

// unmodified returns the claims whose volumes do not have the attributes that they name, or show, and of which nothing says why.
func (i *Invariants) unmodified(warnings func(claim *corev1.PersistentVolumeClaim) []string) []error {
	var problems []error
	for _, claim := range world.Objects[*corev1.PersistentVolumeClaim](i.store) {
		pv := world.Object[*corev1.PersistentVolume](i.store, "", claim.Spec.VolumeName)
		volume := world.Object[*pavv1.PavVolume](i.store, "", claim.Spec.VolumeName)
		wanted, has := protocol.AttributesClass(claim), protocol.CurrentAttributesClass(claim)
		if wanted == "" || pv == nil || pv.Spec.CSI == nil || volume == nil || claim.DeletionTimestamp != nil || claim.Status.Phase != corev1.ClaimBound {
			continue
		}
		made := i.storage.Find(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)
		switch {
		case made == nil:
		case wanted == has && claim.Status.ModifyVolumeStatus == nil && !i.hasStoodFor(has, made.Speed):
			problems = append(problems, fmt.Errorf("claim %s/%s shows the attributes of %s, and its storage has speed %q", claim.Namespace, claim.Name, has, made.Speed))
		case wanted != has && whyNot(volume.Status.Conditions) == "" && len(warnings(claim)) == 0:
			problems = append(problems, fmt.Errorf("claim %s/%s names %s and has %q, and nothing says why", claim.Namespace, claim.Name, wanted, has))
		}
	}
	return problems
}
