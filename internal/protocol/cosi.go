package protocol

import (
	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Reasons of events about the objects of COSI, besides those about buckets and accesses, and about claims of buckets.
const (
	BucketBoundElsewhere = "BucketBoundElsewhere"
	BucketUnclaimed      = "BucketUnclaimed"
	BucketAccessRefused  = "BucketAccessRefused"
	BucketAccessWaiting  = "BucketAccessWaiting"
)

// cosiProtocols are what COSI v1alpha1 calls the protocols. Since v1alpha2, the last one is called GCS there as well.
var cosiProtocols = map[pavv1.BucketProtocol]string{pavv1.ProtocolS3: "S3", pavv1.ProtocolAzure: "Azure", pavv1.ProtocolGCS: "GCP"}

// COSIProtocol returns what COSI v1alpha1 calls a protocol.
func COSIProtocol(p pavv1.BucketProtocol) string { return cosiProtocols[p] }

// FromCOSI returns the protocol that COSI v1alpha1 calls by a name; "" if it knows none.
func FromCOSI(name string) pavv1.BucketProtocol {
	for p, called := range cosiProtocols {
		if called == name {
			return p
		}
	}
	return ""
}

// The names of what clients are told of a bucket, in a PavBucket.
const (
	InfoEndpoint        = "endpoint"
	InfoRegion          = "region"
	InfoAddressingStyle = "addressingStyle"
	InfoStorageAccount  = "storageAccount"
	InfoProjectID       = "projectId"
)

// COSIBucketInfo returns what clients of a protocol need to know of a bucket besides credentials, by the keys of COSI v1alpha2. All keys of
// the protocol are there.
func COSIBucketInfo(b *pavv1.PavBucket, by pavv1.BucketProtocol) map[string]string {
	told, id := b.Status.Info, b.Status.BucketID
	switch by {
	case pavv1.ProtocolS3:
		return map[string]string{
			cosiv2.SecretS3BucketID: id, cosiv2.SecretS3Endpoint: told[InfoEndpoint], cosiv2.SecretS3Region: told[InfoRegion],
			cosiv2.SecretS3AddressingStyle: told[InfoAddressingStyle],
		}
	case pavv1.ProtocolAzure:
		return map[string]string{cosiv2.SecretAzureStorageAccount: told[InfoStorageAccount]}
	case pavv1.ProtocolGCS:
		return map[string]string{cosiv2.SecretGCSProjectID: told[InfoProjectID], cosiv2.SecretGCSBucketName: id}
	default:
		return nil
	}
}
