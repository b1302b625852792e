package workflow

import (
	"slices"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// The files and directories that a pod of the controller agent may leave in /pav, and the greatest size of each in bytes. CSI: a
// volume ID and a snapshot ID have "maximum size of 128 bytes". COSI: an identifier has at most 2048.
const (
	ReadyFile          = "ready"
	HandleFile         = "handle"
	CapacityFile       = "capacity"
	SnapshotHandleFile = "snapshotHandle"
	SnapshotSizeFile   = "snapshotSize"
	BucketIDFile       = "bucketId"
	AccountIDFile      = "accountId"
	CreatedFile        = "created"
	ExpiresFile        = "expires"
	ErrorFile          = "error"
	InfeasibleFile     = "infeasible"

	InfoDirectory        = "info"
	CredentialsDirectory = "credentials"

	MaxHandle     = 128
	MaxCapacity   = 64
	MaxID         = 2048
	MaxExpires    = 64
	MaxError      = 4 << 10
	MaxInfeasible = MaxError

	// MaxInfo is the greatest size of a file in InfoDirectory, MaxAllInfo that of all together, and MaxInfoFiles their number.
	MaxInfo      = 4 << 10
	MaxAllInfo   = 32 << 10
	MaxInfoFiles = 64
)

// FilesOf returns the files and directories that are read of a pod of a workflow of the controller agent, besides ReadyFile.
func FilesOf(workflow string) []string {
	var files []string
	switch {
	case workflow == pavv1.WorkflowBucketCreation:
		files = []string{BucketIDFile, CreatedFile, InfoDirectory}
	case workflow == pavv1.WorkflowGrant:
		files = []string{AccountIDFile, ExpiresFile, CredentialsDirectory}
	case !slices.Contains(slices.Concat(pavv1.WorkflowsOfBuckets(), pavv1.WorkflowsOfAccesses()), workflow):
		files = []string{HandleFile, CapacityFile, SnapshotHandleFile, SnapshotSizeFile}
	}
	return append(files, ErrorFile, InfeasibleFile)
}
