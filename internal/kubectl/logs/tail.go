package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// errWriting means that the output cannot be written.
var errWriting = errors.New("the output")

// tail follows the log of one run of a container. It reopens streams that end: a stream also ends when kubelet
// rotates the file, or when the API server stops.
type tail struct {
	*session

	container *container
	last      time.Time // the time of the last line that was written
	skips     bool      // the current line was already written
}

// maxBroken is the number of consecutive times that the stream of an ended run may break.
const maxBroken = 5

// follow writes the log of this run until the run or ctx ends. If ctx has ended, the error has no meaning.
func (t *tail) follow(ctx context.Context) error {
	for broken := 0; ; {
		before := t.last
		err := t.stream(ctx)
		if t.last.After(before) {
			broken = 0
		}
		if ctx.Err() != nil || t.isOver(err) {
			return client.IgnoreNotFound(err)
		}
		if err != nil {
			broken++
			t.tell(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(t.pause << min(broken, maxBroken-1)):
		}
		if goesOn, final := t.goesOn(ctx); final != nil {
			return final
		} else if !goesOn && (err == nil || broken >= maxBroken) {
			return err
		}
	}
}

// isOver reports whether the log is complete after a stream has ended.
func (t *tail) isOver(err error) bool {
	if err == nil {
		return !t.container.runs
	}
	return apierrors.IsNotFound(err) || isFinal(err) || errors.Is(err, errWriting)
}

// goesOn reports whether the container's run continues after a stream has ended. After an error, the log cannot be
// followed.
func (t *tail) goesOn(ctx context.Context) (bool, error) {
	c := t.container
	pods, err := t.cluster.Kube.CoreV1().Pods(c.pod.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", c.pod.Name).String(),
	})
	switch {
	case err != nil && (ctx.Err() != nil || isFinal(err)):
		return false, fmt.Errorf("following pod %s/%s: %w", c.pod.Namespace, c.pod.Name, err)
	case err != nil:
		t.tell(err)
		return true, nil
	}
	for i := range pods.Items {
		if pods.Items[i].UID != c.pod.UID {
			continue
		}
		for _, now := range containersOf(&pods.Items[i]) {
			if now.name == c.name {
				c.restarted = now.restarted || now.run != c.run // the rest is in the log of the previous run
				return now.run == c.run && now.runs, nil
			}
		}
	}
	return false, nil
}

// stream writes the lines of one stream that follow the last written line.
func (t *tail) stream(ctx context.Context) error {
	c, o := t.container, t.options
	get := &corev1.PodLogOptions{Container: c.name, Follow: !c.restarted, Previous: c.restarted, Timestamps: true}
	if !t.last.IsZero() {
		since := metav1.NewTime(t.last)
		get.SinceTime = &since // in whole seconds
	} else if o.tail >= 0 {
		get.TailLines = &o.tail
	}
	resumed := t.last
	return read(ctx, t.cluster.Kube, c, get, func(text []byte, begins bool) error {
		if begins {
			text = t.begin(text, resumed)
		}
		if t.skips {
			return nil
		}
		if err := t.print.line(c, string(text)); err != nil {
			return errors.Join(errWriting, err)
		}
		return nil
	})
}

// begin records a line's time, and removes it from the line if times are not shown.
func (t *tail) begin(text []byte, resumed time.Time) []byte {
	stamp, rest, _ := bytes.Cut(text, []byte(" "))
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil {
		t.skips = false
		return text
	}
	t.skips = !at.After(resumed)
	if at.After(t.last) {
		t.last = at
	}
	if t.options.timestamps {
		return text
	}
	return rest
}

// isFinal reports whether trying again cannot help: the user has no permission, or is no longer authenticated.
func isFinal(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// maxReported is the maximum number of reported errors that do not end the command.
const maxReported = 20

// tell reports an error after which the command tries again. The same error is not reported twice in a row.
func (s *session) tell(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil || err.Error() == s.lastReported || s.reported >= maxReported {
		return
	}
	s.lastReported = err.Error()
	s.reported++
	_, _ = fmt.Fprintf(s.errOut, "%s; trying again\n", cli.Plain(s.lastReported))
}
