package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/node/stage"
)

// bind mounts the volume of stage "s" at a client's target, and records the state of the target after that.
func (s *side) bind(target string, options mount.BindOptions, cover bool) {
	s.do("Bind", s.mounts.Bind(s.ctx, stage.Binding{
		Source: s.Volume("s"), Target: target, Mode: corev1.PersistentVolumeFilesystem, Options: options, Cover: cover,
	}))
	s.lookAt(target)
}

func (s *side) lookAt(path string) {
	mounted, err := s.mounts.Mounted(s.ctx, path)
	s.say("Mounted", mounted, err)
	_, err = s.mounts.Probe(s.ctx, path)
	s.do("Probe", err)
	s.say("seen", s.sees(path), nil)
}

func TestAttach_DistinguishesADirectoryFromAMount(t *testing.T) {
	onBoth(t, func(s *side) {
		s.attach(fileSystem)
		s.must(s.Record(s.ctx, "s", pavdir.Stage{}))
		s.attach(fileSystem)
		s.must(s.Prepare(s.ctx, "s"))
		s.attach(fileSystem)
		s.must(s.PodWrites("s", "volume", "a file"))
		s.attach(fileSystem)
		s.must(s.PodRemoves("s", "volume"))
		s.must(s.PodWrites("s", "volume/data", ""))
		s.attach(pavdir.Attachment{Mode: mount.Block})
		s.lookAttached()
		s.attach(fileSystem)
		s.attach(fileSystem)
		s.lookAttached()

		// The daemon mounts its volume too late, then mounts another one over it, and then unmounts both.
		s.mount("s", Volume{Name: "late"})
		s.attach(fileSystem)
		s.lookAttached()
		s.do("Detach", s.Detach(s.ctx, "s"))
		s.do("Detach", s.Detach(s.ctx, "s"))
		s.lookAttached()
		s.attach(pavdir.Attachment{Mode: mount.Filesystem, ReadOnly: true})
		s.lookAttached()
		s.mount("s", Volume{Name: "later"})
		s.attach(fileSystem)
		s.lookAttached()
		s.must(s.PodUnmounts("s"))
		s.lookAttached()
		s.must(s.PodUnmounts("s"))
		s.lookAttached()
		s.do("one unmount too many", s.PodUnmounts("s"))

		// The pod replaces the directory by a new one.
		s.must(s.Detach(s.ctx, "s"))
		s.attach(fileSystem)
		s.must(s.PodRemoves("s", "volume"))
		s.must(s.PodMakes("s", "volume"))
		s.attach(fileSystem)
		s.lookAttached()
	})
}

func TestAttach_ChecksDevices(t *testing.T) {
	const mib = 1 << 20
	onBoth(t, func(s *side) {
		s.must(s.Prepare(s.ctx, "s"))
		s.mount("s", Volume{Name: "v", Mode: mount.Block, Bytes: mib})
		s.attach(fileSystem)
		s.attach(pavdir.Attachment{Mode: mount.Block, Capacity: mib + 1})
		s.attach(pavdir.Attachment{Mode: mount.Block, ReadOnly: true})
		s.lookAttached()
		s.attach(pavdir.Attachment{Mode: mount.Block, Capacity: mib})
		s.lookAttached()
		client := s.target("client")
		noDev := true // NoDev has no effect on a device.
		bind := func(mode corev1.PersistentVolumeMode) {
			s.do("Bind", s.mounts.Bind(s.ctx, stage.Binding{Source: s.Volume("s"), Target: client, Mode: mode, Options: mount.BindOptions{NoDev: noDev}}))
			noDev = !noDev
			mounted, err := s.mounts.Mounted(s.ctx, client)
			s.say("Mounted", mounted, err)
		}
		bind(corev1.PersistentVolumeFilesystem)
		bind(corev1.PersistentVolumeBlock)
		s.do("RemoveTarget", s.mounts.Remove(s.ctx, client))
		bind(corev1.PersistentVolumeBlock)
		bind(corev1.PersistentVolumeBlock)
		bind(corev1.PersistentVolumeFilesystem)
		usage, err := s.mounts.Probe(s.ctx, client)
		s.say("Probe", usage, err)
		s.do("Fence", s.mounts.Fence(s.ctx, client))
		s.do("RemoveTarget", s.mounts.Remove(s.ctx, client))
		s.do("Unmount", s.mounts.Unmount(s.ctx, client))
		s.do("RemoveTarget", s.mounts.Remove(s.ctx, client))
		s.do("Renew", s.Renew(s.ctx, "s"))
		s.do("Prepare", s.Prepare(s.ctx, "s"))
		s.mount("s", Volume{Name: "v", Mode: mount.Block, Bytes: mib, ReadOnly: true})
		s.attach(pavdir.Attachment{Mode: mount.Block, ReadOnly: true})
		s.lookAttached()
	})
}

func TestBind(t *testing.T) {
	onBoth(t, func(s *side) {
		client, other := s.target("client"), s.target("other")
		s.lookAt(client)
		s.bind(client, mount.BindOptions{}, false) // The source does not exist.
		s.must(s.Prepare(s.ctx, "s"))
		s.mount("s", Volume{Name: "v"})
		s.attach(fileSystem)
		s.bind(client, mount.BindOptions{}, false)
		s.bind(client, mount.BindOptions{}, false)
		s.bind(client, mount.BindOptions{ReadOnly: true}, false)
		s.bind(other, mount.BindOptions{ReadOnly: true, NoSuid: true, NoDev: true, NoExec: true, NoAtime: true}, false)
		s.bind(other, mount.BindOptions{ReadOnly: true, NoSuid: true, NoDev: true, NoExec: true, NoAtime: true}, false)

		// Clients keep their volume when the stage gets another volume, and when the stage is removed.
		s.must(s.Detach(s.ctx, "s"))
		s.lookAt(client)
		s.bind(client, mount.BindOptions{}, false)
		s.mount("s", Volume{Name: "w"})
		s.attach(fileSystem)
		s.bind(client, mount.BindOptions{}, false)
		s.bind(client, mount.BindOptions{}, true)
		s.bind(client, mount.BindOptions{}, true)
		s.bind(client, mount.BindOptions{NoExec: true}, true)
		s.do("RemoveTarget", s.mounts.Remove(s.ctx, client))
		s.must(s.Remove(s.ctx, "s"))
		s.lookAt(client)
		s.lookAt(other)
		for _, target := range []string{client, other} {
			s.do("Unmount", s.mounts.Unmount(s.ctx, target))
			s.do("Unmount", s.mounts.Unmount(s.ctx, target))
			s.lookAt(target)
			s.do("RemoveTarget", s.mounts.Remove(s.ctx, target))
			s.do("RemoveTarget", s.mounts.Remove(s.ctx, target))
			s.lookAt(target)
		}
	})
}

// If nothing is attached, a bind mount shows the node's own disk to the client. The node agent must never do that, so
// the simulated node must show it.
func TestBind_OfWhatIsNotAttached(t *testing.T) {
	onBoth(t, func(s *side) {
		client, reader := s.target("client"), s.target("reader")
		s.must(s.Prepare(s.ctx, "s"))
		s.must(s.PodMakes("s", "volume"))
		s.attach(fileSystem)
		s.must(s.Detach(s.ctx, "s"))
		s.bind(client, mount.BindOptions{}, false)
		s.bind(client, mount.BindOptions{}, false)
		s.bind(reader, mount.BindOptions{ReadOnly: true}, false)
		s.mount("s", Volume{Name: "v"})
		for range 2 {
			s.attach(fileSystem)
			for _, target := range []string{client, reader} {
				s.lookAt(target)
				s.bind(target, mount.BindOptions{}, false)
			}
			s.must(s.Detach(s.ctx, "s"))
			s.lookAt(client)
		}
		s.attach(fileSystem)
		s.must(s.Renew(s.ctx, "s"))
		s.lookAt(client)
	})
}

func TestBind_OverAForeignMount(t *testing.T) {
	onBoth(t, func(s *side) {
		client := s.target("client")
		s.must(s.Prepare(s.ctx, "s"))
		s.mount("s", Volume{Name: "v"})
		s.attach(fileSystem)
		s.SomebodyMounts(client, "foreign")
		s.bind(client, mount.BindOptions{}, false)
		s.bind(client, mount.BindOptions{}, true)
		s.do("Unmount", s.mounts.Unmount(s.ctx, client))
		s.bind(client, mount.BindOptions{}, false)
	})
}

func TestBind_DoesNotPileUp(t *testing.T) {
	onBoth(t, func(s *side) {
		client := s.target("client")
		s.must(s.Prepare(s.ctx, "s"))
		for range maxLayers + 3 {
			s.must(s.Detach(s.ctx, "s"))
			s.mount("s", Volume{Name: "v"})
			s.attach(fileSystem)
			s.bind(client, mount.BindOptions{}, true)
		}
		s.do("Unmount", s.mounts.Unmount(s.ctx, client))
		s.lookAt(client)
	})
}

// The FUSE daemon of the real node never answers. So the test accesses the volume only after the daemon is dead.
func TestAVolumeThatDies(t *testing.T) {
	onBoth(t, func(s *side) {
		client := s.target("client")
		s.must(s.Prepare(s.ctx, "s"))
		becomes := s.mount("s", Volume{Name: Disk, Daemon: true}) // The real volume has no nameFile, so sees returns Disk.
		s.attach(fileSystem)
		s.do("Bind", s.mounts.Bind(s.ctx, stage.Binding{Source: s.Volume("s"), Target: client}))
		becomes(Dead)
		s.lookAt(client)
		s.lookAttached()
		s.attach(fileSystem)
		s.bind(client, mount.BindOptions{}, false)
		s.bind(s.target("new"), mount.BindOptions{}, false)
		s.do("Fence", s.mounts.Fence(s.ctx, client))
		s.do("Fence", s.mounts.Fence(s.ctx, s.target("nothing")))
		s.must(s.PodUnmounts("s"))
		s.lookAttached()
		s.do("Renew", s.Renew(s.ctx, "s"))
		s.do("Prepare", s.Prepare(s.ctx, "s"))
		s.mount("s", Volume{Name: "new"})
		s.attach(fileSystem)
		s.bind(client, mount.BindOptions{}, false)
		s.bind(client, mount.BindOptions{}, true)
		s.do("Fence", s.mounts.Fence(s.ctx, client))
		s.lookAt(client)
	})
}
