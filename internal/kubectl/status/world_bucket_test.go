package status

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// bucketOfNobody is a provisioner demo of buckets, and nothing of a bucket.
func bucketOfNobody(subject Ref) *world {
	return &world{&Facts{
		Now: noon, Subject: subject, AgentNamespace: "storage", Nodes: map[string]*Node{}, Bucket: &BucketFacts{},
		Provisioner: &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Spec: pavv1.PavProvisionerSpec{
			BucketCreation:    &pavv1.BucketCreation{},
			BucketAccessGrant: &pavv1.BucketAccessGrant{RotateEvery: &metav1.Duration{Duration: 720 * time.Hour}},
		}},
	}}
}

// claimedBucket is an ObjectBucketClaim apps/photos, which PaV has not begun with.
func claimedBucket() *world {
	return bucketOfNobody(Ref{ObjectBucketClaim, "apps", "photos"}).with(func(f *Facts) {
		f.Class = &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "buckets"}, Provisioner: "demo"}
		f.Bucket.ObjectClaim = &objectbucketv1.ObjectBucketClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "photos", UID: "u1", CreationTimestamp: *at(-4 * time.Second)},
			Spec:       objectbucketv1.ObjectBucketClaimSpec{StorageClassName: "buckets", GenerateBucketName: "photos"},
			Status:     objectbucketv1.ObjectBucketClaimStatus{Phase: objectbucketv1.ClaimPending},
		}
	})
}

// cosiClaim is a BucketClaim apps/photos, which PaV has not begun with.
func cosiClaim() *world {
	return bucketOfNobody(Ref{BucketClaim, "apps", "photos"}).with(func(f *Facts) {
		f.Bucket.Class = &cosiv1.BucketClass{ObjectMeta: metav1.ObjectMeta{Name: "buckets"}, DriverName: "demo", DeletionPolicy: cosiv1.DeletionPolicyDelete}
		f.Bucket.Claim = &cosiv1.BucketClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "photos", UID: "u1", CreationTimestamp: *at(-4 * time.Second)},
			Spec:       cosiv1.BucketClaimSpec{BucketClassName: "buckets", Protocols: []cosiv1.Protocol{cosiv1.ProtocolS3}},
		}
	})
}

// cosiAccess is a BucketAccess apps/web to the bucket of BucketClaim apps/photos, which is ready. PaV has not begun with the access.
func cosiAccess() *world {
	w := cosiClaim().with(recordBucket(readyBucket()))
	return w.with(func(f *Facts) {
		f.Subject = Ref{BucketAccess, "apps", "web"}
		f.Bucket.Record.Spec.API = pavv1.BucketAPICOSI1
		f.Bucket.AccessClass = &cosiv1.BucketAccessClass{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, DriverName: "demo"}
		f.Bucket.Access = &cosiv1.BucketAccess{
			ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "web", UID: "w1", CreationTimestamp: *at(-3 * time.Second)},
			Spec:       cosiv1.BucketAccessSpec{BucketClaimName: "photos", BucketAccessClassName: "keys", CredentialsSecretName: "web-keys"},
		}
	})
}

func readyBucket() pavv1.PavBucketStatus {
	return pavv1.PavBucketStatus{Phase: pavv1.BucketReady, BucketID: "photos-u1", Created: true, Pods: 1,
		Conditions: []metav1.Condition{{Type: pavv1.BucketCreated, Status: metav1.ConditionTrue, LastTransitionTime: *at(-2 * time.Second)}}}
}

// bucketRecord is the PavBucket of the claim apps/photos with a status.
func bucketRecord(status pavv1.PavBucketStatus) *pavv1.PavBucket {
	return &pavv1.PavBucket{
		ObjectMeta: metav1.ObjectMeta{Name: "b-u1", UID: "r1", CreationTimestamp: *at(-3 * time.Second), Labels: map[string]string{pavv1.ProvisionerLabel: "demo"}},
		Spec: pavv1.PavBucketSpec{Provisioner: "demo", API: pavv1.BucketAPIClaim, BucketName: "photos-u1", ReclaimPolicy: pavv1.BucketDelete,
			ClaimRef: pavv1.ClaimReference{Namespace: "apps", Name: "photos", UID: "u1"}},
		Status: status,
	}
}

func recordBucket(status pavv1.PavBucketStatus) func(*Facts) {
	return func(f *Facts) { f.Bucket.Record = bucketRecord(status) }
}

// accessRecord is the PavBucketAccess of the ObjectBucketClaim apps/photos with a status.
func accessRecord(status pavv1.PavBucketAccessStatus) *pavv1.PavBucketAccess {
	return &pavv1.PavBucketAccess{
		ObjectMeta: metav1.ObjectMeta{Name: "a-u1", UID: "r2", CreationTimestamp: *at(-3 * time.Second), Labels: map[string]string{pavv1.ProvisionerLabel: "demo"}},
		Spec: pavv1.PavBucketAccessSpec{Provisioner: "demo", API: pavv1.BucketAPIClaim, Protocol: pavv1.ProtocolS3, AuthenticationType: pavv1.AuthenticationKey,
			Requester: pavv1.AccessRequester{Kind: "ObjectBucketClaim", Namespace: "apps", Name: "photos", UID: "u1"},
			Buckets:   []pavv1.AccessedBucket{{Bucket: "b-u1", Mode: pavv1.AccessReadWrite, SecretName: "photos"}}},
		Status: status,
	}
}

// webRecord is the PavBucketAccess of the BucketAccess apps/web.
func webRecord(status pavv1.PavBucketAccessStatus) *pavv1.PavBucketAccess {
	record := accessRecord(status)
	record.Name, record.UID, record.Spec.API = "a-w1", "r3", pavv1.BucketAPICOSI1
	record.Spec.Requester = pavv1.AccessRequester{Kind: "BucketAccess", Namespace: "apps", Name: "web", UID: "w1"}
	record.Spec.Buckets[0].SecretName = "web-keys"
	return record
}

// recordAccess lets the access that the user asked about be recorded.
func recordAccess(record *pavv1.PavBucketAccess) func(*Facts) {
	return func(f *Facts) {
		f.Bucket.Own = record
		f.Bucket.Accesses = append(f.Bucket.Accesses, *record)
	}
}

func granted(number int32, since time.Duration) *pavv1.GrantedAccount {
	name := "ba-u1"
	if number > 0 {
		name += fmt.Sprintf("-%d", number)
	}
	return &pavv1.GrantedAccount{Number: number, AccountName: name, AccountID: name, RequestedAt: at(since - 2*time.Second), GrantedAt: at(since)}
}

func readyAccess() pavv1.PavBucketAccessStatus {
	return pavv1.PavBucketAccessStatus{Phase: pavv1.AccessReady, Current: granted(0, -time.Second), Accounts: 1, Pods: 1,
		Conditions: []metav1.Condition{{Type: pavv1.AccessGranted, Status: metav1.ConditionTrue, LastTransitionTime: *at(-time.Second)}}}
}

// boundBucket is an ObjectBucketClaim that has a bucket, and access to it.
func boundBucket() *world {
	return claimedBucket().with(recordBucket(readyBucket())).with(recordAccess(accessRecord(readyAccess()))).with(func(f *Facts) {
		f.Bucket.ObjectClaim.Status.Phase = objectbucketv1.ClaimBound
		f.Bucket.ObjectBucket = &objectbucketv1.ObjectBucket{ObjectMeta: metav1.ObjectMeta{Name: "obc-apps-photos", UID: "o1"},
			Spec:   objectbucketv1.ObjectBucketSpec{ClaimRef: &corev1.ObjectReference{Namespace: "apps", Name: "photos", UID: "u1"}},
			Status: objectbucketv1.ObjectBucketStatus{Phase: objectbucketv1.BucketBound}}
	})
}

// bucketAt is an ObjectBucketClaim whose bucket is at a step, in its second attempt, with a recorded pod.
func bucketAt(step pavv1.BucketStep, change func(*pavv1.PavBucketStatus)) *world {
	status := pavv1.PavBucketStatus{Phase: pavv1.BucketPending, Step: step, Attempt: 2, Pod: &pavv1.PodReference{Namespace: "pav-pods", Name: "pod-1"}}
	if change != nil {
		change(&status)
	}
	return claimedBucket().with(recordBucket(status))
}

// accessAt is an ObjectBucketClaim whose access is at a step, in its second attempt, with a recorded pod; its bucket is ready.
func accessAt(step pavv1.AccessStep, change func(*pavv1.PavBucketAccessStatus)) *world {
	status := pavv1.PavBucketAccessStatus{Phase: pavv1.AccessPending, Step: step, Attempt: 2, Pod: &pavv1.PodReference{Namespace: "pav-pods", Name: "pod-1"}}
	if change != nil {
		change(&status)
	}
	return claimedBucket().with(recordBucket(readyBucket())).with(recordAccess(accessRecord(status)))
}

func bucketFailure(workflow, pod, message string) *pavv1.WorkflowFailure {
	failure := snapshotFailure(pod, message)
	failure.Workflow = workflow
	return failure
}

// falseNow lets a condition of a status be false.
func falseNow(kind, reason string) []metav1.Condition {
	return []metav1.Condition{{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: "why"}}
}

// answered adds an event of PaV about an object.
func (w *world) answered(kind, name, eventType, reason string) *world {
	w.f.Events = append(w.f.Events, corev1.Event{Type: eventType, Reason: reason, Message: "because", Count: 1, FirstTimestamp: *at(-time.Second), LastTimestamp: *at(-time.Second),
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "apps", Name: name}})
	return w
}

// reader adds a pod that reads the Secret photos, in its environment or as a volume, and that started at a time.
func (w *world) reader(by string, since time.Duration) *world {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "web"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
	runningSince(since)(&pod)
	if by == byEnvironment {
		pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "photos"}}}}
	} else {
		pod.Spec.Volumes = []corev1.Volume{{Name: "keys", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "photos"}}}}
	}
	w.f.Clients = append(w.f.Clients, pod)
	return w
}
