package selftest

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// restore removes the test's file from a volume that is not deleted, even after ctx has ended. If it cannot, it
// reports that the file may be left. intact means that no step about the volume's use failed.
func (s *scenario) restore(ctx context.Context, intact bool) {
	switch {
	case !s.wrote:
		return
	case !intact && s.options.Keep:
		s.leftFile("what failed is kept as it is")
	case s.stuck:
		s.leftFile("the volume cannot leave a node")
	case !s.step(context.WithoutCancel(ctx), &s.volume, "remove what was written", s.tidy):
		s.leftFile(s.report.Steps[len(s.report.Steps)-1].Message)
	}
}

// tidy removes the test's file from a volume that is not deleted.
func (s *scenario) tidy(ctx context.Context) (outcome, error) {
	if err := s.deletePods(ctx); err != nil {
		return outcome{}, err
	}
	if _, err := s.runPod(ctx, s.reader("tidy", removeFile)); err != nil {
		return outcome{}, err
	}
	return passed("")
}

// leftFile reports that the test's file may be left on a volume that is not deleted.
func (s *scenario) leftFile(why string) {
	s.report.Left = append(s.report.Left, Left{
		Kind: "Perhaps the test's file on volume", Name: s.volume.static,
		Why:      "it was not removed: " + cli.Plain(why),
		Commands: []string{"rm -f " + s.file() + "   # where the volume is mounted"},
	})
}

// wroteNothing reports whether the writing pod has certainly not started.
func (s *scenario) wroteNothing(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	pod := &corev1.Pod{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.name, Name: s.first}, pod); err != nil {
		return client.IgnoreNotFound(err) == nil
	}
	for i := range pod.Status.InitContainerStatuses {
		state := &pod.Status.InitContainerStatuses[i].State
		if state.Running != nil || state.Terminated != nil {
			return false
		}
	}
	return true
}
