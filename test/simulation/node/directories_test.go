package node

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/pavdir"
)

// text returns an answer as JSON. It is for answers with pointers, since the two nodes have different addresses.
func text(answer any) string {
	raw, err := json.Marshal(answer)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// look records the answers of the calls that read the state of stage "s" and have no effect.
func (s *side) look() {
	const stage = "s"
	exists, err := s.Exists(s.ctx, stage)
	s.say("Exists", exists, err)
	stages, err := s.Stages(s.ctx)
	s.say("Stages", stages, err)
	record, err := s.Recorded(s.ctx, stage)
	s.say("Recorded", text(record), err)
	publications, err := s.Publications(s.ctx, stage)
	s.say("Publications", text(publications), err)
	users, err := s.Users(s.ctx, stage)
	s.say("Users", text(users), err)
	inUse, err := s.InUse(s.ctx, stage)
	s.say("InUse", inUse, err)
	given, err := s.Given(s.ctx, stage)
	s.say("Given", given, err)
	s.lookAttached()
}

func (s *side) lookAttached() {
	const stage = "s"
	attached, err := s.Attached(s.ctx, stage)
	s.say("Attached", attached, err)
	plain, err := s.IsPlain(s.ctx, stage)
	s.say("IsPlain", plain, err)
	exchanged, err := s.Exchanged(s.ctx, stage)
	s.say("Exchanged", exchanged, err)
}

func (s *side) lookReady() {
	ready, err := s.Ready(s.ctx, "s")
	s.say("Ready", ready, err)
}

func (s *side) attach(a pavdir.Attachment) { s.do("Attach", s.Attach(s.ctx, "s", a)) }

var fileSystem = pavdir.Attachment{Mode: mount.Filesystem}

func TestDirectoriesAndRecords(t *testing.T) {
	onBoth(t, func(s *side) {
		s.look()
		s.do("RecordPublication without a directory", s.RecordPublication(s.ctx, "s", pavdir.Publication{Target: "/a"}))
		s.do("ForgetPublication without a directory", s.ForgetPublication(s.ctx, "s", "/a"))
		s.do("Renew without a directory", s.Renew(s.ctx, "s"))
		s.do("Remove without a directory", s.Remove(s.ctx, "s"))
		s.look()
		boot := pavdir.Boot{BootID: "boot"}
		s.do("Record", s.Record(s.ctx, "s", pavdir.Stage{Driver: "driver", Handle: "handle", Client: &pavdir.Client{Name: "pod"}, Boot: boot}))
		s.do("Prepare another", s.Prepare(s.ctx, "a"))
		s.look()
		for _, target := range []string{"/b", "/a", "/b"} {
			s.do("RecordPublication", s.RecordPublication(s.ctx, "s", pavdir.Publication{Target: target, Options: mount.BindOptions{NoExec: true}, Boot: boot}))
		}
		s.look()
		s.do("ForgetPublication", s.ForgetPublication(s.ctx, "s", "/b"))
		s.do("ForgetPublication again", s.ForgetPublication(s.ctx, "s", "/b"))
		for _, renew := range []func(context.Context, string) error{s.Renew, s.Reset, s.Prepare} {
			s.must(s.PodWrites("a", "file", "")) // The file belongs to another stage.
			s.do("Renew, Reset, Prepare", renew(s.ctx, "s"))
			s.look()
		}
		s.Tear("s")
		s.look()
		s.do("Record over a torn record", s.Record(s.ctx, "s", pavdir.Stage{Driver: "driver"}))
		s.look()
		s.do("Remove", s.Remove(s.ctx, "s"))
		s.look()
	})
}

func TestKubeletHas(t *testing.T) {
	onBoth(t, func(s *side) {
		look := func(name string) {
			uids, err := s.KubeletHas(s.ctx, name)
			s.say("KubeletHas "+name, text(uids), err)
		}
		look("pv")
		s.KubeletKeeps("uid-b", "pv", true)
		s.KubeletKeeps("uid-a", "pv", true)
		s.KubeletKeeps("uid-c", "other", true)
		look("pv")
		s.KubeletKeeps("uid-b", "pv", false)
		look("pv")
		for _, name := range []string{"", ".", "..", "a/b"} {
			look(name)
		}
		_, err := s.Runs(s.ctx, "../x")
		s.say("Runs", false, err)
		s.reboot()
		look("pv")
	})
}

func TestPublish(t *testing.T) {
	onBoth(t, func(s *side) {
		one, two := s.target("one"), s.target("two")
		unpublish := func(target string) {
			stage, err := s.Unpublish(s.ctx, target)
			s.say("Unpublish", stage, err)
			s.look()
		}
		s.do("Publish", s.Publish(s.ctx, "s", one)) // Publish also creates the stage's directory.
		s.do("Publish again", s.Publish(s.ctx, "s", one))
		s.look()
		s.do("Publish to another pod", s.Publish(s.ctx, "s", two))
		s.do("Publish another stage where one is", s.Publish(s.ctx, "other", two))
		s.look()
		s.mount(one, Volume{Name: "v"})
		s.attach(fileSystem)
		s.look()
		unpublish(one)
		unpublish(one)
		s.must(s.PodUnmounts(two))
		s.look()
		s.mount(two, Volume{Name: "w"})
		unpublish(two)
		s.do("Renew", s.Renew(s.ctx, "s"))
		s.do("Publish", s.Publish(s.ctx, "s", one))
		s.mount("s", Volume{Name: "x"})
		s.do("Reset under a pod", s.Reset(s.ctx, "s"))
		s.look()
		s.do("the pod's writing", s.PodWrites(one, "ready", ""))
		s.lookReady()
		unpublish(one)
		s.do("Remove", s.Remove(s.ctx, "s"))
		unpublish("/nothing/of/the/kind")
	})
}

// If a pod mounts something over its /pav, Unpublish unmounts that mount and all mounts below it, even if another pod
// has the same /pav.
func TestCover(t *testing.T) {
	for name, others := range map[string]bool{"by the only pod": false, "by one of two": true} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(s *side) {
				one, two := s.target("one"), s.target("two")
				s.must(s.Publish(s.ctx, "s", one))
				if others {
					s.must(s.Publish(s.ctx, "s", two))
				}
				s.mount(one, Volume{Name: "v"})
				s.must(s.PodWrites(one, "error", "why"))
				s.attach(fileSystem)
				s.must(s.PodCovers(one))
				s.must(s.PodWrites(one, "ready", ""))
				s.lookReady()
				covered := s.PodError(s.ctx, "s", time.Time{})
				s.say("PodError", strings.HasPrefix(covered, "(/pav/error cannot be read: "), nil)
				s.look()
				s.attach(fileSystem)
				stage, err := s.Unpublish(s.ctx, one)
				s.say("Unpublish", stage, err)
				s.look()
				s.lookReady()
				s.do("Remove", s.Remove(s.ctx, "s"))
				s.look()
			})
		})
	}
}

func TestReady_WakesWaiters(t *testing.T) {
	onBoth(t, func(s *side) {
		wakes := func() { s.say("woken", text(s.woken()), nil) }
		s.lookReady()
		s.must(s.Prepare(s.ctx, "s"))
		s.must(s.PodWrites("s", "ready", "nobody waits"))
		wakes()
		s.lookReady()
		s.must(s.PodWrites("s", "ready", "it is there already"))
		wakes()
		s.must(s.PodRemoves("s", "ready"))
		s.lookReady()
		s.must(s.PodWrites("s", "unready", ""))
		s.must(s.PodWrites("s", "below/ready", ""))
		wakes()
		s.must(s.PodMakes("s", "ready"))
		wakes()
		s.lookReady()
		for range 2 {
			s.must(s.Reset(s.ctx, "s"))
			s.must(s.PodWrites("s", "ready", "nobody waits"))
			wakes()
			s.must(s.PodRemoves("s", "ready"))
			s.lookReady()
			s.must(s.PodWrites("s", "ready", ""))
			wakes()
		}
		s.must(s.PodRemoves("s", "ready"))
		s.must(s.PodMakes("s", "volume"))
		s.attach(fileSystem)
		s.must(s.PodWrites("s", "ready", "it is attached"))
		wakes()
	})
}

func TestPodError(t *testing.T) {
	onBoth(t, func(s *side) {
		began := time.Now().Add(-time.Hour)
		look := func() { s.say("PodError", s.PodError(s.ctx, "s", began), nil) }
		look()
		s.must(s.Prepare(s.ctx, "s"))
		look()
		for _, content := range []string{"", "\n why\nnot \n", strings.Repeat("x", 4096)} {
			s.must(s.PodWrites("s", "error", content))
			look()
		}
		s.say("PodError of a later pod", s.PodError(s.ctx, "s", time.Now().Add(time.Hour)), nil)
		for _, content := range []string{strings.Repeat("x", 4097), "\xff", "\x1b[2J"} {
			s.must(s.PodWrites("s", "error", content))
			s.say("PodError", strings.HasPrefix(s.PodError(s.ctx, "s", began), "(/pav/error cannot be read: "), nil)
		}
		s.must(s.PodRemoves("s", "error"))
		s.must(s.PodMakes("s", "error"))
		s.say("PodError", strings.HasPrefix(s.PodError(s.ctx, "s", began), "(/pav/error cannot be read: "), nil)
	})
}

func TestCallsThatHaveEnded_HaveNoEffect(t *testing.T) {
	onBoth(t, func(s *side) {
		s.must(s.Prepare(s.ctx, "s"))
		s.must(s.PodMakes("s", "volume"))
		target, ctx := s.target("pod"), s.ctx
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		s.do("Record", s.Record(canceled, "s", pavdir.Stage{}))
		s.do("Publish", s.Publish(canceled, "s", target))
		s.do("Attach", s.Attach(canceled, "s", fileSystem))
		s.do("Remove", s.Remove(canceled, "s"))
		s.do("Prepare", s.Prepare(canceled, "other"))
		_, err := s.Ready(canceled, "s")
		s.do("Ready", err)
		s.look()
		s.say("the target", s.sees(target), nil)
	})
}

func TestReboot(t *testing.T) {
	onBoth(t, func(s *side) {
		one := s.target("one")
		s.must(s.Record(s.ctx, "s", pavdir.Stage{Handle: "handle"}))
		s.must(s.Publish(s.ctx, "s", one))
		s.must(s.PodWrites(one, "ready", ""))
		s.mount(one, Volume{Name: "v"})
		s.attach(fileSystem)
		client := s.target("client")
		s.bind(client, mount.BindOptions{}, false)
		s.must(s.RecordPublication(s.ctx, "s", pavdir.Publication{Target: client}))
		s.reboot()
		s.look()
		s.lookReady()
		s.attach(fileSystem)
		s.say("the client", s.sees(client), nil)
		stage, err := s.Unpublish(s.ctx, one)
		s.say("Unpublish", stage, err)
		s.do("Publish", s.Publish(s.ctx, "s", one))
		s.look()
		s.attach(fileSystem) // The volume's mount point is a directory of /pav, which is attached now.
		s.look()
		s.bind(client, mount.BindOptions{}, false)
		s.do("Remove", s.Remove(s.ctx, "s"))
		s.look()
		s.say("the client", s.sees(client), nil)
	})
}
