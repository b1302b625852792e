package v1alpha2

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// What is not set is not written: definitions want lists and maps that are empty to be absent. But readyToUse is mandatory in a status, and a
// status that nobody has written is absent.
func TestJSON_OfWhatIsNotSet(t *testing.T) {
	const meta = `{"metadata":{},`
	at := metav1.NewTime(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	for name, test := range map[string]struct {
		object any
		want   string
	}{
		"BucketClass":                  {BucketClass{}, meta + `"spec":{"driverName":"","deletionPolicy":""}}`},
		"BucketClaim":                  {BucketClaim{}, meta + `"spec":{}}`},
		"BucketClaim with a status":    {BucketClaim{Status: BucketClaimStatus{BoundBucketName: "b"}}, meta + `"spec":{},"status":{"boundBucketName":"b","readyToUse":false}}`},
		"BucketClaim with an error":    {BucketClaim{Status: BucketClaimStatus{Error: &TimestampedError{Time: &at, Message: "no"}}}, meta + `"spec":{},"status":{"readyToUse":false,"error":{"time":"2026-06-01T12:00:00Z","message":"no"}}}`},
		"Bucket":                       {Bucket{}, meta + `"spec":{"driverName":"","deletionPolicy":"","bucketClaimRef":{"name":"","namespace":""}}}`},
		"Bucket with a status":         {Bucket{Status: BucketStatus{ReadyToUse: true}}, meta + `"spec":{"driverName":"","deletionPolicy":"","bucketClaimRef":{"name":"","namespace":""}},"status":{"readyToUse":true}}`},
		"BucketAccessClass":            {BucketAccessClass{}, meta + `"spec":{"driverName":"","authenticationType":""}}`},
		"BucketAccess":                 {BucketAccess{}, meta + `"spec":{"bucketClaims":null,"bucketAccessClassName":"","protocol":""}}`},
		"BucketAccess with a status":   {BucketAccess{Status: BucketAccessStatus{DriverName: "d"}}, meta + `"spec":{"bucketClaims":null,"bucketAccessClassName":"","protocol":""},"status":{"readyToUse":false,"driverName":"d"}}`},
		"BucketAccess to one bucket":   {BucketAccessSpec{BucketClaims: []BucketClaimAccess{{BucketClaimName: "c", AccessMode: "ReadOnly", AccessSecretName: "s"}}}, `{"bucketClaims":[{"bucketClaimName":"c","accessMode":"ReadOnly","accessSecretName":"s"}],"bucketAccessClassName":"","protocol":""}`},
		"BucketAccess, and its status": {BucketAccessStatus{AccessedBuckets: []AccessedBucket{{BucketName: "b", BucketID: "i", BucketClaimName: "c"}}}, `{"readyToUse":false,"accessedBuckets":[{"bucketName":"b","bucketID":"i","bucketClaimName":"c"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(test.object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(raw)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
		})
	}
}

// A copy shares nothing with its original.
func TestDeepCopy(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	failed := func() *TimestampedError { return &TimestampedError{Time: new(at), Message: "no"} }
	protocols := func() []Protocol { return []Protocol{ProtocolS3} }
	parameters := func() map[string]string { return map[string]string{"a": "b"} }
	for _, object := range []runtime.Object{
		&BucketClassList{Items: []BucketClass{{Spec: BucketClassSpec{Parameters: parameters()}}}},
		&BucketClaimList{Items: []BucketClaim{{Spec: BucketClaimSpec{Protocols: protocols()}, Status: BucketClaimStatus{Protocols: protocols(), Error: failed()}}}},
		&BucketList{Items: []Bucket{{Spec: BucketSpec{Protocols: protocols(), Parameters: parameters()}, Status: BucketStatus{Protocols: protocols(), BucketInfo: parameters(), Error: failed()}}}},
		&BucketAccessClassList{Items: []BucketAccessClass{{Spec: BucketAccessClassSpec{Parameters: parameters(), DisallowedBucketAccessModes: []AccessMode{AccessModeReadOnly}}}}},
		&BucketAccessList{Items: []BucketAccess{{
			Spec:   BucketAccessSpec{BucketClaims: []BucketClaimAccess{{BucketClaimName: "c"}}},
			Status: BucketAccessStatus{AccessedBuckets: []AccessedBucket{{BucketName: "b"}}, Parameters: parameters(), Error: failed()},
		}}},
	} {
		duplicate := object.DeepCopyObject()
		if diff := cmp.Diff(object, duplicate); diff != "" {
			t.Errorf("%T: the copy differs (-original +copy):\n%s", object, diff)
		}
		if path := shared(reflect.ValueOf(object), reflect.ValueOf(duplicate), ""); path != "" {
			t.Errorf("%T: the copy shares %s", object, path)
		}
	}
}

// shared returns where two values that are equal share memory, or "". What is in times cannot be changed.
func shared(a, b reflect.Value, path string) string {
	kind := a.Kind()
	if (kind == reflect.Pointer || kind == reflect.Map || kind == reflect.Slice) && !a.IsNil() && a.Pointer() == b.Pointer() {
		return path
	}
	switch {
	case kind == reflect.Pointer && !a.IsNil() && a.Type() != reflect.TypeFor[*metav1.Time]():
		return shared(a.Elem(), b.Elem(), path)
	case kind == reflect.Slice:
		for i := range a.Len() {
			if found := shared(a.Index(i), b.Index(i), path); found != "" {
				return found
			}
		}
	case kind == reflect.Struct:
		for i := range a.NumField() {
			if found := shared(a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name); found != "" {
				return found
			}
		}
	}
	return ""
}

func TestAddToScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"BucketClass", "BucketClaim", "Bucket", "BucketAccessClass", "BucketAccess"} {
		for _, name := range []string{kind, kind + "List"} {
			if !scheme.Recognizes(GroupVersion.WithKind(name)) {
				t.Errorf("%s is missing", name)
			}
		}
	}
}

func TestBucketOf(t *testing.T) {
	if got := BucketOf("00000000-0000-4000-8000-000000000001"); got != "bc-00000000-0000-4000-8000-000000000001" {
		t.Errorf("got %q", got)
	}
}
