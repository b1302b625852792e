package stage

import (
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

// subject is what a PavStage of this node is for: a volume, or, with scope Pod, one target of a volume.
type subject struct {
	Volume

	// target is kubelet's path in the client pod's folder; empty where the stage is the volume's.
	target string
}

// ofClient says whether the stage is for one client pod.
func (s subject) ofClient() bool { return s.target != "" }

// names returns the names that the PavStage of a volume on this node can have, as stageplan.Names does.
func (s *Stager) names(v Volume) (shared, exclusive string) {
	return podplan.StageNames(v.Driver, v.Handle, s.node)
}

// clientName returns the name of the PavStage of a client pod, whose volume is to appear at target.
func (s *Stager) clientName(v Volume, target string) string {
	return podplan.ClientStageName(v.Driver, v.Handle, s.node, target)
}

// namesOf returns the names that the PavStage of the subject can have.
func (s *Stager) namesOf(of subject) []string {
	if of.ofClient() {
		return []string{s.clientName(of.Volume, of.target)}
	}
	shared, exclusive := s.names(of.Volume)
	return []string{shared, exclusive}
}

// claim keeps other calls away from what a call about the subject works on, and the keeper from the folders
// that are known by the names of stages alone. The returned function gives it back.
func (s *Stager) claim(of subject) (func(), error) {
	release, err := s.claimVolume(of)
	if err != nil {
		return nil, err
	}
	releaseNames, err := s.inflight.all(s.namesOf(of)...)
	if err != nil {
		release()
		return nil, err
	}
	return func() {
		releaseNames()
		release()
	}, nil
}

func (s *Stager) claimVolume(of subject) (func(), error) {
	if of.ofClient() {
		return s.inflight.part(of.key(), of.target)
	}
	return s.inflight.whole(of.key())
}

// tell says to whoever looks after stages that a call about those of the names has ended.
func (s *Stager) tell(names ...string) {
	if s.looked == nil {
		return
	}
	for _, name := range names {
		s.looked(name)
	}
}
