package cgroup

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		mountinfo string
		want      []Hierarchy
	}{
		"version 1 with an empty unified hierarchy": {
			mountinfo: `27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,xattr,cpu,cpuacct
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,release_agent=/x,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
`,
			want: []Hierarchy{
				{Mountpoint: "/sys/fs/cgroup/cpu,cpuacct", Options: "cpu,cpuacct"},
				{Mountpoint: "/sys/fs/cgroup/systemd", Options: "none,name=systemd"},
				{Mountpoint: "/sys/fs/cgroup/unified", Unified: true},
			},
		},
		"version 2 only": {
			mountinfo: "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n",
			want:      []Hierarchy{{Mountpoint: "/sys/fs/cgroup", Unified: true}},
		},
		"hierarchies at unusual places are left alone": {
			mountinfo: "31 23 0:28 / /elsewhere/cpu rw - cgroup cgroup rw,cpu\nnonsense\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parse(test.mountinfo); !slices.Equal(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
