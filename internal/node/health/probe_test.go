package health

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/albertofaria/pav/internal/mount"
)

// asked is a Prober that answers when the test lets it.
type asked struct {
	running, most atomic.Int32
	questions     chan chan error
}

func (a *asked) Probe(context.Context, string) (mount.Usage, error) {
	a.most.Store(max(a.most.Load(), a.running.Add(1)))
	defer a.running.Add(-1)
	answer := make(chan error)
	a.questions <- answer
	return mount.Usage{}, <-answer
}

func TestProbe_OneAtATime_AndNoOldResult(t *testing.T) {
	prober := &asked{questions: make(chan chan error)}
	v := NewTracker(prober, func(string) { t.Error("nobody has given up") }, time.Now)
	v.Timeout = time.Minute
	look := func() <-chan error {
		result := make(chan error, 1)
		go func() { _, err := v.Probe(t.Context(), "stage", "/volume"); result <- err }()
		return result
	}

	first := look()
	answer := <-prober.questions
	second := look()
	answer <- nil
	if err := <-first; err != nil {
		t.Errorf("the first look: got %v", err)
	}
	// The second probe must see what has happened since the first one began.
	(<-prober.questions) <- mount.ErrDead
	if err := <-second; !errors.Is(err, mount.ErrDead) {
		t.Errorf("the second look: got %v, want ErrDead", err)
	}
	if prober.most.Load() != 1 {
		t.Errorf("%d looks in the kernel at once", prober.most.Load())
	}
	if len(v.pending) != 0 {
		t.Errorf("looks are left: %v", v.pending)
	}
}

func TestLook_HangingVolume_CostsOneThread_AndIsLookedAtWhenItAnswers(t *testing.T) {
	prober := &asked{questions: make(chan chan error)}
	late := make(chan string, 10)
	v := NewTracker(prober, func(stage string) { late <- stage }, time.Now)
	v.Timeout = 20 * time.Millisecond

	hanging := make(chan chan error, 1)
	go func() { hanging <- <-prober.questions }()
	for range 3 {
		if _, err := v.Probe(t.Context(), "stage", "/volume"); !errors.Is(err, ErrNoAnswer) {
			t.Fatalf("got %v, want ErrNoAnswer", err)
		}
	}
	v.Timeout = time.Minute
	v.now = func() time.Time { return time.Now().Add(time.Hour) }
	if _, err := v.Probe(t.Context(), "other", "/volume"); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("one that hangs for long: got %v, want ErrNoAnswer at once", err)
	}

	(<-hanging) <- nil
	got := map[string]bool{<-late: true, <-late: true}
	if !got["stage"] || !got["other"] {
		t.Errorf("looked at %v, want both stages", got)
	}
	if prober.most.Load() != 1 {
		t.Errorf("%d looks in the kernel at once", prober.most.Load())
	}
}
