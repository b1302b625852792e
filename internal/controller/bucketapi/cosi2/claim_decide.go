package cosi2

import (
	"fmt"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
)

// The steps, besides those of rule and bucketapi. Claims and accesses have some of them in common.
const (
	// stepRecord: write the record of the object, before any effect.
	stepRecord rule.Step = "Record"

	// stepRetain: write into the PavBucket that the bucket is to be kept.
	stepRetain rule.Step = "Retain"

	// stepRotate: pass a request for a new account on to the PavBucketAccess.
	stepRotate rule.Step = "Rotate"

	// stepShow: show in the object, and in the Bucket of a claim, what the record says.
	stepShow rule.Step = "Show"

	// stepShowFailure: show in an object that is being deleted why its bucket is not deleted, or its account not revoked.
	stepShowFailure rule.Step = "ShowFailure"

	// stepRelease: the object is gone or going; its bucket is to be deleted or retained, or its accounts are to be revoked.
	stepRelease rule.Step = "Release"

	// stepLetGo: nothing is left; let the object be deleted.
	stepLetGo rule.Step = "LetGo"

	// stepDeleteBucket: the bucket is not the claim's any more; delete the Bucket, or let it be deleted where it stays.
	stepDeleteBucket rule.Step = "DeleteBucket"
)

type claimTable = rule.Table[claimObservation]

// decideClaim is pure: it does no I/O and reads no clock.
func decideClaim(o claimObservation) rule.Decision { return everyClaim.Decide(o) }

// everyClaim is for every claim.
var everyClaim = claimTable{
	{Name: "the claim is not PaV's", When: func(o claimObservation) bool { return !o.isOurs() }, Then: ofClaim(rule.Done)},
	{Name: "an administrator wants the bucket to be kept", When: claimObservation.isRetentionDue, Then: ofClaim(stepRetain)},
	{Name: "the claim is wanted", When: claimObservation.wanted, Then: wantedClaim.Decide},
	{Name: "the claim is not wanted any more", When: rule.Always[claimObservation], Then: unwantedClaim.Decide},
}

// wantedClaim is for a claim that exists.
var wantedClaim = claimTable{
	{Name: "the record of the claim was released although it exists", When: claimObservation.isReleased, Then: func(claimObservation) rule.Decision {
		return bucketapi.Refuse(protocol.BucketClaimRefused, "the bucket of the claim was given up by an administrator: delete the claim, and create it again")
	}},
	{Name: "the claim names another Bucket than its own", When: claimObservation.isRenamed, Then: func(o claimObservation) rule.Decision {
		return bucketapi.Refuse(protocol.BucketClaimRefused, fmt.Sprintf("status.boundBucketName of the claim is %q, but its Bucket would be %q: create the claim again, without its status", o.claim.Status.BoundBucketName, o.bucketName()))
	}},
	{Name: "the claim cannot be served", When: func(o claimObservation) bool { return o.record == nil && o.refusal() != nil }, Then: func(o claimObservation) rule.Decision { return *o.refusal() }},
	{Name: "the claim is not recorded", When: func(o claimObservation) bool { return o.record == nil }, Then: ofClaim(stepRecord)},
	{Name: "the Bucket of the claim is another's", When: claimObservation.isTaken, Then: func(o claimObservation) rule.Decision { return *o.taken() }},
	{Name: "the bucket is not shown", When: func(o claimObservation) bool { return !o.isShown() }, Then: ofClaim(stepShow)},
	{Name: "the claim is served, or waits for its bucket", When: rule.Always[claimObservation], Then: ofClaim(rule.Done)},
}

// unwantedClaim is for a claim that is gone, or is being deleted. The claim goes before its Bucket, which says whose claim it is.
var unwantedClaim = claimTable{
	{Name: "the bucket is accessed", When: func(o claimObservation) bool { return o.isKept() && !o.isReleased() && len(o.accesses) > 0 }, Then: func(o claimObservation) rule.Decision {
		return bucketapi.Wait(protocol.BucketClaimWaiting, fmt.Sprintf("%s has access to the bucket, or asks for it: delete that first", o.accesses[0]))
	}},
	{Name: "the bucket is not released", When: func(o claimObservation) bool { return o.isKept() && !o.isReleased() }, Then: ofClaim(stepRelease)},
	{Name: "the failure to delete the bucket is not shown", When: func(o claimObservation) bool { return o.isKept() && !o.isFailureShown() }, Then: ofClaim(stepShowFailure)},
	{Name: "the bucket is being deleted", When: claimObservation.isKept, Then: ofClaim(rule.Done)},
	{Name: "the claim is held", When: func(o claimObservation) bool { return o.claim != nil && isHeld(o.claim) }, Then: ofClaim(stepLetGo)},
	{Name: "the Bucket is left", When: claimObservation.isBucketLeft, Then: ofClaim(stepDeleteBucket)},
	{Name: "nothing is left of the claim", When: rule.Always[claimObservation], Then: ofClaim(rule.Done)},
}

// refusal returns why no PavBucket can be written for the claim, or nil.
func (o claimObservation) refusal() *rule.Decision {
	if o.provisioner == nil {
		return bucketapi.Refused(protocol.BucketClaimRefused, "the record of the claim's bucket is gone, and neither its class nor its Bucket is one of a PavProvisioner, so that no other can be made")
	}
	if d := bucketapi.RefuseClaims(o.provisioner); d != nil {
		return d
	}
	if _, unknown := protocolsOf(o.claim.Spec.Protocols); unknown != "" {
		return bucketapi.Refused(protocol.BucketClaimRefused, "%s", unknownProtocol(unknown))
	}
	if o.isExisting() {
		return o.refuseExisting()
	}
	return o.refuseNew()
}

// refuseNew returns why no bucket can be made for the claim, or nil.
func (o claimObservation) refuseNew() *rule.Decision {
	if policy := o.class.Spec.DeletionPolicy; known(reclaimPolicies, policy) == "" {
		return bucketapi.Refused(protocol.BucketClaimRefused, "spec.deletionPolicy of BucketClass %q is %q: it must be Delete or Retain", o.class.Name, policy)
	}
	if o.bucket != nil && (!o.isBound() || o.bucket.Spec.DriverName != o.provisioner.Name) {
		return o.taken()
	}
	return nil
}

// taken decides about a claim whose Bucket cannot be created.
func (o claimObservation) taken() *rule.Decision {
	return bucketapi.Refused(protocol.BucketClaimRefused, "Bucket %q exists, and is not one of this claim and its driver: delete it", cosiv2.BucketOf(o.uid))
}

func ofClaim(next rule.Step) func(claimObservation) rule.Decision {
	return rule.To[claimObservation](next)
}
