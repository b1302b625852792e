package provisioner

import (
	"fmt"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// snapshot has everything that the decision about a provisioner depends on.
type snapshot struct {
	provisioner *pavv1.PavProvisioner

	// driver is the CSIDriver of the provisioner's name; nil if there is none.
	driver *storagev1.CSIDriver

	// held has what the provisioner's deletion waits for.
	held held

	// counts are the counts for the status.
	counts counts

	// mistakes describes the mistakes of the definition; empty if it has none.
	mistakes string
}

// action is the one write of a pass, apart from conditions.
type action string

const (
	nothing       action = "Nothing"
	addFinalizer  action = "AddFinalizer"
	createDriver  action = "CreateDriver"
	updateDriver  action = "UpdateDriver"
	replaceDriver action = "ReplaceDriver"
	deleteDriver  action = "DeleteDriver"
	release       action = "Release"
)

// decision is an action, and what to report if there is nothing to do: conditions, the scope of staging that is in
// force, if it is known, and the counts. They describe the snapshot, so the pass after an action reports its result.
type decision struct {
	action     action
	conditions []metav1.Condition
	scope      pavv1.StagingScope
	counts     counts
}

// decide is pure: it does no I/O and reads no clock.
func decide(o snapshot) decision {
	d := decideAction(o)
	d.counts = o.counts
	return d
}

func decideAction(o snapshot) decision {
	if o.provisioner.DeletionTimestamp != nil {
		return decideDeletion(o)
	}
	if message := unusable(o.provisioner); message != "" {
		return refused("InvalidName", message)
	}
	if o.driver != nil && originOf(o.driver, o.provisioner) == foreign {
		return refused("ForeignCSIDriver", fmt.Sprintf(
			"CSIDriver %q exists and is not PaV's: choose another name for the PavProvisioner, or delete that CSIDriver if its driver is no longer used", o.driver.Name))
	}
	switch {
	// The finalizer is added before the CSIDriver is created, and the CSIDriver is created before the first volume.
	case !slices.Contains(o.provisioner.Finalizers, pavv1.ProvisionerFinalizer):
		return decision{action: addFinalizer}
	case !o.provisioner.Spec.HasVolumes() && len(o.held.volumes)+len(o.held.stages) == 0:
		return withoutDriver(o)
	case o.driver == nil:
		return decision{action: createDriver}
	case originOf(o.driver, o.provisioner) == previous:
		return decision{action: replaceDriver}
	case o.driver.DeletionTimestamp != nil:
		return ready(o, metav1.ConditionFalse, "CSIDriverDeleting", fmt.Sprintf("CSIDriver %q is being deleted; it is created again when it has gone", o.driver.Name))
	case !upToDate(&o.driver.Spec, o.provisioner):
		return decision{action: updateDriver}
	}
	return ready(o, metav1.ConditionTrue, "Registered", "the CSIDriver exists")
}

// withoutDriver decides about a provisioner that serves only buckets, and has no volumes left of a time when it had others.
func withoutDriver(o snapshot) decision {
	if o.driver != nil && o.driver.DeletionTimestamp == nil {
		return decision{action: deleteDriver}
	}
	return ready(o, metav1.ConditionTrue, "NoVolumes", "the provisioner serves buckets; without volumeStaging, it has no volumes and no CSIDriver")
}

func decideDeletion(o snapshot) decision {
	if !slices.Contains(o.provisioner.Finalizers, pavv1.ProvisionerFinalizer) {
		return decision{action: nothing}
	}
	if o.held.any() {
		return decision{action: nothing, conditions: []metav1.Condition{
			{Type: pavv1.ProvisionerReady, Status: metav1.ConditionFalse, Reason: "Deleting", Message: "the provisioner is being deleted: it creates no more volumes, and serves those that it has"},
			{Type: pavv1.ProvisionerDeleting, Status: metav1.ConditionTrue, Reason: "InUse", Message: inUse(o.held)},
		}}
	}
	if o.driver != nil && isToBeDeleted(o.driver, o.provisioner) {
		return decision{action: deleteDriver}
	}
	return decision{action: release}
}

// isToBeDeleted reports whether a CSIDriver must be deleted before its provisioner is let go.
func isToBeDeleted(driver *storagev1.CSIDriver, p *pavv1.PavProvisioner) bool {
	return driver.DeletionTimestamp == nil && originOf(driver, p) == ours
}

// inUse says what a provisioner that is being deleted waits for.
func inUse(h held) string {
	message := fmt.Sprintf("waiting for %s: delete the claims and pods that use them", h)
	if len(h.snapshots) > 0 {
		message += ", and the VolumeSnapshots"
	}
	if len(h.buckets)+len(h.accesses) > 0 {
		message += ", and the claims of buckets and accesses to them"
	}
	return message
}

// unusable returns why a provisioner's name cannot be used, or "".
func unusable(p *pavv1.PavProvisioner) string {
	if p.Name == pavv1.Driver {
		return fmt.Sprintf("metadata.name: %q is PaV's own CSI driver; choose another name", p.Name)
	}
	if problems := validation.IsDNS1123Label(p.Name); len(problems) > 0 {
		return fmt.Sprintf("metadata.name: %q must be a DNS label: %s", p.Name, problems[0])
	}
	return ""
}

func refused(reason, message string) decision {
	return decision{action: nothing, conditions: []metav1.Condition{
		{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionFalse, Reason: reason, Message: message},
		{Type: pavv1.ProvisionerReady, Status: metav1.ConditionFalse, Reason: reason, Message: message},
	}}
}

func ready(o snapshot, status metav1.ConditionStatus, reason, message string) decision {
	scope, pending := scopeInForce(o)
	accepted := metav1.Condition{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionTrue, Reason: "Accepted", Message: "the definition can be used"}
	if pending {
		accepted.Reason = "ScopePending"
		accepted.Message = fmt.Sprintf(
			"the definition can be used; its spec.volumeStaging.scope %s comes into force when the last PavStage of the provisioner has gone, until then it is %s; to see them, run: kubectl get pavstages -l %s=%s",
			wantedScope(o.provisioner), scope, pavv1.ProvisionerLabel, o.provisioner.Name)
	}
	if o.mistakes != "" {
		accepted.Status, accepted.Reason = metav1.ConditionFalse, pavv1.ProvisionerInvalid
		accepted.Message = "the definition has mistakes, and is used as far as possible: " + o.mistakes
	}
	return decision{action: nothing, scope: scope, conditions: []metav1.Condition{
		accepted,
		{Type: pavv1.ProvisionerReady, Status: status, Reason: reason, Message: message},
	}}
}

// scopeInForce returns the scope of staging that is in force from now on, and whether it differs from the
// definition's: there must not be stages of two scopes at the same time.
func scopeInForce(o snapshot) (scope pavv1.StagingScope, pending bool) {
	wanted, present := wantedScope(o.provisioner), o.provisioner.Scope()
	if wanted != present && len(o.held.stages) > 0 {
		return present, true
	}
	return wanted, false
}

// wantedScope returns the scope of staging in the definition.
func wantedScope(p *pavv1.PavProvisioner) pavv1.StagingScope {
	if scope := p.Spec.VolumeStaging.Scope; scope != "" {
		return scope
	}
	return pavv1.StagingScopeNode
}
