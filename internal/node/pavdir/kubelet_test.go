package pavdir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestKubeletHas_DependsOnKubeletsDirectories(t *testing.T) {
	h := newHost(t)
	want := func(volumeName string, want ...string) {
		t.Helper()
		got, err := h.KubeletHas(t.Context(), volumeName)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pods with volume %q (-want +got):\n%s", volumeName, diff)
		}
	}
	want("pv") // Kubelet has never had a pod.

	pods := h.kubelet + "/pods/"
	for _, directory := range []string{
		"filesystem/volumes/kubernetes.io~csi/pv/mount",
		"other/volumes/kubernetes.io~csi/pv-other/mount",
		"other/volumes/kubernetes.io~empty-dir/pv",
		"other/volume-subpaths/pv/container/0",
		"block/volumeDevices/kubernetes.io~csi",
		"none/etc-hosts",
	} {
		must(t, os.MkdirAll(pods+directory, 0o750))
	}
	published := h.kubelet + "/plugins/kubernetes.io/csi/volumeDevices/publish/pv/block"
	must(t, os.MkdirAll(filepath.Dir(published), 0o750))
	must(t, os.Symlink(published, pods+"block/volumeDevices/kubernetes.io~csi/pv")) // The target of the link is gone.
	write(t, pods+"file", "")
	want("pv", "block", "filesystem")
	want("pv-other", "other")
	want("mount")

	// The volume may be dead, so it is not accessed.
	end := silentFUSE(t, pods+"filesystem/volumes/kubernetes.io~csi/pv/mount")
	want("pv", "block", "filesystem")
	end()
	must(t, unix.Unmount(pods+"filesystem/volumes/kubernetes.io~csi/pv/mount", 0))

	// Kubelet removes the mount first, then vol_data.json, and the directory last.
	must(t, os.Remove(pods+"filesystem/volumes/kubernetes.io~csi/pv/mount"))
	want("pv", "block", "filesystem")
	must(t, os.Remove(pods+"filesystem/volumes/kubernetes.io~csi/pv"))
	must(t, os.RemoveAll(pods+"block"))
	want("pv")

	for _, name := range []string{"", ".", "..", "/", "a/b", "../pv", "pv/", "pv/.."} {
		if got, err := h.KubeletHas(t.Context(), name); err == nil {
			t.Errorf("of the name %q: got %q", name, got)
		}
	}
}
