package bucketapi

import (
	"errors"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/reconcile"
)

// An object that fails, or that has to wait, keeps no other from its step; the next pass is as soon as the first of them wants it.
func TestPasses(t *testing.T) {
	failure := errors.New("no")
	later := func(after time.Duration) func() error { return func() error { return &reconcile.Later{After: after} } }
	done := func() error { return nil }
	fails := func() error { return failure }
	type step struct {
		after time.Duration // of the decision
		act   func() error
	}
	for name, test := range map[string]struct {
		steps []step
		want  ctrl.Result
		err   error
	}{
		"no object":                    {},
		"nothing to wait for":          {steps: []step{{act: done}, {act: done}}},
		"one waits":                    {steps: []step{{act: later(time.Minute)}, {act: done}}, want: ctrl.Result{RequeueAfter: time.Minute}},
		"one is decided about again":   {steps: []step{{act: done}, {after: time.Hour, act: done}}, want: ctrl.Result{RequeueAfter: time.Hour}},
		"the first of two counts":      {steps: []step{{after: time.Hour, act: later(time.Minute)}, {act: later(time.Second)}}, want: ctrl.Result{RequeueAfter: time.Second}},
		"one fails":                    {steps: []step{{act: fails}, {act: later(time.Minute)}}, err: failure},
		"one fails after another step": {steps: []step{{act: done}, {act: fails}}, err: failure},
	} {
		t.Run(name, func(t *testing.T) {
			var passes Passes
			for _, s := range test.steps {
				passes.Take(t.Context(), "u", rule.Decision{Step: rule.Done, After: s.after}, s.act)
			}
			if got, err := passes.Result(); got != test.want || !errors.Is(err, test.err) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}
