package stage

import "testing"

func TestAreBound(t *testing.T) {
	tests := map[string]struct {
		phase, claimOfVolume, volumeOfClaim string
		want                                bool
	}{
		"they are":                             {"Bound", "claim-uid", "pv", true},
		"Kubernetes has not said so yet":       {"Available", "claim-uid", "pv", true},
		"the claim has gone":                   {"Released", "claim-uid", "pv", false},
		"its storage could not be deleted":     {"Failed", "claim-uid", "pv", false},
		"the volume is another claim's by now": {"Bound", "other-uid", "pv", false},
		"the volume is no claim's":             {"Available", "", "pv", false},
		"the claim is bound to another volume": {"Bound", "claim-uid", "other", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			volume := map[string]any{
				"metadata": map[string]any{"name": "pv"}, "status": map[string]any{"phase": test.phase},
				"spec": map[string]any{"claimRef": map[string]any{"uid": test.claimOfVolume}},
			}
			claim := map[string]any{"metadata": map[string]any{"uid": "claim-uid"}, "spec": map[string]any{"volumeName": test.volumeOfClaim}}
			if got := areBound(volume, claim); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
