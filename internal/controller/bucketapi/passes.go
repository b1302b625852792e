package bucketapi

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
)

// Passes are the steps that were taken for all objects of a name: what former objects have left must not wait for the present one, nor the
// other way round. The zero value is ready for use.
type Passes struct {
	next     time.Duration // when the first of them is to be looked at again; 0 for never
	failures []error
}

// Take takes the step of a decision.
func (p *Passes) Take(ctx context.Context, uid types.UID, d rule.Decision, act func() error) {
	ctrl.LoggerFrom(ctx).V(2).Info("decided", "uid", uid, observability.Step, d.Step, observability.Rule, d.Rule)
	result, err := reconcile.Result(act())
	p.failures = append(p.failures, err)
	for _, after := range []time.Duration{result.RequeueAfter, d.After} {
		if after > 0 && (p.next == 0 || after < p.next) {
			p.next = after
		}
	}
}

// Result returns the result of the passes.
func (p *Passes) Result() (ctrl.Result, error) {
	if err := errors.Join(p.failures...); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: p.next}, nil
}
