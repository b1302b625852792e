package access

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
	"github.com/albertofaria/pav/internal/workflow"
)

const recordUID = types.UID("record")

// state is an observation that a test changes.
type state struct {
	observation

	requesterGone bool // in the API server, which a decision does not ask
}

type edit = func(*state)

// requested returns an access that is requested to a bucket that is ready, and nothing has been done.
func requested(edits ...edit) state {
	s := state{observation: observation{now: noon}}
	s.record = &pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: "a-u", UID: recordUID, Finalizers: []string{pavv1.BucketFinalizer}}}
	s.record.Spec = pavv1.PavBucketAccessSpec{Provisioner: "p", API: pavv1.BucketAPIClaim, Protocol: pavv1.ProtocolS3,
		Requester: pavv1.AccessRequester{Kind: "ObjectBucketClaim", Namespace: "tenant", Name: "photos", UID: "u"},
		Buckets:   []pavv1.AccessedBucket{{Bucket: "b-u", Mode: pavv1.AccessReadWrite, SecretName: "photos"}}}
	s.buckets = []*pavv1.PavBucket{{ObjectMeta: metav1.ObjectMeta{Name: "b-u"}, Status: pavv1.PavBucketStatus{Phase: pavv1.BucketReady, BucketID: "photos"}}}
	template := pavv1.Template{Raw: []byte(`{}`)}
	s.provisioner = &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 1}}
	s.provisioner.Spec.BucketAccessGrant = &pavv1.BucketAccessGrant{PodTemplate: &template}
	s.provisioner.Spec.BucketAccessRevoke = &pavv1.BucketAccessRevoke{PodTemplate: &template}
	s.provisioner.Status.Conditions = []metav1.Condition{{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionTrue}}
	return s.with(edits...)
}

func (s state) with(edits ...edit) state {
	for _, edit := range edits {
		edit(&s)
	}
	return s
}

// granted returns an access whose clients have an account since an hour.
func granted(edits ...edit) state {
	return requested(func(s *state) {
		s.record.Status = pavv1.PavBucketAccessStatus{Phase: pavv1.AccessReady, RecordUID: recordUID, Attempt: 1, Accounts: 1, ProvisionerGeneration: 1, Current: new(account(0))}
	}).with(edits...)
}

// granting records a grant pod with a UID; the pod exists only with thePod.
func granting(s *state) {
	status := &s.record.Status
	if status.Phase == "" {
		status.Phase, status.RecordUID = pavv1.AccessPending, recordUID
	}
	status.Step, status.Granting, status.Key = pavv1.AccessGranting, new(account(1, neverGranted)), "seal-record-1"
	withPod(s)
}

func withPod(s *state) {
	s.record.Status.Pods, s.record.Status.Pod = 1, &pavv1.PodReference{Namespace: workflow.DefaultNamespace, Name: "pod", UID: "pod"}
}

func delivering(s *state) { s.record.Status.Step = pavv1.AccessDelivering }

// revoking records the revocation pod of a former account.
func revoking(s *state) {
	former(account(1, neverGranted))(s)
	s.record.Status.Step = pavv1.AccessRevokingStep
	withPod(s)
}

func former(accounts ...pavv1.GrantedAccount) edit {
	return func(s *state) { s.record.Status.Former = append(s.record.Status.Former, accounts...) }
}

func intended(s *state) { s.record.Status.Pod.UID = "" }

// thePod gives the recorded pod a state.
func thePod(edits ...func(*corev1.Pod)) edit {
	return func(s *state) {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: workflow.DefaultNamespace, Name: "pod", UID: "pod", CreationTimestamp: metav1.NewTime(noon.Add(-time.Minute)),
			Labels: map[string]string{pavv1.WorkflowLabel: workflows[s.record.Status.Step]}, Annotations: map[string]string{pavv1.AttemptAnnotation: "1", pavv1.AccountAnnotation: "1"}}}
		pod.Spec.Containers = []corev1.Container{{Name: "main"}}
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		for _, edit := range edits {
			edit(&pod)
		}
		s.Pods = []corev1.Pod{pod}
	}
}

func runs(pod *corev1.Pod) {
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, new(metav1.NewTime(noon.Add(-time.Second)))
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon.Add(-time.Second))}}}}
}

func ended(code int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodSucceeded
		if code != 0 {
			pod.Status.Phase = corev1.PodFailed
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, StartedAt: metav1.NewTime(noon.Add(-30 * time.Second)), FinishedAt: metav1.NewTime(noon.Add(-20 * time.Second))}}}}
	}
}

func result(text string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations[pavv1.ResultAnnotation] = text }
}

func released(s *state) { s.record.Spec.Released = true }

func deletedByHand(s *state) { s.record.DeletionTimestamp = new(metav1.NewTime(noon)) }

func unknownProvisioner(s *state) { s.provisioner = nil }

// failed records that the third attempt has failed.
func failed(since time.Duration) edit {
	const attempts = 3
	return func(s *state) {
		s.record.Status.Phase, s.record.Status.RecordUID, s.record.Status.Attempt, s.record.Status.ProvisionerGeneration = pavv1.AccessPending, recordUID, attempts, 1
		failure := &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowGrant, Reason: pavv1.FailurePodFailed}
		workflow.Date(failure, int(attempts), noon.Add(-since))
		s.record.Status.Failure = failure
	}
}

func revocationFailed(attempts int32, since time.Duration) edit {
	return func(s *state) {
		s.record.Status.RevocationAttempt, s.record.Status.ProvisionerGeneration = attempts, 1
		failure := &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowRevocation, Reason: pavv1.FailurePodFailed}
		workflow.Date(failure, int(attempts), noon.Add(-since))
		s.record.Status.RevocationFailure = failure
	}
}

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		state  state
		want   rule.Step
		reason string
	}{
		"it is requested":                            {state: requested(), want: stepGrant},
		"its provisioner does not exist":             {state: requested(unknownProvisioner), want: rule.Wait, reason: "NoProvisioner"},
		"its provisioner is not checked":             {state: requested(func(s *state) { s.provisioner.Status.Conditions = nil }), want: rule.Wait, reason: "ProvisionerRefused"},
		"its provisioner grants nothing":             {state: requested(func(s *state) { s.provisioner.Spec.BucketAccessGrant = nil }), want: rule.Wait, reason: "NoAccess"},
		"its provisioner is being deleted":           {state: requested(func(s *state) { s.provisioner.DeletionTimestamp = new(metav1.NewTime(noon)) }), want: stepGrant},
		"its bucket does not exist":                  {state: requested(func(s *state) { s.buckets = nil }), want: rule.Wait, reason: "BucketNotReady"},
		"its bucket is not ready":                    {state: requested(func(s *state) { s.buckets[0].Status.Phase = pavv1.BucketPending }), want: rule.Wait, reason: "BucketNotReady"},
		"its bucket was restored from a backup":      {state: requested(func(s *state) { s.buckets[0].UID, s.buckets[0].Status.RecordUID = "new", "former" }), want: rule.Wait, reason: "BucketNotReady"},
		"its bucket is not wanted any more":          {state: requested(func(s *state) { s.buckets[0].Spec.Released = true }), want: rule.Wait, reason: "BucketNotReady"},
		"its last attempt failed just now":           {state: requested(failed(0)), want: rule.Done},
		"its last attempt failed long ago":           {state: requested(failed(time.Hour)), want: stepGrant},
		"its definition was changed since":           {state: requested(failed(0), func(s *state) { s.provisioner.Generation = 2 }), want: stepGrant},
		"a retry is requested":                       {state: requested(failed(time.Second), func(s *state) { s.retry = noon }), want: stepGrant},
		"an attempt left an account":                 {state: requested(failed(time.Hour), former(account(1, neverGranted))), want: stepRevoke},
		"an attempt left its key":                    {state: requested(failed(time.Hour), func(s *state) { s.record.Status.Key = "seal-1" }), want: stepDeleteKey},
		"it was restored":                            {state: granted(func(s *state) { s.record.Status.RecordUID = "former" }), want: rule.Wait, reason: "Restored"},
		"it was restored, and is not wanted":         {state: granted(released, func(s *state) { s.record.Status.RecordUID = "former" }), want: rule.Wait, reason: "Restored"},
		"it was restored, and its record is deleted": {state: granted(deletedByHand, func(s *state) { s.record.Status.RecordUID = "former" }), want: stepForget},

		"the grant pod waits for a slot":               {state: requested(granting, intended), want: rule.RunPod},
		"the UID of the pod is not recorded":           {state: requested(granting, thePod(runs), intended), want: stepRecordPod},
		"the grant pod runs":                           {state: requested(granting, thePod(runs)), want: rule.Done},
		"the grant pod succeeded, and says nothing":    {state: requested(granting, thePod(ended(0))), want: rule.Wait, reason: "PodReporting"},
		"the grant pod succeeded":                      {state: requested(granting, thePod(ended(0), result("{}"))), want: stepMarkDelivering},
		"the grant pod is ready, and goes on":          {state: requested(granting, thePod(runs, result(`{"ready":true}`))), want: rule.Done},
		"the grant pod was ready, and failed":          {state: requested(granting, thePod(ended(1), result(`{"ready":true}`))), want: stepMarkDelivering},
		"the grant pod failed":                         {state: requested(granting, thePod(ended(1), result("{}"))), want: stepRecordFailure},
		"the grant pod was removed":                    {state: requested(granting), want: stepRecordFailure},
		"the bucket goes before the pod is created":    {state: requested(granting, intended, func(s *state) { s.buckets = nil }), want: stepDropPod},
		"its credentials are to be delivered":          {state: requested(granting, delivering, thePod(ended(0), result("{}"))), want: stepDeliver},
		"the pod with the credentials is gone":         {state: requested(granting, delivering), want: stepDeliver},
		"the credentials that all share are delivered": {state: requested(granting, delivering, func(s *state) { s.record.Status.Pod = nil }), want: stepDeliver},
		"a pod that is not recorded runs": {state: requested(func(s *state) {
			granting(s)
			thePod(runs)(s)
			s.record.Status.Pod, s.record.Status.Granting, s.record.Status.Key = nil, nil, ""
		}),
			want: rule.Wait, reason: "PodStopping"},

		"the bucket of a volume is given up":                        {state: granted(rotates(30*time.Minute), func(s *state) { s.buckets[0].Spec.Released = true }), want: stepGrant},
		"a former account of a volume is held":                      {state: granted(heldAccount(0), stagedWith(nil)), want: rule.Done},
		"a node has a former account":                               {state: granted(heldAccount(0), stagedWith(new(int32(0)))), want: rule.Done},
		"a node may have a former account, as its pod waited":       {state: granted(heldAccount(1), stagedWith(new(int32(0)))), want: rule.Done},
		"a node has a later account":                                {state: granted(heldAccount(0), stagedWith(new(int32(1)))), want: stepLetGo},
		"a node may have an account of this access, not of another": {state: granted(heldAccount(0), stagedWith(new(int32(1))), madeSinceStaged), want: rule.Done},
		"a node has a former account that has ended":                {state: granted(heldAccount(0, expires(-time.Second)), stagedWith(new(int32(0)))), want: stepLetGo},
		"a node only has the volume reserved":                       {state: granted(heldAccount(0), stagedWith(nil, ofScopePod)), want: stepLetGo},
		"a client has a former account":                             {state: granted(heldAccount(0), stagedWith(nil, ofScopePod), stagedWith(new(int32(0)), ofAClient)), want: rule.Done},
		"a client has a later account":                              {state: granted(heldAccount(0), stagedWith(nil, ofScopePod), stagedWith(new(int32(1)), ofAClient)), want: stepLetGo},
		"a node has a former account that ends":                     {state: granted(heldAccount(0, expires(time.Second)), stagedWith(new(int32(0)))), want: rule.Done},
		"a node is to stage the volume again":                       {state: granted(heldAccount(0), presentAccount(1), restages, stagedWith(new(int32(0)))), want: stepRenewStage},
		"a node was asked to stage the volume again":                {state: granted(heldAccount(0), presentAccount(1), restages, stagedWith(new(int32(0))), askedFor("1")), want: rule.Done},
		"a node was asked before the last rotation":                 {state: granted(heldAccount(0), presentAccount(2), restages, stagedWith(new(int32(0))), askedFor("1")), want: stepRenewStage},
		"a node has not recorded its account yet":                   {state: granted(heldAccount(0), presentAccount(1), restages, stagedWith(nil)), want: rule.Done},
		"the volume does not show the account yet":                  {state: granted(heldAccount(0), presentAccount(1), restages, stagedWith(new(int32(0))), shows(0)), want: rule.Done},
		"the volume shows no account":                               {state: granted(heldAccount(0), presentAccount(1), restages, stagedWith(new(int32(0))), showsNone), want: rule.Done},
		"a node keeps its account":                                  {state: granted(heldAccount(0), presentAccount(1), stagedWith(new(int32(0)))), want: rule.Done},
		"no node has the volume staged":                             {state: granted(heldAccount(0)), want: stepLetGo},
		"no node has the former account, whose time is not over":    {state: granted(former(account(0, until(time.Minute)))), want: rule.Done},
		"the volume goes, and a former account is held":             {state: requested(released, heldAccount(0)), want: stepRevoke},
		"another account of a volume is due":                        {state: granted(rotates(30*time.Minute), heldAccount(0), stagedWith(nil)), want: stepGrant},

		"clients have access":                                           {state: granted(), want: rule.Done},
		"its PavBucketAccess is deleted by hand":                        {state: granted(deletedByHand), want: rule.Wait, reason: "InUse"},
		"another account is due":                                        {state: granted(rotates(30 * time.Minute)), want: stepGrant},
		"another account is due soon":                                   {state: granted(rotates(61 * time.Minute)), want: rule.Done},
		"another account is due, and the bucket is gone":                {state: granted(rotates(time.Minute*30), func(s *state) { s.buckets = nil }), want: rule.Wait, reason: "BucketNotReady"},
		"the last rotation failed just now":                             {state: granted(rotates(30*time.Minute), failed(0)), want: rule.Done},
		"a former account works for a while":                            {state: granted(former(account(7, until(time.Minute)))), want: rule.Done},
		"the time of a former account is over":                          {state: granted(former(account(7, until(0)))), want: stepRevoke},
		"the key of the last attempt is left":                           {state: granted(func(s *state) { s.record.Status.Key = "seal-1" }), want: stepDeleteKey},
		"the definition revokes nothing":                                {state: granted(former(account(7, until(0))), func(s *state) { s.provisioner.Spec.BucketAccessRevoke = nil }), want: stepRecordRevoked},
		"credentials that all accesses share are replaced":              {state: granted(former(account(7, shared, until(0)))), want: stepRecordRevoked},
		"the same, without a provisioner":                               {state: granted(former(account(7, shared, until(0))), unknownProvisioner), want: stepRecordRevoked},
		"the last revocation failed just now":                           {state: granted(former(account(7, until(0))), revocationFailed(3, 0)), want: rule.Done},
		"the last revocation failed long ago":                           {state: granted(former(account(7, until(0))), revocationFailed(3, time.Hour)), want: stepRevoke},
		"there is no provisioner to revoke with":                        {state: granted(former(account(7, until(0))), unknownProvisioner), want: rule.Wait, reason: "NoProvisioner"},
		"a revocation that fails is not in the way of the next account": {state: granted(rotates(30*time.Minute), former(account(7, until(0))), revocationFailed(3, 0)), want: stepGrant},
		"an account of an attempt that failed is, as it may work":       {state: granted(rotates(30*time.Minute), former(account(7, neverGranted))), want: stepRevoke},
		"the revocation pod waits for a slot":                           {state: granted(revoking, intended), want: rule.RunPod},
		"the revocation pod's definition is gone in time":               {state: granted(revoking, intended, unknownProvisioner), want: stepDropPod},
		"the revocation pod runs":                                       {state: granted(revoking, thePod(runs)), want: rule.Done},
		"the revocation pod succeeded":                                  {state: granted(revoking, thePod(ended(0))), want: stepRecordRevoked},
		"the revocation pod failed":                                     {state: granted(revoking, thePod(ended(1), result("{}"))), want: stepRecordFailure},
		"the revocation pod was removed":                                {state: granted(revoking), want: stepRecordFailure},

		"it is not wanted before anything was done":        {state: requested(released), want: stepForget},
		"it is not wanted while a pod waits":               {state: requested(released, granting, intended), want: stepDropPod},
		"it is not wanted while the grant pod runs":        {state: requested(released, granting, thePod(runs)), want: rule.StopPod},
		"it is not wanted before the pod is reported":      {state: requested(released, granting, thePod(ended(0))), want: rule.Wait, reason: "PodReporting"},
		"it is not wanted after the grant pod":             {state: requested(released, granting, thePod(ended(0), result("{}"))), want: stepRelease},
		"it is not wanted while credentials are delivered": {state: requested(released, granting, delivering, thePod(ended(0), result("{}"))), want: stepRelease},
		"it is not wanted, and clients have access":        {state: granted(released), want: stepRelease},
		"it is not wanted while a revocation pod runs":     {state: granted(released, revoking, thePod(runs)), want: rule.Done},
		"it is not wanted, and an account is left":         {state: requested(released, former(account(0, until(time.Hour)))), want: stepRevoke},
		"it is not wanted, and its definition is gone":     {state: requested(released, unknownProvisioner, former(account(0, until(0)))), want: rule.Wait, reason: "NoProvisioner"},
		"it is not wanted, and its provisioner is no more": {state: requested(released, unknownProvisioner), want: stepForget},
		"it is not wanted, and a key is left":              {state: requested(released, func(s *state) { s.record.Status.Key = "seal-1" }), want: stepDeleteKey},
		"it is not wanted, and its bucket is gone, too":    {state: granted(released, func(s *state) { s.buckets = nil }), want: stepRelease},
		"it is not wanted, and its record is deleted":      {state: requested(released, deletedByHand), want: stepForget},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(test.state.observation)
			if d.Step != test.want || d.Reason != test.reason {
				t.Errorf("decided %s (%s) by the rule %q; want %s (%s)", d.Step, d.Reason, d.Rule, test.want, test.reason)
			}
		})
	}
}

// heldAccount records a former account of a volume that nodes may use. Its time is over.
func heldAccount(number int32, edits ...func(*pavv1.GrantedAccount)) edit {
	return func(s *state) {
		s.record.Spec.API = pavv1.BucketAPIVolume
		former(account(number, append(edits, until(-time.Minute), func(a *pavv1.GrantedAccount) { a.Held = true })...))(s)
	}
}

// expires lets the credentials of an account end some time from now.
func expires(in time.Duration) func(*pavv1.GrantedAccount) {
	return func(a *pavv1.GrantedAccount) { a.ExpiresAt = new(metav1.NewTime(noon.Add(in))) }
}

// madeSinceStaged lets an administrator have removed an earlier access of the volume by force, after the volume was staged.
func madeSinceStaged(s *state) { s.record.CreationTimestamp = metav1.NewTime(noon.Add(-time.Minute)) }

// stagedWith records a stage of the volume, with the account that it has recorded, if any.
func stagedWith(account *int32, edits ...func(*pavv1.PavStageSpec)) edit {
	return func(s *state) {
		stage := &pavv1.PavStage{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon.Add(-time.Minute))}, Status: pavv1.PavStageStatus{BucketAccount: account},
		}
		for _, edit := range edits {
			edit(&stage.Spec)
		}
		s.stages = append(s.stages, stage)
	}
}

// restages lets nodes stage a volume again at a rotation; presentAccount is the number of the account that the volume has, and askedFor is
// which one the node of its stage was asked to stage it with.
func restages(s *state) { s.provisioner.Spec.VolumeStaging.OnRotation = pavv1.RotationRestage }

func presentAccount(number int32) edit {
	return func(s *state) { s.record.Status.Current.Number, s.shown = number, &number }
}

// shows changes the account that the PavVolume shows.
func shows(number int32) edit { return func(s *state) { s.shown = &number } }

func showsNone(s *state) { s.shown = nil }

func askedFor(number string) edit {
	return func(s *state) { s.stages[0].Annotations = map[string]string{pavv1.RestageAnnotation: number} }
}

// ofScopePod makes a stage one that reserves the volume for a node; ofAClient makes it that of a client.
func ofScopePod(spec *pavv1.PavStageSpec) { spec.Scope = pavv1.StagingScopePod }

func ofAClient(spec *pavv1.PavStageSpec) {
	spec.Scope, spec.Client = pavv1.StagingScopePod, &pavv1.StageClient{Name: "web"}
}

func rotates(every time.Duration) edit {
	return func(s *state) { s.provisioner.Spec.BucketAccessGrant.RotateEvery = &metav1.Duration{Duration: every} }
}

// An account that a pod may have made is revoked; one of which nothing can exist is not.
func TestAbandon(t *testing.T) {
	other := accessTo("a-other", pavv1.AccessReadWrite, new(account(0, called("other"))), nil, "b")
	other.Spec.Provisioner, other.Labels = "p", map[string]string{pavv1.ProvisionerLabel: "p"}
	kube := reconciletest.Client(t, &other)
	r := &Reconciler{Now: func() time.Time { return noon }, Client: kube, Live: kube}
	for name, test := range map[string]struct {
		state state
		want  string // the identifier of the account that is to be revoked, or "" for none
	}{
		"the pod was never created":        {state: requested(granting, intended)},
		"the pod is gone":                  {state: requested(granting), want: "ba-u-1"},
		"the pod told its account":         {state: requested(granting, thePod(ended(1), result(`{"accountId":"made"}`))), want: "made"},
		"the pod told another's account":   {state: requested(granting, thePod(ended(1), result(`{"accountId":"other"}`))), want: "ba-u-1"},
		"the pod told nonsense":            {state: requested(granting, thePod(ended(1), result(`{"accountId":"no such name"}`))), want: "ba-u-1"},
		"no pod ran":                       {state: requested(granting, delivering, func(s *state) { s.record.Status.Pod = nil }), want: "ba-u-1"},
		"the pod is gone, and told before": {state: requested(granting, delivering, func(s *state) { s.record.Status.Granting.AccountID = "made" }), want: "made"},
	} {
		t.Run(name, func(t *testing.T) {
			status := test.state.record.Status.DeepCopy()
			abandon, err := r.abandon(t.Context(), test.state.observation)
			if err != nil {
				t.Fatal(err)
			}
			abandon(status)
			if status.Granting != nil || status.Pod != nil || status.Step != "" {
				t.Errorf("the attempt is not over: %+v", status)
			}
			got := ""
			if len(status.Former) > 0 {
				got = idOf(&status.Former[0])
				if account, _ := due(&pavv1.PavBucketAccess{Status: *status}, noon); account == nil {
					t.Error("the account is not to be revoked now")
				}
			}
			if got != test.want {
				t.Errorf("%q is to be revoked, want %q", got, test.want)
			}
		})
	}
}
