package obc

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestNameOf(t *testing.T) {
	uid := string(claimUID)
	for name, test := range map[string]struct {
		claim      objectbucketv1.ObjectBucketClaimSpec
		parameters map[string]string
		want       naming
	}{
		"a prefix":                         {claim: objectbucketv1.ObjectBucketClaimSpec{GenerateBucketName: "photos"}, want: naming{bucket: "photos-" + uid}},
		"a long prefix":                    {claim: objectbucketv1.ObjectBucketClaimSpec{GenerateBucketName: strings.Repeat("p", 30)}, want: naming{bucket: strings.Repeat("p", 26) + "-" + uid}},
		"a prefix that is cut in a letter": {claim: objectbucketv1.ObjectBucketClaimSpec{GenerateBucketName: strings.Repeat("p", 25) + "é"}, want: naming{bucket: strings.Repeat("p", 25) + "-" + uid}},
		"a name":                           {claim: objectbucketv1.ObjectBucketClaimSpec{BucketName: "photos"}, want: naming{bucket: "photos", requested: true}},
		"a name and a prefix":              {claim: objectbucketv1.ObjectBucketClaimSpec{BucketName: "photos", GenerateBucketName: "p"}, want: naming{bucket: "photos", requested: true}},
		"the bucket of the class":          {claim: objectbucketv1.ObjectBucketClaimSpec{BucketName: "photos"}, parameters: map[string]string{"bucketName": "old"}, want: naming{bucket: "old", existing: "old"}},
		"nothing":                          {},
	} {
		claim := claimed().claim
		claim.Spec = test.claim
		if got := nameOf(claim, test.parameters); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

func TestReclaimPolicy_IsDeleteByDefault(t *testing.T) {
	if got := reclaimPolicy(&storagev1.StorageClass{}); got != corev1.PersistentVolumeReclaimDelete {
		t.Errorf("got %s", got)
	}
	if got := reclaimPolicy(&storagev1.StorageClass{ReclaimPolicy: new(corev1.PersistentVolumeReclaimRetain)}); got != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("got %s", got)
	}
}

func TestHostAndPort(t *testing.T) {
	for name, test := range map[string]struct {
		info map[string]string
		host string
		port int
	}{
		"https":                         {map[string]string{"endpoint": "https://s3.example"}, "s3.example", 443},
		"http":                          {map[string]string{"endpoint": "http://s3.example"}, "s3.example", 80},
		"HTTP":                          {map[string]string{"endpoint": "HTTP://s3.example"}, "s3.example", 80},
		"a port":                        {map[string]string{"endpoint": "http://s3.example:9000"}, "s3.example", 9000},
		"no scheme":                     {map[string]string{"endpoint": "s3.example"}, "s3.example", 443},
		"no scheme, and a port":         {map[string]string{"endpoint": "s3.example:9000"}, "s3.example", 9000},
		"a path":                        {map[string]string{"endpoint": "https://s3.example:9000/base?x#y"}, "s3.example", 9000},
		"a user":                        {map[string]string{"endpoint": "https://me:secret@s3.example/"}, "s3.example", 443},
		"IPv4":                          {map[string]string{"endpoint": "http://192.0.2.1:9000"}, "192.0.2.1", 9000},
		"IPv6":                          {map[string]string{"endpoint": "http://[2001:db8::1]:9000"}, "[2001:db8::1]", 9000},
		"IPv6 without a port":           {map[string]string{"endpoint": "http://[2001:db8::1]"}, "[2001:db8::1]", 80},
		"no port after the colon":       {map[string]string{"endpoint": "http://s3.example:"}, "s3.example", 80},
		"a port that is none":           {map[string]string{"endpoint": "http://s3.example:x"}, "s3.example", 80},
		"nothing":                       {nil, "", 0},
		"host and port":                 {map[string]string{"host": "h", "port": "1"}, "h", 1},
		"a host without a port":         {map[string]string{"host": "h"}, "h", 0},
		"another host":                  {map[string]string{"endpoint": "http://s3.example:9000", "host": "h"}, "h", 9000},
		"another port":                  {map[string]string{"endpoint": "http://s3.example:9000", "port": "1"}, "s3.example", 1},
		"a scheme, and nothing behind":  {map[string]string{"endpoint": "http://"}, "", 0},
		"an endpoint that is no such":   {map[string]string{"endpoint": "a b:c:d"}, "a b:c:d", 443},
		"an endpoint of a virtual host": {map[string]string{"endpoint": "https://photos.s3.example"}, "photos.s3.example", 443},
	} {
		if host, port := hostAndPort(test.info); host != test.host || port != test.port {
			t.Errorf("%s: got %q and %d, want %q and %d", name, host, port, test.host, test.port)
		}
	}
}

func TestConfigData(t *testing.T) {
	b := &pavv1.PavBucket{}
	b.Status.BucketID = "id"
	want := map[string]string{"BUCKET_NAME": "id", "BUCKET_HOST": "", "BUCKET_PORT": "", "BUCKET_REGION": "", "BUCKET_SUBREGION": ""}
	if diff := cmp.Diff(want, configData(b)); diff != "" {
		t.Errorf("nothing is known (-want +got):\n%s", diff)
	}
	b.Status.Info = map[string]string{"endpoint": "http://s3:9000", "region": "r", "subRegion": "sr", "addressingStyle": "path"}
	b.Status.ExtraInfo = map[string]string{"QUOTA": "1Gi", "BUCKET_NAME": "never"}
	want = map[string]string{"BUCKET_NAME": "id", "BUCKET_HOST": "s3", "BUCKET_PORT": "9000", "BUCKET_REGION": "r", "BUCKET_SUBREGION": "sr", "QUOTA": "1Gi"}
	got := configData(b)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("all is known (-want +got):\n%s", diff)
	}
	if b.Status.ExtraInfo["BUCKET_NAME"] != "never" {
		t.Error("the status was changed")
	}
	if hashOf(got) != hashOf(want) || hashOf(got) == hashOf(map[string]string{}) {
		t.Error("the hash is not that of the data")
	}
}

func TestObjectBucketOf(t *testing.T) {
	o := granted(asks(map[string]string{"maxSize": "1Gi", "bucketPolicy": "{}", "K": "claim"}), func(o *observation) {
		o.provisioner.Spec.BucketValidation.AdditionalConfig = []string{"maxSize", "K"}
		o.bucket.Status.ExtraInfo = map[string]string{"K": "store"}
	})
	got := objectBucketOf(o)
	if got.Name != "obc-a-photos" {
		t.Errorf("the name is %q", got.Name)
	}
	if diff := cmp.Diff(map[string]string{"bucket-provisioner": "store", pavv1.ProvisionerLabel: "store"}, got.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	want := objectbucketv1.ObjectBucketSpec{
		StorageClassName: "s3", ReclaimPolicy: new(corev1.PersistentVolumeReclaimDelete),
		ClaimRef: &corev1.ObjectReference{APIVersion: "objectbucket.io/v1alpha1", Kind: "ObjectBucketClaim", Namespace: "a", Name: "photos", UID: claimUID},
		Endpoint: &objectbucketv1.Endpoint{
			BucketHost: "s3.example", BucketPort: 9000, BucketName: o.bucket.Spec.BucketName, Region: "r",
			AdditionalConfig: map[string]string{"maxSize": "1Gi", "K": "store"},
		},
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	got.Status.Phase = objectbucketv1.BucketBound
	if !shows(got, o) {
		t.Error("it does not show what it was made from")
	}
}
