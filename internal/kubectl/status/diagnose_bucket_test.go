package status

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

type bucketTest struct {
	facts   *world
	code    string
	state   State
	summary string
	next    string // a part of the first command
}

func (test bucketTest) run(t *testing.T) {
	report := Build(test.facts.f)
	found := report.Findings[0]
	next := ""
	for _, step := range found.Next {
		if next == "" {
			next = step.Command
		}
	}
	if found.Code != test.code || found.State != test.state || !strings.Contains(found.Summary, test.summary) || !strings.Contains(next, test.next) {
		t.Errorf("got %s, %s: %q (%s), next %q", found.Code, found.State, found.Summary, found.Reason, next)
	}
}

// bucketTenant may only read what is in the namespace.
func bucketTenant(f *Facts) {
	f.Class, f.Provisioner, f.Bucket.Class, f.Bucket.AccessClass, f.Bucket.Record = nil, nil, nil, nil, nil
	f.Hidden = []string{hiddenClasses, hiddenProvisioners, hiddenPavBuckets, hiddenPavAccesses, hiddenPods, hiddenBucketClasses, hiddenAccessClasses}
}

func TestDiagnose_OfAClaimOfABucketThatHasNotBegun(t *testing.T) {
	old := func(f *Facts) {
		if f.Bucket.ObjectClaim != nil {
			f.Bucket.ObjectClaim.CreationTimestamp = *at(-time.Hour)
		}
	}
	provisioner := func(change func(*pavv1.PavProvisioner)) func(*Facts) {
		return func(f *Facts) { change(f.Provisioner) }
	}
	for name, test := range map[string]bucketTest{
		"nobody has seen it":          {claimedBucket(), "NotBegun", Working, "PaV is about to handle the claim", ""},
		"nobody has seen it for long": {claimedBucket().with(old), "ControllerSilent", Failing, "its controller agent may not be running", "kubectl -n storage"},
		"buckets are not enabled":     {claimedBucket().with(func(f *Facts) { f.Bucket.Disabled = true }), "BucketsDisabled", Failing, "buckets are not enabled", "kubectl create -f deployment-buckets.yaml"},
		"its class does not exist":    {claimedBucket().with(func(f *Facts) { f.Class, f.Provisioner = nil, nil }), "NoStorageClass", Failing, `there is no StorageClass "buckets"`, "kubectl get storageclasses"},
		"its class is another driver's": {claimedBucket().with(func(f *Facts) { f.Class.Provisioner, f.Provisioner = "ceph.rook.io/bucket", nil }),
			NotPaV, Waiting, `"ceph.rook.io/bucket" is another driver`, ""},
		"its class names a provisioner that is not there": {claimedBucket().with(func(f *Facts) { f.Provisioner, f.Similar = nil, "demos" }), "NoProvisioner", Failing, `did you mean "demos"?`, "kubectl get pavprovisioners"},
		"the provisioner serves no buckets":               {claimedBucket().with(provisioner(func(p *pavv1.PavProvisioner) { p.Spec = pavv1.PavProvisionerSpec{} })), "NoBuckets", Failing, "and so no buckets", "kubectl edit pavprovisioner demo"},
		"the provisioner goes":                            {claimedBucket().with(provisioner(func(p *pavv1.PavProvisioner) { p.DeletionTimestamp = at(0) })), "ProvisionerDeleting", Failing, "is being deleted", ""},
		"the provisioner is refused": {claimedBucket().with(provisioner(func(p *pavv1.PavProvisioner) {
			p.Status.Conditions = []metav1.Condition{{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionFalse, Message: "no"}}
		})), "ProvisionerNotAccepted", Failing, "cannot be used", "kubectl edit pavprovisioner demo"},
		"PaV refuses it":                  {claimedBucket().answered("ObjectBucketClaim", "photos", corev1.EventTypeWarning, protocol.BucketClaimRefused), protocol.BucketClaimRefused, Failing, "PaV does not serve it", ""},
		"PaV lets it wait":                {claimedBucket().answered("ObjectBucketClaim", "photos", corev1.EventTypeNormal, protocol.BucketClaimWaiting), protocol.BucketClaimWaiting, Waiting, "PaV does not serve it yet", ""},
		"it is deleted":                   {claimedBucket().with(func(f *Facts) { f.Bucket.ObjectClaim.DeletionTimestamp = at(0) }), "Deleting", Working, "no record of it", ""},
		"a BucketClaim has no class":      {cosiClaim().with(func(f *Facts) { f.Bucket.Class, f.Provisioner = nil, nil }), "NoBucketClass", Failing, `no BucketClass "buckets"`, "kubectl get bucketclasses"},
		"a BucketClaim names no Bucket":   {cosiClaim().with(func(f *Facts) { f.Bucket.Claim.Spec.ExistingBucketName = "old" }), "NoBucket", Failing, `no Bucket "old"`, "kubectl get buckets"},
		"a BucketClaim is as it must be":  {cosiClaim(), "NotBegun", Working, "", ""},
		"its status says why not":         {cosiClaim().with(func(f *Facts) { f.Bucket.ClaimError = "no" }), "NotServed", Waiting, "PaV does not serve it yet", ""},
		"an event says it first":          {cosiClaim().with(func(f *Facts) { f.Bucket.ClaimError = "no" }).answered("BucketClaim", "photos", corev1.EventTypeWarning, protocol.BucketClaimRefused), protocol.BucketClaimRefused, Failing, "", ""},
		"a tenant sees nothing yet":       {claimedBucket().with(bucketTenant), "Working", Working, "as far as you may see", ""},
		"a tenant sees that it is bound":  {claimedBucket().with(bucketTenant).with(func(f *Facts) { f.Bucket.ObjectClaim.Status.Phase = objectbucketv1.ClaimBound }), "Healthy", Healthy, "", ""},
		"a tenant sees that it is ready":  {cosiClaim().with(bucketTenant).with(func(f *Facts) { f.Bucket.Claim.Status.BucketReady = true }), "Healthy", Healthy, "", ""},
		"a tenant sees an attempt failed": {claimedBucket().with(bucketTenant).answered("ObjectBucketClaim", "photos", corev1.EventTypeWarning, protocol.BucketCreationFailed), protocol.BucketCreationFailed, Failing, "the last attempt failed", ""},
	} {
		t.Run(name, test.run)
	}
}

func TestDiagnose_OfABucket(t *testing.T) {
	fails := func(workflow, pod string, reason pavv1.FailureReason) func(*pavv1.PavBucketStatus) {
		return func(s *pavv1.PavBucketStatus) {
			s.Step, s.Pod, s.Failure = "", nil, bucketFailure(workflow, pod, "no room")
			s.Failure.Reason = reason
		}
	}
	deletes := func(s *pavv1.PavBucketStatus) { s.Phase = pavv1.BucketDeleting }
	deletionFails := func(s *pavv1.PavBucketStatus) {
		deletes(s)
		s.Pod, s.DeletionAttempt, s.DeletionFailure = nil, 3, bucketFailure(pavv1.WorkflowBucketDeletion, "pod-1", "busy")
	}
	reverts := func(s *pavv1.PavBucketStatus) {
		s.Failure = bucketFailure(pavv1.WorkflowBucketCreation, "pod-0", "no room")
	}
	waits := func(kind, reason string) func(*pavv1.PavBucketStatus) {
		return func(s *pavv1.PavBucketStatus) { s.Step, s.Pod, s.Conditions = "", nil, falseNow(kind, reason) }
	}
	ready := func(change func(*pavv1.PavBucketStatus)) *world {
		return boundBucket().with(func(f *Facts) { change(&f.Bucket.Record.Status) })
	}
	released := func(f *Facts) { f.Bucket.Record.Spec.Released = true }
	for name, test := range map[string]bucketTest{
		"a pod is about to be created":    {bucketAt(pavv1.BucketValidating, nil), "Working", Working, "the bucket validation pod is about to be created", ""},
		"a pod runs":                      {bucketAt(pavv1.BucketCreating, nil).pod("pod-1", pavv1.WorkflowBucketCreation, running), "Working", Working, "the bucket creation pod runs", ""},
		"a pod hangs":                     {bucketAt(pavv1.BucketCreating, nil).pod("pod-1", pavv1.WorkflowBucketCreation, runningSince(-time.Hour)), "RunsLong", Failing, "runs (for 1h", "kubectl pav logs obc/photos -n apps -f"},
		"another pod works on the bucket": {bucketAt(pavv1.BucketCreating, func(s *pavv1.PavBucketStatus) { s.Conditions = falseNow(pavv1.BucketCreated, "BucketBusy") }), "BucketBusy", Waiting, "waits", ""},
		"its name is another's":           {bucketAt("", waits(pavv1.BucketCreated, "BucketNameTaken")), "BucketNameTaken", Failing, "cannot begin", ""},
		"its provisioner is refused":      {bucketAt("", waits(pavv1.BucketCreated, "ProvisionerRefused")), "ProvisionerRefused", Failing, "cannot begin", "kubectl pav describe pav/demo"},
		"it was restored":                 {bucketAt("", waits(pavv1.BucketDeleted, "Restored")), "Restored", Failing, "backup", ""},
		"nothing is said":                 {bucketAt("", func(s *pavv1.PavBucketStatus) { s.Pod = nil }), "Working", Working, "about to create", ""},
		"creation failed":                 {bucketAt("", fails(pavv1.WorkflowBucketCreation, "pod-1", pavv1.FailurePodFailed)), "BucketFailed", Failing, "attempt 2 to create the bucket failed; attempt 3 follows in 19s", "kubectl edit pavprovisioner demo"},
		"it is infeasible":                {bucketAt("", fails(pavv1.WorkflowBucketCreation, "pod-1", pavv1.FailureInfeasible)), "Infeasible", Failing, "infeasible", ""},
		"validation refuses it":           {bucketAt("", fails(pavv1.WorkflowBucketValidation, "pod-1", pavv1.FailurePodFailed)), "ValidationFailed", Failing, "validation refuses the claim", ""},
		"it is refused without a pod":     {bucketAt("", fails(pavv1.WorkflowBucketValidation, "", pavv1.FailureRefused)), "BucketRefused", Failing, "the claim is refused", ""},
		"a namespace is not open":         {bucketAt("", fails(pavv1.WorkflowBucketCreation, "", pavv1.FailureNamespaceNotOpen)), "NamespaceNotOpen", Failing, "the bucket creation pod cannot be created", "kubectl label namespace"},
		"the next attempt runs":           {bucketAt(pavv1.BucketCreating, reverts).pod("pod-1", pavv1.WorkflowBucketCreation, running), "BucketFailed", Failing, "attempt 1 to create the bucket failed; now the bucket creation pod runs", ""},
		"its failure is being reverted":   {bucketAt(pavv1.BucketReverting, reverts), "BucketFailed", Failing, "is being reverted before the next one", ""},
		"its failure cannot be reverted":  {bucketAt(pavv1.BucketReverting, func(s *pavv1.PavBucketStatus) { deletionFails(s); s.Phase = pavv1.BucketPending; reverts(s) }), "RevertFailed", Failing, "deletion attempt 3 failed", ""},
		"the definition is gone":          {bucketAt(pavv1.BucketCreating, nil).with(func(f *Facts) { f.Provisioner = nil }), "NoProvisioner", Failing, "", ""},
		"an update runs":                  {ready(func(s *pavv1.PavBucketStatus) { s.Step, s.Pod = pavv1.BucketUpdating, &pavv1.PodReference{} }), "Working", Working, "the bucket update pod", ""},
		"an update failed": {ready(func(s *pavv1.PavBucketStatus) {
			s.Attempt, s.Failure = 1, bucketFailure(pavv1.WorkflowBucketUpdate, "p", "no")
		}), "UpdateFailed", Failing, "attempt 1 to update it as the claim asks for failed, and attempt 2 follows in 19s", ""},
		"its claim does not show it yet":    {boundBucket().with(func(f *Facts) { f.Bucket.ObjectClaim.Status.Phase = objectbucketv1.ClaimPending }), "Working", Working, "is about to say so in its claim", ""},
		"its ObjectBucket is another's":     {boundBucket().with(func(f *Facts) { f.Bucket.ObjectClaim.Status.Phase = objectbucketv1.ClaimPending }).answered("ObjectBucketClaim", "photos", corev1.EventTypeWarning, protocol.ObjectBucketNameTaken), protocol.ObjectBucketNameTaken, Failing, "", ""},
		"it is being deleted":               {bucketAt(pavv1.BucketDeletingStep, deletes).pod("pod-1", pavv1.WorkflowBucketDeletion, running), "Working", Working, "the bucket deletion pod runs", ""},
		"its deletion failed":               {bucketAt(pavv1.BucketDeletingStep, deletionFails), "DeletionFailed", Failing, "deletion attempt 3 failed; the next one follows in 19s", "kubectl edit pavprovisioner demo"},
		"its deletion waits for its access": {boundBucket().with(released), "StillAccessed", Working, "after access to it is revoked", "kubectl pav describe obc/photos"},
		"its deletion waits for a record":   {bucketAt("", waits(pavv1.BucketDeleted, "StillInUse")).with(released), "StillInUse", Failing, "another record has it", ""},
		"its record is deleted too early":   {bucketAt("", waits(pavv1.BucketDeleted, "InUse")).with(func(f *Facts) { f.Bucket.Record.DeletionTimestamp = at(0) }), "InUse", Waiting, "still needs the bucket", "kubectl delete obc photos -n apps"},
		"it is retained": {bucketAt("", func(s *pavv1.PavBucketStatus) {
			waits(pavv1.BucketDeleted, "MayExist")(s)
			s.Phase = pavv1.BucketRetained
		}), "MayExist", Waiting, "belongs to the administrator", "kubectl delete pavbucket b-u1"},
		"it is ready": {boundBucket(), "Healthy", Healthy, `bucket "photos-u1" exists`, ""},
	} {
		t.Run(name, test.run)
	}
}

// Accesses that others ask for must be deleted before the bucket, and those that fail are shown with it.
func TestDiagnose_OfABucketWithAccesses(t *testing.T) {
	claim := func(record *pavv1.PavBucketAccess) *world {
		return cosiClaim().with(recordBucket(readyBucket())).with(func(f *Facts) {
			f.Bucket.Record.Spec.API, f.Bucket.Claim.Status.BucketReady = pavv1.BucketAPICOSI1, true
			if record != nil {
				f.Bucket.Accesses = []pavv1.PavBucketAccess{*record}
			}
		})
	}
	failing := pavv1.PavBucketAccessStatus{Phase: pavv1.AccessPending, Attempt: 1, Failure: bucketFailure(pavv1.WorkflowGrant, "grant-1", "denied")}
	for name, test := range map[string]bucketTest{
		"there is none":          {claim(nil), "Healthy", Healthy, "nobody has asked for access to it", ""},
		"there is one":           {claim(webRecord(readyAccess())), "Healthy", Healthy, "1 access to it", ""},
		"one fails":              {claim(webRecord(failing)), "GrantFailed", Failing, "attempt 1 to grant access failed; attempt 2 follows in 19s", "kubectl edit pavprovisioner demo"},
		"the claim is deleted":   {claim(webRecord(readyAccess())).with(func(f *Facts) { f.Bucket.Claim.DeletionTimestamp = at(0) }), "StillAccessed", Waiting, "after access apps/web, which must be deleted first", "kubectl delete bucketaccess web -n apps"},
		"the tenant may see one": {claim(nil).with(func(f *Facts) { f.Hidden = []string{hiddenPavAccesses} }), "Healthy", Healthy, "exists", ""},
	} {
		t.Run(name, test.run)
	}
	report := Build(claim(webRecord(failing)).f)
	if retry := report.Findings[0].Next[len(report.Findings[0].Next)-1].Command; retry != "kubectl pav retry bucketaccess/web -n apps" {
		t.Errorf("the access is not named: %q", retry)
	}
}
