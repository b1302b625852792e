package template

import (
	"maps"
	"testing"
)

// A volume gets the same random choices each time, and other volumes and fields get others.
func TestRandom_IsOfTheVolumeAndTheField(t *testing.T) {
	const source = "{{ range(100000) | random }}"
	evaluate := func(field, uid, version string, more Variables) any {
		program, err := Compile(NewEnvironment(DefaultLimits()), DefaultLimits(), field, source)
		if err != nil {
			t.Fatal(err)
		}
		vars := Variables{"pvc": map[string]any{"metadata": map[string]any{"uid": uid, "resourceVersion": version}}}
		maps.Copy(vars, more)
		value, err := program.Evaluate(t.Context(), vars, nil)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	first := evaluate("spec.a", "one", "1", nil)
	for name, again := range map[string]any{
		"once more":                   evaluate("spec.a", "one", "1", nil),
		"the claim has changed since": evaluate("spec.a", "one", "2", nil),
		"the namespace is gone":       evaluate("spec.a", "one", "1", Variables{"namespace": map[string]any{"metadata": map[string]any{"uid": "other"}}}),
		"and is asked for more":       evaluate("spec.a", "one", "1", Variables{"requestedMinCapacity": int64(1), "readOnly": true, "params": map[string]any{"a": "b"}}),
	} {
		if again != first {
			t.Errorf("%s: got %v, want %v", name, again, first)
		}
	}
	for name, other := range map[string]any{
		"another claim":  evaluate("spec.a", "two", "1", nil),
		"another field":  evaluate("spec.b", "one", "1", nil),
		"another bucket": evaluate("spec.a", "one", "1", Variables{"bucketName": "b"}),
		"a rotation":     evaluate("spec.a", "one", "1", Variables{"accountName": "ba-1"}),
		"another handle": evaluate("spec.a", "one", "1", Variables{"volumeHandle": "h"}),
	} {
		if other == first {
			t.Errorf("%s: got %v again", name, other)
		}
	}
}
