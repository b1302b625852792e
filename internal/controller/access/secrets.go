package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/credentials"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// privateKey is the key of a Secret of pav-credentials that has the private half of an attempt's key.
const privateKey = "private"

// errNameTaken is wrapped by errors about Secrets that belong to others.
var errNameTaken = fmt.Errorf("belongs to something else")

// errNoVersion means that the answer to a dry run has no version, which is not what an API server answers.
var errNoVersion = errors.New("the API server did not say which version of the Secret it has")

// secretOf returns a Secret of an access, without data. A Secret is written as a whole, since it cannot be read.
func secretOf(record *pavv1.PavBucketAccess, name string) (*corev1.Secret, error) {
	requester := protocol.RequesterOfAccess(record)
	if requester == nil {
		return nil, refuse("PavBucketAccess %q was requested by the API %q, which this version of PaV does not know", record.Name, record.Spec.API)
	}
	owner := metav1.OwnerReference{APIVersion: requester.APIVersion, Kind: requester.Kind, Name: requester.Name, UID: requester.UID, Controller: new(true)}
	if record.Spec.API == pavv1.BucketAPIVolume { // whose Secrets are in another namespace than the claim
		owner = ownerOf(record)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: secretNamespace(record), Name: name, OwnerReferences: []metav1.OwnerReference{owner},
			Labels: map[string]string{pavv1.AccessLabel: string(requester.UID)},
		},
		Type: corev1.SecretTypeOpaque,
	}
	if record.Spec.API == pavv1.BucketAPIClaim {
		secret.Labels[objectbucketv1.ProvisionerLabel] = strings.ReplaceAll(record.Spec.Provisioner, "/", "-")
	}
	return secret, nil
}

// ownerOf returns a reference to a record as the controller of a Secret.
func ownerOf(record *pavv1.PavBucketAccess) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: pavv1.GroupVersion.String(), Kind: kind, Name: record.Name, UID: record.UID, Controller: new(true)}
}

// secretNamespace returns the namespace of the Secrets of an access.
func secretNamespace(record *pavv1.PavBucketAccess) string {
	return cmp.Or(record.Spec.SecretNamespace, record.Spec.Requester.Namespace)
}

// writeSecret writes a Secret of an access, whether it exists or not, and returns its UID. The error is a refusal if another object has
// its name, and reconcile.ErrStale if this agent is not the one to write it, or not yet.
//
// The recorded UID is no precondition: an agent may have been killed after it had created the Secret once more, and before it recorded
// that.
func (r *Reconciler) writeSecret(ctx context.Context, record *pavv1.PavBucketAccess, name string, data map[string][]byte) (types.UID, error) {
	secret, err := secretOf(record, name)
	if err != nil {
		return "", err
	}
	secret.Data, secret.Finalizers = data, secretFinalizers[record.Spec.API]
	seen, err := r.seeSecret(ctx, secret)
	switch {
	case apierrors.IsNotFound(err):
		if seen, err = r.createSecret(ctx, record, secret); err != nil {
			return "", err
		}
	case err != nil:
		return "", aboutSecret(secret, "replacing", err)
	}
	if err := r.replaceSecret(ctx, record, secret, seen); err != nil {
		return "", err
	}
	return secret.UID, nil
}

// seeSecret returns what the API server would make of a Secret that exists, with its UID and version, by a dry run of its replacement: no
// agent can read it.
func (r *Reconciler) seeSecret(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	seen := secret.DeepCopy()
	err := r.Secrets.Update(ctx, seen, client.DryRunAll)
	return seen, err
}

// replaceSecret replaces a Secret that was seen, unless newer credentials may be in it: an agent that has stalled, and leads no more, has
// old ones. An agent that has newer ones has changed the record before it writes them. So this one asks whether the record is as it was
// after it has seen the Secret, and replaces that version and no other. The error is reconcile.ErrStale if one of them has changed, and a
// refusal if who is to have the credentials is gone: the Secret that was seen may then be in another tenant's namespace.
func (r *Reconciler) replaceSecret(ctx context.Context, record *pavv1.PavBucketAccess, secret, seen *corev1.Secret) error {
	if seen.UID == "" || seen.ResourceVersion == "" {
		return errNoVersion // without it, any version would be replaced
	}
	if err := r.checkUnchanged(ctx, record); err != nil {
		return err
	}
	if len(secret.Data) > 0 {
		if err := r.checkRequester(ctx, record); err != nil {
			return err
		}
	}
	secret.UID, secret.ResourceVersion = seen.UID, seen.ResourceVersion
	err := r.Secrets.Update(ctx, secret)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return reconcile.ErrStale
	}
	return aboutSecret(secret, "replacing", err)
}

// createSecret creates a Secret without data, which is to be replaced at once. A creation can have no precondition: an agent that stalls just
// before it may create a Secret of an access that is gone by then, or whose account was replaced. Kubernetes deletes what has lost its
// owner, but not what has finalizers, so that these are added by the replacement, and so are the credentials.
func (r *Reconciler) createSecret(ctx context.Context, record *pavv1.PavBucketAccess, secret *corev1.Secret) (*corev1.Secret, error) {
	if err := r.checkUnchanged(ctx, record); err != nil {
		return nil, err
	}
	if err := r.checkRequester(ctx, record); err != nil {
		return nil, err
	}
	created := secret.DeepCopy()
	created.Data, created.Finalizers = nil, nil
	err := r.Secrets.Create(ctx, created)
	if apierrors.IsAlreadyExists(err) {
		return nil, reconcile.ErrStale
	}
	return created, aboutSecret(secret, "creating", err)
}

// checkUnchanged returns reconcile.ErrStale if the API server does not have a record any more as it is here.
func (r *Reconciler) checkUnchanged(ctx context.Context, record *pavv1.PavBucketAccess) error {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(pavv1.GroupVersion.WithKind(kind))
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(record), live); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading PavBucketAccess %q: %w", record.Name, err)
	}
	if live.UID != record.UID || live.ResourceVersion != record.ResourceVersion {
		return reconcile.ErrStale
	}
	return nil
}

// tryWritingSecret returns the error that writeSecret would, and writes nothing.
func (r *Reconciler) tryWritingSecret(ctx context.Context, record *pavv1.PavBucketAccess, name string) error {
	secret, err := secretOf(record, name)
	if err != nil {
		return err
	}
	err = r.Secrets.Create(ctx, secret.DeepCopy(), client.DryRunAll)
	if !apierrors.IsAlreadyExists(err) {
		return aboutSecret(secret, "creating", err)
	}
	return aboutSecret(secret, "replacing", r.Secrets.Update(ctx, secret, client.DryRunAll))
}

// aboutSecret returns an error about the write of a Secret. It has nothing of the API server's text, which may quote a Secret; only the
// status code counts.
func aboutSecret(secret *corev1.Secret, doing string, err error) error {
	if err == nil {
		return nil
	}
	code, exists := codeOf(err), doing != "creating"
	switch {
	case exists && isDenied(code):
		return refuse("Secret %s/%s %w, and is left as it is: delete it, or rename the object that asks for access", secret.Namespace, secret.Name, errNameTaken)
	case isDenied(code):
		return refuse("Secret %s/%s cannot be created: the API server refuses it with status %d; is there a ResourceQuota, or is the namespace being deleted?", secret.Namespace, secret.Name, code)
	case code != 0:
		return fmt.Errorf("%s Secret %s/%s: status %d", doing, secret.Namespace, secret.Name, code)
	default:
		return fmt.Errorf("%s Secret %s/%s: there was no answer", doing, secret.Namespace, secret.Name)
	}
}

// codeOf returns the status code of an answer, or 0 if there was none.
func codeOf(err error) int {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return 0
	}
	return int(status.Status().Code)
}

// isDenied reports whether a status code says that a request would be refused again. Admission webhooks choose their codes.
func isDenied(code int) bool {
	switch code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	}
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError
}

// removeSecret deletes a Secret of an access, after it has emptied it: the answer to a deletion has the object where something holds it. A
// Secret that is not this access's is left alone. Left says that it is this access's and cannot be emptied: it is immutable, its user has
// removed the label, or the agent has lost its rights.
func (r *Reconciler) removeSecret(ctx context.Context, record *pavv1.PavBucketAccess, name string) (left bool, err error) {
	secret, err := secretOf(record, name)
	if err != nil {
		return false, err
	}
	seen, err := r.seeSecret(ctx, secret)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case isDenied(codeOf(err)): // The API server says that it is immutable before it asks the policy whose Secret it is.
		return wasDelivered(record, name), nil
	case err != nil:
		return false, aboutSecret(secret, "emptying", err)
	}
	if err := r.replaceSecret(ctx, record, secret, seen); err != nil {
		return false, err
	}
	err = r.Secrets.Delete(ctx, secret, client.Preconditions{UID: new(secret.UID)})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	return false, aboutSecret(secret, "deleting", err)
}

// wasDelivered reports whether a Secret was recorded as the access's.
func wasDelivered(record *pavv1.PavBucketAccess, name string) bool {
	return slices.ContainsFunc(record.Status.Secrets, func(s pavv1.DeliveredSecret) bool { return s.Name == name })
}

// keyName returns the name of the Secret with the key of an attempt.
func keyName(record *pavv1.PavBucketAccess, number int32) string {
	return fmt.Sprintf("%s%s-%d", workflow.SealPrefix, record.UID, number)
}

// makeKey makes the key of the current attempt, unless there is one, and returns its public half.
func (r *Reconciler) makeKey(ctx context.Context, record *pavv1.PavBucketAccess) (string, error) {
	key, err := credentials.NewKey()
	if err != nil {
		return "", err
	}
	defer clear(key.Private)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: pavv1.CredentialsNamespace, Name: record.Status.Key, OwnerReferences: []metav1.OwnerReference{ownerOf(record)}},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{privateKey: key.Private}, Immutable: new(true),
	}
	err = r.Secrets.Create(ctx, secret)
	if err == nil {
		return key.Public, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return "", aboutKey("creating", record, err)
	}
	private, err := r.readKey(ctx, record)
	if err != nil {
		return "", err
	}
	defer clear(private)
	return credentials.PublicOf(private)
}

// readKey returns the private half of the key of the current attempt, which the caller must clear. The error is a refusal if it is gone.
func (r *Reconciler) readKey(ctx context.Context, record *pavv1.PavBucketAccess) ([]byte, error) {
	secret := &corev1.Secret{}
	err := r.Secrets.Get(ctx, client.ObjectKey{Namespace: pavv1.CredentialsNamespace, Name: record.Status.Key}, secret)
	if apierrors.IsNotFound(err) {
		return nil, refuse("Secret %s/%s, which opens the credentials, is gone", pavv1.CredentialsNamespace, record.Status.Key)
	}
	if err != nil {
		return nil, aboutKey("reading", record, err)
	}
	if !metav1.IsControlledBy(secret, record) || len(secret.Data[privateKey]) == 0 {
		return nil, refuse("Secret %s/%s is not the key of this access", secret.Namespace, secret.Name)
	}
	return secret.Data[privateKey], nil
}

// aboutKey returns an error about a key. The namespace and the rights on it come with what else buckets need.
func aboutKey(doing string, record *pavv1.PavBucketAccess, err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return refuse("%s Secret %s/%s: the controller agent has no right to that, or there is no such namespace: PaV is installed without buckets (buckets.enabled of the chart, or deployment-buckets.yaml)", doing, pavv1.CredentialsNamespace, record.Status.Key)
	}
	return fmt.Errorf("%s Secret %s/%s: %s", doing, pavv1.CredentialsNamespace, record.Status.Key, apierrors.ReasonForError(err))
}

// deleteKey deletes the key of an attempt that is over, and then forgets its name.
func (r *Reconciler) deleteKey(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if err := r.deleteKeyNamed(ctx, o, o.record.Status.Key); err != nil {
		return err
	}
	return r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketAccessStatus) { status.Key = "" })
}

// deleteKeyNamed deletes a key, if there is one. Where the agent may not do so, that is told, and not in the way of revocations: Kubernetes
// deletes the key with the record.
func (r *Reconciler) deleteKeyNamed(ctx context.Context, o observation, name string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: pavv1.CredentialsNamespace, Name: name}}
	err := r.Secrets.Delete(ctx, secret)
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		text := fmt.Sprintf("Secret %s/%s, the key of an attempt that is over, may be left: the controller agent may not delete it", secret.Namespace, secret.Name)
		if due, _ := r.repeats.Due(o.record.Name, text, r.Now()); due {
			r.tell(o, true, protocol.SecretLeft, text)
		}
		return nil
	default:
		return fmt.Errorf("deleting Secret %s/%s: %s", secret.Namespace, secret.Name, apierrors.ReasonForError(err))
	}
}

// readSecret returns the data of a Secret of pav-credentials that an administrator made. The error is a refusal if there is none.
func (r *Reconciler) readSecret(ctx context.Context, name string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := r.Secrets.Get(ctx, client.ObjectKey{Namespace: pavv1.CredentialsNamespace, Name: name}, secret)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, refuse("Secret %s/%s, which spec.bucketAccessGrant.fromSecret names, does not exist", pavv1.CredentialsNamespace, name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %s", pavv1.CredentialsNamespace, name, apierrors.ReasonForError(err))
	}
	return secret.Data, nil
}
