package v1alpha1

// ExpansionFailure returns why the last attempt to expand the volume failed, or nil.
func (s *PavVolumeStatus) ExpansionFailure() *WorkflowFailure {
	if s.Expansion == nil {
		return nil
	}
	return s.Expansion.Failure
}

// Failures returns the failures of the last attempts to provision, delete and expand the volume that are recorded.
func (s *PavVolumeStatus) Failures() []*WorkflowFailure {
	var recorded []*WorkflowFailure
	for _, failure := range []*WorkflowFailure{s.Failure, s.DeletionFailure, s.ExpansionFailure()} {
		if failure != nil {
			recorded = append(recorded, failure)
		}
	}
	return recorded
}
