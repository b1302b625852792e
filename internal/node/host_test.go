package node

import (
	"testing"

	"github.com/albertofaria/pav/internal/node/pavdir"
)

func TestStartOf(t *testing.T) {
	stat := "1 (a) b ) S 0 1 1 0 -1 4194560 10 20 30 40 1 2 3 4 20 0 1 0 271828 1 2 3\n"
	if got, err := startOf(stat); err != nil || got != "271828" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, stat := range []string{"", "1 (a) S 0", "no parenthesis"} {
		if got, err := startOf(stat); err == nil {
			t.Errorf("%q: got %q", stat, got)
		}
	}
}

// Records of earlier versions contain only the boot of the kernel. In the same boot, they do not count as records of
// another start of the node: an update of the agent must not take volumes from clients.
func TestBoot_Same(t *testing.T) {
	now := pavdir.Boot{BootID: "a", NodeStart: "1"}
	for name, test := range map[string]struct {
		other pavdir.Boot
		want  bool
	}{
		"this start":                            {now, true},
		"another start in the same boot":        {pavdir.Boot{BootID: "a", NodeStart: "2"}, false},
		"another boot":                          {pavdir.Boot{BootID: "b", NodeStart: "1"}, false},
		"the same boot, by an earlier version":  {pavdir.Boot{BootID: "a"}, true},
		"another boot, by an earlier version":   {pavdir.Boot{BootID: "b"}, false},
		"nothing was recorded (no boot at all)": {pavdir.Boot{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if now.Same(test.other) != test.want || test.other.Same(now) != test.want {
				t.Errorf("%v and %v: want %t", now, test.other, test.want)
			}
		})
	}
}
