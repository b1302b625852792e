package stage

import (
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// observation has everything that the next step depends on.
type observation struct {
	exists       bool             // there is a PavStage
	terminating  bool             // there is one, but it is being deleted and protects nothing
	leftover     bool             // there is none, but the node has a directory of one
	hasFinalizer bool             // it has PaV's finalizer
	phase        pavv1.StagePhase // its phase
	unbegun      bool             // it has no status yet
	thisBoot     bool             // its mounts, if any, were made since the node last started
	claimOnly    bool             // it only reserves the volume for the node, and has no staging pod
	restaging    bool             // the volume is being restaged: staged again while clients have it
	mismatch     bool             // it is staged with other parameters than the call has

	validated          bool // the volume is valid, or needs no validation pod
	validationIntended bool // a validation pod was recorded, so it may have run
	validationPod      workflow.State

	stagingIntended bool // a staging pod was recorded, so it may have run
	stagingPod      workflow.State
	outcomeHeld     bool          // the staging pod has its finalizer, although its phase says that it is over
	ready           bool          // /pav/ready exists
	attached        bool          // the volume is mounted for clients
	settling        time.Duration // how long to wait for a late mount over the directory that is attached
	covering        bool          // running clients may already have the volume that is attached
	published       bool          // targets are recorded as published
	occupied        bool          // one of them is really mounted; only known if it matters
	inUse           bool          // one of them is mounted for a pod that still runs; only known when unstaging
	pvReplaced      bool          // the PersistentVolume that it was staged for is gone, and another one has the same handle
	clients         bool          // stages of client pods depend on this one
	given           bool          // /pav was mounted for the recorded staging pod; only known if the pod is gone
	pavInUse        bool          // /pav is still mounted for a pod of the stage; only known if it matters
	pavObserved     bool          // that is known

	unstagingWanted   bool // the provisioner has an unstaging pod
	unstagingIntended bool // an unstaging pod was recorded, so it may have run
	unstagingPod      workflow.State

	withheld          bool           // the volume is to grow, or be snapshotted or cloned, while no node has it; only known before the staging pod is recorded
	expansionIntended bool           // a node expansion pod was recorded, so it may have run, and its outcome is not recorded
	expansionPod      workflow.State // its state
	expansionStarted  bool           // a container of it may have run
	expanded          bool           // the volume has the capacity of the call on the node
	otherHasPav       bool           // /pav is mounted for another pod than the staging pod; only known if it matters

	backoff   time.Duration // time until the next attempt
	reportIn  time.Duration // time until it is reported that a pod cannot start, or runs for long; 0 if it is not to be reported
	reportDue bool          // that is to be reported now
	full      bool          // the node has no free pod slot for the staging pod; only known if one is to be created
	stuck     bool          // the unstaging pod has not started for long

	reported      bool          // it was reported that the pod runs for long or cannot start; it may have started since
	stopRequested bool          // and after that, a retry was requested
	unneeded      bool          // no pod on the node needs the volume any more; only known if reported
	lookIn        time.Duration // time until the call looks again for pods that need the volume; 0 if it does not
}

// due returns after what time to observe again although nothing has changed; 0 means never.
func (o observation) due() time.Duration {
	var due time.Duration
	waits := []time.Duration{o.backoff, o.reportIn, o.settling, o.lookIn}
	if o.full {
		waits = append(waits, roomPeriod)
	}
	for _, wait := range waits {
		if wait > 0 && (due == 0 || wait < due) {
			due = wait
		}
	}
	return due
}

// settled reports whether nothing of a stage is left, except perhaps the record of a failure.
func (o observation) settled() bool {
	return !o.exists || o.phase == pavv1.StageFailed && !o.hasFinalizer
}

// stands reports whether the staging pod is in a state in which its volume may be attached. Otherwise the pod may
// have unmounted the volume when it ended, and the attached directory is on the node's disk.
func (o observation) stands() bool {
	return o.stagingPod == workflow.Running || o.stagingPod == workflow.Succeeded
}
