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

// errWriting is that the output takes no more.
var errWriting = errors.New("the output")

// tail is the log of one run of a container that is followed, over as many streams as it takes: a stream ends
// also where its file is rotated away, or the API server it goes through ends.
type tail struct {
	*session

	container *container
	last      time.Time // that of the last line that was written
	skips     bool      // the present line was written already
}

// maxBroken is how often in a row a stream may break of a run that is over.
const maxBroken = 5

// follow writes all that the container says in this run, until that ends or ctx does, after which the error
// means nothing.
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

// isOver reports whether nothing is to come after a stream that has ended.
func (t *tail) isOver(err error) bool {
	if err == nil {
		return !t.container.runs
	}
	return apierrors.IsNotFound(err) || isFinal(err) || errors.Is(err, errWriting)
}

// goesOn reports whether the run of which a stream has ended goes on. The error is one after which nothing can.
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
				c.restarted = now.restarted || now.run != c.run // what is left is in the log of the last run
				return now.run == c.run && now.runs, nil
			}
		}
	}
	return false, nil
}

// stream writes what one stream has, after the last line that was written.
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

// begin takes note of a line's time, and takes it off where it is not to be shown.
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

// isFinal reports whether an error stays, whatever is tried: the user may not, or is not known any more.
func isFinal(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// maxTold is how many errors are told that do not end the command.
const maxTold = 20

// tell tells what goes wrong and is tried again: once until something else does.
func (s *session) tell(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil || err.Error() == s.toldLast || s.told >= maxTold {
		return
	}
	s.toldLast = err.Error()
	s.told++
	_, _ = fmt.Fprintf(s.errOut, "%s; trying again\n", cli.Plain(s.toldLast))
}
