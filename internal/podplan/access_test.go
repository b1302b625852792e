package podplan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// accessOf returns a request for access to two buckets, with changes.
func accessOf(spec pavv1.PavProvisionerSpec, changes ...func(*AccessRequest)) AccessRequest {
	photos, videos := bucketOf(), bucketOf(named("videos-2"))
	photos.Status = pavv1.PavBucketStatus{BucketID: "team/photos", Info: map[string]string{"region": "r"}, Protocols: []pavv1.BucketProtocol{"S3"}}
	videos.Name = "b-2"
	r := AccessRequest{
		BucketDefinition: definitionOf(spec),
		Record: &pavv1.PavBucketAccess{
			ObjectMeta: metav1.ObjectMeta{Name: "a-1", UID: "u-a"},
			Spec: pavv1.PavBucketAccessSpec{
				Provisioner: "demo", Requester: pavv1.AccessRequester{Kind: "BucketAccess", Namespace: "apps", Name: "reader", UID: "1"},
				Protocol: pavv1.ProtocolS3, AuthenticationType: pavv1.AuthenticationKey, Parameters: map[string]string{"role": "user"},
				Buckets: []pavv1.AccessedBucket{{Bucket: "b-2", Mode: pavv1.AccessReadOnly}, {Bucket: "b-1", Mode: pavv1.AccessReadWrite}},
				Access:  field(`{"metadata": {"name": "reader"}}`), Class: field(`{"metadata": {"name": "keys"}}`),
			},
		},
		Account: pavv1.GrantedAccount{Number: 2, AccountName: "ba-1-2"}, PreviousAccountID: "ba-1-1",
		Buckets: []GrantedBucket{
			{Record: photos, Grants: []BucketGrant{{"ba-1-2", pavv1.AccessReadWrite}, {"ba-9", pavv1.AccessReadOnly}}},
			{Record: videos, Grants: []BucketGrant{{"ba-1-2", pavv1.AccessReadOnly}}},
		},
	}
	for _, change := range changes {
		change(&r)
	}
	return r
}

func grants(pod string) pavv1.PavProvisionerSpec {
	return pavv1.PavProvisionerSpec{BucketAccessGrant: &pavv1.BucketAccessGrant{PodTemplate: field(pod)}}
}

// ofClassWithSecret lets an access be one of a class that names the Secret with its credentials.
func ofClassWithSecret(r *AccessRequest) {
	r.Record.Spec.API, r.Record.Spec.Class = pavv1.BucketAPICOSI0, field(`{"metadata": {"name": "keys"}, "secretRef": {"name": "archive", "namespace": "pav-credentials"}}`)
}

func TestAccessGrant(t *testing.T) {
	secret := func(name string) pavv1.PavProvisionerSpec {
		return pavv1.PavProvisionerSpec{BucketAccessGrant: &pavv1.BucketAccessGrant{FromSecret: field(name)}}
	}
	const account = `{"name": "{{ accountName }} {{ protocol }} {{ authenticationType }} {{ params.role }} {{ access.metadata.name }} {{ class.metadata.name }} {{ namespace.metadata.name }}"}`
	with := grants(`{}`)
	with.BucketValidation = &pavv1.BucketValidation{
		Protocols: []pavv1.BucketProtocol{"GCS", "S3"}, AuthenticationTypes: []pavv1.AuthenticationType{"ServiceAccount"}, AccessModes: []pavv1.BucketAccessMode{"ReadOnly"},
	}
	byServiceAccount := func(r *AccessRequest) {
		r.Record.Spec.AuthenticationType, r.Record.Spec.Buckets = "ServiceAccount", r.Record.Spec.Buckets[:1]
	}
	tests := map[string]struct {
		request AccessRequest
		want    AccessPlan
		err     string
	}{
		"an account":     {request: accessOf(grants(account)), want: AccessPlan{Pod: map[string]any{"name": "ba-1-2 S3 Key user reader keys apps"}}},
		"a rotation":     {request: accessOf(grants(`{"name": "{{ rotation.number }} {{ rotation.previousAccountId }}"}`)), want: AccessPlan{Pod: map[string]any{"name": "2 ba-1-1"}}},
		"the first one":  {request: accessOf(grants(`{"name": "{{ rotation.number }} {{ rotation.previousAccountId is none }}"}`), func(r *AccessRequest) { r.Account.Number, r.PreviousAccountID = 0, "" }), want: AccessPlan{Pod: map[string]any{"name": "0 True"}}},
		"its buckets":    {request: accessOf(grants(`{"name": "{% for b in buckets %}{{ b.id }} {{ b.name }} {{ b.mode }} {{ b.info | tojson }} {{ b.params.endpoint }}; {% endfor %}"}`)), want: AccessPlan{Pod: map[string]any{"name": `videos-2 videos-2 ReadOnly {} https://s3; team/photos photos-1 ReadWrite {"region": "r"} https://s3; `}}},
		"all its grants": {request: accessOf(grants(`{"name": "{{ buckets | map(attribute='grants') | list | tojson }}"}`)), want: AccessPlan{Pod: map[string]any{"name": `[[{"accountId": "ba-1-2", "mode": "ReadOnly"}], [{"accountId": "ba-1-2", "mode": "ReadWrite"}, {"accountId": "ba-9", "mode": "ReadOnly"}]]`}}},
		"a service account": {
			request: accessOf(with, byServiceAccount, func(r *AccessRequest) {
				r.Record.Spec.ServiceAccountName, r.Spec.BucketAccessGrant.PodTemplate = "reader", field(`{"name": "{{ serviceAccount.namespace }}/{{ serviceAccount.name }}"}`)
			}),
			want: AccessPlan{Pod: map[string]any{"name": "apps/reader"}},
		},
		"no service account":           {request: accessOf(with, byServiceAccount), err: "without the name of a ServiceAccount"},
		"a service account of a path":  {request: accessOf(grants(`{}`), func(r *AccessRequest) { r.Record.Spec.ServiceAccountName = "../x" }), err: `"../x" is not a valid name of a ServiceAccount`},
		"no section":                   {request: accessOf(pavv1.PavProvisionerSpec{}), err: "spec.bucketAccessGrant: is missing"},
		"another protocol":             {request: accessOf(grants(`{}`), func(r *AccessRequest) { r.Record.Spec.Protocol = "Azure" }), err: "access is requested by the protocol Azure, but the provisioner supports only S3"},
		"another protocol of a bucket": {request: accessOf(with, byServiceAccount, func(r *AccessRequest) { r.Record.Spec.Protocol, r.Record.Spec.ServiceAccountName = "GCS", "a" }), err: `access is requested by the protocol GCS, but bucket "team/photos" supports only S3`},
		"another authentication":       {request: accessOf(with), err: "access is requested with the authentication type Key, but the provisioner supports only ServiceAccount"},
		"another mode":                 {request: accessOf(grants(`{}`), func(r *AccessRequest) { r.Record.Spec.Buckets[1].Mode = "WriteOnly" }), err: "access is requested in the mode WriteOnly, but the provisioner supports only ReadWrite, ReadOnly"},
		"no pod":                       {request: accessOf(grants(`"{% set yaml = true %}null"`)), err: "spec.bucketAccessGrant.podTemplate: yields no pod"},
		"a Secret":                     {request: accessOf(secret(`"of-{{ params.role }}"`)), want: AccessPlan{FromSecret: "of-user"}},
		"a Secret of no name":          {request: accessOf(secret(`"{{ '' }}"`)), err: `spec.bucketAccessGrant.fromSecret: "" is not a valid name of a Secret`},
		"a Secret of PaV":              {request: accessOf(secret(`"seal-1"`)), err: "that PaV keeps for itself"},
		"the Secret of its class":      {request: accessOf(secret(`"{{ class.secretRef.name }}"`), ofClassWithSecret), want: AccessPlan{FromSecret: "archive"}},
		"a Secret, not of its class":   {request: accessOf(secret(`"all"`), ofClassWithSecret), err: `yields "all", but the class of the Bucket has the secretRef "archive"`},
		"a pod, and a class's Secret":  {request: accessOf(grants(`{}`), ofClassWithSecret), err: `yields "", but the class of the Bucket has the secretRef "archive"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := test.request.Grant(t.Context())
			wantRefusal(t, err, test.err)
			if err != nil {
				return
			}
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	missing := accessOf(grants(`{}`), func(r *AccessRequest) { r.Buckets = r.Buckets[:1] })
	if _, err := missing.Grant(t.Context()); err == nil || IsRefusal(err) || !strings.Contains(err.Error(), "of which 1 are missing") {
		t.Errorf("a bucket is missing: %v", err)
	}
}

func TestAccessRevoke(t *testing.T) {
	revokes := pavv1.PavProvisionerSpec{BucketAccessRevoke: &pavv1.BucketAccessRevoke{
		PodTemplate: field(`{"name": "{{ accountId }} {{ accountId or accountName }} {% for b in buckets %}{{ b.id }} {% endfor %}"}`),
	}}
	told := func(r *AccessRequest) { r.Account.AccountID = "told" }
	alone := func(r *AccessRequest) { r.Buckets = r.Buckets[:1] }
	never := pavv1.PavProvisionerSpec{BucketAccessRevoke: &pavv1.BucketAccessRevoke{PodTemplate: field(`{"name": "{{ accountId is none }} {{ accountId or accountName }}"}`)}}
	for name, test := range map[string]struct {
		request AccessRequest
		want    map[string]any
	}{
		"an account that was told":     {accessOf(revokes, told), map[string]any{"name": "told told videos-2 team/photos "}},
		"without a bucket":             {accessOf(revokes, told, alone), map[string]any{"name": "told told team/photos "}},
		"an account that nobody told":  {accessOf(never), map[string]any{"name": "True ba-1-2"}},
		"nothing to do":                {accessOf(pavv1.PavProvisionerSpec{BucketAccessRevoke: &pavv1.BucketAccessRevoke{}}), nil},
		"no section":                   {accessOf(pavv1.PavProvisionerSpec{}), nil},
		"a mode that was supported":    {accessOf(never, func(r *AccessRequest) { r.Record.Spec.Buckets[0].Mode = "WriteOnly" }), map[string]any{"name": "True ba-1-2"}},
		"a protocol that is no longer": {accessOf(never, func(r *AccessRequest) { r.Record.Spec.Protocol = "Azure" }), map[string]any{"name": "True ba-1-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.request.Revoke(t.Context())
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
		})
	}
}

func TestAccountOutcomeOf(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	account := pavv1.GrantedAccount{AccountName: "ba-1"}
	tests := map[string]struct {
		result *workflow.Result
		want   AccountOutcome
		err    string
	}{
		"no pod":                     {want: AccountOutcome{AccountID: "ba-1"}},
		"a pod that says nothing":    {result: &workflow.Result{}, want: AccountOutcome{AccountID: "ba-1"}},
		"an account":                 {result: &workflow.Result{AccountID: "projects/x/ba_1"}, want: AccountOutcome{AccountID: "projects/x/ba_1"}},
		"an account that is none":    {result: &workflow.Result{AccountID: "a@b"}, err: `the grant pod's /pav/accountId: the identifier "a@b" has other characters`},
		"an account in no file":      {result: &workflow.Result{Unreadable: map[string]string{"accountId": "is a directory"}}, err: "the grant pod's /pav/accountId: is a directory"},
		"an end":                     {result: &workflow.Result{Expires: "2026-01-01T02:00:00+01:00"}, want: AccountOutcome{AccountID: "ba-1", ExpiresAt: new(metav1.NewTime(now.Add(time.Hour)))}},
		"an end in the past":         {result: &workflow.Result{Expires: "2025-12-31T23:59:59Z"}, err: "the grant pod's /pav/expires: 2025-12-31T23:59:59Z is in the past"},
		"an end at once":             {result: &workflow.Result{Expires: "2026-01-01T00:00:00Z"}, err: "is in the past"},
		"a duration":                 {result: &workflow.Result{Expires: "1h"}, err: `the grant pod's /pav/expires: "1h" is not a time in RFC 3339, such as 2006-01-02T15:04:05Z`},
		"an end that cannot be read": {result: &workflow.Result{Unreadable: map[string]string{"expires": "is too large"}}, err: "the grant pod's /pav/expires: is too large"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := AccountOutcomeOf(account, test.result, now)
			wantRefusal(t, err, test.err)
			if err == nil && (got.AccountID != test.want.AccountID || !got.ExpiresAt.Equal(test.want.ExpiresAt)) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// The pods of each workflow are planned, with the labels and annotations by which they are found.
func TestPlanned_PodsOfBucketsAndAccesses(t *testing.T) {
	pod := func(name string) *pavv1.Template {
		return field(`{"spec": {"containers": [{"name": "` + name + `", "image": "none"}]}}`)
	}
	spec := pavv1.PavProvisionerSpec{
		BucketValidation: &pavv1.BucketValidation{PodTemplate: pod("validate-bucket")}, BucketCreation: &pavv1.BucketCreation{PodTemplate: pod("create-bucket")},
		BucketUpdate: &pavv1.BucketUpdate{PodTemplate: pod("update-bucket")}, BucketDeletion: &pavv1.BucketDeletion{PodTemplate: pod("delete-bucket")},
		BucketAccessGrant: &pavv1.BucketAccessGrant{PodTemplate: pod("grant")}, BucketAccessRevoke: &pavv1.BucketAccessRevoke{PodTemplate: pod("revoke")},
	}
	check := func(t *testing.T, planned *corev1.Pod, err error, kind, owner, name string, want map[string]string) {
		t.Helper()
		if err != nil || planned == nil {
			t.Fatalf("got %v, %v", planned, err)
		}
		want[pavv1.AttemptAnnotation] = "1"
		if diff := cmp.Diff(want, planned.Annotations); diff != "" {
			t.Errorf("annotations (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{pavv1.ProvisionerLabel: "demo", pavv1.WorkflowLabel: kind}, planned.Labels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
		if o := planned.OwnerReferences[0]; planned.Spec.Containers[0].Name != kind || o.Kind != owner || o.Name != name || !strings.HasPrefix(planned.Name, kind+"-") {
			t.Errorf("pod %q of container %q is of %s %q", planned.Name, planned.Spec.Containers[0].Name, o.Kind, o.Name)
		}
	}
	for _, kind := range pavv1.WorkflowsOfBuckets() {
		r := BucketRequest{BucketDefinition: definitionOf(spec), Record: bucketOf()}
		r.Record.Status.PlannedBucketID = "team/photos"
		planned, err := r.Planned(t.Context(), kind)
		want := map[string]string{pavv1.BucketAnnotation: "b-1"}
		if kind == pavv1.WorkflowBucketCreation {
			want[pavv1.PlannedBucketAnnotation] = "team/photos"
		}
		check(t, planned, err, kind, "PavBucket", "b-1", want)
	}
	for _, kind := range pavv1.WorkflowsOfAccesses() {
		planned, err := accessOf(spec).Planned(t.Context(), kind)
		check(t, planned, err, kind, "PavBucketAccess", "a-1", map[string]string{pavv1.AccessAnnotation: "a-1", pavv1.AccountAnnotation: "2"})
	}
	nothing := definitionOf(pavv1.PavProvisionerSpec{BucketCreation: &pavv1.BucketCreation{}})
	for _, kind := range slices.Concat(pavv1.WorkflowsOfBuckets(), []string{pavv1.WorkflowDeletion}) {
		if planned, err := (BucketRequest{BucketDefinition: nothing, Record: bucketOf()}).Planned(t.Context(), kind); planned != nil || err != nil {
			t.Errorf("%s of nothing: %v, %v", kind, planned, err)
		}
	}
	sealed, err := AccessPod(accessOf(spec).Record, pavv1.WorkflowGrant, map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "a"}}}}, AccessAttempt{Account: 7, Seal: "key"}, Placement{}, workflow.Defaults{}, 3)
	if err != nil || sealed.Annotations[pavv1.SealAnnotation] != "key" || sealed.Annotations[pavv1.AccountAnnotation] != "7" || sealed.Annotations[pavv1.AttemptAnnotation] != "3" {
		t.Errorf("a grant pod with a key: %v, %v", sealed, err)
	}
}

// Each workflow of the controller agent has a field for its pods.
func TestPodField_KnowsEachWorkflow(t *testing.T) {
	fields := map[string]bool{}
	for _, kind := range pavv1.WorkflowsOfController() {
		fields[PodField(kind)] = true
	}
	if delete(fields, ""); len(fields) != len(pavv1.WorkflowsOfController()) {
		t.Errorf("there are only %d fields: %v", len(fields), fields)
	}
}
