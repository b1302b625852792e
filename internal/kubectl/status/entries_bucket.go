package status

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// bucketEntries returns the entries about the objects of a bucket and of its accesses.
func bucketEntries(f *Facts) []Entry {
	b := f.Bucket
	var all []Entry
	created := func(object *metav1.ObjectMeta, name, what string) {
		all = append(all, Entry{Time: object.CreationTimestamp, Object: name, What: what, rank: rankClaim})
		all = append(all, deleted(object, name, rankEnd)...)
	}
	if claim := b.ObjectClaim; claim != nil {
		created(&claim.ObjectMeta, "claim", "created, of StorageClass "+claim.Spec.StorageClassName)
	}
	if claim := b.Claim; claim != nil {
		what := "created, of BucketClass " + claim.Spec.BucketClassName
		if claim.Spec.ExistingBucketName != "" {
			what = "created, for Bucket " + claim.Spec.ExistingBucketName
		}
		created(&claim.ObjectMeta, "claim", what)
	}
	if access := b.Access; access != nil {
		created(&access.ObjectMeta, "access", "created, for "+list("claim", b.askedClaims()))
	}
	if b.Record != nil {
		all = append(all, bucketRecordEntries(f, b.Record)...)
	}
	for i := range b.Accesses {
		all = append(all, accessEntries(f, &b.Accesses[i])...)
	}
	return all
}

func bucketRecordEntries(f *Facts, record *pavv1.PavBucket) []Entry {
	const object = "bucket"
	all := []Entry{{Time: record.CreationTimestamp, Object: object, What: "the bucket was requested of " + record.Spec.Provisioner, rank: rankVolume}}
	if c := meta.FindStatusCondition(record.Status.Conditions, pavv1.BucketCreated); c != nil && c.Status == metav1.ConditionTrue {
		all = append(all, Entry{Time: c.LastTransitionTime, Object: object, What: "ready", State: Healthy,
			Duration: took(record.CreationTimestamp.Time, c.LastTransitionTime.Time), Of: "in all", rank: rankPV - 1})
	}
	if at := record.Status.RetainedTime; at != nil {
		all = append(all, Entry{Time: *at, Object: object, What: "given to the administrator", rank: rankEnd})
	}
	for _, failure := range record.Status.Failures() {
		all = append(all, failureEntry(f, object, failure)...)
	}
	return append(all, deleted(&record.ObjectMeta, object, rankEnd+1)...)
}

func accessEntries(f *Facts, record *pavv1.PavBucketAccess) []Entry {
	object := f.nameOfAccess(record.Name)
	all := []Entry{{Time: record.CreationTimestamp, Object: object, What: "access was requested of " + record.Spec.Provisioner, rank: rankVolume + 1}}
	for _, account := range accountsOf(record) {
		if account.GrantedAt == nil {
			continue
		}
		e := Entry{Time: *account.GrantedAt, Object: object, What: fmt.Sprintf("account %s got access", idOfAccount(account)), State: Healthy, rank: rankEnd}
		if account.Number == 0 {
			e.Duration, e.Of = took(record.CreationTimestamp.Time, account.GrantedAt.Time), "in all"
		}
		all = append(all, e)
	}
	for _, failure := range record.Status.Failures() {
		all = append(all, failureEntry(f, object, failure)...)
	}
	return append(all, deleted(&record.ObjectMeta, object, rankEnd+1)...)
}

// nameOfAccess names an access in the timeline: the one that the user asked about needs no name.
func (f *Facts) nameOfAccess(name string) string {
	if own := f.Bucket.Own; own != nil && own.Name == name {
		return "access"
	}
	for i := range f.Bucket.Accesses {
		if record := &f.Bucket.Accesses[i]; record.Name == name {
			return "access " + record.Spec.Requester.Name
		}
	}
	return "access " + name
}

// wanted returns when the wait for the first pod of a bucket or of an access began; the zero time for other pods. An access waits for its
// bucket before that.
func (b *BucketFacts) wanted(pod *corev1.Pod) time.Time {
	if workflow.Attempt(pod) != 1 {
		return time.Time{}
	}
	if record := b.Record; record != nil && pod.Annotations[pavv1.BucketAnnotation] == record.Name {
		return record.CreationTimestamp.Time
	}
	for i := range b.Accesses {
		record := &b.Accesses[i]
		if pod.Annotations[pavv1.AccessAnnotation] != record.Name {
			continue
		}
		since := record.CreationTimestamp.Time
		if b.Record == nil {
			return since
		}
		if c := meta.FindStatusCondition(b.Record.Status.Conditions, pavv1.BucketCreated); c != nil && c.Status == metav1.ConditionTrue && c.LastTransitionTime.After(since) {
			return c.LastTransitionTime.Time
		}
		return since
	}
	return time.Time{}
}
