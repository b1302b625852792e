package bucketapi

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestMemory(t *testing.T) {
	var m Memory
	a, b := types.NamespacedName{Namespace: "x", Name: "a"}, types.NamespacedName{Namespace: "x", Name: "b"}
	if m.Has(a, "1") || m.Len() != 0 {
		t.Error("it remembers something")
	}
	m.Add(a, "1")
	m.Add(a, "1")
	m.Add(a, "2")
	m.Add(b, "1")
	if !m.Has(a, "1") || !m.Has(a, "2") || !m.Has(b, "1") || m.Has(b, "2") {
		t.Error("it has forgotten something, or mixes names up")
	}
	m.Keep(a, []types.UID{"2", "3"})
	if m.Has(a, "1") || !m.Has(a, "2") || m.Has(a, "3") || m.Len() != 2 {
		t.Error("it keeps those that are left, and no others")
	}
	m.Keep(a, nil)
	m.Keep(b, nil)
	if m.Len() != 0 {
		t.Error("it never forgets")
	}
}
