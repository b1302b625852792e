package node

import (
	"strings"
	"testing"

	"github.com/albertofaria/pav/internal/node/pavdir"
)

// id has the form of the IDs that kubelet gives to inline volumes.
var id = "csi-" + strings.Repeat("0a", 32)

func (s *side) lookPod(target string) {
	begun, err := s.Begun(s.ctx, id, target)
	s.say("Begun", begun, err)
	pod, exists, err := s.Pod(s.ctx, id)
	s.say("Pod", text(pod), err)
	s.say("exists", exists, nil)
	ids, err := s.Pods(s.ctx)
	s.say("Pods", text(ids), err)
	for _, name := range []string{"handle", "error"} {
		content, err := s.ReadPod(s.ctx, id, name, 10)
		s.say("ReadPod", content, err)
	}
}

func TestAPodWithAPavOfItsOwn(t *testing.T) {
	pod := pavdir.Pod{Namespace: "ns", Name: "pod", UID: "uid", Boot: pavdir.Boot{BootID: "boot"}}
	onBoth(t, func(s *side) {
		target := s.target("pod")
		s.lookPod(target)
		for range 2 {
			s.do("PublishPod", s.PublishPod(s.ctx, id, pod, target))
		}
		other := pod
		other.UID = "other"
		s.do("PublishPod of another pod", s.PublishPod(s.ctx, id, other, target))
		s.lookPod(target)
		for _, content := range []string{"handle\n", "0123456789", "0123456789x", "\xff", "\x00"} {
			s.must(s.PodWrites(target, "handle", content))
			s.lookPod(target)
		}
		s.must(s.PodMakes(id, "error"))
		s.lookPod(target)
		inUse, err := s.RemovePod(s.ctx, id)
		s.say("RemovePod", inUse, err)
		s.reboot()
		s.lookPod(target)
		s.do("PublishPod", s.PublishPod(s.ctx, id, pod, target))
		s.lookPod(target)
		s.must(s.PodWrites(target, "handle", "h"))
		s.must(s.PodCovers(target))
		s.lookPod(target)
		stage, err := s.Unpublish(s.ctx, target)
		s.say("Unpublish", stage, err)
		s.lookPod(target)
		inUse, err = s.RemovePod(s.ctx, id)
		s.say("RemovePod", inUse, err)
		s.lookPod(target)
		s.do("PublishPod", s.PublishPod(s.ctx, id, pod, target))
		s.Tear(id)
		s.lookPod(target)
		s.do("PublishPod", s.PublishPod(s.ctx, id, pod, target))
		for range 2 {
			s.do("UnpublishPod", s.UnpublishPod(s.ctx, id, target))
			s.lookPod(target)
		}
		s.say("the target", s.sees(target), nil)
	})
}

func (s *side) lookFiles(name string) {
	files, err := s.ReadPodFiles(s.ctx, id, name, 3, 10)
	s.say("ReadPodFiles", len(files), err)
	for _, file := range files {
		s.say(file.Name, string(file.Content), file.Err)
	}
}

func TestTheFilesOfAPod(t *testing.T) {
	onBoth(t, func(s *side) {
		s.lookFiles("info")
		target := s.target("pod")
		for _, pod := range []pavdir.Pod{{Namespace: "ns", Name: "pod", UID: "uid"}, {Namespace: "ns", Name: "pod", UID: "uid", Credentials: true}} {
			s.do("PublishPod", s.PublishPod(s.ctx, id, pod, target))
			s.lookFiles("credentials")
			s.lookFiles("info")
			s.must(s.PodMakes(target, "info/extra"))
			s.lookFiles("info")
			directories := []string{"info"}
			if pod.Credentials {
				directories = append(directories, "credentials")
			}
			for _, directory := range directories {
				for _, name := range []string{"region", "extra/b", "extra/a"} {
					s.must(s.PodWrites(target, directory+"/"+name, "text"))
				}
				s.lookFiles(directory)
				s.must(s.PodWrites(target, directory+"/region", "a longer text"))
				s.lookFiles(directory)
				s.must(s.PodMakes(target, directory+"/other"))
				s.lookFiles(directory)
			}
			s.reboot()
			s.lookFiles("credentials")
			s.do("PublishPod", s.PublishPod(s.ctx, id, pod, target))
			s.lookFiles("credentials")
			s.must(s.PodWrites(target, "info", "a file"))
			s.lookFiles("info")
			s.must(s.PodCovers(target))
			s.lookFiles("info")
			s.lookFiles("credentials")
			s.do("UnpublishPod", s.UnpublishPod(s.ctx, id, target))
			s.lookFiles("credentials")
		}
	})
}

func TestOtherIDs(t *testing.T) {
	onBoth(t, func(s *side) {
		for _, other := range []string{"", "../stages/s", id + "0"} {
			s.do("PublishPod", s.PublishPod(s.ctx, other, pavdir.Pod{}, "/target"))
			s.do("UnpublishPod", s.UnpublishPod(s.ctx, other, "/target"))
			_, _, err := s.Pod(s.ctx, other)
			s.do("Pod", err)
			_, err = s.ReadPod(s.ctx, other, "handle", 10)
			s.do("ReadPod", err)
			_, err = s.RemovePod(s.ctx, other)
			s.do("RemovePod", err)
		}
	})
}
