package stage

import (
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/workflow"
)

// Volume identifies a volume as kubelet does.
type Volume struct {
	// Driver is the name of the PavProvisioner.
	Driver string

	// Handle is the volume's handle.
	Handle string
}

func (v Volume) key() string { return workflow.Hash(v.Driver, v.Handle) }

// Subject identifies a stage on this node: a volume or, with scope Pod, one target of a volume.
type Subject struct {
	Volume

	// Target is kubelet's path in the client pod's directory; empty if the stage is for all client pods.
	Target string
}

// ofClient reports whether the stage is for one client pod.
func (s Subject) ofClient() bool { return s.Target != "" }

// names returns the names that the PavStage of a volume on this node can have, as podplan.StageNames does.
func (s *Stager) names(v Volume) (shared, exclusive string) {
	return podplan.StageNames(v.Driver, v.Handle, s.node)
}

// clientName returns the name of the PavStage for the client pod of a target.
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

// Lock locks the subject against other calls, and its directories against the monitor. The returned function unlocks
// them.
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

// tell reports to the monitor that a call for the stages of the names has ended.
func (s *Stager) tell(names ...string) {
	if s.callEnded == nil {
		return
	}
	for _, name := range names {
		s.callEnded(name)
	}
}

// SubjectOf returns the subject of a stage.
func SubjectOf(stage *pavv1.PavStage) Subject {
	of := Subject{Volume: Volume{Driver: stage.Spec.Provisioner, Handle: stage.Spec.VolumeHandle}}
	if c := stage.Spec.Client; c != nil {
		of.Target = c.Target
	}
	return of
}
