package status

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// bucketStepWords maps each step of a bucket to its kind of pod.
var bucketStepWords = map[pavv1.BucketStep]string{
	pavv1.BucketValidating: "bucket validation", pavv1.BucketCreating: "bucket creation", pavv1.BucketUpdating: "bucket update",
	pavv1.BucketReverting: "bucket deletion", pavv1.BucketDeletingStep: "bucket deletion",
}

// diagnoseBuckets returns the findings about a bucket and its accesses, or about an access and its bucket.
func diagnoseBuckets(f *Facts) []Finding {
	b := f.Bucket
	switch {
	case f.Subject.isAccess() && b.Own == nil:
		return []Finding{accessUnbegun(f)}
	case b.Record == nil && b.Own == nil:
		return []Finding{claimUnbegun(f)}
	}
	var found []Finding
	if b.Record != nil && (!f.Subject.isAccess() || !b.isReady() && !b.Own.Spec.Released) {
		found = append(found, diagnoseBucket(f))
	}
	for i := range b.Accesses {
		record := &b.Accesses[i]
		if b.Own == nil || b.Own.Name != record.Name {
			found = append(found, failingOf(diagnoseAccess(f.about(requesterOf(record)), record))...)
			continue
		}
		if c := findFalse(record.Status.Conditions, pavv1.AccessGranted); len(found) > 0 && c != nil && c.Reason == reasonBucketNotReady && !record.Spec.Released {
			continue // the finding about the bucket says why
		}
		found = append(found, diagnoseAccess(f, record)...)
	}
	return found
}

// failingOf returns the findings about an access to a bucket that matter to those who ask about the bucket.
func failingOf(found []Finding) []Finding {
	return slices.DeleteFunc(found, func(finding Finding) bool { return severity[finding.State] < severity[Slow] })
}

// diagnoseBucket returns the finding about a bucket that is recorded.
func diagnoseBucket(f *Facts) Finding {
	b := f.Bucket
	status, spec := &b.Record.Status, &b.Record.Spec
	switch {
	case status.Phase == pavv1.BucketRetained:
		return bucketRetained(f)
	case f.Provisioner == nil && !f.hides(hiddenProvisioners) && status.Phase != pavv1.BucketReady && status.Step != pavv1.BucketDeletedStep:
		return noProvisioner(f)
	case status.Step == pavv1.BucketReverting:
		return bucketReverts(f)
	case status.Phase == pavv1.BucketDeleting || spec.Released || b.Record.DeletionTimestamp != nil || b.isLeaving():
		return bucketDeletion(f)
	case status.Phase == pavv1.BucketReady:
		return bucketReady(f)
	default:
		return bucketPending(f)
	}
}

func bucketRetained(f *Facts) Finding {
	record := f.Bucket.Record
	found := Finding{Code: "Retained", State: Waiting, Summary: "the bucket belongs to the administrator, who decides what happens to it",
		Next: []Step{{Text: "when the bucket is deleted, or is not to be known any more, remove the record", Command: "kubectl delete pavbucket " + record.Name}}}
	if c := findFalse(record.Status.Conditions, pavv1.BucketDeleted); c != nil {
		found.Code, found.Reason = c.Reason, Brief(c.Message)
	}
	return found
}

// reasonBucketBusy is the controller agent's reason for a pod that waits until another one has finished its work on the bucket.
const reasonBucketBusy = "BucketBusy"

// reasonsOfRefusals are the reasons for which no attempt begins until a user acts.
var reasonsOfRefusals = []string{"NoProvisioner", "ProvisionerDeleting", "ProvisionerRefused", "NoBuckets", "NoAccess", "BucketNameTaken", "PodNotAdmitted"}

// waitingFor returns a finding about what a condition says that something waits for, or nil.
func waitingFor(f *Facts, c *metav1.Condition, what string) *Finding {
	if c == nil || c.Message == "" {
		return nil
	}
	found := &Finding{Code: c.Reason, State: Waiting, Summary: what + " waits", Reason: Brief(c.Message)}
	if slices.Contains(reasonsOfRefusals, c.Reason) {
		found.State, found.Summary = Failing, what+" cannot begin"
		if name := f.provisionerName(); c.Reason != "BucketNameTaken" && name != "" {
			found.Next = append(found.Next, Step{Text: "see the definition", Command: "kubectl pav describe pav/" + name})
		}
	}
	return found
}

// bucketPending is the finding about a bucket that is being created.
func bucketPending(f *Facts) Finding {
	status := &f.Bucket.Record.Status
	c := findFalse(status.Conditions, pavv1.BucketCreated)
	waits := waitingFor(f, c, "the creation of the bucket")
	switch {
	case waits != nil && status.Pod != nil && f.pod(status.Pod) == nil && (c.Reason == reasonBucketBusy || c.Reason == "PodNotAdmitted"):
		return *waits
	case status.Pod != nil:
		return afterFailure(f, "BucketFailed", fmt.Sprintf("attempt %d to create the bucket failed", status.Attempt-1),
			diagnoseStep(f, bucketStepWords[status.Step], status.Pod, c), status.Failure)
	case restoredRecord(status.Conditions) != nil:
		return *restoredRecord(status.Conditions)
	case status.Failure != nil:
		return bucketFailed(f)
	case waits != nil:
		return *waits
	}
	return Finding{Code: "Working", State: Working, Summary: "PaV is about to create the bucket"}
}

// restoredRecord returns a finding about a record that was restored from a backup, or nil.
func restoredRecord(conditions []metav1.Condition) *Finding {
	for _, kind := range []string{pavv1.BucketDeleted, pavv1.AccessRevokedCondition} {
		if c := findFalse(conditions, kind); c != nil && c.Reason == "Restored" {
			return &Finding{Code: c.Reason, State: Failing, Summary: "the record was restored from a backup", Reason: c.Message}
		}
	}
	return nil
}

// bucketFailed is the finding about a failed attempt: why it failed, and when the next one begins.
func bucketFailed(f *Facts) Finding {
	status := &f.Bucket.Record.Status
	failure := status.Failure
	in, text := nextAttempt(f, failure)
	next := fmt.Sprintf("attempt %d follows%s", status.Attempt+1, text)
	validation, podless, cause := failure.Workflow == pavv1.WorkflowBucketValidation, failure.PodName == "", causeOf(failure)
	switch {
	case cause == pavv1.FailureInfeasible:
		return failed(f, "BucketFailed", fmt.Sprintf("the pod says that this is infeasible; %s, or when the claim or the definition changes", next), failure, in)
	case podless && remedies[cause] == nil:
		return failed(f, "BucketRefused", "the claim is refused; "+next, failure, in)
	case podless:
		return failed(f, "BucketRefused", fmt.Sprintf("the %s pod cannot be created; %s", workflowWords[failure.Workflow], next), failure, in)
	case validation:
		found := failed(f, "ValidationFailed", "validation refuses the claim; "+next, failure, in)
		found.Next = append([]Step{{Text: "create a claim that the provisioner supports"}}, found.Next...)
		return found
	default:
		return failed(f, "BucketFailed", fmt.Sprintf("attempt %d to create the bucket failed; %s", status.Attempt, next), failure, in)
	}
}

// workflowWords are the kinds of pods of buckets.
var workflowWords = map[string]string{
	pavv1.WorkflowBucketValidation: "bucket validation", pavv1.WorkflowBucketCreation: "bucket creation", pavv1.WorkflowBucketUpdate: "bucket update",
	pavv1.WorkflowBucketDeletion: "bucket deletion",
}

// bucketReverts is the finding about a creation that is being reverted, because it failed or is not needed any more.
func bucketReverts(f *Facts) Finding {
	status := &f.Bucket.Record.Status
	if failure := status.DeletionFailure; failure != nil && f.pod(status.Pod) == nil {
		in, next := nextAttempt(f, failure)
		return failed(f, "RevertFailed", fmt.Sprintf("the bucket was not created, and that cannot be reverted: deletion attempt %d failed, and the next one follows%s",
			status.DeletionAttempt, next), failure, in)
	}
	now := diagnoseStep(f, bucketStepWords[status.Step], status.Pod, findFalse(status.Conditions, pavv1.BucketDeleted))
	if status.Failure == nil || now.State == Failing {
		return now
	}
	return failed(f, "BucketFailed", fmt.Sprintf("attempt %d to create the bucket failed, and is being reverted before the next one", status.Attempt), status.Failure, 0)
}

// bucketDeletion is the finding about a bucket that is not wanted any more.
func bucketDeletion(f *Facts) Finding {
	status := &f.Bucket.Record.Status
	c := findFalse(status.Conditions, pavv1.BucketDeleted)
	switch {
	case status.Pod != nil && (f.pod(status.Pod) != nil || status.DeletionFailure == nil):
		return afterFailure(f, "DeletionFailed", fmt.Sprintf("deletion attempt %d failed", status.DeletionAttempt-1),
			diagnoseStep(f, bucketStepWords[status.Step], status.Pod, c), status.DeletionFailure)
	case restoredRecord(status.Conditions) != nil:
		return *restoredRecord(status.Conditions)
	case status.DeletionFailure != nil:
		in, next := nextAttempt(f, status.DeletionFailure)
		return failed(f, "DeletionFailed", fmt.Sprintf("deletion attempt %d failed; the next one follows%s", status.DeletionAttempt, next), status.DeletionFailure, in)
	case status.Step != pavv1.BucketDeletedStep && len(f.Bucket.Accesses) > 0:
		return waitsForAccesses(f)
	case c != nil && c.Reason == "StillInUse":
		return Finding{Code: c.Reason, State: Failing, Summary: "the bucket is not deleted, as another record has it", Reason: c.Message}
	case c != nil && c.Reason == "InUse":
		return Finding{Code: c.Reason, State: Waiting, Summary: "the record is to be deleted, and the claim still needs the bucket", Reason: c.Message,
			Next: []Step{{Text: "delete the claim", Command: deleteCommand(claimOfBucket(f.Bucket.Record))}}}
	}
	return Finding{Code: "Deleting", State: Working, Summary: "the bucket is being given up, as its reclaim policy says: " + string(f.Bucket.Record.Spec.ReclaimPolicy)}
}

// waitsForAccesses is the finding about a bucket that is deleted after its accesses. Those of a BucketClaim must be deleted first.
func waitsForAccesses(f *Facts) Finding {
	found := Finding{Code: "StillAccessed", State: Working, Summary: "the bucket is given up after access to it is revoked"}
	var names []string
	for i := range f.Bucket.Accesses {
		record := &f.Bucket.Accesses[i]
		ref := requesterOf(record)
		found.Next = append(found.Next, Step{Text: "see how far the access is", Command: "kubectl pav describe " + ref.String()})
		if record.Spec.Released || ref.Kind == ObjectBucketClaim {
			continue
		}
		names = append(names, ref.Namespace+"/"+ref.Name)
		found.Next[len(found.Next)-1] = Step{Text: "delete the access", Command: deleteCommand(ref)}
	}
	if len(names) > 0 {
		found.State, found.Summary = Waiting, "the bucket is given up after "+list("access", names)+", which must be deleted first"
		if len(names) > 1 {
			found.Summary = fmt.Sprintf("the bucket is given up after its %d accesses, which must be deleted first", len(names))
		}
	}
	found.Next = found.Next[:min(len(found.Next), most)]
	return found
}

// deleteCommand is the command that deletes an object.
func deleteCommand(ref Ref) string {
	text := fmt.Sprintf("kubectl delete %s %s", ref.Kind, ref.Name)
	if ref.Namespace != "" {
		text += " -n " + ref.Namespace
	}
	return text
}

// bucketReady is the finding about a bucket to which access can be granted. It may be changing as its claim asks for.
func bucketReady(f *Facts) Finding {
	b := f.Bucket
	status := &b.Record.Status
	switch {
	case restoredRecord(status.Conditions) != nil:
		return *restoredRecord(status.Conditions)
	case status.Pod != nil:
		found := diagnoseStep(f, bucketStepWords[status.Step], status.Pod, findFalse(status.Conditions, pavv1.BucketUpdated))
		return afterFailure(f, "UpdateFailed", fmt.Sprintf("the bucket exists; attempt %d to update it failed", status.Attempt-1), found, status.Failure)
	case status.Failure != nil:
		in, next := nextAttempt(f, status.Failure)
		return failed(f, "UpdateFailed", fmt.Sprintf("the bucket exists; attempt %d to update it as the claim asks for failed, and attempt %d follows%s",
			status.Attempt, status.Attempt+1, next), status.Failure, in)
	}
	if found := notShown(f); found != nil {
		return *found
	}
	found := Finding{Code: "Healthy", State: Healthy, Summary: fmt.Sprintf("bucket %q exists", idOfBucket(b.Record))}
	switch n := len(b.Accesses); {
	case b.Own != nil || f.hides(hiddenPavAccesses):
	case n == 0:
		found.Summary += "; nobody has asked for access to it"
	default:
		found.Summary += fmt.Sprintf("; %s to it", accesses(n))
	}
	return found
}

func accesses(n int) string {
	if n == 1 {
		return "1 access"
	}
	return fmt.Sprintf("%d accesses", n)
}

// notShown returns a finding about a bucket of which its claim does not tell yet, or nil. That of an ObjectBucketClaim tells when clients
// have access.
func notShown(f *Facts) *Finding {
	b := f.Bucket
	switch {
	case b.ObjectClaim != nil:
		if b.ObjectClaim.Status.Phase == objectbucketv1.ClaimBound || b.Own == nil || b.Own.Status.Current == nil {
			return nil
		}
	case b.Claim == nil || b.Claim.Status.BucketReady:
		return nil
	}
	for _, check := range []func(*Facts) *Finding{told, shownError} {
		if e := check(f); e != nil {
			return e
		}
	}
	return &Finding{Code: "Working", State: Working, Summary: "the bucket exists, and PaV is about to say so in its claim"}
}
