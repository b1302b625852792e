package volume

import "testing"

func TestWritten(t *testing.T) {
	w := &expectations{}
	if w.isOld("a", "1") {
		t.Error("a version that nobody replaced is old")
	}
	w.replace("a", "1", "2")
	w.replace("a", "2", "3")
	w.replace("a", "3", "3")
	for _, version := range []string{"2", "1", "2"} {
		if !w.isOld("a", version) {
			t.Errorf("version %s is not old", version)
		}
	}
	if w.isOld("b", "1") {
		t.Error("another volume's version is old")
	}
	if w.isOld("a", "3") {
		t.Error("the present version is old")
	}
	if len(w.replaced) > 0 {
		t.Errorf("nothing is to be kept once the cache has caught up: %v", w.replaced)
	}
	w.replace("a", "3", "4")
	w.forget("a")
	if len(w.replaced) > 0 {
		t.Errorf("nothing is to be kept of a volume that is gone: %v", w.replaced)
	}
}
