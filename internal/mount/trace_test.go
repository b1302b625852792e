package mount

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTraceHearsOfEveryChange(t *testing.T) {
	dir := workDir(t)
	source, target := makeDir(t, dir, "source"), dir+"/a/b"
	defer SetTrace(nil)
	for _, test := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"directories", func() error { return CreateDir(dir, "a/b", 0o700) }, []string{"mkdirat", "mkdirat"}},
		{"directory that exists", func() error { return CreateDir(dir, "a/b", 0o700) }, nil},
		{"file", func() error { return CreateFile(dir, "a/c", 0o600) }, []string{"mknodat"}},
		{"bind", func() error { return Bind(source, target, BindOptions{ReadOnly: true}) },
			[]string{"mount_setattr", "mount_setattr", "mount_setattr", "move_mount"}},
		{"bind that exists", func() error { return Bind(source, target, BindOptions{ReadOnly: true}) }, nil},
		{"unmount", func() error { return Unmount(t.Context(), dir+"/a") }, []string{"umount2"}},
		{"target", func() error { return RemoveTarget(dir + "/a/c") }, []string{"unlinkat"}},
		{"target that is gone", func() error { return RemoveTarget(dir + "/a/c") }, nil},
		{"directory", func() error { return RemoveDir(target) }, []string{"unlinkat"}},
		{"own", func() error { Traced("rename"); return nil }, []string{"rename"}},
		{"tree", func() error { return RemoveTree(t.Context(), dir+"/a") }, []string{"unlinkat"}},
	} {
		var calls []string
		SetTrace(func(call string) { calls = append(calls, call) })
		must(t, test.do())
		if diff := cmp.Diff(test.want, calls); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	SetTrace(nil)
	must(t, CreateDir(dir, "a", 0o700))
}
