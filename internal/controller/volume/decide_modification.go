package volume

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/ledger"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
)

// modificationTable is for a volume in use without a recorded pod that need not grow, or cannot at the moment. What PersistentVolume
// and claim say of its attributes is written before, with its size.
var modificationTable = table{
	{Name: "no claim can have the attributes changed", When: func(o observation) bool { return !o.canChange() }, Then: to(stepDone)},
	{Name: "the attributes need not change any more", When: func(o observation) bool { return !o.isToBeModified() && o.saysThatItIsModified() }, Then: to(stepEndModification)},
	{Name: "the volume has the attributes that its claim names", When: func(o observation) bool { return !o.isToBeModified() }, Then: to(stepDone)},
	{Name: "the volume cannot get the attributes", When: func(o observation) bool { return o.attributesObstacle() != nil }, Then: func(o observation) decision {
		obstacle := o.attributesObstacle()
		return rule.Waiting(pavv1.VolumeModified, obstacle.reason, obstacle.message, true)
	}},
	{Name: "the next modification pod is not due", When: func(o observation) bool { return modificationBackoff(o) > 0 }, Then: again(modificationBackoff)},
	{Name: "the attributes are to change", When: always, Then: to(stepModify)},
}

// decideUse decides about a volume in use. While it need not grow, or waits for that, its attributes can change.
func decideUse(o observation) decision {
	grows, d := expansionTable.Decide(o), modificationTable.Decide(o)
	if !o.isIdle(grows) {
		if grows.Step == stepWait && d.Step != stepDone {
			grows.After = soonest(grows.After, time.Second) // a condition brings no next pass
		}
		return grows
	}
	after := soonest(grows.After, d.After)
	if o.isIdle(d) {
		rules := grows.Rule + bothRules + d.Rule
		if grows.Step != stepDone {
			d = grows
		}
		d.Rule = rules
	}
	d.After = after
	return d
}

// bothRules is between the names of the rules of two tables that have decided together.
const bothRules = "; "

// isIdle reports whether a decision has no effect, as what it reports was reported before.
func (o observation) isIdle(d decision) bool {
	return d.Step == stepDone || d.Step == stepWait && !d.Repeat && ledger.Has(o.volume, d)
}

// soonest returns the shorter of two times to wait, of which 0 is none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

func (o observation) modification() *pavv1.VolumeModificationRecord {
	return o.volume.Status.Modification
}

// attributesClassWanted returns the name of the VolumeAttributesClass that the claim names, or "".
func (o observation) attributesClassWanted() string {
	if o.user == nil {
		return ""
	}
	return protocol.AttributesClass(o.user)
}

// attributesClassHad returns the name of the VolumeAttributesClass whose attributes the volume has, or "".
func (o observation) attributesClassHad() string { return o.attributes.Class }

// wantsAttributes reports whether the volume is to get the attributes that its claim names, or to get them again, as a pod has failed
// that may have changed some. A claim that names none leaves the attributes as they are; but what has begun for it is completed, unless
// that is infeasible (external-resizer#513).
func (o observation) wantsAttributes() bool {
	if !o.canChange() {
		return false
	}
	wanted, m := o.attributesClassWanted(), o.modification()
	if wanted == "" {
		return m != nil && m.Partial && !o.isOfFormer(&m.ChangeAttempt) && (m.Failure == nil || m.Failure.Reason != pavv1.FailureInfeasible)
	}
	return m.HasEffects() || wanted != o.attributesClassHad()
}

// pvLacksAttributes reports whether the PersistentVolume does not name the class whose attributes the volume has.
func (o observation) pvLacksAttributes() bool {
	has := o.attributesClassHad()
	if o.dropsAttributes {
		return false
	}
	named := o.pv.Spec.VolumeAttributesClassName
	return has != "" && (named == nil || *named != has)
}

// saysThatItIsModified reports whether a modification is recorded, and is not one that is merely kept for the next attempt, or a
// condition says why there is none.
func (o observation) saysThatItIsModified() bool {
	m := o.modification()
	isKept := m.HasEffects() && m.Failure == nil && o.isOfFormer(&m.ChangeAttempt)
	return m != nil && !isKept || meta.FindStatusCondition(o.volume.Status.Conditions, pavv1.VolumeModified) != nil
}

// isModificationUncertain reports whether the last modification pod may have done anything, so that the target must not change
// (external-resizer#514).
func (o observation) isModificationUncertain() bool {
	m := o.modification()
	return m != nil && m.Uncertain && o.canChange() && !o.isOfFormer(&m.ChangeAttempt)
}

// isToBeModified reports whether a modification pod is to run, now or later.
func (o observation) isToBeModified() bool { return o.wantsAttributes() || o.isModificationUncertain() }

// targetAttributes returns the attributes that the next modification pod is to apply, and the name of their class; the attributes are
// nil if the class does not exist. Those that the volume had are in its record.
func (o observation) targetAttributes() (string, *pavv1.VolumeAttributes) {
	wanted := o.attributesClassWanted()
	switch {
	case o.isModificationUncertain(), wanted == "" && o.modification() != nil:
		return o.modification().Target.Class, &o.modification().Target
	case wanted != "" && wanted == o.attributes.Class && (len(o.attributes.Parameters) > 0 || !o.volume.Spec.Static):
		return wanted, &o.attributes
	case o.attributesClass == nil:
		return wanted, nil
	}
	return wanted, &pavv1.VolumeAttributes{Class: o.attributesClass.Name, Parameters: o.attributesClass.Parameters}
}

// obstacle is why a volume cannot have the attributes that its claim names.
type obstacle struct {
	reason, message string

	// state is what the claim says of the modification then.
	state corev1.PersistentVolumeClaimModifyVolumeStatus
}

// attributesObstacle returns why no modification pod can run, or nil.
func (o observation) attributesObstacle() *obstacle {
	const pending, infeasible = corev1.PersistentVolumeClaimModifyVolumePending, corev1.PersistentVolumeClaimModifyVolumeInfeasible
	if o.provisioner == nil {
		return &obstacle{"NoProvisioner", fmt.Sprintf("PavProvisioner %q does not exist, and only it defines how to modify the volume: create it again", o.volume.Spec.Provisioner), pending}
	}
	name, target := o.targetAttributes()
	if target == nil {
		return &obstacle{"NoClass", fmt.Sprintf("VolumeAttributesClass %q does not exist: create it, or name another one in spec.volumeAttributesClassName of the claim", name), pending}
	}
	class := &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: name}, DriverName: o.provisioner.Name, Parameters: target.Parameters}
	if o.attributesClass != nil && o.attributesClass.Name == name {
		class = o.attributesClass
	}
	if err := podplan.CheckAttributes(o.provisioner, class); err != nil {
		return &obstacle{"Unsupported", observability.Clip(err.Error(), observability.MaxCondition), infeasible}
	}
	return nil
}

// wantsModificationPod reports whether a recorded modification pod that was not created is still to be: with the attributes that the
// next one would apply.
func (o observation) wantsModificationPod() bool {
	m := o.modification()
	if m == nil || o.isOfFormer(&m.ChangeAttempt) || !o.isToBeModified() || o.attributesObstacle() != nil {
		return false
	}
	_, target := o.targetAttributes()
	return equality.Semantic.DeepEqual(m.Target, *target)
}

// modificationBackoff returns how long the next modification pod has to wait. It does not wait if the definition has changed since
// the last one.
func modificationBackoff(o observation) time.Duration {
	m := o.modification()
	if m == nil || m.Failure == nil || o.isOfFormer(&m.ChangeAttempt) || m.ProvisionerGeneration != o.provisioner.Generation {
		return 0
	}
	name, _ := o.targetAttributes()
	return o.changeBackoff(&m.ChangeAttempt, name != m.Target.Class)
}
