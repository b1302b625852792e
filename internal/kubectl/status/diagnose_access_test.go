package status

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

func TestDiagnose_OfAnAccessThatHasNotBegun(t *testing.T) {
	for name, test := range map[string]bucketTest{
		"nobody has seen it":          {cosiAccess(), "NotBegun", Working, "PaV is about to handle the access", ""},
		"its class does not exist":    {cosiAccess().with(func(f *Facts) { f.Bucket.AccessClass = nil }), "NoBucketAccessClass", Failing, `no BucketAccessClass "keys"`, "kubectl get bucketaccessclasses"},
		"its class is another's":      {cosiAccess().with(func(f *Facts) { f.Bucket.AccessClass.DriverName, f.Provisioner = "cosi.example.com", nil }), NotPaV, Waiting, "another driver", ""},
		"the provisioner grants none": {cosiAccess().with(func(f *Facts) { f.Provisioner.Spec.BucketAccessGrant = nil }), "NoAccess", Failing, "no bucketAccessGrant", "kubectl edit pavprovisioner demo"},
		"its claim does not exist":    {cosiAccess().with(func(f *Facts) { f.Bucket.Claim, f.Bucket.Record = nil, nil }), "NoBucketClaim", Waiting, `no BucketClaim "photos"`, "kubectl get bucketclaims -n apps"},
		"its claim has no bucket":     {cosiAccess().with(func(f *Facts) { f.Bucket.Record = nil }), "BucketNotReady", Waiting, `when BucketClaim "photos" has a bucket`, "kubectl pav describe bucketclaim/photos -n apps"},
		"PaV refuses it":              {cosiAccess().answered("BucketAccess", "web", corev1.EventTypeWarning, protocol.BucketAccessRefused), protocol.BucketAccessRefused, Failing, "", ""},
		"it is deleted":               {cosiAccess().with(func(f *Facts) { f.Bucket.Access.DeletionTimestamp = at(0) }), "Deleting", Working, "", ""},
		"a tenant sees nothing yet":   {cosiAccess().with(bucketTenant), "Working", Working, "as far as you may see", ""},
		"a tenant sees that it works": {cosiAccess().with(bucketTenant).with(func(f *Facts) { f.Bucket.Access.Status.AccessGranted = true }), "Healthy", Healthy, "Secret web-keys", ""},
		"a tenant sees several Secrets": {cosiAccess().with(bucketTenant).with(func(f *Facts) {
			f.Bucket.Access.Status.AccessGranted, f.Bucket.AskedSecrets = true, []string{"photos", "films"}
		}), "Healthy", Healthy, "Secrets photos, films say how to use the buckets", ""},
		"its status says why not":         {cosiAccess().with(func(f *Facts) { f.Bucket.AccessError = "no" }), "NotServed", Waiting, "PaV does not serve it yet", ""},
		"a tenant sees what it says":      {cosiAccess().with(bucketTenant).with(func(f *Facts) { f.Bucket.AccessError = "no" }), "NotServed", Waiting, "", ""},
		"the status of its claim says no": {cosiAccess().with(func(f *Facts) { f.Bucket.ClaimError = "no" }), "NotBegun", Working, "", ""},
		"a tenant sees why it fails":      {cosiAccess().with(bucketTenant).answered("BucketAccess", "web", corev1.EventTypeWarning, protocol.AccessGrantFailed), protocol.AccessGrantFailed, Failing, "the last attempt failed", ""},
		"buckets are not enabled":         {cosiAccess().with(func(f *Facts) { f.Bucket.Disabled = true }), "BucketsDisabled", Failing, "", "deployment-buckets.yaml"},
		"nobody has seen it for long":     {cosiAccess().with(func(f *Facts) { f.Bucket.Access.CreationTimestamp = *at(-time.Hour) }), "ControllerSilent", Failing, "", ""},
		"it works, and has two Secrets": {cosiAccess().with(recordAccess(func() *pavv1.PavBucketAccess {
			record := webRecord(readyAccess())
			record.Spec.Buckets = append(record.Spec.Buckets, pavv1.AccessedBucket{Bucket: "b-u2", SecretName: "films"})
			return record
		}())), "Healthy", Healthy, `account "ba-u1" has access; Secrets web-keys, films have its credentials`, ""},
		"it is recorded and is working": {cosiAccess().with(recordAccess(webRecord(readyAccess()))), "Healthy", Healthy, `account "ba-u1" has access; Secret web-keys`, ""},
	} {
		t.Run(name, test.run)
	}
}

func TestDiagnose_OfAnAccess(t *testing.T) {
	fails := func(pod string, reason pavv1.FailureReason) func(*pavv1.PavBucketAccessStatus) {
		return func(s *pavv1.PavBucketAccessStatus) {
			s.Step, s.Pod, s.Failure = "", nil, bucketFailure(pavv1.WorkflowGrant, pod, "denied")
			s.Failure.Reason = reason
		}
	}
	revocationFails := func(s *pavv1.PavBucketAccessStatus) {
		s.Step, s.Pod, s.RevocationAttempt, s.RevocationFailure = "", nil, 2, bucketFailure(pavv1.WorkflowRevocation, "pod-1", "busy")
	}
	waits := func(reason string) func(*pavv1.PavBucketAccessStatus) {
		return func(s *pavv1.PavBucketAccessStatus) {
			s.Step, s.Pod, s.Conditions = "", nil, falseNow(pavv1.AccessGranted, reason)
		}
	}
	failedFirst := func(s *pavv1.PavBucketAccessStatus) {
		s.Failure = bucketFailure(pavv1.WorkflowGrant, "pod-0", "denied")
		s.Former = []pavv1.GrantedAccount{{Number: 0, AccountName: "ba-u1", RevokeAfter: at(0)}}
	}
	has := func(change func(*pavv1.PavBucketAccessStatus)) *world {
		return boundBucket().with(func(f *Facts) {
			change(&f.Bucket.Own.Status)
			f.Bucket.Accesses = []pavv1.PavBucketAccess{*f.Bucket.Own}
		})
	}
	replaced := func(s *pavv1.PavBucketAccessStatus) {
		former := *granted(0, -2*time.Hour)
		former.RevokeAfter = at(59 * time.Minute)
		s.Current, s.Former = granted(1, -time.Minute), []pavv1.GrantedAccount{former}
	}
	released := func(w *world) *world {
		return w.with(func(f *Facts) {
			f.Bucket.Own.Spec.Released = true
			f.Bucket.Accesses = []pavv1.PavBucketAccess{*f.Bucket.Own}
			f.Subject = Ref{PavAccess, "", "a-u1"}
		})
	}
	rotating := func(s *pavv1.PavBucketAccessStatus) {
		s.Phase, s.Step, s.Attempt, s.Pod = pavv1.AccessRotating, pavv1.AccessGranting, 1, &pavv1.PodReference{Namespace: "pav-pods", Name: "pod-1"}
		s.Granting = &pavv1.GrantedAccount{Number: 1, AccountName: "ba-u1-1"}
	}
	for name, test := range map[string]bucketTest{
		"a pod is about to be created":        {accessAt(pavv1.AccessGranting, nil), "Working", Working, "the grant pod is about to be created", ""},
		"a pod runs":                          {accessAt(pavv1.AccessGranting, nil).pod("pod-1", pavv1.WorkflowGrant, running), "Working", Working, "the grant pod runs", ""},
		"another pod works on the bucket":     {accessAt(pavv1.AccessGranting, func(s *pavv1.PavBucketAccessStatus) { s.Conditions = falseNow(pavv1.AccessGranted, "BucketBusy") }), "BucketBusy", Waiting, "the grant of access waits", ""},
		"its credentials are being written":   {accessAt(pavv1.AccessDelivering, nil), "Delivering", Working, "written to Secret photos", ""},
		"it failed":                           {accessAt("", fails("pod-1", pavv1.FailurePodFailed)), "GrantFailed", Failing, "attempt 2 to grant access failed; attempt 3 follows in 19s", "kubectl edit pavprovisioner demo"},
		"its Secret is another's":             {accessAt("", fails("", protocol.SecretNameTaken)), "SecretNameTaken", Failing, "failed without a pod", "kubectl edit pavprovisioner demo"},
		"its failed account is being revoked": {accessAt(pavv1.AccessRevokingStep, failedFirst), "GrantFailed", Failing, "attempt 2 to grant access failed, and its account is being revoked before the next one", ""},
		"its failed account is not revoked":   {accessAt("", func(s *pavv1.PavBucketAccessStatus) { failedFirst(s); revocationFails(s) }), "RevocationFailed", Failing, "attempt 2 failed, and the next one follows in 19s; no other attempt to grant access follows until then", ""},
		"its bucket is not ready": {accessAt("", waits("BucketNotReady")).with(func(f *Facts) { f.Subject = Ref{PavAccess, "", "a-u1"} }), "BucketNotReady", Waiting, "when the bucket is ready",
			"kubectl pav describe obc/photos -n apps"},
		"nobody gets access":                 {accessAt("", waits("NoAccess")), "NoAccess", Failing, "cannot begin", "kubectl pav describe pav/demo"},
		"the definition is gone":             {accessAt(pavv1.AccessGranting, nil).with(func(f *Facts) { f.Provisioner = nil; f.Subject = Ref{PavAccess, "", "a-u1"} }), "NoProvisioner", Failing, "", ""},
		"it works":                           {boundBucket().with(func(f *Facts) { f.Subject = Ref{PavAccess, "", "a-u1"} }), "Healthy", Healthy, `account "ba-u1" has access; Secret photos has its credentials; another account follows in 29d`, ""},
		"its credentials have ended":         {has(func(s *pavv1.PavBucketAccessStatus) { s.Current.ExpiresAt = at(-time.Minute) }), "Expired", Failing, "ended 1m ago", "kubectl pav rotate obc/photos -n apps"},
		"another account is being granted":   {has(rotating).pod("pod-1", pavv1.WorkflowGrant, running), "Working", Working, "the grant pod runs", ""},
		"another account cannot be granted":  {has(func(s *pavv1.PavBucketAccessStatus) { s.Attempt = 1; fails("pod-1", pavv1.FailurePodFailed)(s) }), "RotationFailed", Failing, "attempt 1 to replace the account failed; attempt 2 follows in 19s, and clients keep the present one", ""},
		"a former account cannot be revoked": {has(func(s *pavv1.PavBucketAccessStatus) { replaced(s); revocationFails(s) }), "RevocationFailed", Failing, "an account cannot be revoked: attempt 2 failed", ""},
		"a former account is being revoked": {has(func(s *pavv1.PavBucketAccessStatus) {
			replaced(s)
			s.Step, s.Pod = pavv1.AccessRevokingStep, &pavv1.PodReference{}
		}), "Working", Working, "the revocation pod", ""},
		"a pod has a former account":      {has(replaced).reader(byEnvironment, -time.Hour), "FormerCredentials", Waiting, "pod web started with the credentials of a former account, which is revoked in 59m", "kubectl delete pod -n apps web"},
		"a pod has a revoked account":     {has(func(s *pavv1.PavBucketAccessStatus) { replaced(s); s.Former = nil }).reader(byEnvironment, -time.Hour), "FormerCredentials", Failing, "which is revoked", ""},
		"a pod has the present account":   {has(replaced).reader(byEnvironment, -time.Second), "Healthy", Healthy, "", ""},
		"a pod reads the present account": {has(replaced).reader(byVolume, -time.Hour), "Healthy", Healthy, "", ""},
		"its record is deleted too early": {has(func(*pavv1.PavBucketAccessStatus) {}).with(func(f *Facts) { f.Bucket.Accesses[0].DeletionTimestamp = at(0) }), "InUse", Waiting, "still needed", "kubectl delete obc photos -n apps"},
		"it was restored": {has(func(s *pavv1.PavBucketAccessStatus) {
			s.Conditions = falseNow(pavv1.AccessRevokedCondition, "Restored")
		}), "Restored", Failing, "", ""},
		"it is to be revoked":            {released(boundBucket()), "Revoking", Working, "1 account of the access", ""},
		"its accounts are revoked":       {released(has(func(s *pavv1.PavBucketAccessStatus) { s.Current = nil })), "Revoking", Working, "the Secret is being removed", ""},
		"its revocation failed":          {released(has(revocationFails)), "RevocationFailed", Failing, "the objects of the access stay until then", ""},
		"nothing says how it is revoked": {released(boundBucket()).with(func(f *Facts) { f.Provisioner = nil }), "NoProvisioner", Failing, "which defines how to revoke accounts", ""},
		"its revocation pod runs": {released(has(func(s *pavv1.PavBucketAccessStatus) {
			s.Step, s.Pod = pavv1.AccessRevokingStep, &pavv1.PodReference{Namespace: "pav-pods", Name: "pod-1"}
		})).pod("pod-1", pavv1.WorkflowRevocation, running), "Working", Working, "the revocation pod runs", ""},
	} {
		t.Run(name, test.run)
	}
}

// A grant pod may have printed credentials, and a revocation pod those that stay: their logs are not shown unasked.
func TestBuild_NeverShowsTheLogOfAPodThatPrintsSecrets(t *testing.T) {
	for _, workflow := range []string{pavv1.WorkflowGrant, pavv1.WorkflowRevocation} {
		for name, change := range map[string]func(*corev1.Pod){"a pod that failed": failedWith(1), "a pod that hangs": runningSince(-time.Hour)} {
			step := pavv1.AccessGranting
			if workflow == pavv1.WorkflowRevocation {
				step = pavv1.AccessRevokingStep
			}
			w := accessAt(step, func(s *pavv1.PavBucketAccessStatus) {
				if name == "a pod that failed" {
					s.Pod, s.Failure = nil, bucketFailure(workflow, "pod-1", "denied")
					if workflow == pavv1.WorkflowRevocation {
						s.Step, s.Failure, s.RevocationFailure = "", nil, s.Failure
					}
				}
			}).pod("pod-1", workflow, change)
			report := Build(w.f)
			finding := report.Findings[0]
			if finding.State != Failing || finding.Pod != nil {
				t.Errorf("%s of %s: %s, the log of %v is shown", workflow, name, finding.Summary, finding.Pod)
			}
			for _, step := range finding.Next {
				if strings.Contains(step.Command, "get secret") {
					t.Errorf("suggests %q", step.Command)
				}
			}
		}
	}
}

func TestDetails_OfAnAccess(t *testing.T) {
	w := boundBucket().with(func(f *Facts) {
		status := &f.Bucket.Own.Status
		former := *granted(0, -2*time.Hour)
		former.RevokeAfter = at(59 * time.Minute)
		status.Current, status.Former = granted(2, -time.Minute), []pavv1.GrantedAccount{former, {Number: 1, AccountName: "ba-u1-1"}}
		status.Current.ExpiresAt = at(30 * time.Hour)
		status.Granting = &pavv1.GrantedAccount{Number: 3, AccountName: "ba-u1-3"}
		f.Bucket.Accesses = []pavv1.PavBucketAccess{*f.Bucket.Own}
	}).reader(byVolume, 0)
	var got []string
	for _, d := range Build(w.f).Details {
		got = append(got, d.Name+": "+d.Value)
	}
	for _, want := range []string{
		"Claim: ObjectBucketClaim apps/photos, Bound", "StorageClass: buckets", "ObjectBucket: obc-apps-photos, Bound", "Provisioner: demo",
		"Bucket: b-u1, Ready, bucket photos-u1, reclaim policy Delete",
		"Access: a-u1, Ready, ReadWrite, Secret photos",
		"Account: ba-u1-2, in use since 2026-03-01T11:59:00Z, expires in 1d6h (2026-03-02T18:00:00Z)",
		"Account: ba-u1-3, being granted",
		"Account: ba-u1, replaced, works until it is revoked in 59m (2026-03-01T12:59:00Z)",
		"Account: ba-u1-1, of an attempt that failed, to be revoked; it may not exist",
		"Next account: in 19h59m (2026-03-02T07:59:40Z)",
		"Used by: pod web, Running, which reads the Secret by volume",
	} {
		found := false
		for _, line := range got {
			found = found || line == want
		}
		if !found {
			t.Errorf("no %q in:\n%s", want, strings.Join(got, "\n"))
		}
	}
}

func TestEntries_OfABucket(t *testing.T) {
	w := boundBucket().pod("grant-1", pavv1.WorkflowGrant, func(pod *corev1.Pod) {
		pod.Annotations[pavv1.AccessAnnotation] = "a-u1"
		pod.Status.Phase = corev1.PodSucceeded
	}).answered("ObjectBucketClaim", "photos", corev1.EventTypeNormal, protocol.AccessGrantedEvent)
	var got []string
	for _, e := range Build(w.f).Timeline {
		got = append(got, e.Object+": "+e.What)
	}
	want := []string{
		"claim: created, of StorageClass buckets",
		"bucket: the bucket was requested of demo",
		"access: access was requested of demo",
		"bucket: ready",
		"pod grant-1: access-grant pod created",
		"access: account ba-u1 got access",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s", strings.Join(got, "\n"))
	}
}

func TestTitle_OfABucket(t *testing.T) {
	for want, w := range map[string]*world{
		"Bucket of claim apps/photos": claimedBucket(),
		"Access apps/web":             cosiAccess(),
		"Access a-u1": bucketOfNobody(Ref{PavAccess, "", "a-u1"}).with(recordAccess(&pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: "a-u1"},
			Spec: pavv1.PavBucketAccessSpec{Buckets: []pavv1.AccessedBucket{{Bucket: "b"}}}})),
	} {
		if got := title(Build(w.f)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAccountDetail_OfAVolume(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	over := metav1.NewTime(now.Add(-time.Minute))
	record := &pavv1.PavBucketAccess{}
	record.Status.Former = []pavv1.GrantedAccount{{AccountName: "ba-u1", GrantedAt: &over, RevokeAfter: &over, Held: true}}
	for released, want := range map[bool]string{false: "ba-u1, replaced, works until no node has the volume staged with it", true: "ba-u1, to be revoked"} {
		record.Spec.Released = released
		if got := accountDetail(&Facts{Now: now}, record, &record.Status.Former[0]); got != want {
			t.Errorf("released %t: got %q", released, got)
		}
	}
}
