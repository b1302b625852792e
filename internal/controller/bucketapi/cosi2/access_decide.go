package cosi2

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
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
	{Name: "the failure to revoke the account is not shown", When: func(o accessObservation) bool { return o.record != nil && !o.isFailureShown() }, Then: ofAccess(stepShowFailure)},
	{Name: "the access is being revoked", When: func(o accessObservation) bool { return o.record != nil }, Then: ofAccess(rule.Done)},
	{Name: "the access is held", When: func(o accessObservation) bool { return o.access != nil && isHeld(o.access) }, Then: ofAccess(stepLetGo)},
	{Name: "nothing is left of the access", When: rule.Always[accessObservation], Then: ofAccess(rule.Done)},
}

// refusal returns why no PavBucketAccess can be written for the access, or why not yet, or nil.
func (o accessObservation) refusal() *rule.Decision {
	if o.provisioner == nil {
		return bucketapi.Refused(protocol.BucketAccessRefused, "the record of the access is gone, and its class is not one of a PavProvisioner, so that no other can be granted")
	}
	if d := bucketapi.RefuseAccesses(o.provisioner); d != nil {
		return d
	}
	for _, refuse := range []func(accessObservation) *rule.Decision{accessObservation.refuseClass, accessObservation.refuseRequest} {
		if d := refuse(o); d != nil {
			return d
		}
	}
	var waiting *rule.Decision
	for _, c := range o.claims {
		d := o.refuseBucket(c)
		switch {
		case d == nil:
		case d.Warning:
			return d
		case waiting == nil:
			waiting = d
		}
	}
	if d := o.refuseStores(); d != nil {
		return d
	}
	return waiting
}

// refuseClass returns why no access of the class can be granted, or nil.
func (o accessObservation) refuseClass() *rule.Decision {
	const reason = protocol.BucketAccessRefused
	class := o.class
	switch {
	case class == nil:
		return bucketapi.Refused(reason, "the record of the access is gone, and there is no BucketAccessClass %q, so that no other can be granted", o.access.Spec.BucketAccessClassName)
	case class.Spec.DriverName != o.provisioner.Name:
		return bucketapi.Refused(reason, "status.driverName of the access is %q, and BucketAccessClass %q is of %q: create the access again, without its status", o.provisioner.Name, class.Name, class.Spec.DriverName)
	case known(authenticationTypes, class.Spec.AuthenticationType) == "":
		return bucketapi.Refused(reason, "spec.authenticationType of BucketAccessClass %q is %q: it must be Key or ServiceAccount", class.Name, class.Spec.AuthenticationType)
	case class.Spec.AuthenticationType == cosiv2.AuthenticationTypeServiceAccount && o.access.Spec.ServiceAccountName == "":
		return bucketapi.Refused(reason, "BucketAccessClass %q has the authenticationType ServiceAccount: the access must have spec.serviceAccountName", class.Name)
	case class.Spec.MultiBucketAccess != cosiv2.MultiBucketAccessMultiple && len(o.access.Spec.BucketClaims) > 1:
		return bucketapi.Refused(reason, "BucketAccessClass %q allows access to one bucket only: it has not multiBucketAccess MultipleBuckets", class.Name)
	}
	for _, asked := range o.access.Spec.BucketClaims {
		if slices.Contains(class.Spec.DisallowedBucketAccessModes, asked.AccessMode) {
			return bucketapi.Refused(reason, "BucketAccessClass %q does not allow the accessMode %s, which is asked for the bucket of BucketClaim %q", class.Name, asked.AccessMode, asked.BucketClaimName)
		}
	}
	return nil
}

// refuseRequest returns why nobody can be granted what the access asks for, or nil.
func (o accessObservation) refuseRequest() *rule.Decision {
	const reason = protocol.BucketAccessRefused
	if asked := o.access.Spec.Protocol; known(protocols, asked) == "" {
		return bucketapi.Refused(reason, "%s", unknownProtocol(string(asked)))
	}
	secrets := map[string]bool{}
	for _, asked := range o.access.Spec.BucketClaims {
		switch secret := asked.AccessSecretName; {
		case known(modes, asked.AccessMode) == "":
			return bucketapi.Refused(reason, "the accessMode %q for the bucket of BucketClaim %q must be ReadWrite, ReadOnly or WriteOnly", asked.AccessMode, asked.BucketClaimName)
		case len(validation.IsDNS1123Subdomain(secret)) > 0:
			return bucketapi.Refused(reason, "the accessSecretName %.100q for the bucket of BucketClaim %q is not a valid name of a Secret", secret, asked.BucketClaimName)
		case secrets[secret]:
			return bucketapi.Refused(reason, "the accessSecretName %q is that of two buckets: each must have a Secret of its own", secret)
		default:
			secrets[secret] = true
		}
	}
	return nil
}

// refuseBucket returns why there is no access to the bucket of a claim, or why not yet, or nil.
func (o accessObservation) refuseBucket(c askedClaim) *rule.Decision {
	const reason = protocol.BucketAccessRefused
	waiting := func(text string) *rule.Decision {
		d := bucketapi.Wait(protocol.BucketAccessWaiting, fmt.Sprintf("BucketClaim %q, which the access names, %s", c.BucketClaimName, text))
		return &d
	}
	switch {
	case c.claim == nil:
		return waiting("does not exist")
	case c.claim.DeletionTimestamp != nil:
		return bucketapi.Refused(reason, "BucketClaim %q is being deleted", c.BucketClaimName)
	case c.bucket == nil:
		return waiting("has no bucket of a PavProvisioner, or not yet")
	case c.bucket.Spec.Provisioner != o.provisioner.Name:
		return bucketapi.Refused(reason, "the bucket of BucketClaim %q is one of PavProvisioner %q, and BucketAccessClass %q is of %q", c.BucketClaimName, c.bucket.Spec.Provisioner, o.class.Name, o.provisioner.Name)
	case c.bucket.Spec.Released:
		return bucketapi.Refused(reason, "the bucket of BucketClaim %q is given up", c.BucketClaimName)
	case c.bucket.Status.Phase != pavv1.BucketReady:
		return waiting("has no bucket yet")
	}
	if has := namesOf(c.bucket.Status.Protocols); len(has) > 0 && !slices.Contains(has, o.access.Spec.Protocol) {
		return bucketapi.Refused(reason, "the bucket of BucketClaim %q does not support the protocol %s", c.BucketClaimName, o.access.Spec.Protocol)
	}
	return nil
}

// refuseStores returns why one account cannot have access to the buckets that the access asks for, or nil: an account is one of a store, and
// one pod grants the access. A store is known as soon as the bucket is recorded.
func (o accessObservation) refuseStores() *rule.Decision {
	var first *askedClaim
	for i := range o.claims {
		c := &o.claims[i]
		switch {
		case c.bucket == nil:
		case first == nil:
			first = c
		case c.bucket.Spec.Store != first.bucket.Spec.Store:
			return bucketapi.Refused(protocol.BucketAccessRefused, "spec.bucketClaims: the buckets of BucketClaims %q and %q are in different stores, by spec.store of PavBuckets %q and %q, and an access has one account: create a BucketAccess for each store",
				first.BucketClaimName, c.BucketClaimName, first.bucket.Name, c.bucket.Name)
		}
	}
	return nil
}

func ofAccess(next rule.Step) func(accessObservation) rule.Decision {
	return rule.To[accessObservation](next)
}
