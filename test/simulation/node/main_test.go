package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/collect"
	"github.com/albertofaria/pav/internal/node/csi"
	"github.com/albertofaria/pav/internal/node/health"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/node/stage"
	"github.com/albertofaria/pav/test/mountns"
)

func TestMain(m *testing.M) { os.Exit(mountns.Run(m)) }

// directories is the access of an agent to the directories of a node.
type directories interface {
	stage.Directories
	collect.Directories
	csi.Directories
}

// mounts is the access of an agent to the mounts of a node.
type mounts interface {
	stage.Mounter
	health.Prober
	stage.Fencer
}

// others has the actions of pods, and the events on a node.
type others interface {
	pods
	KubeletKeeps(uid types.UID, volumeName string, keeps bool)
	Tear(id string)
	SomebodyMounts(path, name string)
}

// pods has the actions of pods.
type pods interface {
	PodWrites(pav, name, text string) error
	PodMakes(pav, name string) error
	PodRemoves(pav, name string) error
	PodUnmounts(pav string) error
	PodCovers(pav string) error
}

// side is a real or simulated node, with the answers that it has given.
type side struct {
	directories
	mounts mounts
	others
	t       *testing.T
	ctx     context.Context
	kubelet string
	answers []string

	podMounts func(pav string, v Volume) (becomes func(Health), err error)
	reboot    func()
	sees      func(target string) string
	woken     func() []string
}

// sentinels are the errors that callers distinguish, by name.
var sentinels = map[string]error{
	"ErrNoVolume": pavdir.ErrNoVolume, "ErrTorn": pavdir.ErrTorn, "ErrHidden": pavdir.ErrHidden, "ErrLost": pavdir.ErrLost, "ErrVolumeID": pavdir.ErrVolumeID,
	"ErrEscapes": mount.ErrEscapes, "ErrNotRegular": mount.ErrNotRegular, "ErrTooLarge": mount.ErrTooLarge, "ErrNotUTF8": mount.ErrNotUTF8,
	"ErrControlCharacter": mount.ErrControlCharacter, "ErrNotVolume": mount.ErrNotVolume, "ErrOccupied": mount.ErrOccupied,
	"ErrMismatch": mount.ErrMismatch, "ErrNotMounted": mount.ErrNotMounted, "ErrBusyMount": mount.ErrBusyMount, "ErrHangs": mount.ErrHangs,
	"ErrDead": mount.ErrDead, "ErrNotExist": fs.ErrNotExist, "Canceled": context.Canceled,
}

// say records an answer. Of an error, it records only the sentinel errors on which callers decide.
func (s *side) say(call string, answer any, err error) {
	var known []string
	for name, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			known = append(known, name)
		}
	}
	slices.Sort(known)
	if err != nil {
		answer = fmt.Sprintf("error %s", known)
	}
	s.answers = append(s.answers, fmt.Sprintf("%s: %+v", call, answer))
}

// do records whether a call succeeds. Unlike do, must ends the test on an error.
func (s *side) do(call string, err error) { s.say(call, "done", err) }

func (s *side) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("after %q: %v", s.answers, err)
	}
}

// mount makes a pod mount a volume. It returns a function that changes the health of the volume.
func (s *side) mount(pav string, v Volume) (becomes func(Health)) {
	s.t.Helper()
	becomes, err := s.podMounts(pav, v)
	s.must(err)
	return becomes
}

// target returns the target path that kubelet uses for a volume of a pod. It creates the parent directory, as kubelet
// does.
func (s *side) target(pod string) string {
	path := filepath.Join(s.kubelet, "pods", pod, "volumes/kubernetes.io~csi/pv")
	s.must(os.MkdirAll(path, 0o750))
	return path + "/mount"
}

// onBoth runs a script on a real node and on a simulated node. The test fails unless both give the same answers.
func onBoth(t *testing.T, script func(s *side)) {
	t.Helper()
	var all [2][]string
	kubelet := t.TempDir()
	for i, make := range []func(*testing.T, string) *side{newReal, newSimulated} {
		s := make(t, kubelet)
		s.t, s.ctx, s.kubelet = t, t.Context(), kubelet
		script(s)
		all[i] = s.answers
	}
	if len(all[0]) == 0 {
		t.Error("nothing was asked")
	}
	if diff := cmp.Diff(all[0], all[1]); diff != "" {
		t.Errorf("answers (-real +simulated):\n%s", diff)
	}
}

func newSimulated(_ *testing.T, kubelet string) *side {
	n := New("node", kubelet)
	var woken []string
	wake := func(stage string) { woken = append(woken, stage) }
	a := n.Open(Gate{}, wake)
	s := &side{directories: a.Directories(), mounts: a.Mounts(), others: n}
	s.podMounts = func(pav string, v Volume) (func(Health), error) {
		m, err := n.PodMounts(pav, v)
		return m.Becomes, err
	}
	s.reboot = func() {
		n.Reboot(false)
		a = n.Open(Gate{}, wake)
		s.directories, s.mounts = a.Directories(), a.Mounts()
	}
	s.sees = func(target string) string {
		all := n.Targets()
		i := slices.IndexFunc(all, func(t Target) bool { return t.Path == target })
		if i < 0 {
			return "nothing"
		}
		return fmt.Sprintf("%s, %d layers, read-only %t", all[i].Sees, all[i].Layers, all[i].ReadOnly)
	}
	s.woken = func() []string {
		all := woken
		woken = nil
		return all
	}
	return s
}

// reality is a real node.
type reality struct {
	t       *testing.T
	kubelet string
	dirs    *pavdir.Directories
	wakes   chan string
}

func newReal(t *testing.T, kubelet string) *side {
	t.Helper()
	r := &reality{t: t, kubelet: kubelet, wakes: make(chan string, 100)}
	r.must(unix.Mount("kubelet", kubelet, "tmpfs", 0, "mode=755"))
	r.must(unix.Mount("", kubelet, "", unix.MS_SHARED, ""))
	r.must(os.Mkdir(kubelet+"/plugins", 0o755))
	namespace, err := mount.Open("/proc/self/ns/mnt")
	r.must(err)
	r.dirs, err = pavdir.New(namespace, kubelet, func(stage string) { r.wakes <- stage })
	r.must(err)
	t.Cleanup(func() {
		r.must(errors.Join(r.dirs.Close(), namespace.Close()))
		r.unmountAll()
		r.must(unix.Unmount(kubelet, unix.MNT_DETACH))
	})
	return &side{
		directories: r.dirs, mounts: stage.Host{Namespace: namespace}, others: r,
		podMounts: r.podMounts, reboot: r.unmountAll, sees: r.sees, woken: r.woken,
	}
}

func (r *reality) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// unmountAll removes all mounts, as a reboot does.
func (r *reality) unmountAll() {
	all, err := mount.Mounts(r.kubelet)
	r.must(err)
	for _, m := range slices.Backward(all) {
		if m.Point != r.kubelet {
			_ = unix.Unmount(m.Point, unix.MNT_DETACH) // It may have been unmounted together with another mount.
		}
	}
}

func (r *reality) stageDirectory(id string) string {
	kind := "stages"
	if volumeID.MatchString(id) {
		kind = "pods"
	}
	return filepath.Join(r.kubelet, "plugins", pavv1.Driver, kind, id)
}

func (r *reality) pav(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return r.stageDirectory(name) + "/pav"
}

func (r *reality) PodWrites(pav, name, text string) error {
	file := filepath.Join(r.pav(pav), name)
	if r.pav(pav) != filepath.Dir(file) {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

func (r *reality) PodMakes(pav, name string) error {
	return os.MkdirAll(filepath.Join(r.pav(pav), name), 0o755)
}

func (r *reality) PodRemoves(pav, name string) error {
	return os.RemoveAll(filepath.Join(r.pav(pav), name))
}

// nameFile is a file in the root of each mounted tmpfs that stands for a volume. It contains the name of the volume.
const nameFile = ".name"

func (r *reality) podMounts(pav string, v Volume) (func(Health), error) {
	path := r.pav(pav) + "/volume"
	switch {
	case v.Mode == mount.Block:
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			return nil, err
		}
		return func(Health) {}, unix.Mount(r.loopDevice(v), path, "", unix.MS_BIND, "")
	case v.Daemon:
		_ = unix.Mkdir(path, 0o755)
		fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		r.must(err)
		err = unix.Mount("test", path, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other", fd))
		return func(Health) { r.must(unix.Close(fd)) }, err
	default:
		_ = unix.Mkdir(path, 0o755)
		if err := unix.Mount("test", path, "tmpfs", 0, "mode=755"); err != nil {
			return nil, err
		}
		return func(Health) {}, os.WriteFile(path+"/"+nameFile, []byte(v.Name), 0o644)
	}
}

func (r *reality) loopDevice(v Volume) string {
	file := r.t.TempDir() + "/device"
	r.must(os.WriteFile(file, nil, 0o600))
	r.must(os.Truncate(file, v.Bytes))
	options := []string{"--find", "--show", file}
	if v.ReadOnly {
		options = append(options, "--read-only")
	}
	out, err := exec.CommandContext(r.t.Context(), "losetup", options...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("making a loop device: %v: %s", err, out)
	}
	device := strings.TrimSpace(string(out))
	r.t.Cleanup(func() {
		if out, err := exec.CommandContext(context.WithoutCancel(r.t.Context()), "losetup", "--detach", device).CombinedOutput(); err != nil {
			r.t.Errorf("taking a loop device away: %v: %s", err, out)
		}
	})
	return device
}

func (r *reality) PodUnmounts(pav string) error {
	return unix.Unmount(r.pav(pav)+"/volume", unix.MNT_DETACH)
}

func (r *reality) PodCovers(pav string) error {
	return unix.Mount("cover", r.pav(pav), "tmpfs", 0, "mode=755")
}

func (r *reality) KubeletKeeps(uid types.UID, volumeName string, keeps bool) {
	path := filepath.Join(r.kubelet, "pods", string(uid), "volumes/kubernetes.io~csi", volumeName)
	if keeps {
		r.must(os.MkdirAll(path, 0o750))
	} else {
		r.must(os.Remove(path))
	}
}

func (r *reality) Tear(id string) {
	for _, name := range []string{"stage.json", "pod.json"} {
		file := filepath.Join(r.stageDirectory(id), name)
		if info, err := os.Stat(file); err == nil {
			r.must(os.Truncate(file, info.Size()/2))
		}
	}
}

func (r *reality) SomebodyMounts(path, name string) {
	r.must(os.MkdirAll(path, 0o750))
	r.must(unix.Mount("test", path, "tmpfs", 0, "mode=755"))
	r.must(os.WriteFile(path+"/"+nameFile, []byte(name), 0o644))
}

func (r *reality) sees(target string) string {
	if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
		return "nothing"
	}
	all, err := mount.At(target)
	r.must(err)
	name, err := os.ReadFile(target + "/" + nameFile)
	if err != nil {
		name = []byte(Disk)
	}
	return fmt.Sprintf("%s, %d layers, read-only %t", name, len(all), len(all) > 0 && all[len(all)-1].Options.ReadOnly)
}

// woken returns the stages for which wake was called since the last call of woken. The kernel reports files in the
// order of their creation. So woken creates one more file and waits for its report: all earlier files are reported by
// then.
func (r *reality) woken() []string {
	const last = "last"
	r.must(r.dirs.Prepare(r.t.Context(), last))
	_, err := r.dirs.Ready(r.t.Context(), last)
	r.must(err)
	r.must(r.PodWrites(last, "ready", ""))
	var all []string
	for {
		select {
		case stage := <-r.wakes:
			if stage == last {
				r.must(r.dirs.Remove(r.t.Context(), last))
				return all
			}
			all = append(all, stage)
		case <-time.After(time.Minute):
			r.t.Fatal("nobody was woken")
		}
	}
}
