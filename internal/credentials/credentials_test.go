package credentials

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestCheckName(t *testing.T) {
	for name, valid := range map[string]bool{
		AccessKeyID: true, ServiceAccount: true, CertificateAuthority: true, "extra/AWS_REGION": true, "extra/.a": true,
		"": false, "accesskeyid": false, "extra/": false, "extra/.": false, "extra/..": false, "extra/..a": false, "extra/a/b": false,
		"extra/a b": false, "extra/" + strings.Repeat("k", 253): true, "extra/" + strings.Repeat("k", 254): false, "../accessKeyId": false,
	} {
		if err := CheckName(name); (err == nil) != valid {
			t.Errorf("%q: %v, want valid: %t", name, err, valid)
		}
	}
}

func TestCheck_Limits(t *testing.T) {
	many := Credentials{}
	for i := range MaxFiles {
		many[fmt.Sprintf("extra/%d", i)] = []byte("x")
	}
	large := func(n int) []byte { return []byte(strings.Repeat("x", n)) }
	more := Credentials{AccessKeyID: nil}
	maps.Copy(more, many)
	for name, test := range map[string]struct {
		c     Credentials
		wrong string
	}{
		"nothing":           {nil, ""},
		"as many as may be": {many, ""},
		"one more":          {more, "more than 64"},
		"one that fits":     {Credentials{AccessToken: large(MaxValue)}, ""},
		"one too large":     {Credentials{AccessToken: large(MaxValue + 1)}, "accessToken has more than 16384 bytes"},
		"all that fit":      {Credentials{AccessKeyID: large(MaxValue), AccessSecretKey: large(MaxValue), AccessToken: large(MaxValue)}, ""},
		"too large together": {Credentials{AccessKeyID: large(MaxValue), AccessSecretKey: large(MaxValue), AccessToken: large(MaxValue),
			AccessID: large(1)}, "more than 49152 bytes together"},
		"a wrong name": {Credentials{"secretKey": nil}, `"secretKey" is none of`},
	} {
		err := test.c.Check()
		if (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("%s: %v, want %q", name, err, test.wrong)
		}
	}
}

func TestCheckFor(t *testing.T) {
	value := []byte("x")
	for name, test := range map[string]struct {
		protocol pavv1.BucketProtocol
		c        Credentials
		missing  string
	}{
		"S3":                       {pavv1.ProtocolS3, Credentials{AccessKeyID: value, AccessSecretKey: value}, ""},
		"S3 without a key":         {pavv1.ProtocolS3, Credentials{AccessSecretKey: value}, "S3 needs /pav/credentials/accessKeyId"},
		"S3 with an empty secret":  {pavv1.ProtocolS3, Credentials{AccessKeyID: value, AccessSecretKey: []byte(" \n")}, "S3 needs /pav/credentials/accessSecretKey"},
		"S3 with nothing":          {pavv1.ProtocolS3, nil, "S3 needs /pav/credentials/accessKeyId and /pav/credentials/accessSecretKey"},
		"Azure":                    {pavv1.ProtocolAzure, Credentials{AccessToken: value}, ""},
		"Azure with S3's":          {pavv1.ProtocolAzure, Credentials{AccessKeyID: value, AccessSecretKey: value}, "/pav/credentials/accessToken"},
		"GCS with HMAC":            {pavv1.ProtocolGCS, Credentials{AccessID: value, AccessSecret: value}, ""},
		"GCS with a private key":   {pavv1.ProtocolGCS, Credentials{PrivateKeyName: value, ServiceAccount: value}, ""},
		"GCS with halves of both":  {pavv1.ProtocolGCS, Credentials{AccessID: value, ServiceAccount: value}, "/pav/credentials/accessSecret, or /pav/credentials/privateKeyName"},
		"a protocol of the future": {"NFS", nil, "not known"},
	} {
		err := test.c.CheckFor(test.protocol)
		if (err == nil) != (test.missing == "") || err != nil && !strings.Contains(err.Error(), test.missing) {
			t.Errorf("%s: %v, want %q", name, err, test.missing)
		}
	}
}
