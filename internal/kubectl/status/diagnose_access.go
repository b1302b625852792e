package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/workflow"
)

// accessStepWords maps each step of an access to its kind of pod.
var accessStepWords = map[pavv1.AccessStep]string{
	pavv1.AccessGranting: "grant", pavv1.AccessDelivering: "grant", pavv1.AccessRevokingStep: "revocation",
}

// reasonBucketNotReady is the controller agent's reason for an access that waits for its bucket.
const reasonBucketNotReady = "BucketNotReady"

// diagnoseAccess returns the findings about an access that is recorded. There is at least one.
func diagnoseAccess(f *Facts, record *pavv1.PavBucketAccess) []Finding {
	if found := restoredRecord(record.Status.Conditions); found != nil {
		return []Finding{*found}
	}
	switch {
	case record.Spec.Released:
		return []Finding{accessRevoked(f, record)}
	case record.Status.Current == nil:
		return []Finding{accessPending(f, record)}
	}
	var found []Finding
	for _, check := range []func(*Facts, *pavv1.PavBucketAccess) *Finding{accessDeleted, expired, replacing, revoking, outdated} {
		if one := check(f, record); one != nil {
			found = append(found, *one)
		}
	}
	return append(found, accessHealthy(f, record))
}

// accessPending is the finding about an access that clients do not have yet.
func accessPending(f *Facts, record *pavv1.PavBucketAccess) Finding {
	status := &record.Status
	c := findFalse(status.Conditions, pavv1.AccessGranted)
	waits := waitingFor(f, c, "the grant of access")
	switch {
	case f.Provisioner == nil && !f.hides(hiddenProvisioners):
		return noProvisioner(f)
	case status.Step == pavv1.AccessRevokingStep || status.RevocationFailure != nil:
		return failedAccount(f, record)
	case status.Step == pavv1.AccessDelivering:
		return Finding{Code: "Delivering", State: Working, Summary: "access is granted, and the credentials are being written to " + secretsOf(record)}
	case waits != nil && status.Pod != nil && f.pod(status.Pod) == nil && c.Reason == reasonBucketBusy:
		return *waits
	case status.Pod != nil:
		return afterFailure(f, "GrantFailed", fmt.Sprintf("attempt %d to grant access failed", status.Attempt-1),
			diagnoseStep(f, accessStepWords[status.Step], status.Pod, c), status.Failure)
	case status.Failure != nil:
		in, next := nextAttempt(f, status.Failure)
		return grantFailed(f, status, fmt.Sprintf("attempt %d follows%s", status.Attempt+1, next), in)
	case c != nil && c.Reason == reasonBucketNotReady:
		return waitsForBucket(f, record)
	case waits != nil:
		return *waits
	}
	return Finding{Code: "Working", State: Working, Summary: "PaV is about to grant access"}
}

// waitsForBucket is the finding about an access whose bucket is not ready.
func waitsForBucket(f *Facts, record *pavv1.PavBucketAccess) Finding {
	found := Finding{Code: reasonBucketNotReady, State: Waiting, Summary: "access is granted when the bucket is ready"}
	ref := Ref{Kind: PavBucket, Name: record.Spec.Buckets[0].Bucket}
	if b := f.Bucket.Record; b != nil {
		ref = claimOfBucket(b)
	}
	found.Next = []Step{{Text: "see what the bucket waits for", Command: "kubectl pav describe " + ref.String()}}
	return found
}

// grantFailed is the finding about a failed attempt to grant access, or to replace an account.
func grantFailed(f *Facts, status *pavv1.PavBucketAccessStatus, next string, in time.Duration) Finding {
	failure, code, what := status.Failure, "GrantFailed", "to grant access"
	if status.Current != nil {
		code, what = "RotationFailed", "to replace the account"
		next += ", and clients keep the present one"
	}
	if failure.PodName == "" {
		return failed(f, code, fmt.Sprintf("attempt %d %s failed without a pod; %s", status.Attempt, what, next), failure, in)
	}
	return failed(f, code, fmt.Sprintf("attempt %d %s failed; %s", status.Attempt, what, next), failure, in)
}

// failedAccount is the finding about an attempt to grant access that failed, and whose account is revoked before the next one.
func failedAccount(f *Facts, record *pavv1.PavBucketAccess) Finding {
	status := &record.Status
	if found := revocationFailed(f, record, "no other attempt to grant access follows until then"); found != nil {
		return *found
	}
	now := diagnoseStep(f, accessStepWords[status.Step], status.Pod, findFalse(status.Conditions, pavv1.AccessRevokedCondition))
	if status.Failure == nil || now.State == Failing {
		return now
	}
	return failed(f, "GrantFailed", fmt.Sprintf("attempt %d to grant access failed, and its account is being revoked before the next one", status.Attempt), status.Failure, 0)
}

// revocationFailed returns a finding about an account that cannot be revoked, or nil. Then says what waits for it.
func revocationFailed(f *Facts, record *pavv1.PavBucketAccess, then string) *Finding {
	status := &record.Status
	failure := status.RevocationFailure
	if failure == nil || status.Step == pavv1.AccessRevokingStep && f.pod(status.Pod) != nil {
		return nil
	}
	in, next := nextAttempt(f, failure)
	summary := fmt.Sprintf("an account cannot be revoked: attempt %d failed, and the next one follows%s", status.RevocationAttempt, next)
	if then != "" {
		summary += "; " + then
	}
	found := failed(f, "RevocationFailed", summary, failure, in)
	return &found
}

// accessRevoked is the finding about an access that is not wanted any more.
func accessRevoked(f *Facts, record *pavv1.PavBucketAccess) Finding {
	status := &record.Status
	c := findFalse(status.Conditions, pavv1.AccessRevokedCondition)
	if f.Provisioner == nil && !f.hides(hiddenProvisioners) && len(accountsOf(record)) > 0 {
		found := noProvisioner(f)
		found.Summary += ", which defines how to revoke accounts"
		if c != nil {
			found.Reason = Brief(c.Message)
		}
		return found
	}
	if found := revocationFailed(f, record, "the objects of the access stay until then"); found != nil {
		return *found
	}
	if status.Pod != nil {
		return afterFailure(f, "RevocationFailed", fmt.Sprintf("attempt %d to revoke an account failed", status.RevocationAttempt-1),
			diagnoseStep(f, accessStepWords[status.Step], status.Pod, c), status.RevocationFailure)
	}
	if n := len(accountsOf(record)); n > 0 {
		return Finding{Code: "Revoking", State: Working, Summary: counted(n, "account") + " of the access still to be revoked"}
	}
	return Finding{Code: "Revoking", State: Working, Summary: "all accounts are revoked, and the Secret is being removed"}
}

// accessDeleted returns a finding about a record that is deleted while the access is needed, or nil.
func accessDeleted(_ *Facts, record *pavv1.PavBucketAccess) *Finding {
	if record.DeletionTimestamp == nil {
		return nil
	}
	ref := requesterOf(record)
	return &Finding{Code: "InUse", State: Waiting, Summary: "the record is to be deleted, and the access is still needed",
		Next: []Step{{Text: "delete what asks for access", Command: deleteCommand(ref)}}}
}

// expired returns a finding about credentials that have ended, or nil.
func expired(f *Facts, record *pavv1.PavBucketAccess) *Finding {
	end := record.Status.Current.ExpiresAt
	if end == nil || f.Now.Before(end.Time) {
		return nil
	}
	return &Finding{Code: "Expired", State: Failing, Summary: "the credentials that clients have ended " + cli.Duration(f.Now.Sub(end.Time)) + " ago",
		Next: []Step{{Text: "request another account", Command: "kubectl pav rotate " + rotatable(f, record).String()}}}
}

// rotatable returns the object for which another account can be requested.
func rotatable(f *Facts, record *pavv1.PavBucketAccess) Ref {
	if f.Subject.Kind == ObjectBucketClaim || f.Subject.isAccess() {
		return f.Subject
	}
	return requesterOf(record)
}

// replacing returns a finding about a rotation that is due or in progress, or nil.
func replacing(f *Facts, record *pavv1.PavBucketAccess) *Finding {
	status := &record.Status
	c := findFalse(status.Conditions, pavv1.AccessRotated)
	var found Finding
	switch {
	case status.Step == pavv1.AccessDelivering:
		found = Finding{Code: "Delivering", State: Working, Summary: "another account is granted, and its credentials are being written to " + secretsOf(record)}
	case status.Step == pavv1.AccessGranting && status.Pod != nil:
		found = afterFailure(f, "RotationFailed", fmt.Sprintf("attempt %d to replace the account failed", status.Attempt-1),
			diagnoseStep(f, accessStepWords[status.Step], status.Pod, c), status.Failure)
	case status.Failure != nil:
		in, next := nextAttempt(f, status.Failure)
		found = grantFailed(f, status, fmt.Sprintf("attempt %d follows%s", status.Attempt+1, next), in)
	default:
		return waitingFor(f, c, "the replacement of the account")
	}
	return &found
}

// revoking returns a finding about a former account that is being revoked, or nil.
func revoking(f *Facts, record *pavv1.PavBucketAccess) *Finding {
	status := &record.Status
	if found := revocationFailed(f, record, ""); found != nil {
		return found
	}
	if status.Step != pavv1.AccessRevokingStep {
		return nil
	}
	found := afterFailure(f, "RevocationFailed", fmt.Sprintf("attempt %d to revoke an account failed", status.RevocationAttempt-1),
		diagnoseStep(f, accessStepWords[status.Step], status.Pod, findFalse(status.Conditions, pavv1.AccessRevokedCondition)), status.RevocationFailure)
	return &found
}

// outdated returns a finding about pods that still have the credentials of a former account in their environment, or nil.
func outdated(f *Facts, record *pavv1.PavBucketAccess) *Finding {
	if f.Bucket.Own == nil || f.Bucket.Own.Name != record.Name {
		return nil // the pods are not known
	}
	_, secrets := f.Bucket.secrets()
	var names []string
	for i := range f.Clients {
		if pod := &f.Clients[i]; readsSecret(pod, secrets) == byEnvironment && startedBefore(pod, record.Status.Current.GrantedAt.Time) {
			names = append(names, pod.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	found := &Finding{Code: "FormerCredentials", State: Failing, Summary: fmt.Sprintf("%s started with the credentials of a former account, which is revoked", list("pod", names)),
		Next: []Step{{Text: "restart what has them in its environment", Command: fmt.Sprintf("kubectl delete pod -n %s %s", record.Spec.Requester.Namespace, strings.Join(names, " "))}}}
	if end := lastOverlap(record); !end.IsZero() {
		found.State, found.Summary = Waiting, fmt.Sprintf("%s started with the credentials of a former account, which is revoked in %s", list("pod", names), cli.Duration(end.Sub(f.Now)))
	}
	return found
}

// startedBefore reports whether a container of a pod runs since before a time. Kubernetes records whole seconds.
func startedBefore(pod *corev1.Pod, at time.Time) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.State.Running != nil && s.State.Running.StartedAt.Time.Before(at.Truncate(time.Second))
	})
}

// lastOverlap returns when the last of the former accounts that clients may have is revoked; the zero time if there is none.
func lastOverlap(record *pavv1.PavBucketAccess) (end time.Time) {
	for i := range record.Status.Former {
		if a := &record.Status.Former[i]; a.GrantedAt != nil && a.RevokeAfter != nil && a.RevokeAfter.After(end) {
			end = a.RevokeAfter.Time
		}
	}
	return end
}

// accessHealthy is the finding about an access that clients have.
func accessHealthy(f *Facts, record *pavv1.PavBucketAccess) Finding {
	account := record.Status.Current
	has := "has"
	if len(record.Spec.Buckets) > 1 {
		has = "have"
	}
	found := Finding{Code: "Healthy", State: Healthy, Summary: fmt.Sprintf("account %q has access; %s %s its credentials", idOfAccount(account), secretsOf(record), has)}
	if record.Spec.AuthenticationType == pavv1.AuthenticationServiceAccount {
		found.Summary = fmt.Sprintf("ServiceAccount %q has access as account %q; %s", record.Spec.ServiceAccountName, idOfAccount(account), howToUse(namesOfSecrets(record)))
	}
	if at := nextRotation(f, record); !at.IsZero() && at.After(f.Now) {
		found.Summary += "; another account follows in " + cli.Duration(at.Sub(f.Now))
	}
	return found
}

// nextRotation returns when the present account is replaced; the zero time for never, or if the definition is not known.
func nextRotation(f *Facts, record *pavv1.PavBucketAccess) time.Time {
	if f.Provisioner == nil {
		return time.Time{}
	}
	return podplan.NextRotation(record, f.Provisioner.Spec.BucketAccessGrant)
}

// secretsOf names the Secrets of an access.
func secretsOf(record *pavv1.PavBucketAccess) string {
	return list("Secret", namesOfSecrets(record))
}

// namesOfSecrets returns the names of the Secrets of an access.
func namesOfSecrets(record *pavv1.PavBucketAccess) []string {
	var names []string
	for _, accessed := range record.Spec.Buckets {
		names = append(names, accessed.SecretName)
	}
	return names
}

// accountsOf returns all accounts of an access that may exist, the present one first.
func accountsOf(record *pavv1.PavBucketAccess) []*pavv1.GrantedAccount {
	status := &record.Status
	all := []*pavv1.GrantedAccount{status.Current, status.Granting}
	for i := range status.Former {
		all = append(all, &status.Former[i])
	}
	return slices.DeleteFunc(all, func(a *pavv1.GrantedAccount) bool { return a == nil })
}

// failingBuckets returns findings about the first buckets and accesses that fail.
func failingBuckets(buckets []pavv1.PavBucket, accesses []pavv1.PavBucketAccess) (found []Finding) {
	more := 0
	add := func(code, what string, ref Ref, failures []*pavv1.WorkflowFailure) {
		if len(failures) == 0 {
			return
		}
		if len(found) == most {
			more++
			return
		}
		failure := failures[len(failures)-1] // that of the deletion, if both have failed
		found = append(found, Finding{Code: code, State: Failing, Summary: what + " fails", Reason: Brief(failure.Message),
			Next: []Step{{Text: "see what is wrong with it", Command: "kubectl pav describe " + ref.String()}}})
	}
	for i := range buckets {
		add("BucketFailing", "bucket "+idOfBucket(&buckets[i]), claimOfBucket(&buckets[i]), buckets[i].Status.Failures())
	}
	for i := range accesses {
		ref := requesterOf(&accesses[i])
		add("AccessFailing", "access "+qualified(ref.Namespace, ref.Name), ref, accesses[i].Status.Failures())
	}
	if more > 0 {
		found = append(found, Finding{Code: "BucketFailing", State: Failing, Summary: fmt.Sprintf("%d more buckets or accesses fail", more)})
	}
	return found
}

// hideCredentials removes from findings the pods whose logs are not to be shown unasked, as they may have printed credentials.
func hideCredentials(f *Facts, found []Finding) {
	for i := range found {
		ref := found[i].Pod
		if f.Bucket == nil || ref == nil {
			continue
		}
		if pod := f.podNamed(ref.Namespace, ref.Name); pod == nil || workflow.PrintsSecrets(pod.Labels[pavv1.WorkflowLabel]) {
			found[i].Pod = nil
		}
	}
}
