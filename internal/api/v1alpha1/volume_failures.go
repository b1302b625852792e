package v1alpha1

// Change returns the record of the attempts of a workflow that changes a volume, or nil if there is none.
func (s *PavVolumeStatus) Change(workflow string) *ChangeAttempt {
	switch {
	case workflow == WorkflowExpansion && s.Expansion != nil:
		return &s.Expansion.ChangeAttempt
	case workflow == WorkflowModification && s.Modification != nil:
		return &s.Modification.ChangeAttempt
	default:
		return nil
	}
}

// ChangeFailure returns why the last attempt of a workflow that changes a volume failed, or nil.
func (s *PavVolumeStatus) ChangeFailure(workflow string) *WorkflowFailure {
	if c := s.Change(workflow); c != nil {
		return c.Failure
	}
	return nil
}

// Failures returns the failures of the last attempts to provision, delete, expand and modify the volume that are recorded.
func (s *PavVolumeStatus) Failures() []*WorkflowFailure {
	return recorded(s.Failure, s.DeletionFailure, s.ChangeFailure(WorkflowExpansion), s.ChangeFailure(WorkflowModification))
}
