package retry

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/workflow"
)

// What the API server returned must not be able to steer a terminal.
func TestWrite_DescribesEachObject_InPlainText(t *testing.T) {
	tests := map[string]struct {
		results []Result
		want    string
		code    int
	}{
		"asked": {
			results: []Result{{Kind: "pavvolume", Name: "pvc-1", Asked: true, What: "creation\x1b[31m"}},
			want:    "pavvolume/pvc-1: the next attempt starts now: creation[31m\n",
		},
		"nothing to retry": {
			results: []Result{{Kind: "pavvolume", Name: "pvc-1", What: "it is ready"}},
			want:    "pavvolume/pvc-1: nothing to retry: it is ready\n",
			code:    1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			err := write(&cli.Env{IOStreams: streams}, &cli.Output{}, test.results, words{"the next attempt starts now", "nothing to retry"})
			code, exit := 0, (*cli.ExitError)(nil)
			if errors.As(err, &exit) {
				code = exit.Code
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" || code != test.code {
				t.Errorf("exit status %d, want %d; -want +got:\n%s", code, test.code, diff)
			}
		})
	}
}

func TestOfPavStage_WhereUnstagingHasFailed_SaysWhetherTheNextAttemptHasBegun(t *testing.T) {
	pod := func(attempt string) string { return workflow.Name(pavv1.WorkflowUnstaging, "u1", attempt) }
	tests := map[string]struct {
		recorded, failed string
		waits            bool
		what             string
	}{
		"the pod that failed is on record still":     {recorded: pod("1"), failed: pod("1"), waits: true, what: "attempt 2 to unstage the volume on node n"},
		"the next one runs":                          {recorded: pod("2"), failed: pod("1"), what: "pod pods/" + pod("2") + " runs or is about to run on node n"},
		"no pod could be made after one that failed": {recorded: pod("1"), waits: true, what: "attempt 2 to unstage the volume on node n"},
		"no pod could ever be made":                  {waits: true, what: "attempt 2 to unstage the volume on node n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stage := &pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{UID: "u1"}, Spec: pavv1.PavStageSpec{NodeName: "n"}}
			stage.Status = pavv1.PavStageStatus{Phase: pavv1.StageUnstaging, UnstagingAttempt: 2, UnstagingFailure: &pavv1.WorkflowFailure{PodName: test.failed}}
			if test.recorded != "" {
				stage.Status.UnstagingPod = &pavv1.PodReference{Namespace: "pods", Name: test.recorded}
			}
			failure, what := ofPavStage(stage)
			if (failure != nil) != test.waits || what != test.what {
				t.Errorf("got %v, %q", failure, what)
			}
		})
	}
}

func reports(kind, reason string) []metav1.Condition {
	return []metav1.Condition{{Type: kind, Status: metav1.ConditionFalse, Reason: reason}}
}

func TestOfPavVolume_SaysWhichAttemptWaits(t *testing.T) {
	failed := &pavv1.WorkflowFailure{}
	for name, test := range map[string]struct {
		status pavv1.PavVolumeStatus
		waits  bool
		what   string
	}{
		"nothing has failed":         {status: pavv1.PavVolumeStatus{Phase: pavv1.VolumeReady}, what: "no attempt has failed; the volume is Ready"},
		"a pod runs after a failure": {status: pavv1.PavVolumeStatus{Failure: failed, Pod: &pavv1.PodReference{Namespace: "ns", Name: "p"}}, what: "pod ns/p runs or is about to run"},
		"a pod runs for long": {status: pavv1.PavVolumeStatus{Step: pavv1.StepCreating, Pod: &pavv1.PodReference{Namespace: "ns", Name: "p"}, Conditions: reports(pavv1.VolumeProvisioned, pavv1.ReasonPodRunsLong)},
			waits: true, what: "pod ns/p is stopped first"},
		"a deletion pod cannot start": {status: pavv1.PavVolumeStatus{Step: pavv1.StepDeleting, Pod: &pavv1.PodReference{Namespace: "ns", Name: "p"}, Conditions: reports(pavv1.VolumeDeleted, pavv1.ReasonPodNotStarted)},
			waits: true, what: "pod ns/p is stopped first"},
		"an earlier pod ran for long": {status: pavv1.PavVolumeStatus{Step: pavv1.StepReverting, Pod: &pavv1.PodReference{Namespace: "ns", Name: "p"}, Conditions: reports(pavv1.VolumeProvisioned, pavv1.ReasonPodRunsLong)},
			what: "pod ns/p runs or is about to run"},
		"creation failed":                       {status: pavv1.PavVolumeStatus{Failure: failed, Attempt: 2}, waits: true, what: "attempt 3 to provision the volume"},
		"creation failed and is being reverted": {status: pavv1.PavVolumeStatus{Failure: failed, Step: pavv1.StepReverting, Handle: "h"}, what: "the failed creation is being reverted"},
		"the deletion pod that reverts failed": {status: pavv1.PavVolumeStatus{Failure: failed, DeletionFailure: failed, DeletionAttempt: 1, Step: pavv1.StepReverting, Handle: "h"},
			waits: true, what: "attempt 2 to revert the failed creation"},
		"a later attempt created the storage": {status: pavv1.PavVolumeStatus{Failure: failed, Handle: "h", Phase: pavv1.VolumePending}, what: "no attempt has failed; the volume is Pending"},
		"expansion failed": {status: pavv1.PavVolumeStatus{Phase: pavv1.VolumeReady, Handle: "h", Expansion: &pavv1.VolumeExpansionRecord{ChangeAttempt: pavv1.ChangeAttempt{Attempt: 2, Failure: failed}}},
			waits: true, what: "attempt 3 to expand the volume"},
		"an expansion pod runs for long": {status: pavv1.PavVolumeStatus{Step: pavv1.StepExpanding, Pod: &pavv1.PodReference{Namespace: "ns", Name: "p"}, Conditions: reports(pavv1.VolumeExpanded, pavv1.ReasonPodRunsLong)},
			waits: true, what: "pod ns/p is stopped first"},
		"deletion failed": {status: pavv1.PavVolumeStatus{DeletionFailure: failed, DeletionAttempt: 4, Step: pavv1.StepDeleting, Handle: "h"}, waits: true, what: "attempt 5 to delete the volume"},
	} {
		t.Run(name, func(t *testing.T) {
			failure, what := ofPavVolume(&pavv1.PavVolume{Status: test.status})
			if (failure != nil) != test.waits || what != test.what {
				t.Errorf("got %v, %q, want %t, %q", failure, what, test.waits, test.what)
			}
		})
	}
}

func TestOfPavSnapshot_SaysWhichAttemptWaits(t *testing.T) {
	failed, pod := &pavv1.WorkflowFailure{}, &pavv1.PodReference{Namespace: "ns", Name: "p"}
	for name, test := range map[string]struct {
		status pavv1.PavSnapshotStatus
		waits  bool
		what   string
	}{
		"nothing has failed":         {status: pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotReady}, what: "no attempt has failed; the snapshot is Ready"},
		"a pod runs after a failure": {status: pavv1.PavSnapshotStatus{Failure: failed, Pod: pod}, what: "pod ns/p runs or is about to run"},
		"a pod runs for long": {status: pavv1.PavSnapshotStatus{Step: pavv1.SnapshotCreating, Pod: pod, Conditions: reports(pavv1.SnapshotCreated, pavv1.ReasonPodRunsLong)},
			waits: true, what: "pod ns/p is stopped first"},
		"a deletion pod cannot start": {status: pavv1.PavSnapshotStatus{Step: pavv1.SnapshotDeletingStep, Pod: pod, Conditions: reports(pavv1.SnapshotDeleted, pavv1.ReasonPodNotStarted)},
			waits: true, what: "pod ns/p is stopped first"},
		"creation failed":                       {status: pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotPending, Failure: failed, Attempt: 2}, waits: true, what: "attempt 3 to create the snapshot"},
		"creation failed after the cut":         {status: pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotCut, Handle: "h", Failure: failed, Attempt: 1}, waits: true, what: "attempt 2 to create the snapshot"},
		"creation failed and is being reverted": {status: pavv1.PavSnapshotStatus{Failure: failed, Step: pavv1.SnapshotReverting}, what: "the failed creation is being reverted"},
		"the deletion pod that reverts failed":  {status: pavv1.PavSnapshotStatus{Failure: failed, DeletionFailure: failed, DeletionAttempt: 1, Step: pavv1.SnapshotReverting}, waits: true, what: "attempt 2 to revert the failed creation"},
		"deletion failed":                       {status: pavv1.PavSnapshotStatus{DeletionFailure: failed, DeletionAttempt: 4, Step: pavv1.SnapshotDeletingStep}, waits: true, what: "attempt 5 to delete the snapshot"},
	} {
		t.Run(name, func(t *testing.T) {
			failure, what := ofPavSnapshot(&pavv1.PavSnapshot{Status: test.status})
			if (failure != nil) != test.waits || what != test.what {
				t.Errorf("got %v, %q, want %t, %q", failure, what, test.waits, test.what)
			}
		})
	}
}

func TestOfPavBucket_SaysWhichAttemptWaits(t *testing.T) {
	failed, pod := &pavv1.WorkflowFailure{}, &pavv1.PodReference{Namespace: "ns", Name: "p"}
	for name, test := range map[string]struct {
		status pavv1.PavBucketStatus
		waits  bool
		what   string
	}{
		"nothing has failed":         {status: pavv1.PavBucketStatus{Phase: pavv1.BucketReady}, what: "no attempt has failed; the bucket is Ready"},
		"a pod runs after a failure": {status: pavv1.PavBucketStatus{Failure: failed, Pod: pod}, what: "pod ns/p runs or is about to run"},
		"a pod runs for long": {status: pavv1.PavBucketStatus{Step: pavv1.BucketCreating, Pod: pod, Conditions: reports(pavv1.BucketCreated, pavv1.ReasonPodRunsLong)},
			waits: true, what: "pod ns/p is stopped first"},
		"an update pod cannot start": {status: pavv1.PavBucketStatus{Step: pavv1.BucketUpdating, Pod: pod, Conditions: reports(pavv1.BucketUpdated, pavv1.ReasonPodNotStarted)},
			waits: true, what: "pod ns/p is stopped first"},
		"an earlier pod ran for long":           {status: pavv1.PavBucketStatus{Step: pavv1.BucketReverting, Pod: pod, Conditions: reports(pavv1.BucketCreated, pavv1.ReasonPodRunsLong)}, what: "pod ns/p runs or is about to run"},
		"creation failed":                       {status: pavv1.PavBucketStatus{Phase: pavv1.BucketPending, Failure: failed, Attempt: 2}, waits: true, what: "attempt 3 to create the bucket"},
		"an update failed":                      {status: pavv1.PavBucketStatus{Phase: pavv1.BucketReady, Failure: failed, Attempt: 1}, waits: true, what: "attempt 2 to update the bucket"},
		"creation failed and is being reverted": {status: pavv1.PavBucketStatus{Phase: pavv1.BucketPending, Failure: failed, Step: pavv1.BucketReverting}, what: "the failed creation is being reverted"},
		"the deletion pod that reverts failed":  {status: pavv1.PavBucketStatus{Failure: failed, DeletionFailure: failed, DeletionAttempt: 1, Step: pavv1.BucketReverting}, waits: true, what: "attempt 2 to revert the failed creation"},
		"deletion failed":                       {status: pavv1.PavBucketStatus{Phase: pavv1.BucketDeleting, DeletionFailure: failed, DeletionAttempt: 4}, waits: true, what: "attempt 5 to delete the bucket"},
	} {
		t.Run(name, func(t *testing.T) {
			failure, what := ofPavBucket(&pavv1.PavBucket{Status: test.status})
			if (failure != nil) != test.waits || what != test.what {
				t.Errorf("got %v, %q, want %t, %q", failure, what, test.waits, test.what)
			}
		})
	}
}

func TestOfPavBucketAccess_SaysWhichAttemptWaits(t *testing.T) {
	failed, pod, account := &pavv1.WorkflowFailure{}, &pavv1.PodReference{Namespace: "ns", Name: "p"}, &pavv1.GrantedAccount{}
	for name, test := range map[string]struct {
		status   pavv1.PavBucketAccessStatus
		released bool
		waits    bool
		what     string
	}{
		"nothing has failed":  {status: pavv1.PavBucketAccessStatus{Phase: pavv1.AccessReady, Current: account}, what: "no attempt has failed; the access is Ready"},
		"a pod runs":          {status: pavv1.PavBucketAccessStatus{Step: pavv1.AccessGranting, Failure: failed, Pod: pod}, what: "pod ns/p runs or is about to run"},
		"credentials go out":  {status: pavv1.PavBucketAccessStatus{Step: pavv1.AccessDelivering, Failure: failed, Pod: pod}, what: "the credentials are being written"},
		"a pod runs for long": {status: pavv1.PavBucketAccessStatus{Step: pavv1.AccessGranting, Pod: pod, Conditions: reports(pavv1.AccessGranted, pavv1.ReasonPodRunsLong)}, waits: true, what: "pod ns/p is stopped first"},
		"a rotation runs for long": {status: pavv1.PavBucketAccessStatus{Step: pavv1.AccessGranting, Current: account, Pod: pod, Conditions: reports(pavv1.AccessRotated, pavv1.ReasonPodRunsLong)},
			waits: true, what: "pod ns/p is stopped first"},
		"a revocation cannot start": {status: pavv1.PavBucketAccessStatus{Step: pavv1.AccessRevokingStep, Pod: pod, Conditions: reports(pavv1.AccessRevokedCondition, pavv1.ReasonPodNotStarted)},
			waits: true, what: "pod ns/p is stopped first"},
		"a grant failed":                         {status: pavv1.PavBucketAccessStatus{Failure: failed, Attempt: 2}, waits: true, what: "attempt 3 to grant access"},
		"a grant failed, and is not needed":      {status: pavv1.PavBucketAccessStatus{Phase: pavv1.AccessRevoking, Failure: failed, Attempt: 2}, released: true, what: "no attempt has failed; the access is Revoking"},
		"a rotation failed":                      {status: pavv1.PavBucketAccessStatus{Current: account, Failure: failed, Attempt: 1, RevocationFailure: failed}, waits: true, what: "attempt 2 to replace the account"},
		"a former account cannot be revoked":     {status: pavv1.PavBucketAccessStatus{Current: account, RevocationFailure: failed, RevocationAttempt: 3}, waits: true, what: "attempt 4 to revoke an account"},
		"the account of a failure is not undone": {status: pavv1.PavBucketAccessStatus{Failure: failed, RevocationFailure: failed, RevocationAttempt: 1}, waits: true, what: "attempt 2 to revoke an account"},
	} {
		t.Run(name, func(t *testing.T) {
			failure, what := ofPavBucketAccess(&pavv1.PavBucketAccess{Spec: pavv1.PavBucketAccessSpec{Released: test.released}, Status: test.status})
			if (failure != nil) != test.waits || what != test.what {
				t.Errorf("got %v, %q, want %t, %q", failure, what, test.waits, test.what)
			}
		})
	}
}
