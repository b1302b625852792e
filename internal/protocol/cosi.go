package protocol

import pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"

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
