package podplan

import (
	"fmt"
	"strings"
	"testing"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

func TestExpand(t *testing.T) {
	const target = 2 << 30
	pod := field(`{"spec": {"nodeName": "{{ handle }} {{ capacity }} {{ newCapacity }} {{ params.pool }} {{ volumeMode }} {{ pvc.metadata.name }}"}}`)
	for name, test := range map[string]struct {
		expansion  *pavv1.VolumeExpansion
		validation *pavv1.VolumeValidation
		result     *workflow.Result
		want       string // the pod sees
		capacity   int64
		err        string
	}{
		"no expansion":                          {err: "spec.volumeExpansion: is missing"},
		"no pod":                                {expansion: &pavv1.VolumeExpansion{}, capacity: target},
		"a pod":                                 {expansion: &pavv1.VolumeExpansion{PodTemplate: pod}, want: "h 1073741824 2147483648 gold Filesystem data", result: &workflow.Result{}, capacity: target},
		"the pod writes a capacity":             {expansion: &pavv1.VolumeExpansion{}, result: &workflow.Result{Capacity: "3Gi"}, capacity: 3 << 30},
		"the pod writes too little":             {expansion: &pavv1.VolumeExpansion{}, result: &workflow.Result{Capacity: "1Gi"}, err: "the expansion pod's /pav/capacity: the volume would have a capacity of 1Gi after the expansion, and is to have 2Gi"},
		"the pod writes no quantity":            {expansion: &pavv1.VolumeExpansion{}, result: &workflow.Result{Capacity: "big"}, err: `the expansion pod's /pav/capacity: "big"`},
		"what it writes cannot be read":         {expansion: &pavv1.VolumeExpansion{}, result: &workflow.Result{Unreadable: map[string]string{"capacity": "is a directory"}}, err: "the expansion pod's /pav/capacity: is a directory"},
		"the definition has a capacity":         {expansion: &pavv1.VolumeExpansion{Capacity: field(`"{{ 2 * newCapacity }}"`)}, result: &workflow.Result{Capacity: "big"}, capacity: 4 << 30},
		"the definition has too little":         {expansion: &pavv1.VolumeExpansion{Capacity: field(`"1Gi"`)}, err: "spec.volumeExpansion.capacity: the volume would have a capacity of 1Gi"},
		"the definition has no quantity":        {expansion: &pavv1.VolumeExpansion{Capacity: field(`"big"`)}, err: "spec.volumeExpansion.capacity: "},
		"a mistake in the template":             {expansion: &pavv1.VolumeExpansion{PodTemplate: field(`"{{ selectedNode.metadata }}"`)}, err: "spec.volumeExpansion.podTemplate: "},
		"more than the most":                    {expansion: &pavv1.VolumeExpansion{}, validation: &pavv1.VolumeValidation{MaxCapacity: field(`"1Gi"`)}, err: "the claim requests a capacity of 2Gi, but the provisioner's volumes have at most 1Gi"},
		"the most":                              {expansion: &pavv1.VolumeExpansion{}, validation: &pavv1.VolumeValidation{MaxCapacity: field(`"2Gi"`)}, capacity: target},
		"the least is that of claims, not here": {expansion: &pavv1.VolumeExpansion{}, validation: &pavv1.VolumeValidation{MinCapacity: field(`"9Gi"`)}, capacity: target},
	} {
		t.Run(name, func(t *testing.T) {
			r := requestOf(claimFor("Filesystem", []any{"ReadWriteOnce"}, "2Gi", "5Gi"))
			r.Volume = map[string]any{"metadata": map[string]any{"name": "v"}, "spec": map[string]any{
				"capacity": map[string]any{"storage": "1Gi"}, "csi": map[string]any{"volumeHandle": "h"},
			}}
			planned, err := r.Expand(t.Context(), test.expansion, target)
			if err == nil {
				err = r.checkLargest(t.Context(), test.validation, target)
			}
			var capacity int64
			if err == nil {
				capacity, err = planned.Outcome(test.result)
			}
			if text := fmt.Sprint(err); (err == nil) != (test.err == "") || err != nil && (!strings.Contains(text, test.err) || !IsRefusal(err)) {
				t.Fatalf("got error %v, want %q", err, test.err)
			}
			if err != nil {
				return
			}
			var sees string
			if planned.Pod != nil {
				sees, _ = planned.Pod["spec"].(map[string]any)["nodeName"].(string)
			}
			if sees != test.want || capacity != test.capacity {
				t.Errorf("the pod sees %q, and the volume has %d; want %q, %d", sees, capacity, test.want, test.capacity)
			}
		})
	}
}
