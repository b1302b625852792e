package mount

import (
	"testing"

	"golang.org/x/sys/unix"
)

// stage has everything that a staging pod works with: the source that the agent keeps, the bind of it in kubelet's
// directory of the pod, and the namespaces of other containers that mount kubelet's directory.
type stage struct {
	dir, source, target string
	host                *Namespace
	others              map[string]*Namespace
}

// newStage simulates a pod that mounts a volume with three levels of mounts in its container, and ends.
func newStage(t *testing.T) *stage {
	t.Helper()
	dir := workDir(t)
	s := &stage{dir: dir, source: makeDir(t, dir, "source"), target: makeDir(t, dir, "target"), host: here(t)}
	s.others = map[string]*Namespace{
		"peer from before":  newNamespace(t, dir, 0),
		"slave from before": newNamespace(t, dir, unix.MS_SLAVE),
	}
	for range 2 {
		must(t, SelfBind(s.source))
		must(t, BindShared(s.source, s.target))
	}
	s.others["peer from between"] = newNamespace(t, dir, 0)
	s.others["slave from between"] = newNamespace(t, dir, unix.MS_SLAVE)

	pod := newNamespace(t, dir, 0)
	for _, path := range []string{"/volume", "/volume/sub", "/volume/sub/sub"} {
		in(t, pod, func() error { return mountTmpfs(s.target + path) })
	}
	s.others["peer from after"] = newNamespace(t, dir, 0)
	s.others["slave from after"] = newNamespace(t, dir, unix.MS_SLAVE)
	must(t, pod.Close())

	writeFile(t, s.source+"/volume/sub/sub/file", "data")
	wantFile(t, s.target+"/volume/sub/sub/file", "data")
	return s
}

// wantOthers checks what is mounted in all other namespaces.
func (s *stage) wantOthers(t *testing.T, dir string, want ...string) {
	t.Helper()
	for name, namespace := range s.others {
		t.Run(name, func(t *testing.T) { wantMounts(t, namespace, dir, want...) })
	}
}

var volumeMounts = []string{"volume", "volume/sub", "volume/sub/sub"}

func TestBindSharedCarriesMountsToItsSource(t *testing.T) {
	s := newStage(t)
	wantMounts(t, s.host, s.source, volumeMounts...)
	wantMounts(t, s.host, s.target, volumeMounts...)
	s.wantOthers(t, s.source, volumeMounts...)
	s.wantOthers(t, s.target, volumeMounts...)

	// A second pod with the same source, such as an unstaging pod, can unmount the volume.
	second := makeDir(t, s.dir, "second")
	must(t, BindShared(s.source, second))
	wantMounts(t, s.host, second, volumeMounts...)
	pod := newNamespace(t, s.dir, 0)
	in(t, pod, func() error { return Unmount(t.Context(), second+"/volume") })
	wantMounts(t, s.host, s.source)
	wantMounts(t, s.host, s.target)
	unmountAllOf(t, second, s.target, s.source)
	s.wantOthers(t, s.dir)
}

// An unmount of a peer also unmounts its source. Separate prevents that.
func TestUnmountOfAPeerTearsItsSource(t *testing.T) {
	s := newStage(t)
	must(t, Unmount(t.Context(), s.target))
	wantMounts(t, s.host, s.source)
	must(t, Unmount(t.Context(), s.source))
}

func TestSeparateKeepsWhatThePodMounted(t *testing.T) {
	for name, unmount := range map[string]func(path string) error{
		"one by one": func(path string) error { return Unmount(t.Context(), path) },
		"detached":   func(path string) error { return unix.Unmount(path, unix.MNT_DETACH) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			for range 2 {
				must(t, Separate(s.source))
			}
			must(t, unmount(s.target))
			wantMounts(t, s.host, s.dir, "source", "source/volume", "source/volume/sub", "source/volume/sub/sub")
			wantFile(t, s.source+"/volume/sub/sub/file", "data")
			s.wantOthers(t, s.target)
			must(t, Unmount(t.Context(), s.target))

			// The volume remains usable: it can be staged, and another pod can use the source.
			staged, second := makeDir(t, s.dir, "staged"), makeDir(t, s.dir, "second")
			volume := openVolume(t, s.source)
			must(t, volume.Attach(staged, BindOptions{}))
			must(t, volume.Close())
			must(t, BindShared(s.source, second))
			pod := newNamespace(t, s.dir, 0)
			in(t, pod, func() error { return Unmount(t.Context(), second+"/volume") })
			wantMounts(t, s.host, s.source)
			wantFile(t, staged+"/sub/sub/file", "data")

			unmountAllOf(t, second, staged, s.source)
			s.wantOthers(t, s.dir)
		})
	}
}

func TestSeparateAndBindSharedRefuse(t *testing.T) {
	dir := workDir(t)
	source, target := makeDir(t, dir, "source"), makeDir(t, dir, "target")
	wantError(t, Separate(source), ErrNotMounted)
	wantError(t, BindShared(source, target), ErrNotMounted)
	must(t, unix.Mount(source, source, "", unix.MS_BIND, ""))
	must(t, unix.Mount("", source, "", unix.MS_PRIVATE, ""))
	wantError(t, BindShared(source, target), ErrNotShared)
	must(t, SelfBind(source))
	must(t, BindShared(source, target))
	must(t, Separate(source))
	wantError(t, BindShared(source, target), ErrOccupied)
	must(t, mountTmpfs(target))
	wantError(t, BindShared(source, target), ErrOccupied)
	must(t, mountTmpfs(source))
	wantError(t, Separate(source), ErrStacked)
	unmountAllOf(t, source, target)
}

func TestGroups_FollowFromTheTable(t *testing.T) {
	s := newStage(t)
	second := makeDir(t, s.dir, "second")
	must(t, Bind(s.source, second, BindOptions{}))
	find := func(path string) Mount {
		t.Helper()
		mounts, err := Mounts(path)
		must(t, err)
		return mounts[0]
	}
	source, target, follower := find(s.source), find(s.target), find(second)
	if source.PeerGroup == 0 || source.PeerGroup != target.PeerGroup || source.Master != 0 {
		t.Errorf("source and target are no peers: %+v, %+v", source, target)
	}
	if follower.Master != source.PeerGroup || follower.PeerGroup == 0 || follower.PeerGroup == source.PeerGroup {
		t.Errorf("bind does not follow: %+v, source %+v", follower, source)
	}
	unmountAllOf(t, second, s.target, s.source)
}
