package cli

import pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"

// phases are the names of the workflows in the fields of a definition, and the values of --phase.
var phases = map[string]string{
	pavv1.WorkflowValidation: "validation", pavv1.WorkflowCreation: "creation", pavv1.WorkflowDeletion: "deletion",
	pavv1.WorkflowExpansion: "expansion", pavv1.WorkflowStaging: "staging", pavv1.WorkflowUnstaging: "unstaging",
	pavv1.WorkflowModification: "modification", pavv1.WorkflowNodeExpansion: "node-expansion",
	pavv1.WorkflowSnapshotCreation: "snapshot-creation", pavv1.WorkflowSnapshotDeletion: "snapshot-deletion",
	pavv1.WorkflowBucketValidation: "bucket-validation", pavv1.WorkflowBucketCreation: "bucket-creation",
	pavv1.WorkflowBucketUpdate: "bucket-update", pavv1.WorkflowBucketDeletion: "bucket-deletion",
	pavv1.WorkflowGrant: "access-grant", pavv1.WorkflowRevocation: "access-revocation",
}

// Phase returns the phase of a workflow: "staging" for "stage", which is also the word that begins the names of its pods.
// Any other word is returned as it is.
func Phase(workflow string) string {
	if phase, ok := phases[workflow]; ok {
		return phase
	}
	return workflow
}
