package selftest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/status"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
)

// bucket is a bucket to test, by the API that claims it.
type bucket struct{ api pavv1.BucketAPI }

// bucketName is the name of the objects of each bucket, which are in the namespace of the test.
const bucketName = "bucket"

// String describes the bucket for the report.
func (b bucket) String() string {
	if b.api == pavv1.BucketAPICOSI1 {
		return "BucketClaim, BucketAccess"
	}
	return string(b.api)
}

// ref names the claim of the bucket.
func (b bucket) ref(namespace string) status.Ref {
	if b.api == pavv1.BucketAPICOSI1 {
		return status.Ref{Kind: status.BucketClaim, Namespace: namespace, Name: bucketName}
	}
	return status.Ref{Kind: status.ObjectBucketClaim, Namespace: namespace, Name: bucketName}
}

// bucketScenario is the life of one bucket, and of one access to it.
type bucketScenario struct {
	*run
	bucket bucket

	claim, access client.Object // the objects of the API; they are one of an ObjectBucketClaim
	record        *pavv1.PavBucket
	granted       *pavv1.PavBucketAccess
}

// tryBuckets tests the buckets of the definition, with each API that the cluster has.
func (r *run) tryBuckets(ctx context.Context) {
	definition, err := r.input.definition()
	if err != nil || !definition.Spec.HasBuckets() {
		return
	}
	for _, api := range []pavv1.BucketAPI{pavv1.BucketAPIClaim, pavv1.BucketAPICOSI1} {
		s := &bucketScenario{run: r, bucket: bucket{api}}
		s.try(ctx, definition)
	}
}

// try runs the steps of the bucket's life. After a failed step, only those of the clean-up run.
func (s *bucketScenario) try(ctx context.Context, definition *pavv1.PavProvisioner) {
	if !s.stepOf(ctx, "claim a bucket", func(ctx context.Context) (outcome, error) { return s.provide(ctx, definition) }) || s.record == nil {
		return
	}
	if definition.Spec.BucketAccessGrant == nil {
		if !s.options.Keep && s.stepOf(ctx, "delete", s.remove) {
			s.stepOf(ctx, "leave nothing behind", s.nothing)
		}
		return
	}
	if !s.stepOf(ctx, "get access", s.getAccess) || !s.stepOf(ctx, "find the credentials", s.findSecret) ||
		!s.stepOf(ctx, "replace the account", s.replaceAccount) || !s.stepOf(ctx, "revoke the former account", s.revokeFormer) || s.options.Keep {
		return
	}
	if s.stepOf(ctx, "revoke, and revoke again", s.revokeTwice) && s.stepOf(ctx, "delete, and delete again", s.remove) {
		s.stepOf(ctx, "leave nothing behind", s.nothing)
	}
}

func (s *bucketScenario) stepOf(ctx context.Context, name string, do func(context.Context) (outcome, error)) bool {
	return s.step(ctx, s.bucket, name, do)
}

// provide claims a bucket, and waits until its record is ready. The record stays nil if the cluster does not have the API, or if the
// definition can make no bucket.
func (s *bucketScenario) provide(ctx context.Context, definition *pavv1.PavProvisioner) (outcome, error) {
	existing := s.parameters()[objectbucketv1.BucketNameParameter] != ""
	switch {
	case definition.Spec.BucketCreation == nil && !existing:
		return skipped("the definition creates no buckets; name one that exists with --param %s=NAME", objectbucketv1.BucketNameParameter)
	case existing && s.bucket.api != pavv1.BucketAPIClaim:
		return skipped("a bucket that exists is tried with an ObjectBucketClaim only")
	case s.bucket.api == pavv1.BucketAPIClaim && (s.protocol() != cosiv1.ProtocolS3 || !s.givesKeys()):
		return skipped("an ObjectBucketClaim is for S3 with keys only")
	}
	claim, err := s.postClaim(ctx)
	if isMissing(err) {
		return skipped("the cluster does not serve v1alpha1 of %s", s.bucket)
	}
	if err != nil {
		return outcome{}, err
	}
	s.claim, s.buckets = claim, true
	record := &pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: protocol.BucketRecord(claim.GetUID())}}
	err = s.awaitBucket(ctx, record, func(b *pavv1.PavBucket) bool { return b.Status.Phase == pavv1.BucketReady })
	if errors.Is(err, errTimeout) {
		return outcome{}, errors.Join(fmt.Errorf("there is no bucket: %w", err), s.lastEvent(ctx, kindOf(claim), claim.GetName()))
	}
	if err != nil {
		return outcome{}, err
	}
	s.record = record
	return passed("%s", record.Status.BucketID)
}

// isMissing reports whether an error says that the cluster does not have a kind.
func isMissing(err error) bool { return meta.IsNoMatchError(err) }

// getAccess waits until access is granted, and the object of the API says so. COSI has an object for that.
func (s *bucketScenario) getAccess(ctx context.Context) (outcome, error) {
	s.access = s.claim
	if s.bucket.api == pavv1.BucketAPICOSI1 {
		var err error
		if s.access, err = s.postAccess(ctx); err != nil {
			return outcome{}, err
		}
	}
	record := &pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: protocol.AccessRecord(s.access.GetUID())}}
	err := s.awaitAccess(ctx, record, func(a *pavv1.PavBucketAccess) bool { return a.Status.Current != nil })
	if err == nil {
		err = s.awaitShown(ctx)
	}
	if errors.Is(err, errTimeout) {
		return outcome{}, errors.Join(fmt.Errorf("there is no access: %w", err), s.lastEvent(ctx, kindOf(s.access), s.access.GetName()))
	}
	if err != nil {
		return outcome{}, err
	}
	s.granted = record
	return passed("account %s", record.Status.Current.AccountID)
}

// findSecret looks whether the Secret of the access is there, and does not read it.
func (s *bucketScenario) findSecret(ctx context.Context) (outcome, error) {
	name := s.granted.Spec.Buckets[0].SecretName
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.name, Name: name}, secret); err != nil {
		return outcome{}, fmt.Errorf("looking for Secret %s: %w", name, err)
	}
	if !metav1.IsControlledBy(secret, s.access) {
		return outcome{}, fmt.Errorf("the Secret %s is not one of %s", name, describeObject(s.access))
	}
	if s.bucket.api != pavv1.BucketAPIClaim {
		return passed("Secret %s", name)
	}
	config := &corev1.ConfigMap{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.name, Name: bucketName}, config); err != nil {
		return outcome{}, fmt.Errorf("reading the ConfigMap of the claim: %w", err)
	}
	for _, key := range []string{objectbucketv1.BucketName, objectbucketv1.BucketHost} {
		if config.Data[key] == "" {
			return warning("ConfigMap %s has no %s: see bucketCreation.info", config.Name, key)
		}
	}
	return passed("Secret %s, ConfigMap %s", name, config.Name)
}

// replaceAccount requests another account, and waits until clients have it. The present one is made to look old enough: PaV replaces an
// account once in 10 minutes at most.
func (s *bucketScenario) replaceAccount(ctx context.Context) (outcome, error) {
	before := s.granted.Status.Current.Number
	err := amendStatus(ctx, s.client, s.granted, func(a *pavv1.PavBucketAccess) {
		if a.Status.Current != nil {
			aged := metav1.NewTime(a.Status.Current.GrantedAt.Add(-podplan.RotationPause))
			a.Status.Current.RequestedAt, a.Status.Current.GrantedAt = &aged, &aged
		}
	})
	if err != nil {
		return outcome{}, err
	}
	patch := client.MergeFrom(s.access.DeepCopyObject().(client.Object))
	annotations := s.access.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	// The clock of the cluster need not be this one's: any time after that of the account counts.
	annotations[pavv1.RotateAnnotation] = s.granted.Status.Current.Began().Add(time.Second).UTC().Format(pavv1.RetryFormat)
	s.access.SetAnnotations(annotations)
	if err := s.client.Patch(ctx, s.access, patch); err != nil {
		return outcome{}, fmt.Errorf("requesting another account: %w", err)
	}
	if err := s.awaitAccess(ctx, s.granted, func(a *pavv1.PavBucketAccess) bool {
		return a.Status.Current != nil && a.Status.Current.Number != before && a.Status.Granting == nil
	}); err != nil {
		return outcome{}, fmt.Errorf("the account is not replaced: %w", err)
	}
	return passed("account %s", s.granted.Status.Current.AccountID)
}

// revokeFormer ends the overlap, and waits until the former account is revoked.
func (s *bucketScenario) revokeFormer(ctx context.Context) (outcome, error) {
	if err := amendStatus(ctx, s.client, s.granted, func(a *pavv1.PavBucketAccess) {
		for i := range a.Status.Former {
			a.Status.Former[i].RevokeAfter = a.Status.Former[i].GrantedAt // that is over, by whichever clock
		}
	}); err != nil {
		return outcome{}, err
	}
	if err := s.awaitAccess(ctx, s.granted, func(a *pavv1.PavBucketAccess) bool { return len(a.Status.Former) == 0 }); err != nil {
		return outcome{}, fmt.Errorf("the former account is not revoked: %w", err)
	}
	return passed("")
}

// revokeTwice deletes the access, waits until its accounts are revoked, and lets PaV revoke the last one again: a revocation must succeed
// where there is no such account.
func (s *bucketScenario) revokeTwice(ctx context.Context) (outcome, error) {
	account := s.granted.Status.Current.DeepCopy()
	if err := keep(ctx, s.client, s.granted); err != nil {
		return outcome{}, err
	}
	if err := keep(ctx, s.client, s.record); err != nil {
		return outcome{}, err
	}
	if err := client.IgnoreNotFound(s.client.Delete(ctx, s.access)); err != nil {
		return outcome{}, fmt.Errorf("deleting %s: %w", describeObject(s.access), err)
	}
	revoked := func(a *pavv1.PavBucketAccess) bool {
		return a.DeletionTimestamp != nil && len(a.Status.Former) == 0 && a.Status.Current == nil && a.Status.Pod == nil
	}
	if err := s.awaitAccess(ctx, s.granted, revoked); err != nil {
		return outcome{}, fmt.Errorf("the access is not revoked: %w", err)
	}
	account.RevokeAfter = account.GrantedAt
	if err := amendStatus(ctx, s.client, s.granted, func(a *pavv1.PavBucketAccess) { a.Status.Former = []pavv1.GrantedAccount{*account} }); err != nil {
		return outcome{}, err
	}
	if err := s.awaitAccess(ctx, s.granted, revoked); err != nil {
		return outcome{}, fmt.Errorf("an account that is gone cannot be revoked: bucketAccessRevoke must succeed then: %w", err)
	}
	if err := release(ctx, s.client, s.granted); err != nil {
		return outcome{}, err
	}
	return passed("")
}

// remove deletes the claim, waits until the bucket is deleted, and lets PaV delete it again: a deletion must succeed where there is no such
// bucket.
func (s *bucketScenario) remove(ctx context.Context) (outcome, error) {
	if err := keep(ctx, s.client, s.record); err != nil {
		return outcome{}, err
	}
	if err := client.IgnoreNotFound(s.client.Delete(ctx, s.claim)); err != nil {
		return outcome{}, fmt.Errorf("deleting %s: %w", describeObject(s.claim), err)
	}
	isGone := func(b *pavv1.PavBucket) bool {
		return b.DeletionTimestamp != nil && b.Status.Pod == nil && !slices.Contains(b.Finalizers, pavv1.BucketFinalizer) && b.Status.Step != pavv1.BucketDeletingStep
	}
	if err := s.awaitBucket(ctx, s.record, isGone); err != nil {
		return outcome{}, fmt.Errorf("the bucket is not deleted: %w", err)
	}
	found, err := passed("")
	if s.record.Status.Phase == pavv1.BucketDeleting {
		if err := amendStatus(ctx, s.client, s.record, func(b *pavv1.PavBucket) { b.Status.Step = pavv1.BucketDeletingStep }); err != nil {
			return outcome{}, err
		}
		if err := s.awaitBucket(ctx, s.record, isGone); err != nil {
			return outcome{}, fmt.Errorf("a bucket that is gone cannot be deleted: bucketDeletion must succeed then: %w", err)
		}
	} else {
		found, err = skipped("the bucket existed before, and stays")
	}
	if err := release(ctx, s.client, s.record); err != nil {
		return outcome{}, err
	}
	return found, err
}

// nothing waits until no object of the bucket is left.
func (s *bucketScenario) nothing(ctx context.Context) (outcome, error) {
	for _, object := range []client.Object{s.claim, s.access} {
		if object == nil {
			continue
		}
		if err := s.awaitGone(ctx, object); err != nil {
			return outcome{}, fmt.Errorf("%s is left: %w", describeObject(object), err)
		}
	}
	selected := client.MatchingLabels{pavv1.ProvisionerLabel: s.name}
	for _, list := range []client.ObjectList{&pavv1.PavBucketAccessList{}, &pavv1.PavBucketList{}, &corev1.PodList{}} {
		if err := gone(ctx, s.client, list, selected); err != nil {
			return outcome{}, fmt.Errorf("something of a %T is left: %w", list, err)
		}
	}
	if s.granted == nil {
		return passed("no records, no workflow pods")
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	secret.SetNamespace(s.name)
	secret.SetName(s.granted.Spec.Buckets[0].SecretName)
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
		return outcome{}, errors.Join(fmt.Errorf("the Secret %s is left", secret.Name), err)
	}
	return passed("no records, no Secret, no workflow pods")
}
