package stage

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/pavdir"
)

// staged creates a file system volume that is staged, without any object in the API server, and returns it.
func (n *testNode) staged(t *testing.T) Volume {
	t.Helper()
	v := Volume{Driver: "driver", Handle: "published"}
	name, _ := n.stager.names(v)
	must(t, n.Dirs.Record(t.Context(), name, pavdir.Stage{
		Driver: v.Driver, Handle: v.Handle, VolumeName: "pv", Mode: corev1.PersistentVolumeFilesystem,
		Scope: string(pavv1.StagingScopeNode), Boot: pavdir.Boot{BootID: "boot"},
	}))
	must(t, os.MkdirAll(n.Dirs.Volume(name), 0o755))
	must(t, unix.Mount("volume", n.Dirs.Volume(name), "tmpfs", 0, ""))
	return v
}

// publicationFor returns the publication that kubelet requests for a pod.
func (n *testNode) publicationFor(t *testing.T, pod string) Publication {
	t.Helper()
	directory := filepath.Join(n.Kubelet, "pods", pod, "volumes/kubernetes.io~csi/pv")
	must(t, os.MkdirAll(directory, 0o750))
	return Publication{Target: directory + "/mount", Mode: corev1.PersistentVolumeFilesystem}
}

func (n *testNode) mustBeMounted(t *testing.T, target string, want bool) {
	t.Helper()
	mounted, err := n.stager.mounts.Mounted(t.Context(), target)
	must(t, err)
	if mounted != want {
		t.Errorf("mounted at %s: got %t, want %t", target, mounted, want)
	}
}

func TestPublishAndUnpublish_AreIdempotent(t *testing.T) {
	n := newNode(t)
	v := n.staged(t)
	p := n.publicationFor(t, "a")
	p.Options = mount.BindOptions{ReadOnly: true}
	for range 2 {
		must(t, n.stager.Publish(t.Context(), v, p))
		n.mustBeMounted(t, p.Target, true)
	}
	if err := os.WriteFile(p.Target+"/file", nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing to a read-only target: got %v", err)
	}
	other := p
	other.Options = mount.BindOptions{}
	if err := n.stager.Publish(t.Context(), v, other); !errors.Is(err, ErrMismatch) {
		t.Errorf("the same target with other options: got %v, want ErrMismatch", err)
	}
	other.Options = mount.BindOptions{ReadOnly: true, NoExec: true}
	must(t, n.stager.Publish(t.Context(), v, other)) // Mount options may be edited meanwhile.
	for range 2 {
		must(t, n.stager.Unpublish(t.Context(), v, p.Target))
		if _, err := os.Lstat(p.Target); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the target is left: %v", err)
		}
	}
	name, _ := n.stager.names(v)
	if left, err := n.Dirs.Publications(t.Context(), name); err != nil || len(left) != 0 {
		t.Errorf("on record is still %v, %v", left, err)
	}
}

func TestPublish_Refusals(t *testing.T) {
	n := newNode(t)
	v := n.staged(t)
	n.withVolumes(v, "pv", "duplicate")
	tests := map[string]struct {
		volume Volume
		change func(*Publication)
		want   error
	}{
		"a volume that is not staged": {volume: Volume{Driver: "driver", Handle: "other"}, want: ErrNotStaged},
		"another mode":                {volume: v, change: func(p *Publication) { p.Mode = corev1.PersistentVolumeBlock }, want: ErrMismatch},
		"another persistent volume": {volume: v, change: func(p *Publication) {
			p.Target = filepath.Join(n.Kubelet, "pods/a/volumes/kubernetes.io~csi/duplicate/mount")
		}, want: ErrRefused},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := n.publicationFor(t, "a")
			if test.change != nil {
				test.change(&p)
			}
			if err := n.stager.Publish(t.Context(), test.volume, p); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			n.mustBeMounted(t, p.Target, false)
		})
	}
}

func TestPublish_BetweenAttempts_AsksKubeletToRetry(t *testing.T) {
	n := newNode(t)
	v := n.staged(t)
	name, _ := n.stager.names(v)
	must(t, n.Dirs.Detach(t.Context(), name))
	p := n.publicationFor(t, "a")
	if err := n.stager.Publish(t.Context(), v, p); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
}

func TestPublish_OfASingleWriter_HasOneTarget(t *testing.T) {
	n := newNode(t)
	v := n.staged(t)
	first, second := n.publicationFor(t, "a"), n.publicationFor(t, "b")
	first.Single, second.Single = true, true
	must(t, n.stager.Publish(t.Context(), v, first))
	if err := n.stager.Publish(t.Context(), v, second); !errors.Is(err, ErrInUse) {
		t.Errorf("a second target: got %v, want ErrInUse", err)
	}
	must(t, n.stager.Publish(t.Context(), v, first))
	must(t, n.stager.Unpublish(t.Context(), v, first.Target))
	must(t, n.stager.Publish(t.Context(), v, second))
	n.mustBeMounted(t, second.Target, true)
	must(t, n.stager.Unpublish(t.Context(), v, second.Target))
}

func TestPublish_OfAReadOnlyStage_IsReadOnly(t *testing.T) {
	n := newNode(t)
	v := n.staged(t)
	name, _ := n.stager.names(v)
	record, err := n.Dirs.Recorded(t.Context(), name)
	must(t, err)
	record.ReadOnly = true
	must(t, n.Dirs.Record(t.Context(), name, *record))
	p := n.publicationFor(t, "a")
	must(t, n.stager.Publish(t.Context(), v, p))
	if err := os.WriteFile(p.Target+"/file", nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing: got %v", err)
	}
	must(t, n.stager.Unpublish(t.Context(), v, p.Target))
}

// The remains of a PavStage that was deleted by force are removed, but never while a client has the volume.
func TestUnstage_OfALeftStage_UnpublishesFirst(t *testing.T) {
	n := newNode(t)
	v := n.staged(t)
	p := n.publicationFor(t, "a")
	must(t, n.stager.Publish(t.Context(), v, p))
	if err := n.stager.Stage(t.Context(), v, Staging{Mode: p.Mode}); !errors.Is(err, ErrBusy) {
		t.Errorf("staging again while a client has the volume: got %v, want ErrBusy", err)
	}
	n.mustBeMounted(t, p.Target, true)

	staging := n.Kubelet + "/globalmount"
	must(t, os.Mkdir(staging, 0o755))
	must(t, unix.Mount("stray", staging, "tmpfs", 0, ""))
	must(t, n.stager.Unstage(t.Context(), v, staging))
	n.mustBeMounted(t, p.Target, false)
	n.mustBeMounted(t, staging, false)
	name, _ := n.stager.names(v)
	if exists, err := n.Dirs.Exists(t.Context(), name); err != nil || exists {
		t.Errorf("the directory exists: %t, %v", exists, err)
	}
}
