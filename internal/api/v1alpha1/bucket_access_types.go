package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AccessPhase is the phase of an access to buckets.
//
// +kubebuilder:validation:Enum=Pending;Ready;Rotating;Revoking;Revoked
type AccessPhase string

// The phases of a PavBucketAccess.
const (
	// AccessPending means that no credentials were given yet.
	AccessPending AccessPhase = "Pending"

	// AccessReady means that clients have access.
	AccessReady AccessPhase = "Ready"

	// AccessRotating means that clients have access, and that they get a new account.
	AccessRotating AccessPhase = "Rotating"

	// AccessRevoking means that accounts are being deleted.
	AccessRevoking AccessPhase = "Revoking"

	// AccessRevoked means that no account is left, and only objects are.
	AccessRevoked AccessPhase = "Revoked"
)

// AccessStep is the current step of an access.
//
// +kubebuilder:validation:Enum=Granting;Delivering;Revoking
type AccessStep string

// The steps. An empty step means that nothing is to be done.
const (
	// AccessGranting means that the grant pod runs, or is about to.
	AccessGranting AccessStep = "Granting"

	// AccessDelivering means that the credentials are being written to the Secrets of the access.
	AccessDelivering AccessStep = "Delivering"

	// AccessRevokingStep means that the revocation pod of an account runs, or is about to.
	AccessRevokingStep AccessStep = "Revoking"
)

// AccessGranted is the condition type of a PavBucketAccess that is true while clients have access; if it is false, its message says
// why they have none.
const AccessGranted = "Granted"

// AccessRotated is the condition type of a PavBucketAccess that is false, with the reason, while a rotation is due or in progress.
const AccessRotated = "Rotated"

// AccessRevokedCondition is the condition type of a PavBucketAccess that is false, with the reason, while an account is being revoked.
const AccessRevokedCondition = "Revoked"

// PavBucketAccess is the record of an access to buckets. It is named a-<uid of the object that asks for it>, and is written before
// any effect. It never has a credential, nor anything that is made from one.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=pavacc,singular=pavbucketaccess,path=pavbucketaccesses
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Provisioner",type=string,JSONPath=`.spec.provisioner`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.requester.namespace`
// +kubebuilder:printcolumn:name="Requester",type=string,JSONPath=`.spec.requester.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.status.step`
// +kubebuilder:printcolumn:name="Account",type=string,JSONPath=`.status.current.accountId`
// +kubebuilder:printcolumn:name="Rotation",type=integer,JSONPath=`.status.current.number`,priority=1
// +kubebuilder:printcolumn:name="Expires",type=date,JSONPath=`.status.current.expiresAt`,priority=1
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.requester.kind`,priority=1
// +kubebuilder:printcolumn:name="Failure",type=string,JSONPath=`.status.failure.reason`,priority=1,description="Why the last attempt to grant access failed."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PavBucketAccess struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the request for access.
	Spec PavBucketAccessSpec `json:"spec"`

	// status is the state of the access.
	// +optional
	Status PavBucketAccessStatus `json:"status,omitempty"`
}

// PavBucketAccessList is a list of PavBucketAccesses.
//
// +kubebuilder:object:root=true
type PavBucketAccessList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PavBucketAccess `json:"items"`
}

// AccessRequester is the object that asks for access.
type AccessRequester struct {
	// kind of the object: ObjectBucketClaim, BucketAccess, Bucket or PersistentVolumeClaim.
	Kind string `json:"kind"`

	// namespace of the object.
	Namespace string `json:"namespace"`

	// name of the object.
	Name string `json:"name"`

	// uid of the object.
	UID types.UID `json:"uid"`
}

// AccessedBucket is a bucket that is accessed.
type AccessedBucket struct {
	// bucket is the name of the PavBucket.
	Bucket string `json:"bucket"`

	// mode is what the account may do with the bucket.
	Mode BucketAccessMode `json:"mode"`

	// secretName is the name of the Secret for this bucket.
	SecretName string `json:"secretName"`
}

// PavBucketAccessSpec is the request for access.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.released) || !oldSelf.released || has(self.released) && self.released",fieldPath=".released",message="cannot be taken back"
// +kubebuilder:validation:XValidation:rule="has(self.secretNamespace) == has(oldSelf.secretNamespace)",fieldPath=".secretNamespace",message="is immutable"
type PavBucketAccessSpec struct {
	// provisioner is the name of the PavProvisioner.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Provisioner string `json:"provisioner"`

	// api is the API by which access was requested.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	API BucketAPI `json:"api"`

	// requester is the object that asks for access.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Requester AccessRequester `json:"requester"`

	// buckets are the buckets to access, with one account.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +listType=map
	// +listMapKey=bucket
	Buckets []AccessedBucket `json:"buckets"`

	// secretNamespace is the namespace of the Secrets with the credentials. Default: that of the requester.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	// +kubebuilder:validation:MaxLength=63
	SecretNamespace string `json:"secretNamespace,omitempty"`

	// protocol is the protocol by which clients access the buckets.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Protocol BucketProtocol `json:"protocol"`

	// authenticationType is how clients prove who they are.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	AuthenticationType AuthenticationType `json:"authenticationType"`

	// serviceAccountName is the ServiceAccount of the clients, in the namespace of the requester.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// parameters are those of the class.
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`

	// released says that the requester is gone, or is being deleted: its accounts are revoked.
	// +optional
	Released bool `json:"released,omitempty"`

	// access is a copy of the requester, which templates see.
	// +optional
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	Access *apiextensionsv1.JSON `json:"access,omitempty"`

	// class is a copy of the class, which templates see.
	// +optional
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	Class *apiextensionsv1.JSON `json:"class,omitempty"`
}

// GrantedAccount is an account in the store.
type GrantedAccount struct {
	// number counts the accounts of the access, from 0.
	Number int32 `json:"number"`

	// accountName is the name that the account was to have.
	AccountName string `json:"accountName"`

	// accountId identifies the account in the store; empty if no grant pod told. It may be that there is no such account.
	// +optional
	AccountID string `json:"accountId,omitempty"`

	// shared says that the credentials are those that all accesses share, which bucketAccessGrant.fromSecret named: there is no account to
	// revoke.
	// +optional
	Shared bool `json:"shared,omitempty"`

	// requestedAt is when the attempt began that made the account. Requests for another account that are later ask for the next one.
	// +optional
	RequestedAt *metav1.Time `json:"requestedAt,omitempty"`

	// grantedAt is when the grant pod had ended.
	// +optional
	GrantedAt *metav1.Time `json:"grantedAt,omitempty"`

	// expiresAt is when the credentials end; absent if they do not.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// revokeAfter is when the account is to be revoked; absent for the one that clients use.
	// +optional
	RevokeAfter *metav1.Time `json:"revokeAfter,omitempty"`

	// held says that the account of a volume was replaced, and that nodes may still have the volume staged with it: it works until
	// none has.
	// +optional
	Held bool `json:"held,omitempty"`
}

// DeliveredSecret is a Secret that PaV has written.
type DeliveredSecret struct {
	// name of the Secret.
	Name string `json:"name"`

	// uid of the Secret.
	UID types.UID `json:"uid"`

	// number of the account whose credentials it has.
	Number int32 `json:"number"`
}

// PavBucketAccessStatus is the state of an access.
type PavBucketAccessStatus struct {
	// phase is the phase of the access.
	// +optional
	Phase AccessPhase `json:"phase,omitempty"`

	// step is the current step.
	// +optional
	Step AccessStep `json:"step,omitempty"`

	// recordUID is the UID that the PavBucketAccess had when its first attempt began. If it has another one, it was restored from a
	// backup.
	// +optional
	RecordUID types.UID `json:"recordUID,omitempty"`

	// attempt is the number of the current or last attempt to grant access, from 1. A successful attempt resets it.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// revocationAttempt is the number of the current or last attempt to revoke an account, from 1. A successful attempt resets it.
	// +optional
	RevocationAttempt int32 `json:"revocationAttempt,omitempty"`

	// provisionerGeneration is the generation of the PavProvisioner that the last pod was created from.
	// +optional
	ProvisionerGeneration int64 `json:"provisionerGeneration,omitempty"`

	// pod is the pod of the current step. It is recorded before it is created.
	// +optional
	Pod *PodReference `json:"pod,omitempty"`

	// pods is the number of pods that were recorded so far. The name of each pod depends on its number.
	// +optional
	Pods int32 `json:"pods,omitempty"`

	// accounts is the number of accounts that were recorded so far. The name of each account depends on its number.
	// +optional
	Accounts int32 `json:"accounts,omitempty"`

	// granting is the account that the current attempt makes. Until the attempt has succeeded, the account may or may not exist.
	// +optional
	Granting *GrantedAccount `json:"granting,omitempty"`

	// current is the account that clients use.
	// +optional
	Current *GrantedAccount `json:"current,omitempty"`

	// former are accounts that are to be revoked: those that were replaced, and those of attempts that failed.
	// +optional
	// +listType=map
	// +listMapKey=number
	Former []GrantedAccount `json:"former,omitempty"`

	// secrets are the Secrets that have the credentials.
	// +optional
	// +listType=map
	// +listMapKey=name
	Secrets []DeliveredSecret `json:"secrets,omitempty"`

	// key is the name of the Secret in the namespace pav-credentials that opens the credentials of the current attempt. It is deleted when
	// the attempt is over.
	// +optional
	Key string `json:"key,omitempty"`

	// failure is why the last attempt to grant access failed. It is removed when an attempt succeeds.
	// +optional
	Failure *WorkflowFailure `json:"failure,omitempty"`

	// revocationFailure is why the last attempt to revoke an account failed. It is removed when an attempt succeeds.
	// +optional
	RevocationFailure *WorkflowFailure `json:"revocationFailure,omitempty"`

	// observedGeneration is the generation of the spec that the status is based on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Granted, Rotated and Revoked.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// agentVersion is the version of the agent that wrote this status last.
	// +optional
	AgentVersion string `json:"agentVersion,omitempty"`

	// lastHandledRetry is the value of the annotation pav.albertofaria.github.io/retry that the last attempt handled, so that each
	// retry counts once.
	// +optional
	LastHandledRetry string `json:"lastHandledRetry,omitempty"`
}

// Failures returns the failures of the last attempts to grant access and to revoke an account that are recorded.
func (s *PavBucketAccessStatus) Failures() []*WorkflowFailure {
	return recorded(s.Failure, s.RevocationFailure)
}
