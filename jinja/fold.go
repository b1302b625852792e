package jinja

import (
	"math"
	"slices"

	"github.com/albertofaria/pav/jinja/py"
)

// expr is a compiled expression. If it depends on no variable, it is evaluated when it is compiled, as Jinja does: that is
// faster, and changes escaped output.
type expr struct {
	eval eval
	// constant is the value, or nil if it is not known before a render.
	constant py.Value
}

func constantOf(value py.Value) expr {
	return expr{constant: value, eval: func(*run) (py.Value, error) { return value, nil }}
}

// fold returns an expression with these parts. It is evaluated now if all of them are constant, and otherwise with evaluate
// in a render.
// The render reports the error, if it evaluates the expression.
func (c *compiler) fold(parts []expr, now func(s *state) (py.Value, error), evaluate eval) expr {
	if !allConstant(parts) {
		return expr{eval: evaluate}
	}
	c.folding.autoescape = c.autoescape
	value, err := now(c.folding)
	if err != nil || !isSmall(value) {
		return expr{eval: evaluate}
	}
	if c.volatile {
		return expr{constant: value, eval: evaluate}
	}
	return expr{constant: value, eval: replay(value, evaluate)}
}

// replayed reports whether Jinja writes the value into its code instead of the expression.
func (e expr) replayed() bool { return e.constant != nil && isLiteral(e.constant) }

// isLiteral reports whether Python's repr of value is code for the same value.
func isLiteral(value py.Value) bool {
	switch v := value.(type) {
	case py.None, py.Bool, py.Int, py.Float, py.Str, py.Markup, *py.Range:
		return true
	case *py.Tuple:
		return v.Fields == nil && !slices.ContainsFunc(v.Items, isNoLiteral)
	case *py.List:
		return !slices.ContainsFunc(v.Items, isNoLiteral)
	case *py.Dict:
		for i := range v.Len() {
			if key, item := v.Entry(i); isNoLiteral(key) || isNoLiteral(item) {
				return false
			}
		}
		return true
	}
	return false
}

func isNoLiteral(value py.Value) bool { return !isLiteral(value) }

// isSmall reports whether a constant is small enough to keep: a template in the cache keeps its constants.
func isSmall(value py.Value) bool {
	const bytes = 16 << 10
	return weigh(value, bytes) >= 0
}

// weigh returns room, reduced by the approximate size of value; it may be negative.
func weigh(value py.Value, room int) int {
	switch v := value.(type) {
	case py.Str:
		return room - len(v)
	case py.Markup:
		return room - len(v)
	case py.Int:
		const word = 8
		return room - word*len(v.Big().Bits())
	case *py.List:
		return weighAll(v.Items, room)
	case *py.Tuple:
		return weighAll(v.Items, room)
	case *py.Dict:
		for i := 0; i < v.Len() && room >= 0; i++ {
			key, item := v.Entry(i)
			room = weigh(item, weigh(key, room-4*valueSize))
		}
	}
	return room
}

func weighAll(items []py.Value, room int) int {
	for i := 0; i < len(items) && room >= 0; i++ {
		room = weigh(items[i], room-2*valueSize)
	}
	return room
}

// truth reports whether a constant is true; ok says that this is known.
func (c *compiler) truth(e expr) (truth, ok bool) {
	truth, err := py.Truth(c.folding.budget, e.constant)
	return truth, err == nil
}

func allConstant(parts []expr) bool {
	return !slices.ContainsFunc(parts, func(e expr) bool { return e.constant == nil })
}

// replay returns a function for a constant in a render: it returns the value or, if that can be changed, a copy.
func replay(value py.Value, evaluate eval) eval {
	if !isLiteral(value) {
		return evaluate
	}
	if !isFinite(value) {
		return func(*run) (py.Value, error) {
			return nil, raisef("NameError", "a constant that is not a finite number can only be printed")
		}
	}
	switch value.(type) {
	case *py.Tuple, *py.List, *py.Dict:
		return func(r *run) (py.Value, error) { return copyLiteral(r.budget, value) }
	}
	return func(*run) (py.Value, error) { return value, nil }
}

// isFinite reports whether Jinja can write the literal into its code: infinity and NaN are undefined names there.
func isFinite(value py.Value) bool {
	switch v := value.(type) {
	case py.Float:
		return !math.IsInf(float64(v), 0) && !math.IsNaN(float64(v))
	case *py.Tuple:
		return !slices.ContainsFunc(v.Items, isInfinite)
	case *py.List:
		return !slices.ContainsFunc(v.Items, isInfinite)
	case *py.Dict:
		for i := range v.Len() {
			if key, item := v.Entry(i); isInfinite(key) || isInfinite(item) {
				return false
			}
		}
	}
	return true
}

func isInfinite(value py.Value) bool { return !isFinite(value) }

// copyLiteral returns a deep copy of a literal.
func copyLiteral(b *py.Budget, value py.Value) (py.Value, error) {
	switch v := value.(type) {
	case *py.Tuple:
		items, err := copyLiterals(b, v.Items)
		return &py.Tuple{Items: items}, err
	case *py.List:
		items, err := copyLiterals(b, v.Items)
		return &py.List{Items: items}, err
	case *py.Dict:
		copied := py.NewDict()
		if err := b.Alloc(4 * valueSize * (v.Len() + 1)); err != nil {
			return nil, err
		}
		for i := range v.Len() {
			key, item := v.Entry(i)
			item, err := copyLiteral(b, item)
			if err != nil {
				return nil, err
			}
			if err := copied.Set(key, item); err != nil {
				return nil, err
			}
		}
		return copied, nil
	}
	return value, nil
}

func copyLiterals(b *py.Budget, items []py.Value) ([]py.Value, error) {
	if err := b.Alloc(valueSize * (len(items) + 1)); err != nil {
		return nil, err
	}
	copied := make([]py.Value, len(items))
	for i, item := range items {
		var err error
		if copied[i], err = copyLiteral(b, item); err != nil {
			return nil, err
		}
	}
	return copied, nil
}

func constants(parts []expr) []py.Value {
	values := make([]py.Value, len(parts))
	for i, part := range parts {
		values[i] = part.constant
	}
	return values
}

// evaluateAll evaluates parts in order.
func evaluateAll(r *run, parts []expr) ([]py.Value, error) {
	if err := r.budget.Alloc(valueSize * len(parts)); err != nil {
		return nil, err
	}
	values := make([]py.Value, len(parts))
	for i, part := range parts {
		value, err := part.eval(r)
		if err != nil {
			return nil, err
		}
		values[i] = value
	}
	return values, nil
}

// pure returns an expression that depends only on the values of its parts, in order.
func (c *compiler) pure(parts []expr, compute func(s *state, values []py.Value) (py.Value, error)) expr {
	return c.fold(parts,
		func(s *state) (py.Value, error) { return compute(s, constants(parts)) },
		func(r *run) (py.Value, error) {
			values, err := evaluateAll(r, parts)
			if err != nil {
				return nil, err
			}
			return compute(r.state, values)
		})
}
