package status

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// names returns how a report names what the user asked about: a bucket by its claim, and an access by the object that asks for it.
func (b *BucketFacts) names(subject Ref) (namespace, bucket, access string) {
	namespace, bucket = b.claimName()
	if !subject.isAccess() {
		if bucket == "" {
			bucket = subject.Name
		}
		return namespace, bucket, ""
	}
	if namespace, access = b.accessName(); access == "" {
		access = subject.Name
	}
	return namespace, bucket, access
}

// bucketDetails returns the details of a bucket and of its accesses, in the order in which the objects are created.
func bucketDetails(f *Facts) []Detail {
	b := f.Bucket
	all := claimDetails(f)
	if access := b.Access; access != nil {
		d := Detail{Name: "BucketAccess", Value: fmt.Sprintf("%s/%s", access.Namespace, access.Name)}
		if access.Status.AccessGranted {
			d.Value, d.State = d.Value+", granted", Healthy
		}
		all = append(all, underDeletion(d, &access.ObjectMeta), Detail{Name: "Access class", Value: access.Spec.BucketAccessClassName})
	}
	if value, state := provisionerDetail(f); value != "" {
		all = append(all, Detail{Name: "Provisioner", Value: value, State: state})
	}
	if b.Record != nil {
		all = append(all, bucketRecordDetail(b.Record))
	}
	for i := range b.Accesses {
		if i == most {
			all = append(all, Detail{Name: "Access", Value: fmt.Sprintf("and %d more", len(b.Accesses)-most)})
			break
		}
		all = append(all, accessDetails(f, &b.Accesses[i])...)
	}
	_, secrets := b.secrets()
	for i := range f.Clients {
		name, value, state := clientDetail(&f.Clients[i])
		all = append(all, Detail{Name: name, Value: value + ", which reads the Secret by " + readsSecret(&f.Clients[i], secrets), State: state})
	}
	return all
}

// claimDetails returns the details of the claim of a bucket, and of what its API shows of the bucket.
func claimDetails(f *Facts) []Detail {
	b := f.Bucket
	var all []Detail
	switch namespace, name := b.claimName(); {
	case b.ObjectClaim != nil:
		claim := b.ObjectClaim
		d := Detail{Name: "Claim", Value: fmt.Sprintf("ObjectBucketClaim %s/%s", namespace, name)}
		if claim.Status.Phase != "" {
			d.Value += ", " + string(claim.Status.Phase)
		}
		if claim.Status.Phase == objectbucketv1.ClaimBound {
			d.State = Healthy
		}
		all = append(all, underDeletion(d, &claim.ObjectMeta), Detail{Name: "StorageClass", Value: claim.Spec.StorageClassName})
	case b.Claim != nil:
		claim := b.Claim
		d := Detail{Name: "Claim", Value: fmt.Sprintf("BucketClaim %s/%s", namespace, name)}
		if claim.Status.BucketReady {
			d.Value, d.State = d.Value+", ready", Healthy
		}
		all = append(all, underDeletion(d, &claim.ObjectMeta))
		if claim.Spec.ExistingBucketName == "" {
			all = append(all, Detail{Name: "Class", Value: claim.Spec.BucketClassName})
		}
	case name != "" && !f.hides(hiddenObjectClaims) && !f.hides(hiddenBucketClaims):
		all = append(all, Detail{Name: "Claim", Value: fmt.Sprintf("%s/%s, does not exist", namespace, name)})
	}
	if o := b.ObjectBucket; o != nil {
		all = append(all, underDeletion(Detail{Name: "ObjectBucket", Value: strings.TrimSuffix(o.Name+", "+string(o.Status.Phase), ", ")}, &o.ObjectMeta))
	}
	if o := b.Object; o != nil {
		all = append(all, underDeletion(Detail{Name: "Bucket object", Value: fmt.Sprintf("%s, deletion policy %s", o.Name, o.Spec.DeletionPolicy)}, &o.ObjectMeta))
	}
	return all
}

func underDeletion(d Detail, object *metav1.ObjectMeta) Detail {
	if object.DeletionTimestamp != nil {
		d.Value += ", being deleted"
	}
	return d
}

// bucketRecordDetail describes a PavBucket.
func bucketRecordDetail(record *pavv1.PavBucket) Detail {
	status, spec := &record.Status, &record.Spec
	parts := []string{record.Name}
	if status.Phase != "" {
		parts = append(parts, string(status.Phase))
	}
	if status.Step != "" {
		parts = append(parts, strings.ToLower(string(status.Step)))
	}
	if status.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", status.Attempt))
	}
	if status.DeletionAttempt > 1 {
		parts = append(parts, fmt.Sprintf("deletion attempt %d", status.DeletionAttempt))
	}
	parts = append(parts, "bucket "+idOfBucket(record))
	if spec.ExistingBucketID != "" {
		parts = append(parts, "which existed before")
	}
	if spec.NameRequested {
		parts = append(parts, "a name that the claim chose")
	}
	d := Detail{Name: "Bucket", Value: strings.Join(append(parts, "reclaim policy "+string(spec.ReclaimPolicy)), ", ")}
	switch {
	case len(status.Failures()) > 0:
		d.State = Failing
	case status.Phase == pavv1.BucketReady:
		d.State = Healthy
	}
	return d
}

// accessDetails describe a PavBucketAccess and its accounts.
func accessDetails(f *Facts, record *pavv1.PavBucketAccess) []Detail {
	status, spec := &record.Status, &record.Spec
	parts := []string{record.Name}
	if status.Phase != "" {
		parts = append(parts, string(status.Phase))
	}
	if status.Step != "" {
		parts = append(parts, strings.ToLower(string(status.Step)))
	}
	if status.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", status.Attempt))
	}
	if status.RevocationAttempt > 1 {
		parts = append(parts, fmt.Sprintf("revocation attempt %d", status.RevocationAttempt))
	}
	if own := f.Bucket.Own; own == nil || own.Name != record.Name {
		parts = append(parts, "of "+requesterOf(record).String())
	}
	for _, accessed := range spec.Buckets {
		parts = append(parts, fmt.Sprintf("%s, Secret %s", accessed.Mode, accessed.SecretName))
	}
	d := Detail{Name: "Access", Value: strings.Join(parts, ", ")}
	switch {
	case len(status.Failures()) > 0:
		d.State = Failing
	case status.Phase == pavv1.AccessReady:
		d.State = Healthy
	}
	all := []Detail{d}
	for _, account := range accountsOf(record) {
		all = append(all, Detail{Name: "Account", Value: accountDetail(f, record, account)})
	}
	if at := nextRotation(f, record); !at.IsZero() {
		all = append(all, Detail{Name: "Next account", Value: relative(f, at)})
	}
	return all
}

// accountDetail says what an account is for, and until when.
func accountDetail(f *Facts, record *pavv1.PavBucketAccess, account *pavv1.GrantedAccount) string {
	text, status := idOfAccount(account), &record.Status
	switch {
	case account == status.Granting:
		return text + ", being granted"
	case account == status.Current && account.GrantedAt != nil:
		text += ", in use since " + account.GrantedAt.UTC().Format(time.RFC3339)
	case account == status.Current:
		text += ", in use"
	case account.GrantedAt == nil:
		return text + ", of an attempt that failed, to be revoked; it may not exist"
	case account.Held && !record.Spec.Released:
		return text + ", replaced, works until no node has the volume staged with it"
	case account.RevokeAfter != nil && f.Now.Before(account.RevokeAfter.Time) && !record.Spec.Released:
		return text + ", replaced, works until it is revoked " + relative(f, account.RevokeAfter.Time)
	default:
		return text + ", to be revoked"
	}
	if account.ExpiresAt != nil {
		text += ", expires " + relative(f, account.ExpiresAt.Time)
	}
	return text
}

// relative returns a time, and how far it is from now.
func relative(f *Facts, at time.Time) string {
	stamp := at.UTC().Format(time.RFC3339)
	switch d := at.Sub(f.Now); {
	case d >= time.Second:
		return fmt.Sprintf("in %s (%s)", cli.Duration(d), stamp)
	case d > -time.Second:
		return fmt.Sprintf("now (%s)", stamp)
	default:
		return fmt.Sprintf("%s ago (%s)", cli.Duration(-d), stamp)
	}
}
