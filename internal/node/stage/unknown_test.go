package stage

import (
	"context"
	"testing"
)

func TestUnstageOrphan_ReadsAgainBeforeItActs(t *testing.T) {
	n := newNode(t)
	v := n.staged(t)
	name, _ := n.stager.names(v)
	must(t, n.stager.UnstageIdle(t.Context(), Subject{Volume: v}, func(context.Context) (bool, error) { return false, nil }))
	attached, err := n.Dirs.Attached(t.Context(), name)
	must(t, err)
	if !attached {
		t.Error("a volume in use was unstaged")
	}
}
