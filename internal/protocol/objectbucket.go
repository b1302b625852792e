package protocol

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Reasons of events about ObjectBucketClaims, besides those about buckets and accesses.
const (
	BucketClaimBound      = "BucketClaimBound"
	BucketClaimRefused    = "BucketClaimRefused"
	BucketClaimWaiting    = "BucketClaimWaiting"
	ObjectBucketNameTaken = "ObjectBucketNameTaken"
	ConfigMapNameTaken    = "ConfigMapNameTaken"
	ConfigMapLeft         = "ConfigMapLeft"
)

// BucketRecord returns the name of the PavBucket of a claim.
func BucketRecord(claim types.UID) string { return "b-" + string(claim) }

// AccessRecord returns the name of the PavBucketAccess of an object that asks for access.
func AccessRecord(requester types.UID) string { return "a-" + string(requester) }

// RequesterOfRecord returns the UID of the object that asks for access, from the name of its PavBucketAccess.
func RequesterOfRecord(name string) types.UID { return types.UID(strings.TrimPrefix(name, "a-")) }

// ClaimOfRecord returns the UID of a claim, from the name of its PavBucket.
func ClaimOfRecord(name string) types.UID { return types.UID(strings.TrimPrefix(name, "b-")) }

// ObjectBucketProvisioner returns the value of the label bucket-provisioner for a provisioner.
func ObjectBucketProvisioner(name string) string { return strings.ReplaceAll(name, "/", "-") }
