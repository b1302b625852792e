package access

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/credentials"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
)

// toldBucket is what is known of a bucket that clients may use by any protocol.
func toldBucket() *pavv1.PavBucket {
	return &pavv1.PavBucket{Status: pavv1.PavBucketStatus{BucketID: "id", Info: map[string]string{
		protocol.InfoEndpoint: "https://s3.example:9000", protocol.InfoRegion: "here", protocol.InfoAddressingStyle: "path", protocol.InfoStorageAccount: "account", protocol.InfoProjectID: "project",
	}}}
}

func requestedBy(api pavv1.BucketAPI, by pavv1.BucketProtocol) *pavv1.PavBucketAccess {
	a := &pavv1.PavBucketAccess{}
	a.Spec = pavv1.PavBucketAccessSpec{API: api, Protocol: by, AuthenticationType: pavv1.AuthenticationKey, Requester: pavv1.AccessRequester{UID: "u"}}
	a.Status.Granting = &pavv1.GrantedAccount{}
	return a
}

func TestSecretData(t *testing.T) {
	s3 := credentials.Credentials{credentials.AccessKeyID: []byte("key\n"), credentials.AccessSecretKey: []byte("secret\r\n"), "extra/HINT": []byte("more"), "extra/BucketInfo": []byte("forged"), "extra/ACCESS_KEY_ID": []byte("forged")}
	expiring := requestedBy(pavv1.BucketAPICOSI1, pavv1.ProtocolAzure)
	expiring.Status.Granting.ExpiresAt = new(metav1.NewTime(time.Date(2026, 6, 1, 14, 0, 0, 0, time.FixedZone("", 2*60*60))))
	ending := requestedBy(pavv1.BucketAPICOSI2, pavv1.ProtocolAzure)
	ending.Status.Granting.ExpiresAt = expiring.Status.Granting.ExpiresAt
	trusted2 := requestedBy(pavv1.BucketAPICOSI2, pavv1.ProtocolGCS)
	trusted2.Spec.AuthenticationType = pavv1.AuthenticationServiceAccount
	trusted := requestedBy(pavv1.BucketAPICOSI1, pavv1.ProtocolS3)
	trusted.Spec.AuthenticationType = pavv1.AuthenticationServiceAccount
	for name, test := range map[string]struct {
		record *pavv1.PavBucketAccess
		known  credentials.Credentials
		want   map[string]string
	}{
		"of an ObjectBucketClaim": {
			record: requestedBy(pavv1.BucketAPIClaim, pavv1.ProtocolS3), known: s3,
			want: map[string]string{
				"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "HINT": "more", "BucketInfo": "forged",
			},
		},
		"of a volume by S3": {
			record: requestedBy(pavv1.BucketAPIVolume, pavv1.ProtocolS3), known: s3,
			want: map[string]string{
				"accessKeyId": "key", "accessSecretKey": "secret", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
				"HINT": "more", "BucketInfo": "forged", "ACCESS_KEY_ID": "forged",
			},
		},
		"of a volume by Azure": {
			record: requestedBy(pavv1.BucketAPIVolume, pavv1.ProtocolAzure), known: credentials.Credentials{credentials.AccessToken: []byte("token\n")},
			want: map[string]string{"accessToken": "token"},
		},
		"of COSI v1alpha1 by S3": {
			record: requestedBy(pavv1.BucketAPICOSI1, pavv1.ProtocolS3), known: s3,
			want: map[string]string{
				"BucketInfo":    `{"metadata":{"name":"bc-u"},"spec":{"bucketName":"id","authenticationType":"Key","secretS3":{"endpoint":"https://s3.example:9000","region":"here","accessKeyID":"key","accessSecretKey":"secret"},"secretAzure":null,"protocols":["S3"]}}`,
				"COSI_PROTOCOL": "S3", "COSI_CERTIFICATE_AUTHORITY": "", "COSI_S3_BUCKET_ID": "id", "COSI_S3_ENDPOINT": "https://s3.example:9000", "COSI_S3_REGION": "here",
				"COSI_S3_ADDRESSING_STYLE": "path", "COSI_S3_ACCESS_KEY_ID": "key", "COSI_S3_ACCESS_SECRET_KEY": "secret", "HINT": "more", "ACCESS_KEY_ID": "forged",
			},
		},
		"of COSI v1alpha1 by S3, with a ServiceAccount": {
			record: trusted, known: credentials.Credentials{credentials.CertificateAuthority: []byte("pem\n")},
			want: map[string]string{
				"BucketInfo":    `{"metadata":{"name":"bc-u"},"spec":{"bucketName":"id","authenticationType":"IAM","secretS3":{"endpoint":"https://s3.example:9000","region":"here","accessKeyID":"","accessSecretKey":""},"secretAzure":null,"protocols":["S3"]}}`,
				"COSI_PROTOCOL": "S3", "COSI_CERTIFICATE_AUTHORITY": "pem\n", "COSI_S3_BUCKET_ID": "id", "COSI_S3_ENDPOINT": "https://s3.example:9000", "COSI_S3_REGION": "here",
				"COSI_S3_ADDRESSING_STYLE": "path",
			},
		},
		"of COSI v1alpha1 by Azure": {
			record: requestedBy(pavv1.BucketAPICOSI1, pavv1.ProtocolAzure), known: credentials.Credentials{credentials.AccessToken: []byte("token\n")},
			want: map[string]string{
				"BucketInfo":    `{"metadata":{"name":"bc-u"},"spec":{"bucketName":"id","authenticationType":"Key","secretS3":null,"secretAzure":{"accessToken":"token","expiryTimeStamp":null},"protocols":["Azure"]}}`,
				"COSI_PROTOCOL": "Azure", "COSI_CERTIFICATE_AUTHORITY": "", "COSI_AZURE_STORAGE_ACCOUNT": "account", "COSI_AZURE_ACCESS_TOKEN": "token", "COSI_AZURE_EXPIRY_TIMESTAMP": "",
			},
		},
		"of COSI v1alpha1 by Azure, with an end": {
			record: expiring, known: credentials.Credentials{credentials.AccessToken: []byte("token")},
			want: map[string]string{
				"BucketInfo":    `{"metadata":{"name":"bc-u"},"spec":{"bucketName":"id","authenticationType":"Key","secretS3":null,"secretAzure":{"accessToken":"token","expiryTimeStamp":"2026-06-01T12:00:00Z"},"protocols":["Azure"]}}`,
				"COSI_PROTOCOL": "Azure", "COSI_CERTIFICATE_AUTHORITY": "", "COSI_AZURE_STORAGE_ACCOUNT": "account", "COSI_AZURE_ACCESS_TOKEN": "token", "COSI_AZURE_EXPIRY_TIMESTAMP": "2026-06-01T12:00:00Z",
			},
		},
		"of COSI v1alpha1 by GCS": {
			record: requestedBy(pavv1.BucketAPICOSI1, pavv1.ProtocolGCS), known: credentials.Credentials{credentials.PrivateKeyName: []byte("name"), credentials.ServiceAccount: []byte("{}")},
			want: map[string]string{
				"BucketInfo":    `{"metadata":{"name":"bc-u"},"spec":{"bucketName":"id","authenticationType":"Key","secretS3":null,"secretAzure":null,"protocols":["GCP"]}}`,
				"COSI_PROTOCOL": "GCS", "COSI_CERTIFICATE_AUTHORITY": "", "COSI_GCS_PROJECT_ID": "project", "COSI_GCS_BUCKET_NAME": "id", "COSI_GCS_ACCESS_ID": "", "COSI_GCS_ACCESS_SECRET": "",
				"COSI_GCS_PRIVATE_KEY_NAME": "name", "COSI_GCS_SERVICE_ACCOUNT": "{}",
			},
		},
		"of COSI v1alpha2 by S3": {
			record: requestedBy(pavv1.BucketAPICOSI2, pavv1.ProtocolS3), known: s3,
			want: map[string]string{
				"COSI_PROTOCOL": "S3", "COSI_CERTIFICATE_AUTHORITY": "", "COSI_S3_BUCKET_ID": "id", "COSI_S3_ENDPOINT": "https://s3.example:9000", "COSI_S3_REGION": "here",
				"COSI_S3_ADDRESSING_STYLE": "path", "COSI_S3_ACCESS_KEY_ID": "key", "COSI_S3_ACCESS_SECRET_KEY": "secret",
				"HINT": "more", "ACCESS_KEY_ID": "forged", "BucketInfo": "forged",
			},
		},
		"of COSI's first proposal by S3": {
			record: requestedBy(pavv1.BucketAPICOSI0, pavv1.ProtocolS3), known: s3,
			want: map[string]string{
				"COSI_PROTOCOL": "S3", "COSI_CERTIFICATE_AUTHORITY": "", "COSI_S3_BUCKET_ID": "id", "COSI_S3_ENDPOINT": "https://s3.example:9000", "COSI_S3_REGION": "here",
				"COSI_S3_ADDRESSING_STYLE": "path", "COSI_S3_ACCESS_KEY_ID": "key", "COSI_S3_ACCESS_SECRET_KEY": "secret",
				"HINT": "more", "ACCESS_KEY_ID": "forged", "BucketInfo": "forged",
			},
		},
		"of COSI v1alpha2 by Azure, with an end": {
			record: ending, known: credentials.Credentials{credentials.AccessToken: []byte("token\n"), "extra/COSI_PROTOCOL": []byte("forged")},
			want: map[string]string{
				"COSI_PROTOCOL": "Azure", "COSI_CERTIFICATE_AUTHORITY": "", "COSI_AZURE_STORAGE_ACCOUNT": "account", "COSI_AZURE_ACCESS_TOKEN": "token", "COSI_AZURE_EXPIRY_TIMESTAMP": "2026-06-01T12:00:00Z",
			},
		},
		"of COSI v1alpha2 by GCS, with a ServiceAccount": {
			record: trusted2, known: credentials.Credentials{credentials.CertificateAuthority: []byte("pem\n")},
			want: map[string]string{
				"COSI_PROTOCOL": "GCS", "COSI_CERTIFICATE_AUTHORITY": "pem\n", "COSI_GCS_PROJECT_ID": "project", "COSI_GCS_BUCKET_NAME": "id",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := secretData(test.record, toldBucket(), test.known)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for key, value := range data {
				got[key] = string(value)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the Secret (-want +got):\n%s", diff)
			}
			if info := data[cosiv1.BucketInfoKey]; test.record.Spec.API == pavv1.BucketAPICOSI1 && !json.Valid(info) {
				t.Errorf("no JSON: %s", info)
			}
		})
	}
}

func TestSecretData_OfAnUnknownAPI(t *testing.T) {
	if _, err := secretData(requestedBy("x", pavv1.ProtocolS3), toldBucket(), nil); err == nil || !strings.Contains(err.Error(), "does not know") {
		t.Errorf("got the error %v", err)
	}
}

// A text of JSON would have other bytes than the credential.
func TestSecretData_OfCredentialsThatAreNoText(t *testing.T) {
	known := credentials.Credentials{credentials.AccessKeyID: []byte("key"), credentials.AccessSecretKey: []byte("secret\xff")}
	if data, err := secretData(requestedBy(pavv1.BucketAPICOSI1, pavv1.ProtocolS3), toldBucket(), known); !podplan.IsRefusal(err) || strings.Contains(err.Error(), "secret\xff") {
		t.Errorf("got %q, %v", data, err)
	}
	if _, err := secretData(requestedBy(pavv1.BucketAPIClaim, pavv1.ProtocolS3), toldBucket(), known); err != nil {
		t.Errorf("of an ObjectBucketClaim, whose Secret has it as it is: %v", err)
	}
}
