package status

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

// claimUnbegun returns what a claim waits for of which PaV has no record yet.
func claimUnbegun(f *Facts) Finding {
	b := f.Bucket
	if b.isLeaving() {
		return Finding{Code: "Deleting", State: Working, Summary: "the claim is being deleted, and PaV has no record of it"}
	}
	if f.hides(hiddenPavBuckets) {
		return claimAsSeen(f)
	}
	for _, check := range []func(*Facts) *Finding{checkBucketClass, checkBucketProvisioner, checkEnabled, told, shownError} {
		if found := check(f); found != nil {
			return *found
		}
	}
	return notHandled(f, "the claim")
}

// claimAsSeen is the finding for a user who may only read the claim.
func claimAsSeen(f *Facts) Finding {
	b := f.Bucket
	ready := b.ObjectClaim != nil && b.ObjectClaim.Status.Phase == objectbucketv1.ClaimBound || b.Claim != nil && b.Claim.Status.BucketReady
	if ready {
		return Finding{Code: "Healthy", State: Healthy, Summary: "the bucket can be used"}
	}
	if found := asSeen(f); found != nil {
		return *found
	}
	return Finding{Code: "Working", State: Working, Summary: "the bucket is being provided, as far as you may see"}
}

// asSeen returns the finding that follows from the last warning about the object, or nil. It may be about an earlier failure.
func asSeen(f *Facts) *Finding {
	if found := told(f); found != nil {
		return found
	}
	warning := lastWarning(f, namesOfBucketKinds[f.Subject.Kind].one)
	if warning == nil {
		return shownError(f)
	}
	return &Finding{Code: warning.Reason, State: Failing, Summary: "the last attempt failed", Reason: Brief(warning.Message),
		Next: []Step{{Text: "ask the administrator of the class"}}}
}

// accessUnbegun returns what an access waits for of which PaV has no record yet.
func accessUnbegun(f *Facts) Finding {
	access := f.Bucket.Access
	switch {
	case f.hides(hiddenPavAccesses) && access.Status.AccessGranted:
		return Finding{Code: "Healthy", State: Healthy, Summary: "access is granted; " + howToUse(f.Bucket.askedSecrets())}
	case f.hides(hiddenPavAccesses):
		if found := asSeen(f); found != nil {
			return *found
		}
		return Finding{Code: "Working", State: Working, Summary: "access is being granted, as far as you may see"}
	case access.DeletionTimestamp != nil:
		return Finding{Code: "Deleting", State: Working, Summary: "the access is being deleted, and PaV has no record of it"}
	}
	for _, check := range []func(*Facts) *Finding{checkAccessClass, checkBucketProvisioner, checkBucketOfAccess, checkEnabled, told, shownError} {
		if found := check(f); found != nil {
			return *found
		}
	}
	return notHandled(f, "the access")
}

// howToUse says that the Secrets of an access do so.
func howToUse(secrets []string) string {
	if len(secrets) == 1 {
		return fmt.Sprintf("Secret %s says how to use the bucket", secrets[0])
	}
	return list("Secret", secrets) + " say how to use the buckets"
}

// notHandled is the finding about an object that has everything it needs, and with which PaV has not begun.
func notHandled(f *Facts, what string) Finding {
	if since := f.Bucket.created(); f.Now.Sub(since) > silentAfter {
		return silent(f.AgentNamespace, "PaV does not handle "+what+": its controller agent may not be running")
	}
	return Finding{Code: "NotBegun", State: Working, Summary: "PaV is about to handle " + what}
}

// checkBucketClass returns a finding if the class of a claim is missing, or the Bucket that it names.
func checkBucketClass(f *Facts) *Finding {
	b := f.Bucket
	if b.ObjectClaim != nil {
		name := b.ObjectClaim.Spec.StorageClassName
		if f.Class != nil || f.hides(hiddenClasses) {
			return nil
		}
		return missingClass("StorageClass", name, "storageclasses")
	}
	spec := &b.Claim.Spec
	switch existing := spec.ExistingBucketName; {
	case existing != "" && b.Object == nil && !f.hides(hiddenCOSIBuckets):
		return &Finding{Code: "NoBucket", State: Failing, Summary: fmt.Sprintf("there is no Bucket %q, which the claim names", existing),
			Next: []Step{{Text: "create it, or correct the name", Command: "kubectl get buckets.objectstorage.k8s.io"}}}
	case existing == "" && b.Class == nil && !f.hides(hiddenBucketClasses):
		return missingClass("BucketClass", spec.BucketClassName, "bucketclasses")
	}
	return nil
}

// checkAccessClass returns a finding if the class of an access is missing.
func checkAccessClass(f *Facts) *Finding {
	if f.Bucket.AccessClass != nil || f.hides(hiddenAccessClasses) {
		return nil
	}
	return missingClass("BucketAccessClass", f.Bucket.Access.Spec.BucketAccessClassName, "bucketaccessclasses")
}

func missingClass(kind, name, plural string) *Finding {
	return &Finding{Code: "No" + kind, State: Failing, Summary: fmt.Sprintf("there is no %s %q", kind, name),
		Next: []Step{{Text: "create it, or an object with another one", Command: "kubectl get " + plural}}}
}

// checkBucketProvisioner returns a finding if the driver is not PaV's, or serves no buckets.
func checkBucketProvisioner(f *Facts) *Finding {
	name, p := f.provisionerName(), f.Provisioner
	edit := []Step{seeProvisioner(name)}
	switch {
	case name == "" || p == nil && f.hides(hiddenProvisioners):
		return nil
	case p == nil && strings.ContainsAny(name, "./"): // no PavProvisioner has such a name
		return &Finding{Code: NotPaV, State: Waiting, Summary: fmt.Sprintf("the bucket is not a PaV bucket: %q is another driver", name)}
	case p == nil:
		found := noProvisioner(f)
		return &found
	case p.DeletionTimestamp != nil:
		return &Finding{Code: "ProvisionerDeleting", State: Failing, Summary: fmt.Sprintf("PavProvisioner %q is being deleted, and serves no new claims", name)}
	case p.Refusal() != "":
		return &Finding{Code: "ProvisionerNotAccepted", State: Failing, Summary: fmt.Sprintf("PavProvisioner %q cannot be used", name), Reason: p.Refusal(), Next: edit}
	case !p.Spec.HasBuckets():
		return &Finding{Code: "NoBuckets", State: Failing, Summary: fmt.Sprintf("PavProvisioner %q has neither bucketCreation nor bucketAccessGrant, and so no buckets", name), Next: edit}
	case f.Subject.isAccess() && p.Spec.BucketAccessGrant == nil:
		return &Finding{Code: "NoAccess", State: Failing, Summary: fmt.Sprintf("PavProvisioner %q has no bucketAccessGrant, so that nobody gets access to its buckets", name), Next: edit}
	}
	return nil
}

// checkBucketOfAccess returns a finding if the claim that an access names has no bucket.
func checkBucketOfAccess(f *Facts) *Finding {
	b := f.Bucket
	name := b.Access.Spec.BucketClaimName
	switch {
	case b.Claim == nil && f.hides(hiddenBucketClaims), b.isReady(), b.Claim != nil && b.Record == nil && f.hides(hiddenPavBuckets):
		return nil
	case b.Claim == nil:
		return &Finding{Code: "NoBucketClaim", State: Waiting, Summary: fmt.Sprintf("there is no BucketClaim %q, which the access names", name),
			Next: []Step{{Text: "create it, or an access to another one", Command: "kubectl get bucketclaims -n " + b.Access.Namespace}}}
	}
	return &Finding{Code: reasonBucketNotReady, State: Waiting, Summary: fmt.Sprintf("access is granted when BucketClaim %q has a bucket", name),
		Next: []Step{{Text: "see what the claim waits for", Command: "kubectl pav describe " + Ref{Kind: BucketClaim, Namespace: b.Claim.Namespace, Name: name}.String()}}}
}

// checkEnabled returns a finding if the installation serves no buckets.
func checkEnabled(f *Facts) *Finding {
	if !f.Bucket.Disabled {
		return nil
	}
	return &Finding{Code: "BucketsDisabled", State: Failing, Summary: "buckets are not enabled: the controller agent does not have the rights that they need",
		Next: []Step{{Text: "enable them, or set buckets.enabled if Helm installed PaV", Command: "kubectl create -f deployment-buckets.yaml"}}}
}

// answers are the reasons of events with which PaV answers an object that it does not serve, or not yet.
var answers = []string{
	protocol.BucketClaimRefused, protocol.BucketClaimWaiting, protocol.ObjectBucketNameTaken, protocol.BucketBoundElsewhere, protocol.BucketUnclaimed,
	protocol.BucketAccessRefused, protocol.BucketAccessWaiting,
}

// told returns a finding with what PaV has answered last, or nil.
func told(f *Facts) *Finding {
	var answer *corev1.Event
	for i := range f.Events {
		e := &f.Events[i]
		if slices.Contains(answers, e.Reason) && (answer == nil || lastTime(e).After(lastTime(answer))) {
			answer = e
		}
	}
	if answer == nil {
		return nil
	}
	found := &Finding{Code: answer.Reason, State: Waiting, Summary: "PaV does not serve it yet", Reason: Brief(answer.Message)}
	if answer.Type == corev1.EventTypeWarning {
		found.State, found.Summary = Failing, "PaV does not serve it"
	}
	return found
}

// shownError returns a finding with what the status of the object says is wrong, or nil. Events expire, and are said first.
func shownError(f *Facts) *Finding {
	text := f.Bucket.ClaimError
	if f.Subject.isAccess() {
		text = f.Bucket.AccessError
	}
	if text == "" {
		return nil
	}
	return &Finding{Code: "NotServed", State: Waiting, Summary: "PaV does not serve it yet", Reason: Brief(text)}
}
