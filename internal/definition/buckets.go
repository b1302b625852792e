package definition

import (
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

// servesBuckets reports whether a definition serves buckets, so that it need not have volumes.
func servesBuckets(spec map[string]any) bool {
	return spec["bucketCreation"] != nil || spec["bucketAccessGrant"] != nil
}

// withoutVolumes refuses what is about volumes in a definition that has none.
func (c *check) withoutVolumes(spec map[string]any) {
	for _, name := range []string{
		"volumeValidation", "volumeCreation", "volumeExpansion", "volumeModification", "volumeDeletion", "snapshotCreation", "snapshotDeletion", "volumeUnstaging",
	} {
		if spec[name] != nil {
			c.errorf("spec."+name, "may only be there with volumeStaging, without which the provisioner has no volumes: add volumeStaging, or leave this out")
		}
	}
}

// buckets checks that the sections of buckets fit each other.
func (c *check) buckets(spec map[string]any) {
	root := node{"spec", spec}
	c.bucketLists(root.key("bucketValidation"))
	c.bucketSections(root)
	c.bucketCreation(root)
	if grant := root.key("bucketAccessGrant"); grant.isMapping() {
		c.grant(root, grant)
		c.rotation(grant)
	}
}

// bucketLists checks the lists of spec.bucketValidation that are no templates.
func (c *check) bucketLists(validation node) {
	for _, name := range []string{"protocols", "authenticationTypes", "accessModes", "additionalConfig"} {
		for _, twice := range repeated(validation.key(name)) {
			c.errorf(twice.field, "is there twice")
		}
	}
	const most, longest = 64, 253
	keys := validation.key("additionalConfig")
	if given := len(keys.items()); given > most {
		c.errorf(keys.field, "has %d items; the maximum is %d", given, most)
	}
	for _, key := range keys.items() {
		switch text, _ := key.value.(string); {
		case template.HasTemplate(text):
			c.errorf(key.field, "keys of additionalConfig are not templates: write the key plain")
		case len(text) > longest:
			c.errorf(key.field, "is %d bytes long; the maximum is %d", len(text), longest)
		}
	}
}

// bucketSections reports sections that lack a part, or have no effect without another one.
func (c *check) bucketSections(root node) {
	creation, grant, update := root.key("bucketCreation"), root.key("bucketAccessGrant"), root.key("bucketUpdate")
	serves := creation.value != nil || grant.value != nil
	if validation := root.key("bucketValidation"); validation.value != nil && !serves {
		c.warnf(validation.field, "has no effect without bucketCreation and bucketAccessGrant, as the provisioner serves no buckets; add them, or remove this")
	}
	for _, dependent := range []node{update, root.key("bucketDeletion")} {
		if dependent.value != nil && creation.value == nil {
			c.warnf(dependent.field, "has no effect without bucketCreation, as there are only buckets of others; add it, or remove this")
		}
	}
	if revoke := root.key("bucketAccessRevoke"); revoke.value != nil && grant.value == nil {
		c.warnf(revoke.field, "has no effect without bucketAccessGrant; add it, or remove this")
	}
	if update.isMapping() && update.key("podTemplate").value == nil {
		c.errorf(update.key("podTemplate").field, "is missing; it changes the bucket when the additionalConfig of its claim changes: add it, or remove bucketUpdate")
	}
	if allowed := root.key("bucketValidation").key("additionalConfig"); update.value != nil && allowed.isKnownList() && len(allowed.items()) == 0 {
		c.warnf(update.field, "has no effect, as claims may set no additionalConfig; list the keys in bucketValidation.additionalConfig, such as maxSize")
	}
	if creation.value != nil && grant.value == nil {
		c.warnf(grant.field, "is missing, so that nobody gets access to the buckets; its podTemplate makes an account")
	}
}

// bucketCreation checks that buckets can be created, and warns of those that are never deleted.
func (c *check) bucketCreation(root node) {
	pod, deletion := root.key("bucketCreation").key("podTemplate"), root.key("bucketDeletion")
	if !mayBeOf(root, pavv1.ProvisioningModeDynamic) {
		for _, created := range []node{pod, deletion} {
			if created.value != nil {
				c.errorf(created.field, "may only be there if provisioningModes contains Dynamic: add Dynamic, or leave this out; "+
					"for buckets that exist already, bucketCreation.info is enough")
			}
		}
		return
	}
	if pod.value == nil {
		return
	}
	if deletion.value == nil {
		c.warnf(deletion.field, "is missing, though there is a creation pod: the buckets that it creates are never deleted; if there is nothing to delete, write bucketDeletion: {}")
	}
	if requested := root.key("bucketValidation").key("requestedNames"); requested.value == string(pavv1.RequestedNamesRefuse) {
		return
	}
	if mentioned, sure := mentions(pod, mentionsCreated); sure && !mentioned {
		c.warnf(pod.field, "never creates /pav/created, so that a bucket whose name a claim chose is never deleted: it may be anybody's; "+
			"create that file where the script makes the bucket, or finds the claim's UID in a tag of it, or set bucketValidation.requestedNames: Refuse")
	}
}

// grant checks the section that grants access.
func (c *check) grant(root, grant node) {
	pod, secret, revoke := grant.key("podTemplate"), grant.key("fromSecret"), root.key("bucketAccessRevoke")
	switch {
	case pod.value != nil && secret.value != nil:
		c.errorf(secret.field, "cannot be there beside podTemplate: keep fromSecret if all accesses have the same credentials, or podTemplate if each gets an account")
	case pod.value == nil && secret.value == nil:
		c.errorf(pod.field, "is missing; it makes an account and leaves its credentials in /pav/credentials: add it, or fromSecret")
	}
	if creation := root.key("bucketCreation"); creation.value == nil && !mayBeOf(root, pavv1.ProvisioningModeStatic) {
		c.errorf(creation.field, "is missing, so that there are only buckets that exist already, for which provisioningModes must contain Static: add bucketCreation, or Static")
	}
	if pod.value == nil {
		return
	}
	if revoke.value == nil {
		c.warnf(revoke.field, "is missing, though there is a grant pod: the accounts that it makes keep their access forever; if there is nothing to revoke, write bucketAccessRevoke: {}")
	}
	if mentioned, sure := mentions(pod, mentionsCredentials); sure && !mentioned {
		c.warnf(pod.field, "never mentions /pav/credentials, where it must leave the credentials of the account: for S3, in the files accessKeyId and accessSecretKey")
	}
}

// mayBeOf reports whether the provisioning modes contain one, or are a mistake anyway.
func mayBeOf(root node, mode pavv1.ProvisioningMode) bool {
	modes := root.key("provisioningModes")
	return len(modes.items()) == 0 || hasText(modes, string(mode))
}

// rotation checks when accounts are replaced.
func (c *check) rotation(grant node) {
	const least, byDefault = 10 * time.Minute, time.Hour
	every, overlap, secret := grant.key("rotateEvery"), grant.key("overlap"), grant.key("fromSecret")
	rotates, hasPeriod := durationOf(every)
	kept, hasOverlap := durationOf(overlap)
	if overlap.value == nil {
		kept, hasOverlap = byDefault, true
	}
	switch {
	case hasOverlap && kept < 0:
		c.errorf(overlap.field, "is below zero; write how long the former account works after a rotation, such as 1h")
	case !hasPeriod:
	case rotates < least:
		c.errorf(every.field, "is below 10m, the shortest time in which an account is replaced; write at least 10m, or leave it out")
	case overlap.value == nil && kept > rotates:
		c.errorf(overlap.field, "is 1h by default, which is longer than rotateEvery: write a shorter one")
	case hasOverlap && kept > rotates:
		c.errorf(overlap.field, "is longer than rotateEvery, so that more and more accounts would work; make it shorter")
	}
	if every.value != nil && secret.value != nil {
		c.warnf(every.field, "has no effect with fromSecret, whose credentials PaV cannot replace; remove it")
	}
}

// durationOf returns the duration in a field, if there is a valid one.
func durationOf(n node) (time.Duration, bool) {
	text, _ := n.value.(string)
	duration, err := time.ParseDuration(text)
	return duration, err == nil
}
