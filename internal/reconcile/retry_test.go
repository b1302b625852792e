package reconcile

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestResult(t *testing.T) {
	broken := errors.New("broken")
	tests := map[string]struct {
		err, want error
		again     bool
	}{
		"no error":         {},
		"a conflict":       {err: fmt.Errorf("writing: %w", apierrors.NewConflict(schema.GroupResource{}, "x", broken)), again: true},
		"a stale cache":    {err: fmt.Errorf("reading: %w", ErrStale), again: true},
		"a later pass":     {err: fmt.Errorf("waiting: %w", &Later{time.Minute}), again: true},
		"any other error":  {err: broken, want: broken},
		"an absent object": {err: apierrors.NewNotFound(schema.GroupResource{}, "x"), want: apierrors.NewNotFound(schema.GroupResource{}, "x")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			result, err := Result(test.err)
			if fmt.Sprint(err) != fmt.Sprint(test.want) || (result.RequeueAfter > 0) != test.again {
				t.Errorf("got %+v, %v", result, err)
			}
		})
	}
}
