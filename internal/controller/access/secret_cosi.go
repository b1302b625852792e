package access

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/credentials"
	"github.com/albertofaria/pav/internal/protocol"
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
			Endpoint: bucket.Status.Info[protocol.InfoEndpoint], Region: bucket.Status.Info[protocol.InfoRegion],
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
	data[cosiv2.SecretProtocol] = []byte(record.Spec.Protocol)
	data[cosiv2.SecretCertificate] = known[credentials.CertificateAuthority]
	for key, value := range protocol.COSIBucketInfo(bucket, record.Spec.Protocol) {
		data[key] = []byte(value)
	}
	if record.Spec.Protocol == pavv1.ProtocolAzure {
		data[cosiv2.SecretAzureExpiry] = []byte{}
		if at := expiry(record); at != nil {
			data[cosiv2.SecretAzureExpiry] = []byte(at.UTC().Format(time.RFC3339))
		}
	}
	if record.Spec.AuthenticationType != pavv1.AuthenticationKey {
		return
	}
	for key, name := range cosiCredentials[record.Spec.Protocol] {
		data[key] = trimmed(known[name])
	}
}

// cosiCredentials are the credentials that the keys of v1alpha2 of COSI have, by protocol.
var cosiCredentials = map[pavv1.BucketProtocol]map[string]string{
	pavv1.ProtocolS3:    {cosiv2.SecretS3AccessKeyID: credentials.AccessKeyID, cosiv2.SecretS3AccessSecretKey: credentials.AccessSecretKey},
	pavv1.ProtocolAzure: {cosiv2.SecretAzureAccessToken: credentials.AccessToken},
	pavv1.ProtocolGCS: {
		cosiv2.SecretGCSAccessID: credentials.AccessID, cosiv2.SecretGCSAccessSecret: credentials.AccessSecret,
		cosiv2.SecretGCSPrivateKeyName: credentials.PrivateKeyName, cosiv2.SecretGCSServiceAccount: credentials.ServiceAccount,
	},
}

// expiry returns when the credentials that are delivered end; nil if they do not.
func expiry(record *pavv1.PavBucketAccess) *metav1.Time {
	if record.Status.Granting == nil {
		return nil
	}
	return record.Status.Granting.ExpiresAt
}
