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

// run shows the logs of an object's volumes.
func run(ctx context.Context, env *cli.Env, cluster *cli.Cluster, ref status.Ref, o *options) error {
	names, err := status.VolumesOf(ctx, cluster.Objects, ref)
	if err != nil {
		return err
	}
	s := &session{cluster: cluster, options: o, names: names, ref: ref, print: &printer{out: env.Out, style: env.Style(), prefix: true}, seen: map[string]bool{}, errOut: env.ErrOut, pause: again}
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
	names   []string // of the PersistentVolumes
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

// list returns the workflow pods of the volumes that exist now, oldest first.
func (s *session) list(ctx context.Context) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	for _, name := range s.names {
		list := &corev1.PodList{}
		if err := s.cluster.Objects.List(ctx, list, s.selectors(name)...); apierrors.IsForbidden(err) {
			// Users who may read only one namespace can usually read PaV's own.
			err = s.cluster.Objects.List(ctx, list, append(s.selectors(name), client.InNamespace(workflow.DefaultNamespace))...)
			if err != nil {
				return nil, fmt.Errorf("listing PaV's pods: %w", err)
			}
		} else if err != nil {
			return nil, fmt.Errorf("listing PaV's pods: %w", err)
		}
		pods = append(pods, list.Items...)
	}
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return int(workflow.Attempt(&a) - workflow.Attempt(&b))
	})
	return pods, nil
}

func (s *session) selectors(volume string) []client.ListOption {
	labels := client.MatchingLabels{pavv1.VolumeLabel: workflow.Hash(volume)}
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

// follow shows the logs of present and future pods, until ctx ends or the volumes are gone.
func (s *session) follow(ctx context.Context) error {
	followed, cancel := context.WithCancel(ctx)
	defer cancel()
	s.cancel = cancel
	for _, name := range s.names {
		s.wg.Go(func() { s.followVolume(followed, name) })
	}
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}

// followVolume follows the pods of one volume, and reopens watches that end.
func (s *session) followVolume(ctx context.Context, volume string) {
	for ctx.Err() == nil {
		err := s.watch(ctx, volume)
		switch {
		case ctx.Err() != nil:
			return
		case isFinal(err):
			s.fail(fmt.Errorf("following PaV's pods: %w", err))
			return
		case err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err):
			s.tell(fmt.Errorf("following PaV's pods: %w", err))
		}
		if s.isOver(ctx, volume) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

// isOver reports whether no more logs can come: the volume and the object that the user named are gone.
func (s *session) isOver(ctx context.Context, volume string) bool {
	if names, err := status.VolumesOf(ctx, s.cluster.Objects, s.ref); s.ref.Kind != status.PV && (err == nil && slices.Contains(names, volume) || err != nil && !apierrors.IsNotFound(err)) {
		return false
	}
	gone, err := status.IsGone(ctx, s.cluster.Objects, volume)
	return err == nil && gone
}

// watch follows the pods of a volume until the watch ends, or until the volume has no more pods.
func (s *session) watch(ctx context.Context, volume string) error {
	bounded, cancel := context.WithTimeout(ctx, 20*again)
	defer cancel()
	w, err := s.cluster.Objects.Watch(bounded, &corev1.PodList{}, s.selectors(volume)...)
	if apierrors.IsForbidden(err) {
		w, err = s.cluster.Objects.Watch(bounded, &corev1.PodList{}, append(s.selectors(volume), client.InNamespace(workflow.DefaultNamespace))...)
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
