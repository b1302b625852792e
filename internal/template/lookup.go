package template

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/albertofaria/pav/jinja/py"
)

// ErrNoClaim is returned by a GetPVC if the claim does not exist, which is reported to the template's author. Any
// other error of a GetPVC ends the evaluation, and is not about the template.
var ErrNoClaim = errors.New("there is no such claim")

// ErrNotAllowed is ErrNoClaim for a claim that the definition may not look up.
var ErrNotAllowed = errors.New("spec.allowedClaimNamespaces does not allow to look up claims of this namespace")

// GetPVC looks up a claim for the template function get_pvc and returns it as plain data, which is not
// changed any more.
type GetPVC func(ctx context.Context, name, namespace string) (map[string]any, error)

// lookupError means that a claim could not be looked up, which is not a mistake in the template.
type lookupError struct{ err error }

func (e *lookupError) Error() string { return e.err.Error() }
func (e *lookupError) Unwrap() error { return e.err }

// claimKey identifies a claim.
type claimKey struct{ name, namespace string }

// String returns NAMESPACE/NAME if both are valid names; an invalid name may be any text.
func (k claimKey) String() string {
	const longest = 253 // of a name
	if len(k.name) > longest || len(k.namespace) > longest {
		return "a claim whose name or namespace is too long"
	}
	return fmt.Sprintf("%q in namespace %q", k.name, k.namespace)
}

// lookups has the claims that the templates of a field have looked up: all of them see the same claim.
type lookups struct {
	get    GetPVC
	claims map[claimKey]map[string]any

	// waited is how long it took.
	waited time.Duration
}

// function returns get_pvc for one template, which gets the same value each time it looks up a claim.
func (l *lookups) function(ctx context.Context) *py.Func {
	values := map[claimKey]py.Value{}
	return &py.Func{Name: "get_pvc", Type: "function", Fn: func(b *py.Budget, args py.Args) (py.Value, error) {
		bound, err := py.Bind("get_pvc", args, py.Param{Name: "name"}, py.Param{Name: "namespace"})
		if err != nil {
			return nil, err
		}
		var key claimKey
		if key.name, err = stringArgument("name", bound[0]); err != nil {
			return nil, err
		}
		if key.namespace, err = stringArgument("namespace", bound[1]); err != nil {
			return nil, err
		}
		if value, ok := values[key]; ok {
			return value, nil
		}
		claim, err := l.claim(ctx, b, key)
		if err != nil {
			return nil, err
		}
		values[key], err = py.FromData(claim)
		return values[key], err
	}}
}

func stringArgument(name string, v py.Value) (string, error) {
	switch v := v.(type) {
	case py.Str:
		return string(v), nil
	case py.Markup:
		return string(v), nil
	case *py.Undefined:
		return "", v.Err()
	default:
		return "", typeError("get_pvc() takes a string as %s, not a value of type %s", name, v.TypeName())
	}
}

func (l *lookups) claim(ctx context.Context, b *py.Budget, key claimKey) (map[string]any, error) {
	if claim, ok := l.claims[key]; ok {
		return claim, nil
	}
	if len(l.claims) >= maxLookUps {
		return nil, &py.Error{Kind: py.Limit, Exception: "RuntimeError", Message: fmt.Sprintf("get_pvc() looks up more than %d claims", maxLookUps)}
	}
	var claim map[string]any
	var err error
	l.waited += b.Wait(func() { claim, err = l.get(ctx, key.name, key.namespace) })
	switch {
	case errors.Is(err, ErrNoClaim):
		return nil, fmt.Errorf("get_pvc(): %s: %w", key, ErrNoClaim)
	case errors.Is(err, ErrNotAllowed):
		return nil, fmt.Errorf("get_pvc(): %s: %w", key, ErrNotAllowed)
	case err != nil:
		return nil, &lookupError{fmt.Errorf("get_pvc(): %s: %w", key, err)}
	}
	l.claims[key] = claim
	return claim, nil
}
