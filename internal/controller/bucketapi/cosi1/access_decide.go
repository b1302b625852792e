package cosi1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
)

type accessTable = rule.Table[accessObservation]

// decideAccess is pure: it does no I/O and reads no clock.
func decideAccess(o accessObservation) rule.Decision { return everyAccess.Decide(o) }

// everyAccess is for every access.
var everyAccess = accessTable{
	{Name: "the access is not PaV's", When: func(o accessObservation) bool { return !o.isOurs() }, Then: ofAccess(rule.Done)},
	{Name: "the access is wanted", When: accessObservation.wanted, Then: wantedAccess.Decide},
	{Name: "the access is not wanted any more", When: rule.Always[accessObservation], Then: unwantedAccess.Decide},
}

// wantedAccess is for an access that exists.
var wantedAccess = accessTable{
	{Name: "the record of the access was released although it exists", When: accessObservation.isReleased, Then: func(accessObservation) rule.Decision {
		return bucketapi.Refuse(protocol.BucketAccessRefused, "the access was given up by an administrator: delete it, and create it again")
	}},
	{Name: "the access cannot be served", When: func(o accessObservation) bool { return o.record == nil && o.refusal() != nil }, Then: func(o accessObservation) rule.Decision { return *o.refusal() }},
	{Name: "the access is not recorded", When: func(o accessObservation) bool { return o.record == nil }, Then: ofAccess(stepRecord)},
	{Name: "another account is requested", When: accessObservation.isRotationDue, Then: ofAccess(stepRotate)},
	{Name: "the access is not shown", When: func(o accessObservation) bool { return !o.isShown() }, Then: ofAccess(stepShow)},
	{Name: "the access is served, or waits for its account", When: rule.Always[accessObservation], Then: rule.Again(accessObservation.nextRotation)},
}

// unwantedAccess is for an access that is gone, or is being deleted.
var unwantedAccess = accessTable{
	{Name: "the access is not released", When: func(o accessObservation) bool { return o.record != nil && !o.isReleased() }, Then: ofAccess(stepRelease)},
	{Name: "the access is being revoked", When: func(o accessObservation) bool { return o.record != nil }, Then: ofAccess(rule.Done)},
	{Name: "the access is held", When: accessObservation.isHeld, Then: ofAccess(stepLetGo)},
	{Name: "nothing is left of the access", When: rule.Always[accessObservation], Then: ofAccess(rule.Done)},
}

// refusal returns why no PavBucketAccess can be written for the access, or nil.
func (o accessObservation) refusal() *rule.Decision {
	const reason = protocol.BucketAccessRefused
	if o.provisioner == nil {
		return bucketapi.Refused(reason, "the record of the access is gone, and its class is not one of a PavProvisioner, so that no other can be granted")
	}
	if d := bucketapi.RefuseAccesses(o.provisioner); d != nil {
		return d
	}
	if d := o.refuseClass(); d != nil {
		return d
	}
	if d := o.refuseBucket(); d != nil {
		return d
	}
	if o.protocol() == "" {
		return bucketapi.Refused(reason, "%s", unknownProtocol(string(o.access.Spec.Protocol)))
	}
	if secret := o.access.Spec.CredentialsSecretName; len(validation.IsDNS1123Subdomain(secret)) > 0 {
		return bucketapi.Refused(reason, "spec.credentialsSecretName: %.100q is not a valid name of a Secret", secret)
	}
	return nil
}

// refuseClass returns why no access of the class can be granted, or nil.
func (o accessObservation) refuseClass() *rule.Decision {
	const reason = protocol.BucketAccessRefused
	if authenticationType(o.class) == "" {
		return bucketapi.Refused(reason, "authenticationType of BucketAccessClass %q is %q: it must be Key or IAM", o.class.Name, o.class.AuthenticationType)
	}
	if accessMode(o.class) == "" {
		return bucketapi.Refused(reason, "the parameter %s of BucketAccessClass %q is %q: it must be ReadWrite, ReadOnly or WriteOnly", cosiv1.AccessModeParameter, o.class.Name, o.class.Parameters[cosiv1.AccessModeParameter])
	}
	return nil
}

// refuseBucket returns why there is no access to the bucket of the claim, or why not yet, or nil.
func (o accessObservation) refuseBucket() *rule.Decision {
	const reason = protocol.BucketAccessRefused
	claim := o.access.Spec.BucketClaimName
	waiting := func(text string) *rule.Decision {
		d := bucketapi.Wait(protocol.BucketAccessWaiting, fmt.Sprintf("BucketClaim %q, which the access names, %s", claim, text))
		return &d
	}
	switch {
	case o.claim == nil:
		return waiting("does not exist")
	case o.claim.DeletionTimestamp != nil:
		return bucketapi.Refused(reason, "BucketClaim %q is being deleted", claim)
	case o.bucket == nil:
		return waiting("has no bucket of a PavProvisioner, or not yet")
	case o.bucket.Spec.Provisioner != o.provisioner.Name:
		return bucketapi.Refused(reason, "the bucket of BucketClaim %q is one of PavProvisioner %q, and BucketAccessClass %q is of %q", claim, o.bucket.Spec.Provisioner, o.class.Name, o.provisioner.Name)
	case o.bucket.Spec.Released:
		return bucketapi.Refused(reason, "the bucket of BucketClaim %q is given up", claim)
	case o.bucket.Status.Phase != pavv1.BucketReady:
		return waiting("has no bucket yet")
	default:
		return nil
	}
}

func ofAccess(next rule.Step) func(accessObservation) rule.Decision {
	return rule.To[accessObservation](next)
}
