package pavdir

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/test/mountns"
)

func TestOnAnOldKernel(t *testing.T) { mountns.OnOldKernel(t, "TestOnAnOldKernel") }

// addMounts adds mounts to the mount table, as those of other pods, and returns a function that removes them.
func addMounts(dir string, count int) (remove func() error, err error) {
	if err := unix.Mount("others", dir, "tmpfs", 0, "mode=755"); err != nil {
		return nil, err
	}
	if err := unix.Mount("", dir, "", unix.MS_PRIVATE, ""); err != nil {
		return nil, err
	}
	for i := range count {
		path := dir + "/" + strconv.Itoa(i)
		if err := os.Mkdir(path, 0o755); err != nil {
			return nil, err
		}
		if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
			return nil, err
		}
	}
	return func() error { return unix.Unmount(dir, unix.MNT_DETACH) }, nil
}

// tablesRead returns how often f reads the mount table, from how many bytes this process reads.
func tablesRead(t *testing.T, f func()) int {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	must(t, err)
	read := func() int {
		text, err := os.ReadFile("/proc/self/io")
		must(t, err)
		first, _, _ := strings.Cut(string(text), "\n")
		bytes, err := strconv.Atoi(strings.TrimPrefix(first, "rchar: "))
		must(t, err)
		return bytes
	}
	before := read()
	f()
	return (read() - before + len(table)/4) / len(table)
}

// A stage from its first pod to its end, on a node with many mounts.
func TestHowOftenTheMountTableIsRead(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	remove, err := addMounts(t.TempDir(), 300)
	must(t, err)
	defer func() { must(t, remove()) }()
	target := h.target(t, "pod")
	must(t, h.Record(ctx, "s", Stage{}))
	attach := func() { must(t, h.Attach(ctx, "s", directoryVolume)) }
	for _, step := range []struct {
		name       string
		do         func()
		reads, old int // the latter before Linux 6.8
	}{
		{"who has /pav, which is not there", func() { mustSay(t, false)(h.InUse(ctx, "s")) }, 0, 0},
		{"a new /pav", func() { must(t, h.Reset(ctx, "s")) }, 1, 1}, // Nothing may be mounted below it.
		{"kubelet mounts it for the staging pod", func() { must(t, h.Publish(ctx, "s", target)) }, 1, 3},
		{"the pod is not ready", func() { mustSay(t, false)(h.Ready(ctx, "s")); mustSay(t, false)(h.Attached(ctx, "s")) }, 0, 1},
		{"the pod's work", func() { must(t, os.Mkdir(target+"/volume", 0o755)); write(t, target+"/ready", "") }, 0, 0},
		{"the pod is ready", func() { mustSay(t, true)(h.Ready(ctx, "s")) }, 0, 1},
		{"the volume is attached", attach, 0, 3},
		{"is it a directory of /pav", func() { mustSay(t, true)(h.IsPlain(ctx, "s")) }, 0, 2},
		{"it is attached already", attach, 0, 3},
		{"a look at a volume that is staged", func() { mustSay(t, true)(h.Attached(ctx, "s")) }, 0, 0},
		{"was it exchanged", func() { mustSay(t, false)(h.Exchanged(ctx, "s")) }, 0, 2},
		{"who has /pav", func() { mustSay(t, true)(h.InUse(ctx, "s")) }, 1, 1},
		{"kubelet unmounts it from the pod", func() { mustSay(t, "s")(h.Unpublish(ctx, target)) }, 3, 4},
		{"the volume is detached", func() { must(t, h.Detach(ctx, "s")) }, 2, 2},
		{"the agent is started again", func() { h.known = mount.Known{} }, 0, 0},
		{"the first look of the next agent", func() { mustSay(t, true)(h.Ready(ctx, "s")) }, 1, 1},
		{"its second look", func() { mustSay(t, true)(h.Ready(ctx, "s")) }, 0, 1},
		{"everything is removed", func() { must(t, h.Remove(ctx, "s")) }, 5, 5},
	} {
		want := step.reads
		if mountns.IsOldKernel() {
			want = step.old
		}
		if got := tablesRead(t, step.do); got != want {
			t.Errorf("%s: the mount table was read %d times, want %d", step.name, got, want)
		}
	}
}

// BenchmarkLook measures what the mounts cost a call that looks whether the volume of a running staging pod is ready,
// beside the same questions to the mount table.
func BenchmarkLook(b *testing.B) {
	check := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	for _, others := range []int{0, 2000} {
		b.Run(fmt.Sprintf("with %d more mounts", others), func(b *testing.B) {
			kubelet := b.TempDir()
			check(unix.Mount("kubelet", kubelet, "tmpfs", 0, "mode=755"))
			check(unix.Mount("", kubelet, "", unix.MS_SHARED, ""))
			check(os.MkdirAll(kubelet+"/pod", 0o755))
			check(os.Mkdir(kubelet+"/plugins", 0o755))
			host, err := mount.Open("/proc/self/ns/mnt")
			check(err)
			d, err := New(host, kubelet, func(string) {})
			check(err)
			remove, err := addMounts(b.TempDir(), others)
			check(err)
			defer func() {
				check(remove())
				check(unix.Unmount(kubelet, unix.MNT_DETACH))
				check(d.Close())
				check(host.Close())
			}()
			check(d.Record(b.Context(), "s", Stage{}))
			check(d.Prepare(b.Context(), "s"))
			check(d.Publish(b.Context(), "s", kubelet+"/pod/mount"))

			for b.Loop() {
				_, err := d.Attached(b.Context(), "s")
				check(err)
				_, err = d.Ready(b.Context(), "s")
				check(err)
			}
			took := b.Elapsed() / time.Duration(b.N)
			rounds := min(b.N, 100)
			began := time.Now()
			for range rounds {
				check(d.lookInTable(b.Context(), "s"))
			}
			table := time.Since(began) / time.Duration(rounds)
			b.ReportMetric(float64(table.Nanoseconds()), "table-ns/op")
			b.ReportMetric(float64(table)/float64(took), "table/look")
		})
	}
}

// lookInTable reads the mount table for each question: whether a volume is attached, who has /pav, which takes three
// reads, and whether /pav is covered.
func (d *Directories) lookInTable(ctx context.Context, stage string) error {
	for _, paths := range [][]string{{d.Volume(stage)}, {d.pav(stage), d.root(), "/"}, {d.pav(stage)}} {
		if err := d.host.Do(ctx, func() error {
			for _, path := range paths {
				if _, err := mount.Mounts(path); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}
