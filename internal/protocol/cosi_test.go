package protocol

import (
	"maps"
	"testing"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// The names in Secrets and in Buckets of COSI v1alpha2 are the same, and no credential is among them.
func TestCOSIBucketInfo(t *testing.T) {
	b := &pavv1.PavBucket{Status: pavv1.PavBucketStatus{BucketID: "id", Info: map[string]string{InfoEndpoint: "e", InfoStorageAccount: "a", InfoProjectID: "p", "other": "x"}}}
	for by, want := range map[pavv1.BucketProtocol]map[string]string{
		pavv1.ProtocolS3:    {"COSI_S3_BUCKET_ID": "id", "COSI_S3_ENDPOINT": "e", "COSI_S3_REGION": "", "COSI_S3_ADDRESSING_STYLE": ""},
		pavv1.ProtocolAzure: {"COSI_AZURE_STORAGE_ACCOUNT": "a"},
		pavv1.ProtocolGCS:   {"COSI_GCS_PROJECT_ID": "p", "COSI_GCS_BUCKET_NAME": "id"},
		"x":                 nil,
	} {
		if got := COSIBucketInfo(b, by); !maps.Equal(got, want) {
			t.Errorf("%s: got %v", by, got)
		}
	}
}
