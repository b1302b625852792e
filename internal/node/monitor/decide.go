package monitor

import (
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// answer is the result of a probe of a volume.
type answer int

const (
	unseen  answer = iota // not probed, or the result shows nothing
	answers               // it answers, so clients can write to it
	silent                // it did not answer in time, and writes may still be under way
	dead                  // it will never answer again, so no write reaches the storage through it
)

// snapshot is the state of a stage between calls, from which decide decides.
type snapshot struct {
	phase     pavv1.StagePhase
	protected bool // the PavStage has its finalizer
	restaging bool // the volume is being restaged
	claimOnly bool // the stage only reserves the volume for the node, and has no staging pod
	thisBoot  bool // its mounts, if any, were made since the node's last boot

	attached    bool // the volume is mounted for clients
	volume      answer
	exchanged   bool // the staging pod has replaced the mount at /pav/volume soon after it was published
	stagingPod  workflow.State
	outcomeHeld bool // the staging pod has its finalizer
	shutdown    bool // kubelet has ended the staging pod because the node shuts down
	confirmed   bool // the volume has been dead for a while
	abandoned   bool // the pod of a volume that is not staged yet is being deleted, and kubelet has made no call for long

	early       bool // it was restaged too recently
	outdated    bool // the staging pod has the credentials of an account that was replaced, and is to be replaced, too
	restageable bool // the provisioner's recovery is Restage
	degraded    loss // the recorded loss

	probeError string // the text of the probe's error, only for the message
}

// loss is what is wrong with a volume; the reason of the condition Degraded.
type loss string

const (
	lossNone loss = ""

	lossEnded    loss = pavv1.ReasonStagingPodEnded
	lossDead     loss = pavv1.ReasonVolumeDead
	lossSilent   loss = pavv1.ReasonVolumeSilent
	lossDetached loss = pavv1.ReasonVolumeDetached
)

// decision is what is to be done for a stage, in this order.
type decision struct {
	loss     loss // the loss to record
	release  bool // release the staging pod: its outcome is recorded
	restage  bool // restage the volume
	withdraw bool // do not publish the volume to further clients
	unstage  bool // continue to unstage it
	stop     bool // stop the staging pod, so that the volume dies and is restaged
}

// decide decides about a stage that no call works on. A volume is restaged only if its mount is dead: clients may
// still write through a mount that answers or hangs, and a second mount could corrupt the storage.
func decide(o snapshot) decision {
	switch {
	case o.restaging && o.thisBoot:
		return decision{loss: o.degraded, restage: true}
	case o.unstaging():
		// Kubelet's next call may be minutes away, and another node may wait for the volume. If the PersistentVolume is
		// gone, there is no call.
		return decision{loss: o.degraded, unstage: true}
	case o.phase != pavv1.StageStaged, o.claimOnly:
		// A call is expected: kubelet's next one or, if there is none, the unstaging of an orphan. It may not come for long: if
		// the PersistentVolume is gone, kubelet cannot start the client pods. The call finds that the pod is gone.
		return decision{loss: o.degraded, release: o.abandoned && releasable(o)}
	case !o.thisBoot:
		// The same. The call reverts the staging, however the staging pod has ended.
		return decision{loss: o.degraded, release: releasable(o)}
	}
	v := decision{loss: lossOf(o), release: releasable(o)}
	v.withdraw = o.attached && o.exchanged && o.volume != dead
	v.restage = o.attached && o.volume == dead && o.restageable && !o.early && mayRestage(o)
	v.stop = o.outdated && o.attached && o.restageable && !o.early && !o.shutdown && o.stagingPod == workflow.Running && v.loss == lossNone && !v.withdraw
	return v
}

// unstaging reports whether the volume is being unstaged, or its failed attempt is reverted, and only its pods and the
// PavStage are still to be released.
func (o snapshot) unstaging() bool {
	return (o.phase == pavv1.StageUnstaging || o.phase == pavv1.StageFailed && o.protected) && !o.restaging
}

// releasable reports whether the staging pod is over and still has its finalizer.
func releasable(o snapshot) bool {
	return o.outcomeHeld && o.stagingPod.IsOver()
}

// mayRestage reports whether it is time to stage a dead volume again.
func mayRestage(o snapshot) bool {
	switch {
	case o.shutdown:
		// On a node that shuts down no pod can start; after the next boot kubelet stages the volumes that pods need.
		return false
	case o.stagingPod == workflow.Stopping:
		return false // It is being deleted.
	case o.stagingPod == workflow.Failed:
		return true // Its daemon has ended with the pod.
	}
	// A daemon that runs may itself return the error that means dead, while it cannot reach its servers. If the pod
	// has completed, a daemon that it started outside the pod may still run.
	return o.confirmed
}

func lossOf(o snapshot) loss {
	switch {
	case !o.attached:
		return lossDetached
	case o.volume == dead:
		return lossDead
	case o.volume == silent:
		return lossSilent
	case o.stagingPod == workflow.Failed:
		return lossEnded
	case o.volume == unseen:
		return o.degraded
	case o.stagingPod == workflow.Absent && o.degraded == lossEnded:
		// It was released when its end was recorded. A pod that has completed may be released at any time.
		return lossEnded
	}
	return lossNone
}
