package proposal

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

// What is not set is not written.
func TestJSON_OfWhatIsNotSet(t *testing.T) {
	for name, test := range map[string]struct {
		object any
		want   string
	}{
		"Bucket":               {Bucket{}, `{"metadata":{},"spec":{"bucketClassName":"","secretName":""}}`},
		"Bucket with a status": {Bucket{Status: BucketStatus{Phase: BucketPending}}, `{"metadata":{},"spec":{"bucketClassName":"","secretName":""},"status":{"phase":"Pending"}}`},
		"BucketContent":        {BucketContent{}, `{"metadata":{}}`},
		"BucketContent of a Bucket": {
			BucketContent{Spec: BucketContentSpec{BucketRef: &BucketReference{Name: "n", Namespace: "a", UUID: "u"}}},
			`{"metadata":{},"spec":{"bucketRef":{"name":"n","namespace":"a","uuid":"u"}}}`,
		},
		"BucketClass":               {BucketClass{}, `{"metadata":{}}`},
		"BucketClass with a Secret": {BucketClass{SecretRef: &SecretReference{Name: "s", Namespace: "a"}}, `{"metadata":{},"secretRef":{"name":"s","namespace":"a"}}`},
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

func TestDeepCopy(t *testing.T) {
	parameters := map[string]string{"a": "b"}
	for _, object := range []runtime.Object{
		&BucketList{Items: []Bucket{{Spec: BucketSpec{SecretName: "s"}}}},
		&BucketContentList{Items: []BucketContent{{Spec: BucketContentSpec{
			AccessModes: []AccessMode{AccessReadOnly}, SupportedProtocols: []string{"s3"}, BucketRef: &BucketReference{Name: "n"}, SecretRef: &SecretReference{Name: "s"}, Parameters: parameters,
		}}}},
		&BucketClassList{Items: []BucketClass{{SupportedProtocols: []string{"s3"}, SecretRef: &SecretReference{Name: "s"}, Parameters: parameters}}},
	} {
		if diff := cmp.Diff(object, object.DeepCopyObject()); diff != "" {
			t.Errorf("%T: the copy differs (-original +copy):\n%s", object, diff)
		}
	}
}

func TestAddToScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Bucket", "BucketContent", "BucketClass"} {
		for _, name := range []string{kind, kind + "List"} {
			if !scheme.Recognizes(GroupVersion.WithKind(name)) {
				t.Errorf("%s is missing", name)
			}
		}
	}
}

func TestContentOf(t *testing.T) {
	if got := ContentOf("s3", "00000000-0000-4000-8000-000000000001"); got != "s3-00000000-0000-4000-8000-000000000001" {
		t.Errorf("got %q", got)
	}
}
