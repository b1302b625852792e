package podplan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// fromSecretField is the field of bucketAccessGrant, for errors.
const fromSecretField = "spec.bucketAccessGrant.fromSecret"

// The files of a grant pod, as the node agent names those that it cannot read.
const (
	accountIDFile = "accountId"
	expiresFile   = "expires"
)

// errNoAccess says that a definition grants no access.
var errNoAccess = errors.New("spec.bucketAccessGrant: is missing, so that nobody gets access to buckets")

// GrantedBucket is a bucket that is accessed.
type GrantedBucket struct {
	Record *pavv1.PavBucket

	// Grants are all that are to be in force on the bucket: with that of the account that is granted, and without that of an account
	// that is revoked.
	Grants []BucketGrant
}

// BucketGrant is what an account may do with a bucket.
type BucketGrant struct {
	AccountID string
	Mode      pavv1.BucketAccessMode
}

// AccessRequest is a request for access to buckets, with the definition that serves it.
type AccessRequest struct {
	BucketDefinition

	// Record is the PavBucketAccess. Its copies of objects have text of tenants, which is only used as data.
	Record *pavv1.PavBucketAccess

	// Account is the one that is granted or revoked. PreviousAccountID is the one that it replaces, or "".
	Account           pavv1.GrantedAccount
	PreviousAccountID string

	// Buckets are those of the record, in any order. For a revocation, those that are gone may be missing.
	Buckets []GrantedBucket

	// Namespace is the Namespace of the requester as the API server has it; nil if it is gone.
	Namespace map[string]any
}

// AccessPlan is how access is to be granted.
type AccessPlan struct {
	// FromSecret is the name of the Secret that has the credentials of all accesses, or "". Then no pod runs.
	FromSecret string

	// Pod is the evaluated template of the grant pod.
	Pod map[string]any
}

// Validate returns why the definition cannot grant the access, or nil.
func (r AccessRequest) Validate() error {
	v, spec := r.validation(), &r.Record.Spec
	switch {
	case r.Spec.BucketAccessGrant == nil:
		return &Error{errNoAccess}
	case !slices.Contains(v.Protocols, spec.Protocol):
		return refuse("access is requested by the protocol %s, but the provisioner supports only %s", spec.Protocol, strings.Join(stringsOf(v.Protocols), ", "))
	case !slices.Contains(v.AuthenticationTypes, spec.AuthenticationType):
		return refuse("access is requested with the authentication type %s, but the provisioner supports only %s", spec.AuthenticationType, strings.Join(stringsOf(v.AuthenticationTypes), ", "))
	case spec.AuthenticationType == pavv1.AuthenticationServiceAccount && spec.ServiceAccountName == "":
		return refuse("access is requested with the authentication type %s, but without the name of a ServiceAccount", spec.AuthenticationType)
	case spec.ServiceAccountName != "" && len(validation.IsDNS1123Subdomain(spec.ServiceAccountName)) > 0:
		return refuse("%.100q is not a valid name of a ServiceAccount", spec.ServiceAccountName)
	}
	for _, bucket := range spec.Buckets {
		if !slices.Contains(v.AccessModes, bucket.Mode) {
			return refuse("access is requested in the mode %s, but the provisioner supports only %s", bucket.Mode, strings.Join(stringsOf(v.AccessModes), ", "))
		}
	}
	for _, bucket := range r.Buckets {
		if has := bucket.Record.Status.Protocols; len(has) > 0 && !slices.Contains(has, spec.Protocol) {
			return refuse("access is requested by the protocol %s, but bucket %q supports only %s", spec.Protocol, bucketID(bucket.Record), strings.Join(stringsOf(has), ", "))
		}
	}
	return nil
}

// Grant checks the request, and evaluates spec.bucketAccessGrant.
func (r AccessRequest) Grant(ctx context.Context) (*AccessPlan, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	access, err := r.access()
	if err != nil {
		return nil, err
	}
	if given, want := len(access.Buckets), len(r.Record.Spec.Buckets); given < want {
		return nil, fmt.Errorf("PavBucketAccess %q has %d buckets, of which %d are missing", r.Record.Name, want, want-given)
	}
	g, vars, namespace := r.Spec.BucketAccessGrant, template.GrantVariables(access), r.Record.Spec.Requester.Namespace
	plan := &AccessPlan{}
	if g.FromSecret != nil {
		if plan.FromSecret, err = r.text(ctx, namespace, fromSecretField, g.FromSecret, vars); err != nil {
			return nil, err
		}
		if err := checkSecret(plan.FromSecret); err != nil {
			return nil, err
		}
	}
	if err := r.checkSecretOfClass(access.Class, plan.FromSecret); err != nil {
		return nil, err
	}
	if plan.FromSecret != "" {
		return plan, nil
	}
	plan.Pod, err = r.pod(ctx, namespace, GrantPod, g.PodTemplate, vars)
	if err == nil && plan.Pod == nil {
		err = refuse("%s: yields no pod, so that there is nothing to make an account", GrantPod)
	}
	return plan, err
}

// checkSecret returns why the credentials of all accesses cannot be in a Secret of a name, or nil.
func checkSecret(name string) error {
	switch {
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return refuse("%s: %.100q is not a valid name of a Secret", fromSecretField, name)
	case strings.HasPrefix(name, workflow.SealPrefix):
		return refuse("%s: %q is a name of Secrets that PaV keeps for itself; choose one that does not begin with %q", fromSecretField, name, workflow.SealPrefix)
	}
	return nil
}

// checkSecretOfClass returns why the credentials of an access are not those that its class names, or nil. Only classes of COSI's first
// proposal name a Secret.
func (r AccessRequest) checkSecretOfClass(class map[string]any, name string) error {
	ref, found := class["secretRef"].(map[string]any)
	if r.Record.Spec.API != pavv1.BucketAPICOSI0 || !found || name != "" && ref["name"] == name {
		return nil
	}
	return refuse("%s: yields %q, but the class of the Bucket has the secretRef %q: it must yield {{ class.secretRef.name }}", fromSecretField, name, ref["name"])
}

// Revoke evaluates spec.bucketAccessRevoke. It returns the evaluated template of the revocation pod; nil if there is none.
func (r AccessRequest) Revoke(ctx context.Context) (map[string]any, error) {
	v := r.Spec.BucketAccessRevoke
	if v == nil || v.PodTemplate == nil {
		return nil, nil
	}
	access, err := r.access()
	if err != nil {
		return nil, err
	}
	return r.pod(ctx, r.Record.Spec.Requester.Namespace, RevocationPod, v.PodTemplate, template.RevocationVariables(access, r.Account.AccountID))
}

// Planned returns the pod of a workflow that the definition plans for an access, or nil if it plans none.
func (r AccessRequest) Planned(ctx context.Context, kind string) (*corev1.Pod, error) {
	var rendered map[string]any
	var err error
	switch kind {
	case pavv1.WorkflowGrant:
		var plan *AccessPlan
		if plan, err = r.Grant(ctx); err == nil {
			rendered = plan.Pod
		}
	case pavv1.WorkflowRevocation:
		rendered, err = r.Revoke(ctx)
	}
	if err != nil || rendered == nil {
		return nil, err
	}
	return AccessPod(r.Record, kind, rendered, AccessAttempt{Account: r.Account.Number}, Placement{}, r.Defaults, 1)
}

// access returns the request as the contexts of templates are made from it, with the buckets in the order of the record.
func (r AccessRequest) access() (template.Access, error) {
	spec := &r.Record.Spec
	object, err := copyOf(r.Record, "PavBucketAccess", "spec.access", spec.Access)
	if err != nil {
		return template.Access{}, err
	}
	class, err := copyOf(r.Record, "PavBucketAccess", "spec.class", spec.Class)
	if err != nil {
		return template.Access{}, err
	}
	access := template.Access{
		AccountName: r.Account.AccountName, Protocol: string(spec.Protocol), AuthenticationType: string(spec.AuthenticationType),
		ServiceAccountNamespace: spec.Requester.Namespace, ServiceAccount: spec.ServiceAccountName,
		Params: spec.Parameters, Object: object, Class: class, Namespace: namespaceOf(r.Namespace, spec.Requester.Namespace),
		Number: int64(r.Account.Number), PreviousAccountID: r.PreviousAccountID,
	}
	for _, accessed := range spec.Buckets {
		i := slices.IndexFunc(r.Buckets, func(b GrantedBucket) bool { return b.Record.Name == accessed.Bucket })
		if i < 0 {
			continue
		}
		bucket := r.Buckets[i].Record
		grants := make([]template.BucketGrant, len(r.Buckets[i].Grants))
		for j, grant := range r.Buckets[i].Grants {
			grants[j] = template.BucketGrant{AccountID: grant.AccountID, Mode: string(grant.Mode)}
		}
		access.Buckets = append(access.Buckets, template.AccessedBucket{
			ID: bucketID(bucket), Name: bucket.Spec.BucketName, Mode: string(accessed.Mode), Info: bucket.Status.Info, Params: bucket.Spec.Parameters, Grants: grants,
		})
	}
	return access, nil
}

// AccountOutcome is what is known of an account that was granted access.
type AccountOutcome struct {
	// AccountID identifies the account in its store.
	AccountID string

	// ExpiresAt is when the credentials end; nil if they do not.
	ExpiresAt *metav1.Time
}

// AccountOutcomeOf returns what a grant pod has made for an account, from the result of the pod, which is nil if there was no pod.
func AccountOutcomeOf(account pavv1.GrantedAccount, result *workflow.Result, now time.Time) (AccountOutcome, error) {
	outcome := AccountOutcome{AccountID: account.AccountName}
	if result == nil {
		return outcome, nil
	}
	for _, file := range []string{accountIDFile, expiresFile} {
		if why, ok := result.Unreadable[file]; ok {
			return AccountOutcome{}, refuse("the grant pod's /pav/%s: %s", file, why)
		}
	}
	if result.AccountID != "" {
		if err := workflow.CheckID(result.AccountID); err != nil {
			return AccountOutcome{}, refuse("the grant pod's /pav/%s: %w", accountIDFile, err)
		}
		outcome.AccountID = result.AccountID
	}
	if result.Expires == "" {
		return outcome, nil
	}
	expires, err := time.Parse(time.RFC3339, result.Expires)
	switch {
	case err != nil:
		return AccountOutcome{}, refuse("the grant pod's /pav/%s: %.100q is not a time in RFC 3339, such as 2006-01-02T15:04:05Z", expiresFile, result.Expires)
	case !expires.After(now):
		return AccountOutcome{}, refuse("the grant pod's /pav/%s: %s is in the past, so that the credentials would be of no use", expiresFile, result.Expires)
	}
	outcome.ExpiresAt = new(metav1.NewTime(expires))
	return outcome, nil
}
