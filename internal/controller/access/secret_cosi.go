package access

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/credentials"
	"github.com/albertofaria/pav/internal/protocol"
)

// The names of what clients are told of a bucket, in a PavBucket.
const (
	infoEndpoint        = "endpoint"
	infoRegion          = "region"
	infoAddressingStyle = "addressingStyle"
	infoStorageAccount  = "storageAccount"
	infoProjectID       = "projectId"
)

// addBucketInfo adds what v1alpha1 of COSI puts into the Secret of an access: a text of JSON. As the name of the bucket, it has what
// identifies the bucket in its store, which is what clients need; upstream has the name of the Bucket there. By default, both are the same.
func addBucketInfo(data map[string][]byte, record *pavv1.PavBucketAccess, bucket *pavv1.PavBucket, known credentials.Credentials) error {
	spec := &record.Spec
	for _, name := range []string{credentials.AccessKeyID, credentials.AccessSecretKey, credentials.AccessToken} {
		if !utf8.Valid(known[name]) { // JSON would have other bytes instead
			return refuse("the credential %s is no text in UTF-8, and can be in no BucketInfo", name)
		}
	}
	info := cosiv1.BucketInfo{
		Metadata: cosiv1.BucketInfoMetadata{Name: cosiv1.BucketInfoOf(spec.Requester.UID)},
		Spec: cosiv1.BucketInfoSpec{
			BucketName: bucket.Status.BucketID, AuthenticationType: cosiv1.AuthenticationTypeKey,
			Protocols: []cosiv1.Protocol{cosiv1.Protocol(protocol.COSIProtocol(spec.Protocol))},
		},
	}
	if spec.AuthenticationType == pavv1.AuthenticationServiceAccount {
		info.Spec.AuthenticationType = cosiv1.AuthenticationTypeIAM
	}
	switch spec.Protocol {
	case pavv1.ProtocolS3:
		info.Spec.S3 = &cosiv1.SecretS3{
			Endpoint: bucket.Status.Info[infoEndpoint], Region: bucket.Status.Info[infoRegion],
			AccessKeyID: string(trimmed(known[credentials.AccessKeyID])), AccessSecretKey: string(trimmed(known[credentials.AccessSecretKey])),
		}
	case pavv1.ProtocolAzure:
		info.Spec.Azure = &cosiv1.SecretAzure{AccessToken: string(trimmed(known[credentials.AccessToken])), ExpiryTimeStamp: expiry(record)}
	case pavv1.ProtocolGCS: // v1alpha1 has nothing for it; the keys of v1alpha2 have
	}
	raw, err := json.Marshal(info)
	if err != nil {
		return fmt.Errorf("encoding the BucketInfo of PavBucketAccess %q: %w", record.Name, err)
	}
	data[cosiv1.BucketInfoKey] = raw
	return nil
}

// addCOSIKeys adds the keys of v1alpha2 of COSI for the protocol of an access. All of them are there, so that pods can name them; but those of
// credentials are not where the store trusts a ServiceAccount.
func addCOSIKeys(data map[string][]byte, record *pavv1.PavBucketAccess, bucket *pavv1.PavBucket, known credentials.Credentials) {
	told, id := bucket.Status.Info, bucket.Status.BucketID
	keys, secrets := map[string]string{cosiv1.SecretProtocol: string(record.Spec.Protocol)}, map[string]string{}
	switch record.Spec.Protocol {
	case pavv1.ProtocolS3:
		keys[cosiv1.SecretS3BucketID], keys[cosiv1.SecretS3Endpoint] = id, told[infoEndpoint]
		keys[cosiv1.SecretS3Region], keys[cosiv1.SecretS3AddressingStyle] = told[infoRegion], told[infoAddressingStyle]
		secrets[cosiv1.SecretS3AccessKeyID], secrets[cosiv1.SecretS3AccessSecretKey] = credentials.AccessKeyID, credentials.AccessSecretKey
	case pavv1.ProtocolAzure:
		keys[cosiv1.SecretAzureStorageAccount], keys[cosiv1.SecretAzureExpiry] = told[infoStorageAccount], ""
		if at := expiry(record); at != nil {
			keys[cosiv1.SecretAzureExpiry] = at.UTC().Format(time.RFC3339)
		}
		secrets[cosiv1.SecretAzureAccessToken] = credentials.AccessToken
	case pavv1.ProtocolGCS:
		keys[cosiv1.SecretGCSProjectID], keys[cosiv1.SecretGCSBucketName] = told[infoProjectID], id
		secrets[cosiv1.SecretGCSAccessID], secrets[cosiv1.SecretGCSAccessSecret] = credentials.AccessID, credentials.AccessSecret
		secrets[cosiv1.SecretGCSPrivateKeyName], secrets[cosiv1.SecretGCSServiceAccount] = credentials.PrivateKeyName, credentials.ServiceAccount
	}
	for key, value := range keys {
		data[key] = []byte(value)
	}
	data[cosiv1.SecretCertificate] = known[credentials.CertificateAuthority]
	if record.Spec.AuthenticationType != pavv1.AuthenticationKey {
		return
	}
	for key, name := range secrets {
		data[key] = trimmed(known[name])
	}
}

// expiry returns when the credentials that are delivered end; nil if they do not.
func expiry(record *pavv1.PavBucketAccess) *metav1.Time {
	if record.Status.Granting == nil {
		return nil
	}
	return record.Status.Granting.ExpiresAt
}
