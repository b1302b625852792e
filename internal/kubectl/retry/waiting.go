package retry

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// ofPavVolume returns the failure after which a volume's next attempt waits, and what that attempt is, in words; nil
// if none waits.
func ofPavVolume(volume *pavv1.PavVolume) (*pavv1.WorkflowFailure, string) {
	status := &volume.Status
	condition := pavv1.VolumeProvisioned
	switch status.Step {
	case pavv1.StepReverting, pavv1.StepDeleting:
		condition = pavv1.VolumeDeleted
	case pavv1.StepExpanding:
		condition = pavv1.VolumeExpanded
	case pavv1.StepModifying:
		condition = pavv1.VolumeModified
	case pavv1.StepValidating, pavv1.StepCreating, pavv1.StepGranting, pavv1.StepDeleted:
	}
	obstacle := reported(status.Conditions, condition)
	switch {
	case status.Pod != nil && obstacle != nil:
		return obstacle, fmt.Sprintf("pod %s/%s is stopped first", status.Pod.Namespace, status.Pod.Name)
	case status.Pod != nil:
		return nil, fmt.Sprintf("pod %s/%s runs or is about to run", status.Pod.Namespace, status.Pod.Name)
	case status.DeletionFailure != nil && status.Step == pavv1.StepReverting:
		return status.DeletionFailure, fmt.Sprintf("attempt %d to revert the failed creation", status.DeletionAttempt+1)
	case status.DeletionFailure != nil:
		return status.DeletionFailure, fmt.Sprintf("attempt %d to delete the volume", status.DeletionAttempt+1)
	case status.Step == pavv1.StepReverting:
		return nil, "the failed creation is being reverted"
	case status.Phase == pavv1.VolumeReady && status.Expansion != nil && status.Expansion.Failure != nil:
		return status.Expansion.Failure, fmt.Sprintf("attempt %d to expand the volume", status.Expansion.Attempt+1)
	case status.Phase == pavv1.VolumeReady && status.ChangeFailure(pavv1.WorkflowModification) != nil:
		return status.Modification.Failure, fmt.Sprintf("attempt %d to modify the volume", status.Modification.Attempt+1)
	case status.Failure != nil && status.Handle == "": // else a later attempt has succeeded
		return status.Failure, fmt.Sprintf("attempt %d to provision the volume", status.Attempt+1)
	}
	return nil, "no attempt has failed; the volume is " + string(status.Phase)
}

// ofPavSnapshot does what ofPavVolume does for a snapshot.
func ofPavSnapshot(snapshot *pavv1.PavSnapshot) (*pavv1.WorkflowFailure, string) {
	status := &snapshot.Status
	condition := pavv1.SnapshotCreated
	if status.Step == pavv1.SnapshotReverting || status.Step == pavv1.SnapshotDeletingStep {
		condition = pavv1.SnapshotDeleted
	}
	obstacle := reported(status.Conditions, condition)
	switch {
	case status.Pod != nil && obstacle != nil:
		return obstacle, fmt.Sprintf("pod %s/%s is stopped first", status.Pod.Namespace, status.Pod.Name)
	case status.Pod != nil:
		return nil, fmt.Sprintf("pod %s/%s runs or is about to run", status.Pod.Namespace, status.Pod.Name)
	case status.DeletionFailure != nil && status.Step == pavv1.SnapshotReverting:
		return status.DeletionFailure, fmt.Sprintf("attempt %d to revert the failed creation", status.DeletionAttempt+1)
	case status.DeletionFailure != nil:
		return status.DeletionFailure, fmt.Sprintf("attempt %d to delete the snapshot", status.DeletionAttempt+1)
	case status.Step == pavv1.SnapshotReverting:
		return nil, "the failed creation is being reverted"
	case status.Failure != nil && status.Phase != pavv1.SnapshotReady: // else a later attempt has succeeded
		return status.Failure, fmt.Sprintf("attempt %d to create the snapshot", status.Attempt+1)
	}
	return nil, "no attempt has failed; the snapshot is " + string(status.Phase)
}

// ofPavBucket does what ofPavVolume does for a bucket.
func ofPavBucket(bucket *pavv1.PavBucket) (*pavv1.WorkflowFailure, string) {
	status := &bucket.Status
	condition := pavv1.BucketCreated
	switch status.Step {
	case pavv1.BucketReverting, pavv1.BucketDeletingStep:
		condition = pavv1.BucketDeleted
	case pavv1.BucketUpdating:
		condition = pavv1.BucketUpdated
	case pavv1.BucketValidating, pavv1.BucketCreating, pavv1.BucketDeletedStep:
	}
	obstacle := reported(status.Conditions, condition)
	switch {
	case status.Pod != nil && obstacle != nil:
		return obstacle, fmt.Sprintf("pod %s/%s is stopped first", status.Pod.Namespace, status.Pod.Name)
	case status.Pod != nil:
		return nil, fmt.Sprintf("pod %s/%s runs or is about to run", status.Pod.Namespace, status.Pod.Name)
	case status.DeletionFailure != nil && status.Step == pavv1.BucketReverting:
		return status.DeletionFailure, fmt.Sprintf("attempt %d to revert the failed creation", status.DeletionAttempt+1)
	case status.DeletionFailure != nil:
		return status.DeletionFailure, fmt.Sprintf("attempt %d to delete the bucket", status.DeletionAttempt+1)
	case status.Step == pavv1.BucketReverting:
		return nil, "the failed creation is being reverted"
	case status.Failure != nil && status.Phase == pavv1.BucketReady:
		return status.Failure, fmt.Sprintf("attempt %d to update the bucket", status.Attempt+1)
	case status.Failure != nil && status.Phase == pavv1.BucketPending:
		return status.Failure, fmt.Sprintf("attempt %d to create the bucket", status.Attempt+1)
	}
	return nil, "no attempt has failed; the bucket is " + string(status.Phase)
}

// ofPavBucketAccess does what ofPavVolume does for an access to buckets. An account that an attempt has made which failed is revoked before
// the next attempt; the replacement of an account does not wait for the revocation of former ones.
func ofPavBucketAccess(access *pavv1.PavBucketAccess) (*pavv1.WorkflowFailure, string) {
	status := &access.Status
	condition := pavv1.AccessGranted
	switch {
	case status.Step == pavv1.AccessRevokingStep:
		condition = pavv1.AccessRevokedCondition
	case status.Current != nil:
		condition = pavv1.AccessRotated
	}
	obstacle := reported(status.Conditions, condition)
	switch {
	case status.Step == pavv1.AccessDelivering:
		return nil, "the credentials are being written"
	case status.Pod != nil && obstacle != nil:
		return obstacle, fmt.Sprintf("pod %s/%s is stopped first", status.Pod.Namespace, status.Pod.Name)
	case status.Pod != nil:
		return nil, fmt.Sprintf("pod %s/%s runs or is about to run", status.Pod.Namespace, status.Pod.Name)
	case status.Failure != nil && status.Current != nil:
		return status.Failure, fmt.Sprintf("attempt %d to replace the account", status.Attempt+1)
	case status.RevocationFailure != nil:
		return status.RevocationFailure, fmt.Sprintf("attempt %d to revoke an account", status.RevocationAttempt+1)
	case status.Failure != nil && !access.Spec.Released:
		return status.Failure, fmt.Sprintf("attempt %d to grant access", status.Attempt+1)
	}
	return nil, "no attempt has failed; the access is " + string(status.Phase)
}

// ofPavStage does what ofPavVolume does for a stage.
func ofPavStage(stage *pavv1.PavStage) (*pavv1.WorkflowFailure, string) {
	status, node := &stage.Status, stage.Spec.NodeName
	degraded, obstacle := degradedSince(stage), reported(status.Conditions, pavv1.StageReady)
	switch {
	case obstacle != nil && (status.ValidationPod != nil || status.StagingPod != nil || status.UnstagingPod != nil):
		return obstacle, "the pod on node " + node + " is stopped first"
	case status.Phase == pavv1.StageFailed:
		return nil, fmt.Sprintf("staging failed on node %s and was reverted; kubelet retries as long as a pod needs the volume", node)
	case status.UnstagingFailure != nil && isUnstaging(stage):
		return nil, fmt.Sprintf("pod %s/%s runs or is about to run on node %s", status.UnstagingPod.Namespace, status.UnstagingPod.Name, node)
	case status.UnstagingFailure != nil:
		return status.UnstagingFailure, fmt.Sprintf("attempt %d to unstage the volume on node %s", status.UnstagingAttempt, node)
	case status.Restaging && status.StagingFailure != nil:
		return status.StagingFailure, fmt.Sprintf("attempt %d to stage the volume again on node %s", status.Attempt, node)
	case status.Phase == pavv1.StageStaged && degraded != nil:
		return degraded, "staging the volume again on node " + node + ", if it is dead"
	}
	return nil, fmt.Sprintf("nothing has failed on node %s; the volume is %s there", node, status.Phase)
}

// isUnstaging reports whether the next attempt after a failed unstaging has begun: the recorded pod is a new one. The
// failed pod stays recorded until then.
func isUnstaging(stage *pavv1.PavStage) bool {
	pod := stage.Status.UnstagingPod
	return pod != nil && pod.Name != stage.Status.UnstagingFailure.PodName &&
		pod.Name == workflow.Name(pavv1.WorkflowUnstaging, string(stage.UID), strconv.Itoa(int(stage.Status.UnstagingAttempt)))
}

// reported returns the report of a pod that runs for long or cannot start in the form of a failure, or nil.
func reported(conditions []metav1.Condition, kind string) *pavv1.WorkflowFailure {
	c := pavv1.StoppedByRetry(conditions, kind)
	if c == nil {
		return nil
	}
	return &pavv1.WorkflowFailure{Message: c.Message, Time: c.LastTransitionTime}
}

// degradedSince returns the degradation of a staged volume in the form of a failure, or nil.
func degradedSince(stage *pavv1.PavStage) *pavv1.WorkflowFailure {
	for _, c := range stage.Status.Conditions {
		if c.Type == pavv1.StageDegraded && c.Status == "True" {
			return &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowStaging, Message: c.Message, Time: c.LastTransitionTime}
		}
	}
	return nil
}
