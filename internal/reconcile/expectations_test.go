package reconcile

import "testing"

func TestExpectations(t *testing.T) {
	e := &Expectations{}
	if e.IsOld("a", "1") {
		t.Error("a version that no write replaced is old")
	}
	e.Replace("a", "1", "2")
	e.Replace("a", "2", "3")
	e.Replace("a", "3", "3")
	for _, version := range []string{"2", "1", "2"} {
		if !e.IsOld("a", version) {
			t.Errorf("version %s is not old", version)
		}
	}
	if e.IsOld("b", "1") {
		t.Error("a version of another object is old")
	}
	if e.IsOld("a", "3") {
		t.Error("the current version is old")
	}
	if len(e.replaced) > 0 {
		t.Errorf("versions are remembered after the cache has caught up: %v", e.replaced)
	}
	e.Replace("a", "3", "4")
	e.Forget("a")
	if len(e.replaced) > 0 {
		t.Errorf("versions of a deleted object are remembered: %v", e.replaced)
	}
}
