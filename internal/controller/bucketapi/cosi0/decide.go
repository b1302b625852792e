package cosi0

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	cosiv0 "github.com/albertofaria/pav/internal/api/cosi/proposal"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
)

// The steps, besides those of rule and bucketapi.
const (
	// stepRecord: write the records of the Bucket, before any effect.
	stepRecord rule.Step = "Record"

	// stepHold: give the Bucket the finalizer or the label that it does not have although its records exist.
	stepHold rule.Step = "Hold"

	// stepRotate: pass a request for a new account on to the PavBucketAccess.
	stepRotate rule.Step = "Rotate"

	// stepMarkPending: say that the Bucket waits.
	stepMarkPending rule.Step = "MarkPending"

	// stepShow: show the bucket in the BucketContent and the Bucket.
	stepShow rule.Step = "Show"

	// stepReleaseAccess: the Bucket is gone or going; its accounts are to be revoked.
	stepReleaseAccess rule.Step = "ReleaseAccess"

	// stepReleaseBucket: nobody has access any more; the bucket is to be deleted or retained.
	stepReleaseBucket rule.Step = "ReleaseBucket"

	// stepLetGo: the bucket is not the Bucket's any more; let the Bucket be deleted.
	stepLetGo rule.Step = "LetGo"

	// stepDeleteContent: the Bucket is gone, or need not wait for PaV any more; delete the BucketContent.
	stepDeleteContent rule.Step = "DeleteContent"
)

type table = rule.Table[observation]

// decide is pure: it does no I/O and reads no clock.
func decide(o observation) rule.Decision { return everyBucket.Decide(o) }

// everyBucket is for every Bucket.
var everyBucket = table{
	{Name: "the Bucket is not PaV's", When: func(o observation) bool { return !o.isOurs() }, Then: to(rule.Done)},
	{Name: "the Bucket is wanted", When: observation.wanted, Then: wantedBucket.Decide},
	{Name: "the Bucket is not wanted any more", When: rule.Always[observation], Then: unwantedBucket.Decide},
}

// wantedBucket is for a Bucket that exists.
var wantedBucket = table{
	{Name: "the records of the Bucket were released although it exists", When: observation.isReleased, Then: func(observation) rule.Decision {
		return refuse("the bucket was given up by an administrator: delete the Bucket, and create it again")
	}},
	{Name: "the Bucket cannot be served", When: func(o observation) bool { return o.bucket == nil && o.refusal() != nil }, Then: func(o observation) rule.Decision { return *o.refusal() }},
	{Name: "the record has no class", When: func(o observation) bool { return o.class == nil }, Then: func(o observation) rule.Decision {
		return refuse("PavBucket %q has no copy of the BucketClass that can be read: delete the Bucket, and create it again", o.bucketRecord())
	}},
	{Name: "the Bucket names no Secret", When: func(o observation) bool { return o.access == nil && !isSecretName(o.object.Spec.SecretName) }, Then: func(o observation) rule.Decision {
		return refuse("the secretName %.100q is not a valid name of a Secret", o.object.Spec.SecretName)
	}},
	{Name: "the request is not recorded", When: func(o observation) bool { return o.bucket == nil || o.access == nil }, Then: to(stepRecord)},
	{Name: "another account is requested", When: observation.isRotationDue, Then: to(stepRotate)},
	{Name: "the Bucket does not say that it waits", When: func(o observation) bool {
		return !o.isGranted() && o.object.Status.Phase != cosiv0.BucketPending
	}, Then: to(stepMarkPending)},
	{Name: "clients have no access yet", When: func(o observation) bool { return !o.isGranted() }, Then: rule.Again(observation.nextRotation)},
	{Name: "the BucketContent is another's", When: func(o observation) bool { return o.other != nil }, Then: func(o observation) rule.Decision { return *o.refuseContent() }},
	{Name: "the bucket is not shown", When: func(o observation) bool { return !o.isShown() }, Then: to(stepShow)},
	{Name: "the Bucket is not held", When: func(o observation) bool { return !o.isHeldAsPaVs() }, Then: to(stepHold)},
	{Name: "the Bucket is served", When: rule.Always[observation], Then: rule.Again(observation.nextRotation)},
}

// unwantedBucket is for a Bucket that is gone, or is being deleted. The BucketContent is the last, as it may be all that says that the Bucket is
// PaV's: its PavProvisioner can go as soon as the records are gone.
var unwantedBucket = table{
	{Name: "the access is not released", When: func(o observation) bool { return o.access != nil && !o.access.Spec.Released }, Then: to(stepReleaseAccess)},
	{Name: "the access is being revoked", When: func(o observation) bool { return o.access != nil }, Then: to(rule.Done)},
	{Name: "the bucket is not released", When: func(o observation) bool { return o.isKept() && !o.bucket.Spec.Released }, Then: to(stepReleaseBucket)},
	{Name: "the bucket is being deleted", When: observation.isKept, Then: to(rule.Done)},
	{Name: "the Bucket is held", When: observation.isHeld, Then: to(stepLetGo)},
	{Name: "the BucketContent is left", When: func(o observation) bool { return o.content != nil }, Then: to(stepDeleteContent)},
	{Name: "nothing is left of the Bucket", When: rule.Always[observation], Then: to(rule.Done)},
}

// mostName is how many bytes the name of a bucket may have in a PavBucket. Definitions allow fewer.
const mostName = 2048

// refusal returns why no PavBucket can be written for the Bucket, or nil.
func (o observation) refusal() *rule.Decision {
	p, named := o.provisioner, o.object.Spec.BucketClassName
	switch {
	case p == nil || o.class == nil || o.class.Provisioner != p.Name:
		return refused("the record of the bucket is gone, and BucketClass %q is not one of a PavProvisioner, so that no other bucket can be made", named)
	case o.isForeign():
		return refused("the Bucket belongs to the provisioner %q, by its label %s; BucketClass %q is now one of PavProvisioner %q: create another Bucket", o.label(), cosiv0.ProvisionerLabel, named, p.Name)
	}
	if d := bucketapi.RefuseClaims(p); d != nil {
		return d
	}
	for _, check := range []func(observation) *rule.Decision{observation.refuseClass, observation.refuseStatic, observation.refuseNames, observation.refuseContent} {
		if d := check(o); d != nil {
			return d
		}
	}
	return nil
}

// refuseClass returns why the class gives no bucket, or nil.
func (o observation) refuseClass() *rule.Decision {
	class := o.class
	switch {
	case policies[class.ReleasePolicy] == "":
		return refused("releasePolicy of BucketClass %q is %q: it must be Delete or Retain", class.Name, class.ReleasePolicy)
	case accessModes[class.AccessMode] == "":
		return refused("accessMode of BucketClass %q is %q: it must be ro, wo or rw", class.Name, class.AccessMode)
	case len(class.SupportedProtocols) > 0 && len(protocolsOf(class)) == 0:
		return refused("supportedProtocols of BucketClass %q has none of s3, azure and gcs, which are all that PaV knows", class.Name)
	default:
		return nil
	}
}

// refuseStatic returns why the Secret that the class names cannot be used, or nil. The agent reads no Secrets but those of pav-credentials:
// credentials of another namespace may not be the administrator's to give.
func (o observation) refuseStatic() *rule.Decision {
	class, grant := o.class, o.provisioner.Spec.BucketAccessGrant
	switch ref := class.SecretRef; {
	case ref == nil:
		return nil
	case ref.Namespace != pavv1.CredentialsNamespace:
		return refused("secretRef of BucketClass %q is in the namespace %q, where PaV reads no Secrets: an administrator has to put the Secret into %s", class.Name, ref.Namespace, pavv1.CredentialsNamespace)
	case class.BucketIdentifier == "":
		return refused("BucketClass %q has secretRef, but no bucketIdentifier: PaV has to know which bucket it is, and does not read that from a Secret", class.Name)
	case grant == nil || grant.FromSecret == nil:
		return refused("BucketClass %q has secretRef, but PavProvisioner %q has no bucketAccessGrant.fromSecret, which must yield {{ class.secretRef.name }}", class.Name, o.provisioner.Name)
	default:
		return nil
	}
}

// refuseNames returns why the names that follow from Bucket and class cannot be had, or nil.
func (o observation) refuseNames() *rule.Decision {
	if name := nameOf(o.object, o.class); len(name.bucket) > mostName {
		return refused("the name of the bucket has %d bytes, and may have %d at most", len(name.bucket), mostName)
	}
	if len(o.contentName()) > validation.DNS1123SubdomainMaxLength {
		return refused("the name of the BucketContent would have more than %d characters: an administrator has to write a BucketClass of a shorter name", validation.DNS1123SubdomainMaxLength)
	}
	return nil
}

// refuseContent returns why no BucketContent can be written for the Bucket, or nil.
func (o observation) refuseContent() *rule.Decision {
	if o.other == nil {
		return nil
	}
	return refused("BucketContent %q, which the Bucket would have, exists, and PaV did not write it for the Bucket: an administrator has to delete it", o.other.Name)
}

// isSecretName reports whether a Secret can have a name.
func isSecretName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

func to(next rule.Step) func(observation) rule.Decision { return rule.To[observation](next) }

// refuse decides to tell the user of a Bucket why it is not served.
func refuse(format string, args ...any) rule.Decision {
	return bucketapi.Refuse(protocol.BucketClaimRefused, fmt.Sprintf(format, args...))
}

// refused is refuse, for functions that may decide nothing.
func refused(format string, args ...any) *rule.Decision {
	return bucketapi.Refused(protocol.BucketClaimRefused, format, args...)
}
