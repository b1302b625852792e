package obc

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
)

// The steps, besides those of rule.
const (
	// stepRefuse: the claim cannot be served, or not now; tell its user why.
	stepRefuse rule.Step = "Refuse"

	// stepRecord: write the records of the claim, before any effect.
	stepRecord rule.Step = "Record"

	// stepHold: give the claim the finalizer or the label that it does not have although its records exist.
	stepHold rule.Step = "Hold"

	// stepUpdate: write into the PavBucket what the claim asks for now.
	stepUpdate rule.Step = "Update"

	// stepRotate: pass a request for a new account on to the PavBucketAccess.
	stepRotate rule.Step = "Rotate"

	// stepMarkPending: say that the claim waits.
	stepMarkPending rule.Step = "MarkPending"

	// stepBind: show the bucket in the ObjectBucket, the ConfigMap and the claim.
	stepBind rule.Step = "Bind"

	// stepReleaseAccess: the claim is gone or going; its accounts are to be revoked.
	stepReleaseAccess rule.Step = "ReleaseAccess"

	// stepReleaseBucket: nobody has access any more; the bucket is to be deleted or retained.
	stepReleaseBucket rule.Step = "ReleaseBucket"

	// stepDeleteObjectBucket: the bucket is not the claim's any more; delete the ObjectBucket.
	stepDeleteObjectBucket rule.Step = "DeleteObjectBucket"

	// stepReleaseClaim: nothing is left; let the claim be deleted.
	stepReleaseClaim rule.Step = "ReleaseClaim"
)

type table = rule.Table[observation]

// decide is pure: it does no I/O and reads no clock.
func decide(o observation) rule.Decision { return claimTable.Decide(o) }

// claimTable is for every claim.
var claimTable = table{
	{Name: "the claim is not PaV's", When: func(o observation) bool { return !o.isOurs() }, Then: to(rule.Done)},
	{Name: "the claim is wanted", When: observation.wanted, Then: wantedTable.Decide},
	{Name: "the claim is not wanted any more", When: rule.Always[observation], Then: unwantedTable.Decide},
}

// wantedTable is for a claim that exists.
var wantedTable = table{
	{Name: "the records of the claim were released although it exists", When: observation.isReleased, Then: func(observation) rule.Decision {
		return refuse(protocol.BucketClaimRefused, "the bucket of the claim was given up by an administrator: delete the claim, and create it again")
	}},
	{Name: "the claim cannot be served", When: func(o observation) bool { return o.bucket == nil && o.refusal() != nil }, Then: func(o observation) rule.Decision { return *o.refusal() }},
	{Name: "the request is not recorded", When: func(o observation) bool { return o.bucket == nil || o.access == nil }, Then: to(stepRecord)},
	{Name: "the claim asks for something else than before", When: observation.isUpdateDue, Then: to(stepUpdate)},
	{Name: "another account is requested", When: observation.isRotationDue, Then: to(stepRotate)},
	{Name: "the claim does not say that it waits", When: func(o observation) bool {
		return !o.isGranted() && o.claim.Status.Phase != objectbucketv1.ClaimPending
	}, Then: to(stepMarkPending)},
	{Name: "clients have no access yet", When: func(o observation) bool { return !o.isGranted() }, Then: rule.Again(observation.nextRotation)},
	{Name: "what a former claim has left is not cleaned up", When: func(o observation) bool { return o.former }, Then: func(o observation) rule.Decision {
		return wait(fmt.Sprintf("waiting until the bucket of the former claim %q is cleaned up", o.name))
	}},
	{Name: "another claim has the ObjectBucket", When: func(o observation) bool { return o.other != nil }, Then: func(o observation) rule.Decision { return o.nameTaken() }},
	{Name: "the bucket is not shown", When: func(o observation) bool { return !o.isBound() }, Then: to(stepBind)},
	{Name: "the claim is not held", When: func(o observation) bool { return !o.isHeldAsPaVs() }, Then: to(stepHold)},
	{Name: "the claim is served", When: rule.Always[observation], Then: rule.Again(observation.nextRotation)},
}

// unwantedTable is for a claim that is gone, or is being deleted.
var unwantedTable = table{
	{Name: "the access is not released", When: func(o observation) bool { return o.access != nil && !o.access.Spec.Released }, Then: to(stepReleaseAccess)},
	{Name: "the access is being revoked", When: func(o observation) bool { return o.access != nil }, Then: to(rule.Done)},
	{Name: "the bucket is not released", When: func(o observation) bool { return o.isKept() && !o.bucket.Spec.Released }, Then: to(stepReleaseBucket)},
	{Name: "the bucket is being deleted", When: observation.isKept, Then: to(rule.Done)},
	{Name: "the ObjectBucket is left", When: func(o observation) bool { return o.objectBucket != nil }, Then: to(stepDeleteObjectBucket)},
	{Name: "the claim is held", When: observation.isHeld, Then: to(stepReleaseClaim)},
	{Name: "nothing is left of the claim", When: rule.Always[observation], Then: to(rule.Done)},
}

// mostName is how many bytes the name of a bucket may have in a PavBucket. Definitions allow fewer.
const mostName = 2048

// refusal returns why no PavBucket can be written for the claim, or nil.
func (o observation) refusal() *rule.Decision {
	var d rule.Decision
	switch p := o.provisioner; {
	case p == nil || o.class == nil || o.class.Provisioner != p.Name:
		d = refuse(protocol.BucketClaimRefused, fmt.Sprintf("the record of the claim's bucket is gone, and StorageClass %q is not one of a PavProvisioner, so that no other bucket can be made", o.claim.Spec.StorageClassName))
	case o.isForeign():
		d = refuse(protocol.BucketClaimRefused, fmt.Sprintf("the claim belongs to the provisioner %q, by its label %s; StorageClass %q is now one of PavProvisioner %q: create another claim",
			o.label(), objectbucketv1.ProvisionerLabel, o.class.Name, p.Name))
	case p.DeletionTimestamp != nil:
		d = refuse(protocol.BucketClaimRefused, fmt.Sprintf("PavProvisioner %q is being deleted, and serves no new claims", p.Name))
	case !p.Spec.HasBuckets():
		d = refuse(protocol.BucketClaimRefused, fmt.Sprintf("PavProvisioner %q has neither bucketCreation nor bucketAccessGrant, and so no buckets", p.Name))
	case p.Refusal() != "":
		d = refuse(protocol.BucketClaimRefused, fmt.Sprintf("PavProvisioner %q cannot be used: %s", p.Name, p.Refusal()))
	case o.other != nil && !isOfName(o.other, o.name): // that of a former claim goes
		d = o.nameTaken()
	default:
		message := refuseNames(o)
		if message == "" {
			return nil
		}
		d = refuse(protocol.BucketClaimRefused, message)
	}
	return &d
}

// refuseNames returns why claim and class give no bucket, or "".
func refuseNames(o observation) string {
	if _, ok := policies[reclaimPolicy(o.class)]; !ok {
		return fmt.Sprintf("reclaimPolicy of StorageClass %q is %q: it must be Delete or Retain", o.class.Name, reclaimPolicy(o.class))
	}
	name := nameOf(o.claim, o.class.Parameters)
	switch {
	case name.bucket == "":
		return fmt.Sprintf("the claim names no bucket: set spec.generateBucketName or spec.bucketName, or use a StorageClass with the parameter %s", objectbucketv1.BucketNameParameter)
	case len(objectbucketv1.BucketOf(o.name.Namespace, o.name.Name)) > validation.DNS1123SubdomainMaxLength:
		return fmt.Sprintf("the name of its ObjectBucket would have more than %d characters: give the claim a shorter name", validation.DNS1123SubdomainMaxLength)
	case len(name.bucket) > mostName:
		return fmt.Sprintf("the name of the bucket has %d bytes, and may have %d at most", len(name.bucket), mostName)
	default:
		return ""
	}
}

// policies are what the reclaim policies of classes mean.
var policies = map[corev1.PersistentVolumeReclaimPolicy]pavv1.BucketReclaimPolicy{
	corev1.PersistentVolumeReclaimDelete: pavv1.BucketDelete,
	corev1.PersistentVolumeReclaimRetain: pavv1.BucketRetain,
}

// nameTaken decides about a claim whose ObjectBucket cannot be created.
func (o observation) nameTaken() rule.Decision {
	text := fmt.Sprintf("ObjectBucket %q, which the claim would have, exists and is not PaV's: delete it, or give the claim another name", o.other.Name)
	if ref := o.other.Spec.ClaimRef; ref != nil && o.other.Labels[pavv1.ProvisionerLabel] != "" {
		text = fmt.Sprintf("ObjectBucket %q, which the claim would have, is that of claim %s/%s: give this claim another name", o.other.Name, ref.Namespace, ref.Name)
	}
	return refuse(protocol.ObjectBucketNameTaken, text)
}

func to(next rule.Step) func(observation) rule.Decision { return rule.To[observation](next) }

// refuse decides to tell the user of a claim why it is not served.
func refuse(reason, message string) rule.Decision {
	return rule.Decision{Step: stepRefuse, Reason: reason, Message: message, Warning: true}
}

// wait decides to tell the user of a claim what it waits for.
func wait(message string) rule.Decision {
	return rule.Decision{Step: stepRefuse, Reason: protocol.BucketClaimWaiting, Message: message}
}

// copyInterval is how long PaV waits between two copies of one claim: a tenant can change a claim at any rate, and must not make PaV write
// at that rate.
const copyInterval = time.Second
