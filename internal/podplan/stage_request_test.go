package podplan

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

// If the staging or the unstaging pod has references, the staging pod requests a check by the webhook, whatever
// defaults do to its volumes.
func TestStaging_AsksToBeJudged(t *testing.T) {
	pod := func(spec string) apiextensionsv1.JSON {
		return apiextensionsv1.JSON{Raw: []byte(`{"spec": {"containers": [{"name": "main", "image": "none"}]` + spec + `}}`)}
	}
	tests := map[string]struct {
		staging, unstaging string
		noUnstaging, asks  bool
	}{
		"neither has references":              {},
		"there is no unstaging pod":           {noUnstaging: true},
		"it has a Secret":                     {staging: `, "volumes": [{"name": "v", "secret": {"secretName": "s"}}]`, noUnstaging: true, asks: true},
		"it has a volume without a source":    {staging: `, "volumes": [{"name": "v"}]`, noUnstaging: true, asks: true},
		"it has an emptyDir that is null":     {staging: `, "volumes": [{"name": "v", "emptyDir": null}]`, noUnstaging: true, asks: true},
		"it has a service account":            {staging: `, "serviceAccountName": "a"`, noUnstaging: true, asks: true},
		"it asks for a token":                 {staging: `, "automountServiceAccountToken": true`, noUnstaging: true, asks: true},
		"the unstaging pod has a Secret":      {unstaging: `, "volumes": [{"name": "v", "secret": {"secretName": "s"}}]`, asks: true},
		"the unstaging pod asks for a token":  {unstaging: `, "automountServiceAccountToken": true`, asks: true},
		"the unstaging pod cannot be told":    {unstaging: `, "hostname": "{{ nothing.at.all }}"`, asks: true},
		"it has volumes of the node alone":    {staging: `, "volumes": [{"name": "v", "emptyDir": {}}, {"name": "h", "hostPath": {"path": "/dev"}}]`},
		"the unstaging pod has volumes of it": {unstaging: `, "volumes": [{"name": "v", "emptyDir": {}}]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := &pavv1.PavProvisioner{Spec: pavv1.PavProvisionerSpec{VolumeStaging: pavv1.VolumeStaging{PodTemplate: pod(test.staging)}}}
			if unstaging := pod(test.unstaging); !test.noUnstaging {
				p.Spec.VolumeUnstaging = &pavv1.VolumeUnstaging{PodTemplate: &unstaging}
			}
			got, err := stagingPod(t, p, &pavv1.PavStage{Spec: pavv1.PavStageSpec{NodeName: "n", VolumeHandle: "h"}})
			if err != nil {
				t.Fatal(err)
			}
			if _, asks := got.Annotations[pavv1.AdmitAnnotation]; asks != test.asks {
				t.Errorf("got the annotations %v, want one that asks: %t", got.Annotations, test.asks)
			}
		})
	}
}

// stagingPod plans the staging pod of a stage.
func stagingPod(t *testing.T, p *pavv1.PavProvisioner, stage *pavv1.PavStage) (*corev1.Pod, error) {
	t.Helper()
	object := map[string]any{"metadata": map[string]any{"name": "o"}, "spec": map[string]any{"capacity": map[string]any{"storage": "1Gi"}}}
	return StageRequest{Provisioner: p, Templates: template.NewEvaluator(template.DefaultLimits())}.
		Staging(t.Context(), stage, StageObjects{Volume: object, Claim: object, Node: object})
}

// Admission and lint may have let the definition pass: an earlier version did, and a template may decide who is privileged.
func TestStaging_OfABlockVolume_NeedsAPrivilegedContainer(t *testing.T) {
	const plain, privileged = `{"name": "main", "image": "none"}`, `{"name": "p", "image": "none", "securityContext": {"privileged": true}}`
	for name, test := range map[string]struct {
		mode    corev1.PersistentVolumeMode
		spec    string
		refused bool
	}{
		"no container is":            {corev1.PersistentVolumeBlock, `"containers": [` + plain + `]`, true},
		"one says that it is not":    {corev1.PersistentVolumeBlock, `"containers": [{"name": "m", "image": "none", "securityContext": {"privileged": false}}]`, true},
		"one is":                     {corev1.PersistentVolumeBlock, `"containers": [` + plain + `, ` + privileged + `]`, false},
		"an init container is":       {corev1.PersistentVolumeBlock, `"containers": [` + plain + `], "initContainers": [` + privileged + `]`, false},
		"a volume of files needs no": {corev1.PersistentVolumeFilesystem, `"containers": [` + plain + `]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pavv1.PavProvisioner{Spec: pavv1.PavProvisionerSpec{VolumeStaging: pavv1.VolumeStaging{
				PodTemplate: apiextensionsv1.JSON{Raw: []byte(`{"spec": {` + test.spec + `}}`)}}}}
			_, err := stagingPod(t, p, &pavv1.PavStage{Spec: pavv1.PavStageSpec{NodeName: "n", VolumeHandle: "h", VolumeMode: test.mode}})
			if errors.Is(err, errUnprivileged) != test.refused || err != nil && !test.refused {
				t.Errorf("got %v, want refused: %t", err, test.refused)
			}
		})
	}
}

// While a volume is being bound to another claim, its kept copy is used.
func TestIsVolume(t *testing.T) {
	stage := &pavv1.PavStage{Spec: pavv1.PavStageSpec{ClaimRef: pavv1.ClaimReference{UID: "claim"}}}
	volume := func(uid, claim string) map[string]any {
		return map[string]any{"metadata": map[string]any{"uid": uid}, "spec": map[string]any{"claimRef": map[string]any{"uid": claim}}}
	}
	tests := map[string]struct {
		volume map[string]any
		want   bool
	}{
		"it is":                 {volume("v", "claim"), true},
		"it is gone":            {nil, false},
		"another has its name":  {volume("w", "claim"), false},
		"it is another claim's": {volume("v", "other"), false},
		"it is no claim's":      {volume("v", ""), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsVolume(stage, test.volume, volume("v", "claim")); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// The objects of a record take precedence over the stage's own copies.
func TestKept(t *testing.T) {
	spec := pavv1.PavStageSpec{
		Volume: apiextensionsv1.JSON{Raw: []byte(`{"of": "volume"}`)}, Claim: apiextensionsv1.JSON{Raw: []byte(`{"of": "claim"}`)},
		ProvisionedClaim: &apiextensionsv1.JSON{Raw: []byte(`{"of": "provisioned"}`)},
	}
	tests := map[string]struct {
		record                     string
		volume, claim, provisioned any
	}{
		"without a record":            {"", "volume", "claim", "provisioned"},
		"the copies are true":         {`{"copies": true}`, "volume", "claim", "provisioned"},
		"the copies are not":          {`{"objects": {"volume": {"of": "1"}, "claim": {"of": "2"}, "provisioned": {"of": "3"}}}`, "1", "2", "3"},
		"nothing was provisioned":     {`{"objects": {"volume": {"of": "1"}, "claim": {"of": "2"}}}`, "1", "2", nil},
		"the record cannot be read":   {`{`, "volume", "claim", "provisioned"},
		"the record says nothing yet": {`{}`, "volume", "claim", "provisioned"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stage := &pavv1.PavStage{Spec: spec}
			if test.record != "" {
				stage.Annotations = map[string]string{pavv1.AdmittedAnnotation: test.record}
			}
			got, err := KeptObjects(stage)
			if err != nil || got.Volume["of"] != test.volume || got.Claim["of"] != test.claim || got.Provisioned["of"] != test.provisioned {
				t.Errorf("got %v, %v, want %v, %v and %v", got, err, test.volume, test.claim, test.provisioned)
			}
		})
	}
}
