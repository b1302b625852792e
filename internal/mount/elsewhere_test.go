package mount

import (
	"context"
	"io"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// A container keeps a mount that was unmounted on the node, until the container ends.
func TestMountedElsewhere(t *testing.T) {
	dir := workDir(t)
	for _, name := range []string{"pods", "pods/a/volume", "pods/ab", "place"} {
		makeDir(t, dir, name)
	}
	must(t, unix.Mount(dir+"/pods/a/volume", dir+"/place", "", unix.MS_BIND, ""))
	want := func(path string, want bool) {
		t.Helper()
		if got, err := MountedElsewhere(path); err != nil || got != want {
			t.Errorf("%s: got %t, %v; want %t", path, got, err, want)
		}
	}
	want(dir+"/pods/a", false) // The caller's own mounts do not count.

	end := otherProcess(t)
	must(t, unix.Unmount(dir+"/place", 0))
	want(dir+"/pods/a", true)
	want(dir+"/pods/a/volume", true)
	want(dir+"/pods/ab", false)
	want(dir+"/pods/none", false)
	want(dir+"/nowhere/none", false)
	end()
	want(dir+"/pods/a", false)
}

// otherProcess starts a process with a private copy of the mounts, and returns a function that ends it.
func otherProcess(t *testing.T) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	command := exec.CommandContext(ctx, "unshare", "--mount", "--propagation", "private", "sh", "-c", "echo ready; cat")
	input, err := command.StdinPipe()
	must(t, err)
	output, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	ready := make([]byte, len("ready\n"))
	_, err = io.ReadFull(output, ready)
	must(t, err)
	return func() {
		must(t, input.Close())
		must(t, command.Wait())
		cancel()
	}
}
