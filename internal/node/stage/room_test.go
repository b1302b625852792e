package stage

import (
	"context"
	"errors"
	"testing"
	"time"
)

func free(slots int) func(context.Context) (int, error) {
	return func(context.Context) (int, error) { return slots, nil }
}

func TestRoom_TheLastSlotIsForOneStage(t *testing.T) {
	r := newRoom()
	steps := []struct {
		reason string
		stage  string // that requests a slot; if free is nil, it releases its slot
		free   func(context.Context) (int, error)
		want   bool
	}{
		{"nothing is free", "a", free(0), false},
		{"the node has fewer slots than pods", "a", free(-1), false},
		{"one is free", "a", free(1), true},
		{"it was reserved", "b", free(1), false},
		{"its own reservation is not in the way", "a", free(1), true},
		{"two are free, and one of them is reserved", "b", free(2), true},
		{"both were reserved", "c", free(2), false},
		{"", "a", nil, false},
		{"one was given back", "c", free(2), true},
	}
	for _, step := range steps {
		if step.free == nil {
			r.release(step.stage)
			continue
		}
		if got, err := r.reserve(t.Context(), step.stage, step.free); err != nil || got != step.want {
			t.Errorf("%s: stage %s: got %t, %v; want %t", step.reason, step.stage, got, err, step.want)
		}
	}
}

func TestRoom_AnUnavailableAPIServerReservesNothing(t *testing.T) {
	r, away := newRoom(), errors.New("away")
	if _, err := r.reserve(t.Context(), "a", func(context.Context) (int, error) { return 9, away }); !errors.Is(err, away) {
		t.Errorf("got %v, want %v", err, away)
	}
	if got, err := r.reserve(t.Context(), "b", free(1)); err != nil || !got {
		t.Errorf("the next stage: got %t, %v; want true", got, err)
	}
}

func TestRoom_OneReadAtATime_AndNoWaitExceedsTheCall(t *testing.T) {
	r := newRoom()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := r.reserve(t.Context(), "a", func(context.Context) (int, error) {
		cancel()
		_, err := r.reserve(ctx, "b", free(9))
		return 9, err
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestFullNode_IsReportedOnce_AndCheckedAgain(t *testing.T) {
	now, trouble := time.Now(), &attemptProblems{}
	const full = "node n is full"
	if due, in := trouble.meets(noPod, full, now); due || in != reportDelay {
		t.Errorf("at first: got %t, %s; want false, %s", due, in, reportDelay)
	}
	now = now.Add(reportDelay)
	if due, _ := trouble.meets(noPod, full, now); !due {
		t.Error("it is not reported after a while")
	}
	trouble.reported[full] = true
	if due, in := trouble.meets(noPod, full, now.Add(time.Hour)); due || in != 0 {
		t.Errorf("it is reported again (%t, in %s)", due, in)
	}
	o := observation{full: true}
	if due := o.due(); due != roomPeriod {
		t.Errorf("it is looked at again after %s, want %s", due, roomPeriod)
	}
}
