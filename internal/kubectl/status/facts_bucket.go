package status

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// BucketFacts are the objects of one bucket, and of the accesses to it. A nil object does not exist, or the user may not read it.
type BucketFacts struct {
	// ObjectClaim is the ObjectBucketClaim, and ObjectBucket its ObjectBucket.
	ObjectClaim  *objectbucketv1.ObjectBucketClaim
	ObjectBucket *objectbucketv1.ObjectBucket

	// Claim is the BucketClaim, Class its BucketClass, and Object its Bucket, which an administrator may have written. All objects of COSI
	// are as v1alpha1 has them, and those of v1alpha2 have some of the fields.
	Claim  *cosiv1.BucketClaim
	Class  *cosiv1.BucketClass
	Object *cosiv1.Bucket

	// Access is the BucketAccess that the user asked about, and AccessClass its BucketAccessClass.
	Access      *cosiv1.BucketAccess
	AccessClass *cosiv1.BucketAccessClass

	// AskedClaims are the BucketClaims that the BucketAccess names, and AskedSecrets its Secrets, if it is of v1alpha2 and so may name
	// several. spec.bucketClaimName of Access is the one that the report is about.
	AskedClaims, AskedSecrets []string

	// ClaimError and AccessError are what the status of the BucketClaim and that of the BucketAccess say is wrong; "" for nothing.
	ClaimError, AccessError string

	// Record is the PavBucket. Of an access to several, it is the first that is not ready, or else the first.
	Record *pavv1.PavBucket

	// Own is the PavBucketAccess that the user asked about, or that of the ObjectBucketClaim; nil for that of a BucketClaim or a
	// PavBucket.
	Own *pavv1.PavBucketAccess

	// Accesses are the PavBucketAccesses to the bucket; only Own if the user asked about an access. Oldest first.
	Accesses []pavv1.PavBucketAccess

	// Disabled says that the controller agent does not have the rights that buckets need. It is only looked up if there is no record.
	Disabled bool
}

// claimName returns namespace and name of the claim of the bucket, even if it is gone.
func (b *BucketFacts) claimName() (namespace, name string) {
	switch {
	case b.ObjectClaim != nil:
		return b.ObjectClaim.Namespace, b.ObjectClaim.Name
	case b.Claim != nil:
		return b.Claim.Namespace, b.Claim.Name
	case b.Record != nil:
		return b.Record.Spec.ClaimRef.Namespace, b.Record.Spec.ClaimRef.Name
	case b.Access != nil:
		return b.Access.Namespace, b.Access.Spec.BucketClaimName
	}
	return "", ""
}

// accessName returns namespace and name of the object that asks for the access that the user asked about, even if it is gone.
func (b *BucketFacts) accessName() (namespace, name string) {
	switch {
	case b.Access != nil:
		return b.Access.Namespace, b.Access.Name
	case b.Own != nil:
		return b.Own.Spec.Requester.Namespace, b.Own.Spec.Requester.Name
	}
	return "", ""
}

// askedClaims returns the names of the BucketClaims that the BucketAccess names.
func (b *BucketFacts) askedClaims() []string {
	if len(b.AskedClaims) > 0 {
		return b.AskedClaims
	}
	return []string{b.Access.Spec.BucketClaimName}
}

// askedSecrets returns the names of the Secrets of the BucketAccess.
func (b *BucketFacts) askedSecrets() []string {
	if len(b.AskedSecrets) > 0 {
		return b.AskedSecrets
	}
	return []string{b.Access.Spec.CredentialsSecretName}
}

// bucketProvisioner returns the name of the PavProvisioner, or of another driver, of what the user asked about; "" if it is not known.
func (f *Facts) bucketProvisioner() string {
	b := f.Bucket
	switch {
	case b.Own != nil:
		return b.Own.Spec.Provisioner
	case b.Access != nil && b.AccessClass != nil:
		return b.AccessClass.DriverName
	case b.Access != nil && f.Subject.isAccess():
		return ""
	case b.Record != nil:
		return b.Record.Spec.Provisioner
	case b.Class != nil:
		return b.Class.DriverName
	case b.Object != nil:
		return b.Object.Spec.DriverName
	case f.Class != nil:
		return f.Class.Provisioner
	}
	return ""
}

// isReady reports whether access to the bucket can be granted.
func (b *BucketFacts) isReady() bool {
	return b.Record != nil && b.Record.Status.Phase == pavv1.BucketReady && !b.Record.Spec.Released
}

// isLeaving reports whether the claim is being deleted.
func (b *BucketFacts) isLeaving() bool {
	return b.ObjectClaim != nil && b.ObjectClaim.DeletionTimestamp != nil || b.Claim != nil && b.Claim.DeletionTimestamp != nil
}

// created returns when the object that the user asked about was created, or the zero time.
func (b *BucketFacts) created() time.Time {
	switch {
	case b.Access != nil:
		return b.Access.CreationTimestamp.Time
	case b.ObjectClaim != nil:
		return b.ObjectClaim.CreationTimestamp.Time
	case b.Claim != nil:
		return b.Claim.CreationTimestamp.Time
	}
	return time.Time{}
}

// secrets returns the names of the Secrets of the access that the user asked about, and their namespace.
func (b *BucketFacts) secrets() (namespace string, names []string) {
	if b.Own == nil {
		return "", nil
	}
	return b.Own.Spec.Requester.Namespace, namesOfSecrets(b.Own)
}

// failures returns the failures of the bucket and of its accesses that are recorded.
func (b *BucketFacts) failures() []*pavv1.WorkflowFailure {
	var all []*pavv1.WorkflowFailure
	if b == nil {
		return nil
	}
	if b.Record != nil {
		all = append(all, b.Record.Status.Failures()...)
	}
	for i := range b.Accesses {
		all = append(all, b.Accesses[i].Status.Failures()...)
	}
	return all
}

// claimOfBucket returns the claim of a record or, if this command does not know its kind, the record.
func claimOfBucket(record *pavv1.PavBucket) Ref {
	ref := record.Spec.ClaimRef
	switch record.Spec.API {
	case pavv1.BucketAPIClaim:
		return Ref{Kind: ObjectBucketClaim, Namespace: ref.Namespace, Name: ref.Name}
	case pavv1.BucketAPICOSI1, pavv1.BucketAPICOSI2:
		return Ref{Kind: BucketClaim, Namespace: ref.Namespace, Name: ref.Name}
	case pavv1.BucketAPICOSI0, pavv1.BucketAPIVolume:
	}
	return Ref{Kind: PavBucket, Name: record.Name}
}

// requesterOf returns the object that asks for an access or, if this command does not know its kind, the record.
func requesterOf(record *pavv1.PavBucketAccess) Ref {
	ref := record.Spec.Requester
	switch record.Spec.API {
	case pavv1.BucketAPIClaim:
		return Ref{Kind: ObjectBucketClaim, Namespace: ref.Namespace, Name: ref.Name}
	case pavv1.BucketAPICOSI1, pavv1.BucketAPICOSI2:
		return Ref{Kind: BucketAccess, Namespace: ref.Namespace, Name: ref.Name}
	case pavv1.BucketAPICOSI0, pavv1.BucketAPIVolume:
	}
	return Ref{Kind: PavAccess, Name: record.Name}
}

// idOfBucket returns what identifies a bucket in its store, as far as it is known.
func idOfBucket(record *pavv1.PavBucket) string {
	return cmp.Or(record.Status.BucketID, record.Spec.ExistingBucketID, record.Spec.BucketName)
}

// idOfAccount returns what identifies an account in its store: if no pod told, it is the name that it was to have.
func idOfAccount(account *pavv1.GrantedAccount) string {
	return cmp.Or(account.AccountID, account.AccountName)
}

// about returns the facts as if the user had asked about another object, whose name is in commands then.
func (f *Facts) about(ref Ref) *Facts {
	other := *f
	other.Subject = ref
	return &other
}

// readsSecret returns how a pod reads one of some Secrets: "environment", "volume", or "" if it reads none. What is in the environment of a
// container stays as it was when the container started.
func readsSecret(pod *corev1.Pod, secrets []string) string {
	is := map[string]bool{}
	for _, name := range secrets {
		is[name] = true
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if hasInEnvironment(&list[i], is) {
				return byEnvironment
			}
		}
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Secret != nil && is[v.Secret.SecretName] {
			return byVolume
		}
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.Secret != nil && is[source.Secret.Name] {
				return byVolume
			}
		}
	}
	return ""
}

// How a pod reads a Secret.
const (
	byEnvironment = "environment"
	byVolume      = "volume"
)

func hasInEnvironment(container *corev1.Container, secrets map[string]bool) bool {
	for _, from := range container.EnvFrom {
		if from.SecretRef != nil && secrets[from.SecretRef.Name] {
			return true
		}
	}
	for _, variable := range container.Env {
		if from := variable.ValueFrom; from != nil && from.SecretKeyRef != nil && secrets[from.SecretKeyRef.Name] {
			return true
		}
	}
	return false
}
