package admission

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
)

// stageOf returns a stage of the volume "pv" and the claim "ns/claim", with the copies that its agent made.
func stageOf(t *testing.T, change func(*pavv1.PavStage)) *standing {
	t.Helper()
	s := &pavv1.PavStage{
		ObjectMeta: metav1.ObjectMeta{Name: "stage", Annotations: map[string]string{pavv1.AdmittedAnnotation: `{"copies": true}`}},
		Spec: pavv1.PavStageSpec{
			Provisioner: "p", VolumeHandle: "h", VolumeName: "pv", NodeName: "n", ClaimRef: pavv1.ClaimReference{Namespace: "ns", Name: "claim", UID: "claim-uid"},
			Volume: apiextensionsv1.JSON{Raw: []byte(`{"metadata": {"name": "pv", "uid": "pv-uid", "labels": {"as": "it was"}}, "spec": {"claimRef": {"uid": "claim-uid"}, "csi": {"driver": "p", "volumeHandle": "h"}}}`)},
			Claim:  apiextensionsv1.JSON{Raw: []byte(`{"metadata": {"namespace": "ns", "name": "claim", "uid": "claim-uid", "labels": {"as": "it was"}}, "spec": {"volumeName": "pv"}}`)},
		},
		Status: pavv1.PavStageStatus{Phase: pavv1.StageUnstaging},
	}
	change(s)
	kept, err := podplan.KeptObjects(s)
	if err != nil {
		t.Fatal(err)
	}
	return &standing{stage: s, provisioner: &pavv1.PavProvisioner{}, record: podplan.RecordOf(s), kept: kept}
}

// An administrator or an earlier version may have accepted the copies of a stage. They count only if the stage's spec
// agrees with them.
func TestBasis_WhereTheStageContradictsItsCopies(t *testing.T) {
	tests := map[string]struct {
		change func(*pavv1.PavStage)
		want   basis
	}{
		"it agrees":                   {func(*pavv1.PavStage) {}, basisCopies},
		"another provisioner":         {func(s *pavv1.PavStage) { s.Spec.Provisioner = "other" }, basisNone},
		"another handle":              {func(s *pavv1.PavStage) { s.Spec.VolumeHandle = "other" }, basisNone},
		"another volume":              {func(s *pavv1.PavStage) { s.Spec.VolumeName = "other" }, basisNone},
		"another claim's namespace":   {func(s *pavv1.PavStage) { s.Spec.ClaimRef.Namespace = "other" }, basisNone},
		"another claim's name":        {func(s *pavv1.PavStage) { s.Spec.ClaimRef.Name = "other" }, basisNone},
		"another claim of that name":  {func(s *pavv1.PavStage) { s.Spec.ClaimRef.UID = "other" }, basisNone},
		"no copy of the volume":       {func(s *pavv1.PavStage) { s.Spec.Volume.Raw = nil }, basisNone},
		"no copy of the claim at all": {func(s *pavv1.PavStage) { s.Spec.Claim.Raw = nil }, basisNone},
		"a record that says nothing":  {func(s *pavv1.PavStage) { s.Annotations[pavv1.AdmittedAnnotation] = "{}" }, basisNone},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := stageOf(t, test.change)
			got, why := s.basis()
			if got != test.want || got == basisNone && why == "" {
				t.Errorf("got %v, %q, want %v", got, why, test.want)
			}
			if advises := strings.Contains(s.advice(), "kubectl annotate"); advises != s.matches() {
				t.Errorf("the advice is %q, and the stage agrees with its copies: %t", s.advice(), s.matches())
			}
		})
	}
}

// The node agent and the webhook use the same objects: the current object if it was not replaced, or else the kept one.
func TestCurrent(t *testing.T) {
	object := func(uid, claim, as string) map[string]any {
		return map[string]any{
			"metadata": map[string]any{"uid": uid, "labels": map[string]any{"as": as}}, "spec": map[string]any{"claimRef": map[string]any{"uid": claim}},
		}
	}
	objects := fmt.Sprintf(`{"objects": {"volume": %s, "claim": %s}}`,
		`{"metadata": {"name": "pv", "uid": "pv-uid", "labels": {"as": "recorded"}}}`, `{"metadata": {"uid": "claim-uid", "labels": {"as": "recorded"}}}`)
	tests := map[string]struct {
		record                string
		volume, claim         map[string]any
		wantVolume, wantClaim string
	}{
		"both are there":                   {"", object("pv-uid", "claim-uid", "it is"), object("claim-uid", "", "it is"), "it is", "it is"},
		"both are gone":                    {"", nil, nil, "it was", "it was"},
		"the claim is gone":                {"", object("pv-uid", "claim-uid", "it is"), nil, "it is", "it was"},
		"the claim is another one":         {"", object("pv-uid", "claim-uid", "it is"), object("other", "", "it is"), "it is", "it was"},
		"the volume is another claim's":    {"", object("pv-uid", "other", "it is"), object("claim-uid", "", "it is"), "it was", "it is"},
		"the volume is another one":        {"", object("other", "claim-uid", "it is"), nil, "it was", "it was"},
		"the claim is gone, with a record": {objects, object("pv-uid", "claim-uid", "it is"), nil, "it is", "recorded"},
		"both are gone, with a record":     {objects, nil, nil, "recorded", "recorded"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := stageOf(t, func(s *pavv1.PavStage) {
				if test.record != "" {
					s.Annotations[pavv1.AdmittedAnnotation] = test.record
				}
			})
			got := podplan.CurrentObjects(s.stage, podplan.StageObjects{Volume: test.volume, Claim: test.claim, Node: object("node-uid", "", "it is")}, s.kept)
			as := func(object map[string]any) any {
				return object["metadata"].(map[string]any)["labels"].(map[string]any)["as"]
			}
			if as(got.Volume) != test.wantVolume || as(got.Claim) != test.wantClaim || as(got.Node) != "it is" {
				t.Errorf("got the volume as %v and the claim as %v, want %v and %v", as(got.Volume), as(got.Claim), test.wantVolume, test.wantClaim)
			}
		})
	}
}
