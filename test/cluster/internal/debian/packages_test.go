package debian

import (
	"slices"
	"testing"
)

func TestMissing(t *testing.T) {
	for name, test := range map[string]struct {
		exists func(string) bool
		want   []string
	}{
		"everything is there": {exists: func(string) bool { return true }},
		"a program that only the administrator's directories have is there": {
			exists: func(path string) bool { return path != "/usr/bin/iptables" && path != "/bin/iptables" },
		},
		"a header file is missing": {
			exists: func(path string) bool { return path != "/usr/include/seccomp.h" },
			want:   []string{"libseccomp-dev"},
		},
		"a program is in no directory": {
			exists: func(path string) bool { return path[max(0, len(path)-9):] != "conntrack" },
			want:   []string{"conntrack"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := missing(needs, test.exists); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
