package podplan

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A claim has changed only if its user has changed it. Null is what Kubernetes has for a field that is absent.
func TestCheckUnchanged(t *testing.T) {
	clone := func(source map[string]any) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": "copy", "resourceVersion": "2"}, "spec": map[string]any{"dataSource": source}}
	}
	const recorded = `{"metadata": {"name": "copy", "resourceVersion": "1"}, "spec": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "data"}}}`
	for name, test := range map[string]struct {
		recorded, want string
		now            map[string]any
	}{
		"the same":                     {recorded: recorded, now: clone(map[string]any{"kind": "PersistentVolumeClaim", "name": "data"})},
		"a field that is null":         {recorded: recorded, now: clone(map[string]any{"kind": "PersistentVolumeClaim", "name": "data", "apiGroup": nil})},
		"a field that was null":        {recorded: strings.Replace(recorded, `"kind"`, `"apiGroup": null, "kind"`, 1), now: clone(map[string]any{"kind": "PersistentVolumeClaim", "name": "data"})},
		"another source":               {recorded: recorded, now: clone(map[string]any{"kind": "PersistentVolumeClaim", "name": "other"}), want: "the claim's spec.dataSource changed"},
		"a field that was not there":   {recorded: recorded, now: clone(map[string]any{"kind": "PersistentVolumeClaim", "name": "data", "apiGroup": ""}), want: "the claim's spec.dataSource changed"},
		"a field that is null instead": {recorded: recorded, now: clone(nil), want: "the claim's spec.dataSource changed"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckUnchanged(&apiextensionsv1.JSON{Raw: []byte(test.recorded)}, test.now)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}
