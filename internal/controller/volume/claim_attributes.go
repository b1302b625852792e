package volume

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

// attributes is what the status of a claim says of the attributes of its volume. Like its size, it is never read as a record.
type attributes struct {
	// current is the VolumeAttributesClass whose attributes the volume has, and target the one whose attributes it is to have, in a
	// state; "" if there is none.
	current, target string
	state           corev1.PersistentVolumeClaimModifyVolumeStatus

	// modifying says that the condition ModifyingVolume is there; failure is the message of the condition ModifyVolumeError.
	modifying bool
	failure   string
}

// attributesOf returns what the claim of a volume is to show.
func attributesOf(o observation) attributes {
	shown := attributesShown(o.user)
	if !o.modifying() && !o.canChange() || o.dropsAttributes {
		return shown
	}
	is := attributes{current: cmp.Or(o.attributesClassHad(), shown.current)}
	if o.modifying() {
		o.showModification(&is)
		return is
	}
	if !o.isToBeModified() {
		return is
	}
	target, _ := o.targetAttributes()
	if obstacle := o.attributesObstacle(); obstacle != nil {
		is.target, is.state = target, obstacle.state
		if obstacle.state == corev1.PersistentVolumeClaimModifyVolumeInfeasible {
			is.failure = obstacle.message
		}
	} else if m := o.modification(); m != nil && m.Target.Class == target && !o.isOfFormer(&m.ChangeAttempt) {
		o.showModification(&is)
	} else { // nothing has begun yet
		is.target, is.state = target, corev1.PersistentVolumeClaimModifyVolumePending
	}
	return is
}

// showModification adds what a claim is to show of a modification that is recorded.
func (o observation) showModification(is *attributes) {
	m := o.modification()
	if m == nil {
		return // someone has removed it
	}
	is.target, is.state, is.modifying = m.Target.Class, corev1.PersistentVolumeClaimModifyVolumeInProgress, true
	if m.Failure == nil {
		return
	}
	is.failure = m.Failure.Message
	if m.Failure.Reason == pavv1.FailureInfeasible && !o.modifying() {
		is.state, is.modifying = corev1.PersistentVolumeClaimModifyVolumeInfeasible, false
	}
}

// attributesShown returns what a claim shows.
func attributesShown(claim *corev1.PersistentVolumeClaim) attributes {
	status := &claim.Status
	is := attributes{current: protocol.CurrentAttributesClass(claim)}
	if m := status.ModifyVolumeStatus; m != nil {
		is.target, is.state = m.TargetVolumeAttributesClassName, m.Status
	}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == corev1.PersistentVolumeClaimVolumeModifyingVolume:
			is.modifying = true
		case c.Type == corev1.PersistentVolumeClaimVolumeModifyVolumeError:
			is.failure = cmp.Or(c.Message, "unknown")
		}
	}
	return is
}

// show changes the status of a claim so that it shows attributes.
func (a attributes) show(status *corev1.PersistentVolumeClaimStatus, now metav1.Time) {
	status.CurrentVolumeAttributesClassName, status.ModifyVolumeStatus = nil, nil
	if a.current != "" {
		status.CurrentVolumeAttributesClassName = &a.current
	}
	if a.state != "" {
		status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: a.target, Status: a.state}
	}
	status.Conditions = withConditions(status.Conditions, now, []claimCondition{
		{corev1.PersistentVolumeClaimVolumeModifyingVolume, a.modifying, "", false},
		{corev1.PersistentVolumeClaimVolumeModifyVolumeError, a.failure != "", a.failure, true},
	})
}

// claimCondition is a condition of a claim that is to be true, with a message, or absent.
type claimCondition struct {
	kind    corev1.PersistentVolumeClaimConditionType
	is      bool
	message string

	// exact says that one with another message is replaced.
	exact bool
}

// withConditions returns the conditions of a claim with those that are wanted. Others stay.
func withConditions(before []corev1.PersistentVolumeClaimCondition, now metav1.Time, wanted []claimCondition) []corev1.PersistentVolumeClaimCondition {
	var after []corev1.PersistentVolumeClaimCondition
	kept := map[corev1.PersistentVolumeClaimConditionType]bool{}
	for _, c := range before {
		i := slices.IndexFunc(wanted, func(w claimCondition) bool { return w.kind == c.Type })
		if i < 0 || wanted[i].is && c.Status == corev1.ConditionTrue && (c.Message == wanted[i].message || !wanted[i].exact) {
			after, kept[c.Type] = append(after, c), true
		}
	}
	for _, w := range wanted {
		if w.is && !kept[w.kind] {
			after = append(after, corev1.PersistentVolumeClaimCondition{Type: w.kind, Status: corev1.ConditionTrue, LastTransitionTime: now, Message: w.message})
		}
	}
	return after
}
