package podplan

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// definitionOf returns a definition of both modes that is not remembered.
func definitionOf(spec pavv1.PavProvisionerSpec) BucketDefinition {
	if spec.ProvisioningModes == nil {
		spec.ProvisioningModes = []pavv1.ProvisioningMode{pavv1.ProvisioningModeDynamic, pavv1.ProvisioningModeStatic}
	}
	return BucketDefinition{
		Spec: &spec, Templates: template.NewEvaluator(template.DefaultLimits()),
		GetPVC: func(context.Context, string, string) (map[string]any, error) { return nil, template.ErrNoClaim },
	}
}

// bucketOf returns a record of a bucket of a claim, with changes.
func bucketOf(changes ...func(*pavv1.PavBucket)) *pavv1.PavBucket {
	record := &pavv1.PavBucket{
		ObjectMeta: metav1.ObjectMeta{Name: "b-1", UID: "u-b"},
		Spec: pavv1.PavBucketSpec{
			Provisioner: "demo", ClaimRef: pavv1.ClaimReference{Namespace: "apps", Name: "photos", UID: "1"}, BucketName: "photos-1",
			Parameters: map[string]string{"endpoint": "https://s3"},
			Claim:      field(`{"metadata": {"name": "photos", "namespace": "apps", "uid": "1"}}`), Class: field(`{"metadata": {"name": "fast"}}`),
		},
	}
	for _, change := range changes {
		change(record)
	}
	return record
}

func existing(b *pavv1.PavBucket)  { b.Spec.ExistingBucketID = "shared/photos" }
func requested(b *pavv1.PavBucket) { b.Spec.NameRequested, b.Spec.BucketName = true, "photos" }

func config(entries ...string) func(*pavv1.PavBucket) {
	return func(b *pavv1.PavBucket) {
		b.Spec.AdditionalConfig = map[string]string{}
		for i := 0; i < len(entries); i += 2 {
			b.Spec.AdditionalConfig[entries[i]] = entries[i+1]
		}
	}
}

func named(name string) func(*pavv1.PavBucket) {
	return func(b *pavv1.PavBucket) { b.Spec.BucketName = name }
}

// wantRefusal fails the test unless an error is a refusal with the words, or nil if there are none.
func wantRefusal(t *testing.T, err error, words string) {
	t.Helper()
	switch {
	case words == "" && err != nil:
		t.Fatalf("it is refused: %v", err)
	case words != "" && (err == nil || !IsRefusal(err) || !strings.Contains(err.Error(), words)):
		t.Fatalf("got %v, want a refusal with %q", err, words)
	}
}

func TestBucketValidate(t *testing.T) {
	dynamic, static := []pavv1.ProvisioningMode{pavv1.ProvisioningModeDynamic}, []pavv1.ProvisioningMode{pavv1.ProvisioningModeStatic}
	s3and := func(more ...pavv1.BucketProtocol) *pavv1.BucketValidation {
		return &pavv1.BucketValidation{Protocols: append([]pavv1.BucketProtocol{pavv1.ProtocolS3}, more...)}
	}
	asks := func(protocols ...pavv1.BucketProtocol) func(*pavv1.PavBucket) {
		return func(b *pavv1.PavBucket) { b.Spec.Protocols = protocols }
	}
	atMost := func(size string, keys ...string) *pavv1.BucketValidation {
		return &pavv1.BucketValidation{MaxSize: field(size), AdditionalConfig: keys}
	}
	tests := map[string]struct {
		validation *pavv1.BucketValidation
		modes      []pavv1.ProvisioningMode
		record     *pavv1.PavBucket
		want       ValidBucket
		err        string
	}{
		"defaults":                              {record: bucketOf(), want: ValidBucket{Protocols: []pavv1.BucketProtocol{"S3"}}},
		"all protocols where none is asked for": {validation: s3and("GCS"), record: bucketOf(), want: ValidBucket{Protocols: []pavv1.BucketProtocol{"S3", "GCS"}}},
		"the protocols that are asked for":      {validation: s3and("GCS"), record: bucketOf(asks("GCS")), want: ValidBucket{Protocols: []pavv1.BucketProtocol{"GCS"}}},
		"a protocol that is not supported":      {record: bucketOf(asks("S3", "Azure")), err: "the claim asks for the protocol Azure, but the provisioner supports only S3"},
		"no new buckets":                        {modes: static, record: bucketOf(), err: "spec.provisioningModes of the provisioner lacks Dynamic"},
		"no buckets that exist":                 {modes: dynamic, record: bucketOf(existing), err: "spec.provisioningModes of the provisioner lacks Static"},
		"a bucket that exists":                  {modes: static, record: bucketOf(existing), want: ValidBucket{Protocols: []pavv1.BucketProtocol{"S3"}}},
		"a bucket that cannot exist":            {record: bucketOf(func(b *pavv1.PavBucket) { b.Spec.ExistingBucketID = "a b" }), err: "the bucket that the claim is to use: the identifier \"a b\" has other characters"},
		"a requested name":                      {record: bucketOf(requested), want: ValidBucket{Protocols: []pavv1.BucketProtocol{"S3"}}},
		"a requested name, refused":             {validation: &pavv1.BucketValidation{RequestedNames: pavv1.RequestedNamesRefuse}, record: bucketOf(requested), err: `the claim asks for the bucket name "photos", but the provisioner chooses the names`},
		"a generated name where they are":       {validation: &pavv1.BucketValidation{RequestedNames: pavv1.RequestedNamesRefuse}, record: bucketOf(), want: ValidBucket{Protocols: []pavv1.BucketProtocol{"S3"}}},
		"a name that is an option":              {record: bucketOf(named("-rf")), err: `the bucket name "-rf" is not valid`},
		"a name that is a path":                 {record: bucketOf(named("a/b")), err: `the bucket name "a/b" is not valid`},
		"a name that leaves a directory":        {record: bucketOf(named("a..b")), err: `the bucket name "a..b" is not valid`},
		"a name for a shell":                    {record: bucketOf(named("$(id)")), err: `the bucket name "$(id)" is not valid`},
		"a long name":                           {record: bucketOf(named(strings.Repeat("x", 256))), err: "use at most 255 letters"},
		"a key that is not allowed":             {record: bucketOf(config("bucketPolicy", "{}")), err: `spec.additionalConfig of the claim has "bucketPolicy", but spec.bucketValidation.additionalConfig of the provisioner allows none`},
		"keys that are not allowed":             {validation: &pavv1.BucketValidation{AdditionalConfig: []string{"maxSize"}}, record: bucketOf(config("z", "", "maxSize", "1Gi", "a", "")), err: `has "a", "z", but spec.bucketValidation.additionalConfig of the provisioner allows only maxSize`},
		"a key that is allowed":                 {validation: &pavv1.BucketValidation{AdditionalConfig: []string{"maxSize"}}, record: bucketOf(config("maxSize", "1Gi")), want: ValidBucket{Protocols: []pavv1.BucketProtocol{"S3"}}},
		"a size that is none":                   {validation: &pavv1.BucketValidation{AdditionalConfig: []string{"maxSize"}}, record: bucketOf(config("maxSize", "big")), err: `additionalConfig of the claim: maxSize: "big" is not a number above zero`},
		"no size, but a maximum":                {validation: atMost(`"1Gi"`), record: bucketOf(), err: "the claim asks for no size, and the provisioner's buckets have at most 1Gi: set additionalConfig.maxSize of the claim, or the parameter maxSizePerBucket of its class"},
		"no size of a bucket that exists":       {validation: atMost(`"1Gi"`), record: bucketOf(existing), want: ValidBucket{Protocols: []pavv1.BucketProtocol{"S3"}}},
		"the maximum":                           {validation: atMost(`"1Gi"`, "maxSize"), record: bucketOf(config("maxSize", "1Gi")), want: ValidBucket{Protocols: []pavv1.BucketProtocol{"S3"}}},
		"more than the maximum":                 {validation: atMost(`1024`, "maxSize"), record: bucketOf(config("maxSize", "1Gi")), err: "the claim asks for a size of 1Gi, but the provisioner's buckets have at most 1Ki"},
		"the quota of the record":               {validation: atMost(`"1Gi"`), record: bucketOf(func(b *pavv1.PavBucket) { b.Spec.Quota.Size = new(resource.MustParse("2Gi")) }), err: "the claim asks for a size of 2Gi"},
		"ceilings": {
			validation: &pavv1.BucketValidation{MaxBucketsPerNamespace: field(`"{{ 50 if namespace.metadata.labels.tier == 'gold' else 5 }}"`), MaxAccessesPerBucket: field(`0`)},
			record:     bucketOf(), want: ValidBucket{Protocols: []pavv1.BucketProtocol{"S3"}, Ceilings: BucketCeilings{Buckets: new(int64(50)), Accesses: new(int64(0))}},
		},
		"a ceiling that is none": {validation: &pavv1.BucketValidation{MaxAccessesPerBucket: field(`"-1"`)}, record: bucketOf(), err: "spec.bucketValidation.maxAccessesPerBucket: must be a whole number of at least 0"},
		"a pod": {
			validation: &pavv1.BucketValidation{PodTemplate: field(`{"name": "{{ claim.metadata.name }} {{ class.metadata.name }} {{ existing }} {{ nameRequested }} {{ protocols | join }}"}`)},
			record:     bucketOf(), want: ValidBucket{Protocols: []pavv1.BucketProtocol{"S3"}, Pod: map[string]any{"name": "photos fast False False S3"}},
		},
		"a pod that is none": {validation: &pavv1.BucketValidation{PodTemplate: field(`"x"`)}, record: bucketOf(), err: "spec.bucketValidation.podTemplate: must be a mapping"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := BucketRequest{
				BucketDefinition: definitionOf(pavv1.PavProvisionerSpec{BucketValidation: test.validation, ProvisioningModes: test.modes}), Record: test.record,
				Namespace: map[string]any{"metadata": map[string]any{"name": "apps", "labels": map[string]any{"tier": "gold"}}},
			}
			got, err := r.Validate(t.Context())
			wantRefusal(t, err, test.err)
			if err != nil {
				return
			}
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if ceilings, err := r.Ceilings(t.Context()); err != nil || cmp.Diff(test.want.Ceilings, ceilings) != "" {
				t.Errorf("the ceilings alone are %v, %v", ceilings, err)
			}
		})
	}
}

func TestQuotaOf(t *testing.T) {
	size := func(text string) *resource.Quantity { return new(resource.MustParse(text)) }
	tests := map[string]struct {
		config, parameters map[string]string
		want               pavv1.BucketQuota
		err                string
	}{
		"none":                       {},
		"of the claim":               {config: map[string]string{"maxSize": "2Gi", "maxObjects": "1k"}, want: pavv1.BucketQuota{Size: size("2Gi"), Objects: new(int64(1000))}},
		"of the class":               {parameters: map[string]string{"maxSizePerBucket": "2Gi", "maxObjectsPerBucket": "5"}, want: pavv1.BucketQuota{Size: size("2Gi"), Objects: new(int64(5))}},
		"less than the class grants": {config: map[string]string{"maxSize": "1Gi"}, parameters: map[string]string{"maxSizePerBucket": "2Gi"}, want: pavv1.BucketQuota{Size: size("1Gi")}},
		"more than the class grants": {config: map[string]string{"maxObjects": "6"}, parameters: map[string]string{"maxObjectsPerBucket": "5"}, err: "additionalConfig[maxObjects] of the claim is 6, but the parameter maxObjectsPerBucket of its class allows only 5"},
		"an empty one":               {config: map[string]string{"maxSize": ""}},
		"names of the other":         {config: map[string]string{"maxSizePerBucket": "1Gi"}, parameters: map[string]string{"maxSize": "1Gi"}},
		"a size below zero":          {config: map[string]string{"maxSize": "-1"}, err: `additionalConfig of the claim: maxSize: "-1" is not a number above zero, such as 1000 or 10Gi`},
		"a class with a mistake":     {parameters: map[string]string{"maxObjectsPerBucket": "many"}, err: `parameters of the class: maxObjectsPerBucket: "many" is not a number above zero`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := QuotaOf(test.config, test.parameters)
			wantRefusal(t, err, test.err)
			if diff := cmp.Diff(test.want, got); diff != "" && err == nil {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestBucketStore(t *testing.T) {
	for name, test := range map[string]struct {
		store     *pavv1.Template
		want, err string
	}{
		"none":      {},
		"one":       {store: field(`"{{ params.endpoint }}"`), want: "https://s3"},
		"no text":   {store: field(`[]`), err: "spec.bucketValidation.store: must be a string, not a list"},
		"too long":  {store: field(`"{{ 'x' * 2049 }}"`), err: "spec.bucketValidation.store: has 2049 bytes, and may have 2048 at most"},
		"a mistake": {store: field(`"{{ params.nope }}"`), err: "spec.bucketValidation.store"},
	} {
		t.Run(name, func(t *testing.T) {
			r := BucketRequest{BucketDefinition: definitionOf(pavv1.PavProvisionerSpec{BucketValidation: &pavv1.BucketValidation{Store: test.store}}), Record: bucketOf()}
			got, err := r.Store(t.Context())
			wantRefusal(t, err, test.err)
			if err == nil && got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestBucketCreate(t *testing.T) {
	tests := map[string]struct {
		creation *pavv1.BucketCreation
		record   *pavv1.PavBucket
		want     BucketPlan
		err      string
	}{
		"nothing to do":                 {creation: &pavv1.BucketCreation{}, record: bucketOf()},
		"no section":                    {record: bucketOf(), err: "spec.bucketCreation: is missing, so that only buckets that exist already can be used"},
		"no section, an existing one":   {record: bucketOf(existing), want: BucketPlan{BucketID: "shared/photos"}},
		"an identifier":                 {creation: &pavv1.BucketCreation{BucketID: field(`"team/{{ bucketName }}"`)}, record: bucketOf(), want: BucketPlan{BucketID: "team/photos-1"}},
		"an empty identifier":           {creation: &pavv1.BucketCreation{BucketID: field(`""`)}, record: bucketOf(), err: "spec.bucketCreation.bucketId: the identifier is empty"},
		"an identifier of a sentence":   {creation: &pavv1.BucketCreation{BucketID: field(`"a b"`)}, record: bucketOf(), err: `spec.bucketCreation.bucketId: the identifier "a b" has other characters`},
		"information":                   {creation: &pavv1.BucketCreation{Info: field(`{"endpoint": "{{ params.endpoint }}", "port": 443, "region": "{{ '' }}", "host": null}`)}, record: bucketOf(), want: BucketPlan{Info: map[string]string{"endpoint": "https://s3", "port": "443"}}},
		"information of a template":     {creation: &pavv1.BucketCreation{Info: field(`"{% set yaml = true %}{region: r}"`)}, record: bucketOf(), want: BucketPlan{Info: map[string]string{"region": "r"}}},
		"information that is none":      {creation: &pavv1.BucketCreation{Info: field(`"x"`)}, record: bucketOf(), err: "spec.bucketCreation.info: must be a mapping"},
		"information of no name":        {creation: &pavv1.BucketCreation{Info: field(`{"endpont": "x"}`)}, record: bucketOf(), err: `spec.bucketCreation.info.endpont: "endpont" is none of endpoint, region`},
		"information of a wrong value":  {creation: &pavv1.BucketCreation{Info: field(`{"port": "x"}`)}, record: bucketOf(), err: `spec.bucketCreation.info.port: "x" is no port`},
		"information that is a list":    {creation: &pavv1.BucketCreation{Info: field(`{"region": []}`)}, record: bucketOf(), err: `spec.bucketCreation.info.region: must be a string`},
		"a pod":                         {creation: &pavv1.BucketCreation{PodTemplate: field(`{"name": "{{ bucketName }}"}`)}, record: bucketOf(), want: BucketPlan{Pod: map[string]any{"name": "photos-1"}}},
		"only what clients are told":    {creation: &pavv1.BucketCreation{BucketID: field(`"other"`), Info: field(`{"region": "{{ existing }}"}`), PodTemplate: field(`{}`)}, record: bucketOf(existing), want: BucketPlan{BucketID: "shared/photos", Info: map[string]string{"region": "True"}}},
		"no other claim's namespace":    {creation: &pavv1.BucketCreation{PodTemplate: field(`{"name": "{{ get_pvc('a', 'b') }}"}`)}, record: bucketOf(), err: "get_pvc()"},
		"only the keys that are listed": {creation: &pavv1.BucketCreation{PodTemplate: field(`{"name": "{{ additionalConfig | tojson }} {{ quota | tojson }}"}`)}, record: bucketOf(config("maxSize", "1Ki", "policy", "x")), want: BucketPlan{Pod: map[string]any{"name": `{"maxSize": "1Ki"} {"objects": null, "size": 1024}`}}},
		"a namespace that is gone":      {creation: &pavv1.BucketCreation{PodTemplate: field(`{"name": "{{ namespace.metadata.name }}"}`)}, record: bucketOf(), want: BucketPlan{Pod: map[string]any{"name": "apps"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := BucketRequest{Record: test.record, BucketDefinition: definitionOf(pavv1.PavProvisionerSpec{
				BucketCreation: test.creation, BucketValidation: &pavv1.BucketValidation{AdditionalConfig: []string{"maxSize"}},
			})}
			got, err := r.Create(t.Context())
			wantRefusal(t, err, test.err)
			if err != nil {
				return
			}
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestBucketUpdateAndDelete(t *testing.T) {
	pod := field(`{"name": "{{ bucketName }} {{ bucketId }}"}`)
	definition := definitionOf(pavv1.PavProvisionerSpec{
		BucketUpdate: &pavv1.BucketUpdate{PodTemplate: pod}, BucketDeletion: &pavv1.BucketDeletion{PodTemplate: field(`{"name": "{{ bucketId }} {{ created }}"}`)},
	})
	status := func(planned, id string, created bool) func(*pavv1.PavBucket) {
		return func(b *pavv1.PavBucket) {
			b.Status = pavv1.PavBucketStatus{PlannedBucketID: planned, BucketID: id, Created: created}
		}
	}
	for name, test := range map[string]struct {
		record         *pavv1.PavBucket
		update, delete string
	}{
		"what was told":    {bucketOf(status("planned", "told", true)), "photos-1 told", "told True"},
		"what is planned":  {bucketOf(status("planned", "", false)), "photos-1 planned", "planned False"},
		"what is expected": {bucketOf(), "photos-1 photos-1", "photos-1 False"},
		"what exists":      {bucketOf(existing), "photos-1 shared/photos", "shared/photos False"},
	} {
		t.Run(name, func(t *testing.T) {
			r := BucketRequest{BucketDefinition: definition, Record: test.record}
			update, err := r.Update(t.Context())
			if diff := cmp.Diff(map[string]any{"name": test.update}, update); diff != "" || err != nil {
				t.Errorf("update (%v): %s", err, diff)
			}
			deletion, err := r.Delete(t.Context())
			if diff := cmp.Diff(map[string]any{"name": test.delete}, deletion); diff != "" || err != nil {
				t.Errorf("deletion (%v): %s", err, diff)
			}
		})
	}
	r := BucketRequest{BucketDefinition: definitionOf(pavv1.PavProvisionerSpec{BucketDeletion: &pavv1.BucketDeletion{}}), Record: bucketOf()}
	if update, err := r.Update(t.Context()); update != nil || err != nil {
		t.Errorf("no update: %v, %v", update, err)
	}
	if deletion, err := r.Delete(t.Context()); deletion != nil || err != nil {
		t.Errorf("no deletion: %v, %v", deletion, err)
	}
}

func TestBucketOutcomeOf(t *testing.T) {
	plan := &BucketPlan{BucketID: "planned", Info: map[string]string{"endpoint": "e", "region": "r"}}
	info := map[string]string{"endpoint": "e", "region": "r"}
	recorded := func(b *pavv1.PavBucket) { b.Status.PlannedBucketID = "recorded" }
	tests := map[string]struct {
		record *pavv1.PavBucket
		plan   *BucketPlan
		result *workflow.Result
		want   BucketOutcome
		err    string
	}{
		"no pod":                            {record: bucketOf(), plan: plan, want: BucketOutcome{BucketID: "planned", Info: info}},
		"no pod, and nothing planned":       {record: bucketOf(), plan: &BucketPlan{}, want: BucketOutcome{BucketID: "photos-1", Created: true}},
		"no pod, and a requested name":      {record: bucketOf(requested), plan: &BucketPlan{}, want: BucketOutcome{BucketID: "photos"}},
		"a bucket that exists":              {record: bucketOf(existing), plan: &BucketPlan{BucketID: "shared/photos"}, want: BucketOutcome{BucketID: "shared/photos"}},
		"a pod that says nothing":           {record: bucketOf(), plan: plan, result: &workflow.Result{}, want: BucketOutcome{BucketID: "photos-1", Created: true, Info: info}},
		"what was recorded comes first":     {record: bucketOf(recorded), plan: plan, result: &workflow.Result{BucketID: "told", Unreadable: map[string]string{"bucketId": "x"}}, want: BucketOutcome{BucketID: "recorded", Info: info}},
		"then comes the pod":                {record: bucketOf(), plan: plan, result: &workflow.Result{BucketID: "a/told"}, want: BucketOutcome{BucketID: "a/told", Info: info}},
		"a pod that names it for the claim": {record: bucketOf(), plan: plan, result: &workflow.Result{BucketID: "a/of-1"}, want: BucketOutcome{BucketID: "a/of-1", Created: true, Info: info}},
		"a pod that says it is the claim's": {record: bucketOf(), plan: plan, result: &workflow.Result{BucketID: "a/told", Created: true}, want: BucketOutcome{BucketID: "a/told", Created: true, Info: info}},
		"an identifier that is none":        {record: bucketOf(), plan: plan, result: &workflow.Result{BucketID: "a b"}, err: `the creation pod's /pav/bucketId: the identifier "a b" has other characters`},
		"an identifier that is not there":   {record: bucketOf(), plan: plan, result: &workflow.Result{Unreadable: map[string]string{"bucketId": "is a directory"}}, err: "the creation pod's /pav/bucketId: is a directory"},
		"a requested name":                  {record: bucketOf(requested), plan: plan, result: &workflow.Result{}, want: BucketOutcome{BucketID: "photos", Info: info}},
		"a requested name that was created": {record: bucketOf(requested), plan: plan, result: &workflow.Result{Created: true}, want: BucketOutcome{BucketID: "photos", Created: true, Info: info}},
		"a file that should be empty":       {record: bucketOf(requested), plan: plan, result: &workflow.Result{Unreadable: map[string]string{"created": "is not empty"}}, err: "the creation pod's /pav/created: is not empty"},
		"a file that does not matter":       {record: bucketOf(), plan: plan, result: &workflow.Result{Unreadable: map[string]string{"created": "is not empty"}}, want: BucketOutcome{BucketID: "photos-1", Created: true, Info: info}},
		"the pod's word is the last": {
			record: bucketOf(), plan: plan, result: &workflow.Result{Info: map[string]string{"endpoint": "pod", "region": "", "extra/CA": "x\ny", "extra/EMPTY": ""}},
			want: BucketOutcome{BucketID: "photos-1", Created: true, Info: map[string]string{"endpoint": "pod"}, ExtraInfo: map[string]string{"CA": "x\ny", "EMPTY": ""}},
		},
		"keys of a ConfigMap in the definition": {
			record: bucketOf(), plan: &BucketPlan{Info: map[string]string{"region": "r", "extra/tier": "gold", "extra/CA": "x"}}, result: &workflow.Result{Info: map[string]string{"extra/CA": "y"}},
			want: BucketOutcome{BucketID: "photos-1", Created: true, Info: map[string]string{"region": "r"}, ExtraInfo: map[string]string{"tier": "gold", "CA": "y"}},
		},
		"keys of a ConfigMap, and no pod": {
			record: bucketOf(existing), plan: &BucketPlan{BucketID: "photos", Info: map[string]string{"extra/tier": "gold"}}, want: BucketOutcome{BucketID: "photos", ExtraInfo: map[string]string{"tier": "gold"}},
		},
		"information of no name":       {record: bucketOf(), plan: plan, result: &workflow.Result{Info: map[string]string{"endpont": "x"}}, err: `the creation pod's /pav/info/endpont: "endpont" is none of`},
		"information of no key":        {record: bucketOf(), plan: plan, result: &workflow.Result{Info: map[string]string{"extra/..": ""}}, err: `the creation pod's /pav/info/extra/..: ".." is no key of a ConfigMap`},
		"information that is too long": {record: bucketOf(), plan: plan, result: &workflow.Result{Unreadable: map[string]string{"info/region": "is larger than 4096 bytes"}}, err: "the creation pod's /pav/info/region: is larger than 4096 bytes"},
		"no directory":                 {record: bucketOf(), plan: plan, result: &workflow.Result{Unreadable: map[string]string{"info": "is a file"}}, err: "the creation pod's /pav/info: is a file"},
		"what concerns others":         {record: bucketOf(), plan: plan, result: &workflow.Result{Unreadable: map[string]string{"handle": "is a file"}}, want: BucketOutcome{BucketID: "photos-1", Created: true, Info: info}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := BucketOutcomeOf(test.record, test.plan, test.result)
			wantRefusal(t, err, test.err)
			if err != nil {
				return
			}
			if test.want.Info == nil {
				test.want.Info = map[string]string{}
			}
			if test.want.ExtraInfo == nil {
				test.want.ExtraInfo = map[string]string{}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if len(plan.Info) != 2 {
		t.Errorf("the plan is changed: %v", plan.Info)
	}
}

func TestIsOfClaim(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*pavv1.PavBucketSpec)
		id     string
		want   bool
	}{
		"a name with the UID":              {id: "photos-u-1-2", want: true},
		"a path with the UID":              {id: "team/photos-u-1-2/x", want: true},
		"a name from the definition":       {id: "photos"},
		"a requested name":                 {change: func(s *pavv1.PavBucketSpec) { s.NameRequested = true }, id: "photos-u-1-2"},
		"a bucket that existed":            {change: func(s *pavv1.PavBucketSpec) { s.ExistingBucketID = "photos-u-1-2" }, id: "photos-u-1-2"},
		"a record that has lost its claim": {change: func(s *pavv1.PavBucketSpec) { s.ClaimRef.UID = "" }, id: "photos-u-1-2"},
	} {
		t.Run(name, func(t *testing.T) {
			record := &pavv1.PavBucket{Spec: pavv1.PavBucketSpec{ClaimRef: pavv1.ClaimReference{UID: "u-1-2"}}}
			if test.change != nil {
				test.change(&record.Spec)
			}
			if got := IsOfClaim(record, test.id); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
