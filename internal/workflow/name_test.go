package workflow

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The names of existing pods, stages and sockets depend on the hash, so it must never change.
func TestHash_IsStable(t *testing.T) {
	for want, parts := range map[string][]string{
		"e3b0c44298fc1c149afb": nil,
		"0f37dac11d1b8118ea0b": {"hello-world"},
		"e5a01fee14e0ed5c4871": {"a", "b"},
	} {
		if got := Hash(parts...); got != want {
			t.Errorf("%q: got %s, want %s", parts, got, want)
		}
	}
}

func TestHash_DistinguishesListsOfParts(t *testing.T) {
	seen := map[string][]string{}
	for _, parts := range [][]string{nil, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"b", "a"}, {"a", "b", ""}, {"", "a", "b"}, {"a\x00b"}, {"a/b"}} {
		hash := Hash(parts...)
		if other, ok := seen[hash]; ok {
			t.Errorf("%q and %q have the hash %s", parts, other, hash)
		}
		seen[hash] = parts
	}
}

func TestName_FitsPodsAndLabels(t *testing.T) {
	for _, workflow := range []string{"validate", "create", "delete", "stage", "unstage"} {
		name := Name(workflow, strings.Repeat("long", 1000), "Ünïcödé")
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			t.Errorf("%s: %s", name, problems)
		}
		if name != Name(workflow, strings.Repeat("long", 1000), "Ünïcödé") {
			t.Errorf("%s: another name for the same parts", name)
		}
	}
}
