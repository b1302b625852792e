package snapshot

import "testing"

// A VolumeSnapshotContent that the agent has written is not decided on as it was before, and is forgotten in the end.
func TestContent_IsOldUntilTheCacheHasCaughtUp(t *testing.T) {
	r, s := &Reconciler{}, requested()
	s.content.ResourceVersion = "1"
	want := func(when string, want bool) {
		t.Helper()
		if got := r.isContentOld(s.observation); got != want {
			t.Errorf("%s, it is old: %t", when, got)
		}
	}
	want("before it is written", false)
	r.contents.Replace(s.content.Name, "1", "2")
	want("when it is written", true)
	s.content.ResourceVersion = "2"
	want("when the cache shows that", false)
	r.contents.Replace(s.content.Name, "2", "3")
	content := s.content
	s.content = nil
	want("when it is gone", false)
	s.content = content
	want("when it was forgotten", false)
}
