package template

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const (
	someBucketClaim = `{"kind":"ObjectBucketClaim","metadata":{"name":"photos","namespace":"apps","labels":{"a":"b"}},"spec":{"additionalConfig":{"maxSize":"1Gi"}}}`
	someNamespace   = `{"kind":"Namespace","metadata":{"name":"apps","labels":{"tier":"gold"}}}`
)

func wholeBucket(t *testing.T) Bucket {
	t.Helper()
	return Bucket{
		Name: "photos-1", Protocols: []string{"S3"}, Params: map[string]string{"endpoint": "https://s3"}, AdditionalConfig: map[string]string{"maxSize": "1Gi"},
		Size: new(int64(1 << 30)), Objects: new(int64(5)), Claim: object(t, someBucketClaim), Class: object(t, leastClass), Namespace: object(t, someNamespace),
		IsExisting: true, IsNameRequested: true,
	}
}

func wholeAccess(t *testing.T) Access {
	t.Helper()
	return Access{
		AccountName: "ba-1", Protocol: "S3", AuthenticationType: "Key", ServiceAccountNamespace: "apps", ServiceAccount: "reader",
		Params: map[string]string{"a": "b"}, Object: object(t, someBucketClaim), Class: object(t, leastClass), Namespace: object(t, someNamespace),
		Number: 1, PreviousAccountID: "ba-0",
		Buckets: []AccessedBucket{{
			ID: "photos-1", Name: "photos", Mode: "ReadOnly", Info: map[string]string{"region": "r"}, Params: map[string]string{"c": "d"},
			Grants: []BucketGrant{{"ba-1", "ReadOnly"}, {"ba-2", "ReadWrite"}},
		}},
	}
}

// What templates of buckets and accesses print of a variable, with all of it and with nothing.
func TestBucketVariables(t *testing.T) {
	whole, least := RevocationVariables(wholeAccess(t), "told"), RevocationVariables(Access{AccountName: "ba-1"}, "")
	bucket := BucketDeletionVariables(wholeBucket(t), "told", true)
	leastBucket := BucketDeletionVariables(Bucket{Name: "b"}, "", false)
	tests := map[string]struct {
		vars           Variables
		template, want string
	}{
		"a bucket":                       {bucket, "{{ bucketName }} {{ bucketId }} {{ protocols | tojson }} {{ params.endpoint }} {{ additionalConfig.maxSize }} {{ existing }} {{ nameRequested }} {{ created }}", `photos-1 told ["S3"] https://s3 1Gi True True True`},
		"its objects":                    {bucket, "{{ claim.metadata.name }} {{ class.provisioner }} {{ namespace.metadata.labels.tier }}", "photos demo gold"},
		"its quota":                      {bucket, "{{ quota.size }} {{ quota.objects }}", "1073741824 5"},
		"no quota":                       {leastBucket, "{{ quota | tojson }}", `{"objects": null, "size": null}`},
		"nothing of a bucket":            {leastBucket, "{{ protocols | tojson }} {{ params | tojson }} {{ additionalConfig | tojson }} {{ claim is none }} {{ namespace is none }} {{ created }}", "[] {} {} True True False"},
		"an identifier that nobody told": {leastBucket, "{{ bucketId }}", "b"},
		"an access":                      {whole, "{{ accountName }} {{ accountId }} {{ protocol }} {{ authenticationType }} {{ params.a }}", "ba-1 told S3 Key b"},
		"its objects, too":               {whole, "{{ access.metadata.name }} {{ class.provisioner }} {{ namespace.metadata.name }}", "photos demo apps"},
		"a service account":              {whole, "{{ serviceAccount.namespace }}/{{ serviceAccount.name }}", "apps/reader"},
		"no service account":             {least, "{{ serviceAccount is none }}", "True"},
		"a rotation":                     {whole, "{{ rotation.number }} {{ rotation.previousAccountId }}", "1 ba-0"},
		"no rotation":                    {least, "{{ rotation | tojson }}", `{"number": 0, "previousAccountId": null}`},
		"buckets":                        {whole, "{% for b in buckets %}{{ b.id }} {{ b.name }} {{ b.mode }} {{ b.info.region }} {{ b.params.c }} {{ b.grants | tojson }}{% endfor %}", `photos-1 photos ReadOnly r d [{"accountId": "ba-1", "mode": "ReadOnly"}, {"accountId": "ba-2", "mode": "ReadWrite"}]`},
		"an account that nobody told":    {least, "{{ accountId or accountName }}", "ba-1"},
	}
	e := NewEvaluator(DefaultLimits())
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := e.Evaluate(t.Context(), Field{}, apiextensionsv1.JSON{Raw: fmt.Appendf(nil, "%q", test.template)}, test.vars, nil)
			if err != nil || got != test.want {
				t.Errorf("got %v and error %v, want %s", got, err, test.want)
			}
		})
	}
}

// What tenants choose of buckets is known, and whether a shell can take it for a command.
func TestAnalyze_FlowsOfBuckets(t *testing.T) {
	tests := map[string]struct {
		section, template string
		want              []string
	}{
		"a name":                        {"bucketCreation", "{{ bucketName }}", []string{"1:4 bucketName safe"}},
		"an identifier":                 {"bucketDeletion", "{{ bucketId }}", []string{"1:4 bucketId safe"}},
		"additional configuration":      {"bucketUpdate", "{{ additionalConfig.maxSize }}", []string{"1:4 additionalConfig.maxSize"}},
		"a key like that of an object":  {"bucketUpdate", "{{ additionalConfig.status }}{{ additionalConfig.kind }}", []string{"1:33 additionalConfig.kind", "1:4 additionalConfig.status"}},
		"a word":                        {"bucketUpdate", "{{ additionalConfig.maxSize | tobash }}", []string{"1:4 additionalConfig.maxSize word"}},
		"additional configuration, all": {"bucketCreation", "{% for k, v in additionalConfig.items() %}{{ k }}{% endfor %}", []string{"1:46 additionalConfig"}},
		"a claim's name":                {"bucketCreation", "{{ claim.metadata.name }}", []string{"1:4 claim.metadata.name safe"}},
		"a claim's spec and status":     {"bucketCreation", "{{ claim.spec.volumeName }}{{ claim.status.phase }}", []string{"1:31 claim.status.phase", "1:4 claim.spec.volumeName"}},
		"a label of a namespace":        {"bucketValidation", "{{ namespace.metadata.labels.tier }}", []string{"1:4 namespace.metadata.labels.tier"}},
		"what asks for access":          {"bucketAccessGrant", "{{ access.metadata.annotations.x }}", []string{"1:4 access.metadata.annotations.x"}},
		"a service account":             {"bucketAccessRevoke", "{{ serviceAccount.name }}", []string{"1:4 serviceAccount.name safe"}},
		"what no tenant chooses":        {"bucketAccessRevoke", "{{ accountName }}{{ accountId }}{{ params.x }}{{ class.metadata.name }}{{ buckets | tojson }}{{ rotation.number }}{{ protocol }}", nil},
		"a quota":                       {"bucketCreation", "{{ quota.size }}{{ protocols | join }}", nil},
	}
	e := NewEvaluator(DefaultLimits())
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := e.Analyze(test.section, test.template)
			if diff := cmp.Diff(test.want, slices.Sorted(slices.Values(flowTexts(a.Flows)))); diff != "" || len(a.Errors) > 0 {
				t.Errorf("errors %v; -want +got:\n%s", a.Errors, diff)
			}
		})
	}
}

func TestAnalyze_NamesOfBuckets(t *testing.T) {
	tests := map[string]struct{ section, template, want string }{
		"an account of a grant":         {"bucketAccessGrant", "{{ accountId }}", "line 1, column 4: 'accountId' is not known here; it is known in bucketAccessRevoke"},
		"a bucket before it is created": {"bucketCreation", "{{ bucketId }}", "line 1, column 4: 'bucketId' is not known here; it is known in bucketUpdate and bucketDeletion"},
		"a bucket of an access":         {"bucketAccessGrant", "{{ bucketName }}", "line 1, column 4: 'bucketName' is not known here; it is known in bucketValidation, bucketCreation, bucketUpdate and bucketDeletion"},
	}
	e := NewEvaluator(DefaultLimits())
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]string{test.want}, texts(e.Analyze(test.section, test.template).Errors)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
