package template

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	value, err := Decode(apiextensionsv1.JSON{Raw: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return value.(map[string]any)
}

// absent stands for a variable that must not exist.
type absent struct{}

// The objects with which the tests start, as an API server returns them. Each has only what Kubernetes requires.
const (
	leastClaim  = `{"metadata":{"name":"c","namespace":"apps","uid":"1-2"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`
	leastClass  = `{"metadata":{"name":"fast"},"provisioner":"demo"}`
	leastVolume = `{"metadata":{"name":"v"},"spec":{"accessModes":["ReadWriteMany"],"capacity":{"storage":"2Gi"},"csi":{"driver":"demo","volumeHandle":"h"}}}`
	someNode    = `{"metadata":{"name":"n"}}`
)

func TestVariables(t *testing.T) {
	type context func() (Variables, error)
	dynamic := func(claim, class string) context {
		c, k := object(t, claim), object(t, class)
		return func() (Variables, error) { return DynamicValidationVariables(Request{Claim: c, Class: k}) }
	}
	static := func(volume string) context {
		v := object(t, volume)
		return func() (Variables, error) { return StaticValidationVariables(v) }
	}
	creation := func(claim, class string) context {
		c, k := object(t, claim), object(t, class)
		return func() (Variables, error) { return CreationVariables(Request{Claim: c, Class: k}) }
	}
	deletion := func(handle string) context {
		c, k := object(t, leastClaim), object(t, leastClass)
		return func() (Variables, error) { return DeletionVariables(Request{Claim: c, Class: k}, c, handle) }
	}
	selected := func() (Variables, error) {
		return DeletionVariables(Request{Claim: object(t, leastClaim), Class: object(t, leastClass), Node: object(t, someNode)}, object(t, leastClaim), "")
	}
	staging := func(volume, claim string, readOnly bool) context {
		v, c, n := object(t, volume), object(t, claim), object(t, someNode)
		return func() (Variables, error) {
			return StagingVariables(StagingObjects{Volume: v, Claim: c, Node: n}, readOnly)
		}
	}
	claimWith := func(spec string) string {
		return strings.Replace(leastClaim, `"resources":{"requests":{"storage":"1Gi"}}`, spec, 1)
	}
	volumeWith := func(spec string) string {
		return strings.Replace(leastVolume, `"driver":"demo"`, spec+`,"driver":"demo"`, 1)
	}
	withClass := `{"provisioner":"demo","parameters":{"pool":"gold"}}`
	attributes := volumeWith(`"volumeAttributes":{"pool":"gold"}`)

	tests := []struct {
		variable, name string
		vars           context
		want           any
	}{
		{"requestedVolumeMode", "dynamic, as the claim says", dynamic(claimWith(`"volumeMode":"Block","resources":{"requests":{"storage":"1Gi"}}`), leastClass), "Block"},
		{"requestedVolumeMode", "dynamic, by default", dynamic(leastClaim, leastClass), "Filesystem"},
		{"requestedVolumeMode", "static, as the volume says", static(strings.Replace(leastVolume, `"spec":{`, `"spec":{"volumeMode":"Block",`, 1)), "Block"},
		{"requestedVolumeMode", "static, by default", static(leastVolume), "Filesystem"},
		{"requestedVolumeMode", "staging", staging(leastVolume, leastClaim, false), absent{}},

		{"requestedAccessModes", "dynamic, as the claim says", dynamic(leastClaim, leastClass), []any{"ReadWriteOnce"}},
		{"requestedAccessModes", "dynamic, none", dynamic(`{"spec":{"resources":{"requests":{"storage":"1"}}}}`, leastClass), []any{}},
		{"requestedAccessModes", "static, as the volume says", static(leastVolume), []any{"ReadWriteMany"}},
		{"requestedAccessModes", "staging", staging(leastVolume, leastClaim, false), absent{}},

		{"requestedMinCapacity", "dynamic, in bytes", dynamic(leastClaim, leastClass), int64(1 << 30)},
		{"requestedMinCapacity", "dynamic, with an exponent", dynamic(claimWith(`"resources":{"requests":{"storage":"1e9"}}`), leastClass), int64(1_000_000_000)},
		{"requestedMinCapacity", "dynamic, a part of a byte is rounded up", dynamic(claimWith(`"resources":{"requests":{"storage":"1500m"}}`), leastClass), int64(2)},
		{"requestedMinCapacity", "dynamic, the most there can be", dynamic(claimWith(`"resources":{"requests":{"storage":"9223372036854775807"}}`), leastClass), int64(9223372036854775807)},
		{"requestedMinCapacity", "static, the volume's capacity", static(leastVolume), int64(2 << 30)},
		{"requestedMinCapacity", "staging", staging(leastVolume, leastClaim, false), absent{}},

		{"requestedMaxCapacity", "dynamic, of limits", dynamic(claimWith(`"resources":{"requests":{"storage":"1Gi"},"limits":{"storage":"10Gi"}}`), leastClass), int64(10 << 30)},
		{"requestedMaxCapacity", "dynamic, none without limits", dynamic(leastClaim, leastClass), nil},
		{"requestedMaxCapacity", "dynamic, none with other limits", dynamic(claimWith(`"resources":{"requests":{"storage":"1Gi"},"limits":{"x":"1"}}`), leastClass), nil},
		{"requestedMaxCapacity", "static, the volume's capacity", static(leastVolume), int64(2 << 30)},
		{"requestedMaxCapacity", "staging", staging(leastVolume, leastClaim, false), absent{}},

		{"params", "dynamic, of the class", dynamic(leastClaim, withClass), map[string]any{"pool": "gold"}},
		{"params", "dynamic, empty without parameters", dynamic(leastClaim, leastClass), map[string]any{}},
		{"params", "static, the volume's attributes", static(attributes), map[string]any{"pool": "gold"}},
		{"params", "static, empty without attributes", static(leastVolume), map[string]any{}},
		{"params", "staging, the volume's attributes", staging(attributes, leastClaim, false), map[string]any{"pool": "gold"}},
		{"params", "staging, empty without attributes", staging(leastVolume, leastClaim, false), map[string]any{}},

		{"handle", "dynamic", dynamic(leastClaim, leastClass), absent{}},
		{"handle", "static", static(leastVolume), "h"},
		{"handle", "creation", creation(leastClaim, leastClass), absent{}},
		{"handle", "deletion", deletion("h"), absent{}},
		{"handle", "staging", staging(leastVolume, leastClaim, false), "h"},

		{"volumeHandle", "creation", creation(leastClaim, leastClass), absent{}},
		{"volumeHandle", "deletion of a volume that exists", deletion("h"), "h"},
		{"volumeHandle", "deletion of what was never created", deletion(""), absent{}},
		{"volumeHandle", "staging", staging(leastVolume, leastClaim, false), absent{}},

		{"selectedNode", "no node was selected", dynamic(leastClaim, leastClass), absent{}},
		{"selectedNode", "a node was selected", selected, object(t, someNode)},
		{"selectedNode", "static", static(leastVolume), absent{}},
		{"selectedNode", "staging", staging(leastVolume, leastClaim, false), absent{}},

		{"sc", "dynamic", dynamic(leastClaim, leastClass), object(t, leastClass)},
		{"sc", "static", static(leastVolume), absent{}},
		{"sc", "deletion", deletion("h"), object(t, leastClass)},
		{"sc", "staging", staging(leastVolume, leastClaim, false), absent{}},

		{"pvc", "dynamic", dynamic(leastClaim, leastClass), object(t, leastClaim)},
		{"pvc", "static", static(leastVolume), absent{}},
		{"pvc", "deletion", deletion("h"), object(t, leastClaim)},
		{"pvc", "staging", staging(leastVolume, leastClaim, false), object(t, leastClaim)},

		{"pv", "dynamic", dynamic(leastClaim, leastClass), absent{}},
		{"pv", "static", static(leastVolume), object(t, leastVolume)},
		{"pv", "creation", creation(leastClaim, leastClass), absent{}},
		{"pv", "deletion", deletion("h"), absent{}},
		{"pv", "staging", staging(leastVolume, leastClaim, false), object(t, leastVolume)},

		{"defaultHandle", "validation", dynamic(leastClaim, leastClass), absent{}},
		{"defaultHandle", "creation", creation(leastClaim, leastClass), "pvc-1-2"},
		{"defaultHandle", "deletion", deletion("h"), "pvc-1-2"},
		{"defaultHandle", "staging", staging(leastVolume, leastClaim, false), absent{}},

		{"volumeMode", "as the claim says", staging(leastVolume, claimWith(`"volumeMode":"Block"`), false), "Block"},
		{"volumeMode", "by default", staging(leastVolume, leastClaim, false), "Filesystem"},
		{"volumeMode", "creation", creation(leastClaim, leastClass), absent{}},

		{"accessModes", "as the claim says, not the volume", staging(leastVolume, leastClaim, false), []any{"ReadWriteOnce"}},
		{"accessModes", "creation", creation(leastClaim, leastClass), absent{}},

		{"capacity", "in bytes", staging(leastVolume, leastClaim, false), int64(2 << 30)},
		{"capacity", "creation", creation(leastClaim, leastClass), absent{}},

		{"readOnly", "true", staging(leastVolume, leastClaim, true), true},
		{"readOnly", "false", staging(leastVolume, leastClaim, false), false},
		{"readOnly", "creation", creation(leastClaim, leastClass), absent{}},

		{"node", "staging", staging(leastVolume, leastClaim, false), object(t, someNode)},
		{"node", "creation", creation(leastClaim, leastClass), absent{}},
		{"node", "static", static(leastVolume), absent{}},

		{"fsType", "as the volume says", staging(volumeWith(`"fsType":"xfs"`), leastClaim, false), "xfs"},
		{"fsType", "by default", staging(leastVolume, leastClaim, false), ""},

		{"mountOptions", "as the volume says", staging(strings.Replace(leastVolume, `"spec":{`, `"spec":{"mountOptions":["noatime"],`, 1), leastClaim, false), []any{"noatime"}},
		{"mountOptions", "by default", staging(leastVolume, leastClaim, false), []any{}},
	}
	for _, test := range tests {
		t.Run(test.variable+"/"+test.name, func(t *testing.T) {
			vars, err := test.vars()
			if err != nil {
				t.Fatal(err)
			}
			got, found := vars[test.variable]
			if !found {
				got = absent{}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestVariables_Refused(t *testing.T) {
	tests := map[string]struct {
		claim string
		want  string
	}{
		"a claim without a request":     {`{"spec":{}}`, "the claim's spec.resources.requests.storage: there is none"},
		"a request that is no quantity": {`{"spec":{"resources":{"requests":{"storage":"s3cr3t"}}}}`, "the claim's spec.resources.requests.storage: the capacity is neither a quantity such as 10Gi nor a number of bytes"},
		"a request that is no string":   {`{"spec":{"resources":{"requests":{"storage":{}}}}}`, "the claim's spec.resources.requests.storage: the capacity is neither a quantity such as 10Gi nor a number of bytes"},
		"a request of too much":         {`{"spec":{"resources":{"requests":{"storage":"10E"}}}}`, "the claim's spec.resources.requests.storage: the capacity is more than 9223372036854775807 bytes"},
		"a negative request":            {`{"spec":{"resources":{"requests":{"storage":"-1"}}}}`, "the claim's spec.resources.requests.storage: the capacity is below zero"},
		"a limit that is no quantity":   {`{"spec":{"resources":{"requests":{"storage":"1"},"limits":{"storage":"x"}}}}`, "the claim's spec.resources.limits.storage: the capacity is neither a quantity such as 10Gi nor a number of bytes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if vars, err := CreationVariables(Request{Claim: object(t, test.claim)}); err == nil || err.Error() != test.want {
				t.Errorf("got %v and error %v, want %s", vars, err, test.want)
			}
		})
	}
	for name, vars := range map[string]func() (Variables, error){
		"staging": func() (Variables, error) { return StagingVariables(StagingObjects{Volume: map[string]any{}}, false) },
		"static":  func() (Variables, error) { return StaticValidationVariables(map[string]any{}) },
	} {
		if vars, err := vars(); err == nil || err.Error() != "the persistent volume's spec.capacity.storage: there is none" {
			t.Errorf("%s: got %v and error %v", name, vars, err)
		}
	}
}
