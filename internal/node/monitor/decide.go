package monitor

import (
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// answer is what a probe of a volume told.
type answer int

const (
	unseen  answer = iota // nobody has looked, or what came back told nothing
	answers               // it answers, so it may be written to
	silent                // it did not answer in time, and what was written may still be on its way
	dead                  // it will never answer again, so nothing reaches the storage through it any more
)

// snapshot is what decide depends on: a stage between calls.
type snapshot struct {
	phase     pavv1.StagePhase
	restaging bool // the volume is being staged again under its clients
	claimOnly bool // the stage only claims the volume, and has no staging pod
	thisBoot  bool // its mounts, if any, were made since the node's last boot

	attached    bool // the volume is mounted for clients
	volume      answer
	exchanged   bool // what the staging pod has at /pav/volume is not that, soon after it was served
	stagingPod  workflow.State
	outcomeHeld bool // the staging pod has its finalizer
	shutdown    bool // kubelet has ended the staging pod because the node goes down
	confirmed   bool // the volume has been dead for a while

	early       bool // it was staged again too short a while ago for another time
	restageable bool // the provisioner wants volumes to be staged again
	degraded    loss // the loss on record

	told string // what the look at the volume said, for a message only
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
	loss     loss // what is to be on record
	release  bool // let the staging pod go: what there is to say about it is on record
	restage  bool // stage the volume again under its clients
	withdraw bool // give the volume to no more clients
	unstage  bool // go on with its unstaging
}

// decide says what to do about a stage that no call works on. A volume is staged again only where the
// present one is dead: one that answers, or hangs, may still write to the storage, and a second one beside
// it could corrupt that.
func decide(o snapshot) decision {
	switch {
	case o.restaging && o.thisBoot:
		return decision{loss: o.degraded, restage: true}
	case o.phase == pavv1.StageUnstaging && !o.restaging:
		// Kubelet's next call may be minutes away, and another node may wait for the volume.
		return decision{loss: o.degraded, unstage: true}
	case o.phase != pavv1.StageStaged, o.claimOnly, !o.thisBoot:
		// A call is expected: kubelet's next one, or, if it never comes, that of the orphan's end.
		return decision{loss: o.degraded}
	}
	v := decision{loss: lossOf(o)}
	over := o.stagingPod == workflow.Succeeded || o.stagingPod == workflow.Failed
	v.release = over && o.outcomeHeld
	v.withdraw = o.attached && o.exchanged && o.volume != dead
	v.restage = o.attached && o.volume == dead && o.restageable && !o.early && mayRestage(o)
	return v
}

// mayRestage reports whether it is time to stage a dead volume again.
func mayRestage(o snapshot) bool {
	switch {
	case o.shutdown:
		// On a node that goes down no pod can be started; the next boot stages what is wanted then.
		return false
	case o.stagingPod == workflow.Stopping:
		return false // Its end is soon.
	case o.stagingPod == workflow.Failed:
		return true // Its daemon has ended with it.
	}
	// A daemon that lives may give the kernel's answer itself, as long as it does not reach its servers. A pod
	// that has completed says nothing about one that it started outside of itself.
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
		// It was let go when its end was on record. One that has completed may go any time.
		return lossEnded
	}
	return lossNone
}
