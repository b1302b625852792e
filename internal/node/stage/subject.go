package stage

import (
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/workflow"
)

// Volume names a volume as kubelet does.
type Volume struct {
	// Driver is the name of the PavProvisioner.
	Driver string

	// Handle is the volume's handle.
	Handle string
}

func (v Volume) key() string { return workflow.Hash(v.Driver, v.Handle) }

// Subject is what a PavStage of this node is for: a volume, or, with scope Pod, one target of a volume.
type Subject struct {
	Volume

	// Target is kubelet's path in the client pod's directory; empty where the stage is the volume's.
	Target string
}

// ofClient reports whether the stage is for one client pod.
func (s Subject) ofClient() bool { return s.Target != "" }

// names returns the names that the PavStage of a volume on this node can have, as stageplan.Names does.
func (s *Stager) names(v Volume) (shared, exclusive string) {
	return podplan.StageNames(v.Driver, v.Handle, s.node)
}

// clientName returns the name of the PavStage of a client pod, whose volume is to appear at target.
func (s *Stager) clientName(v Volume, target string) string {
	return podplan.ClientStageName(v.Driver, v.Handle, s.node, target)
}

// namesOf returns the names that the PavStage of the subject can have.
func (s *Stager) namesOf(of Subject) []string {
	if of.ofClient() {
		return []string{s.clientName(of.Volume, of.Target)}
	}
	shared, exclusive := s.names(of.Volume)
	return []string{shared, exclusive}
}

// Lock keeps other calls away from what a call about the subject works on, and the monitor from the directories
// that are known by the names of stages alone. The returned function gives it back.
func (s *Stager) Lock(of Subject) (func(), error) {
	release, err := s.lockVolume(of)
	if err != nil {
		return nil, err
	}
	releaseNames, err := s.inflight.lockStages(s.namesOf(of)...)
	if err != nil {
		release()
		return nil, err
	}
	return func() {
		releaseNames()
		release()
	}, nil
}

func (s *Stager) lockVolume(of Subject) (func(), error) {
	if of.ofClient() {
		return s.inflight.lockTarget(of.key(), of.Target)
	}
	return s.inflight.lockVolume(of.key())
}

// tell says to whoever looks after stages that a call about those of the names has ended.
func (s *Stager) tell(names ...string) {
	if s.callEnded == nil {
		return
	}
	for _, name := range names {
		s.callEnded(name)
	}
}

// SubjectOf returns what a stage is of.
func SubjectOf(stage *pavv1.PavStage) Subject {
	of := Subject{Volume: Volume{Driver: stage.Spec.Provisioner, Handle: stage.Spec.VolumeHandle}}
	if c := stage.Spec.Client; c != nil {
		of.Target = c.Target
	}
	return of
}
