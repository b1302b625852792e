package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/kubectl/status"
	"github.com/albertofaria/pav/internal/workflow"
)

// run shows the logs of an object's volumes, of its snapshot, or of its bucket.
func run(ctx context.Context, env *cli.Env, cluster *cli.Cluster, ref status.Ref, o *options) error {
	targets, err := status.TargetsOf(ctx, cluster.Objects, ref)
	if err != nil {
		return err
	}
	s := &session{cluster: cluster, options: o, targets: targets, ref: ref, print: &printer{out: env.Out, style: env.Style(), prefix: true}, seen: map[string]bool{}, errOut: env.ErrOut, pause: again}
	pods, err := s.list(ctx)
	if err != nil {
		return err
	}
	s.print.prefix = o.follow || count(pods) > 1
	if o.follow {
		return s.follow(ctx)
	}
	if err := s.show(ctx, pods); err != nil || s.print.wrote {
		return err
	}
	if _, err := fmt.Fprintf(env.ErrOut, "%s; see kubectl pav describe %s\n", silence(pods), ref); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// silence explains why there are no logs to show.
func silence(pods []corev1.Pod) string {
	switch n := len(pods); n {
	case 0:
		return "PaV has no pod for it: pods that have succeeded are removed when they are no longer needed"
	case 1:
		return fmt.Sprintf("the log of pod %s/%s is empty", pods[0].Namespace, pods[0].Name)
	default:
		return fmt.Sprintf("the logs of all %d pods are empty", n)
	}
}

// session is one run of the command.
type session struct {
	cluster *cli.Cluster
	options *options
	ref     status.Ref
	targets []status.Target
	print   *printer

	mu   sync.Mutex
	seen map[string]bool // runs of containers whose logs are shown, by pod UID, name and run
	wg   sync.WaitGroup
	errs []error

	pause        time.Duration // before a stream that has ended is opened again
	errOut       io.Writer
	reported     int // number of errors
	lastReported string

	cancel context.CancelFunc // stops following
}

// list returns the workflow pods that exist now, oldest first.
func (s *session) list(ctx context.Context) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	for _, target := range s.targets {
		list := &corev1.PodList{}
		if err := s.cluster.Objects.List(ctx, list, s.selectors(target)...); apierrors.IsForbidden(err) {
			// Users who may read only one namespace can usually read PaV's own.
			err = s.cluster.Objects.List(ctx, list, append(s.selectors(target), client.InNamespace(workflow.DefaultNamespace))...)
			if err != nil {
				return nil, fmt.Errorf("listing PaV's pods: %w", err)
			}
		} else if err != nil {
			return nil, fmt.Errorf("listing PaV's pods: %w", err)
		}
		pods = append(pods, slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !target.Has(&pod) })...)
	}
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return int(workflow.Attempt(&a) - workflow.Attempt(&b))
	})
	return pods, nil
}

func (s *session) selectors(target status.Target) []client.ListOption {
	labels := target.Labels()
	for _, phase := range phases {
		if phase.name == s.options.phase {
			labels[pavv1.WorkflowLabel] = phase.workflow
		}
	}
	return []client.ListOption{labels}
}

// count returns the number of containers that have a log, or may have one.
func count(pods []corev1.Pod) int {
	n := 0
	for i := range pods {
		for _, c := range containersOf(&pods[i]) {
			if c.begun {
				n++
			}
		}
	}
	return n
}

// show writes the logs until now. Logs that cannot be read are reported at the end.
func (s *session) show(ctx context.Context, pods []corev1.Pod) error {
	var errs []error
	for i := range pods {
		for _, c := range containersOf(&pods[i]) {
			if c.begun {
				errs = append(errs, s.print.copyLog(ctx, s.cluster.Kube, &c, s.options))
			}
		}
	}
	return errors.Join(errs...)
}

// again is the pause before a watch that has ended is opened again.
const again = time.Second

// follow shows the logs of present and future pods, until ctx ends or the targets are gone.
func (s *session) follow(ctx context.Context) error {
	followed, cancel := context.WithCancel(ctx)
	defer cancel()
	s.cancel = cancel
	for _, target := range s.targets {
		s.wg.Go(func() { s.followTarget(followed, target) })
	}
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}

// followTarget follows the pods of one target, and reopens watches that end.
func (s *session) followTarget(ctx context.Context, target status.Target) {
	for ctx.Err() == nil {
		err := s.watch(ctx, target)
		switch {
		case ctx.Err() != nil:
			return
		case isFinal(err):
			s.fail(fmt.Errorf("following PaV's pods: %w", err))
			return
		case err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err):
			s.tell(fmt.Errorf("following PaV's pods: %w", err))
		}
		if s.isOver(ctx, target) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

// isOver reports whether no more logs can come: the target and the object that the user named are gone.
func (s *session) isOver(ctx context.Context, target status.Target) bool {
	if s.ref.Kind == status.Claim || s.ref.Kind == status.Pod {
		targets, err := status.TargetsOf(ctx, s.cluster.Objects, s.ref)
		still := slices.ContainsFunc(targets, func(t status.Target) bool { return t.Name() == target.Name() })
		if err == nil && still || err != nil && !apierrors.IsNotFound(err) {
			return false
		}
	}
	gone, err := target.IsGone(ctx, s.cluster.Objects)
	return err == nil && gone
}

// watch follows the pods of a target until the watch ends, or until the target has no more pods.
func (s *session) watch(ctx context.Context, target status.Target) error {
	bounded, cancel := context.WithTimeout(ctx, 20*again)
	defer cancel()
	w, err := s.cluster.Objects.Watch(bounded, &corev1.PodList{}, s.selectors(target)...)
	if apierrors.IsForbidden(err) {
		w, err = s.cluster.Objects.Watch(bounded, &corev1.PodList{}, append(s.selectors(target), client.InNamespace(workflow.DefaultNamespace))...)
	}
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type == watch.Deleted {
			continue
		}
		for _, c := range containersOf(pod) {
			if c.begun {
				s.begin(ctx, &c)
			}
		}
	}
	return nil
}

// begin follows a run of a container, unless it is followed already.
func (s *session) begin(ctx context.Context, c *container) {
	key := string(c.pod.UID) + "/" + c.name + "/" + c.run
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[key] {
		return
	}
	s.seen[key] = true
	s.wg.Go(func() {
		if err := (&tail{session: s, container: c}).follow(ctx); err != nil && ctx.Err() == nil {
			s.fail(err)
		}
	})
}

func (s *session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, err)
	if apierrors.IsUnauthorized(err) || errors.Is(err, errWriting) {
		s.cancel() // no more output is possible
	}
}
