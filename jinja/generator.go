package jinja

import "github.com/albertofaria/pav/jinja/py"

// nextItem returns the items of a generator one by one, until ok is false.
type nextItem func(b *py.Budget) (value py.Value, ok bool, err error)

// nothing is a generator without items.
func nothing(*py.Budget) (py.Value, bool, error) { return nil, false, nil }

// lazily returns a generator that begins when its first item is requested, as Python's generators do. Errors occur only
// then.
func lazily(begin func(b *py.Budget) (nextItem, error)) *py.Generator {
	var next nextItem
	return &py.Generator{Type: "generator", Fn: func(b *py.Budget) (py.Value, bool, error) {
		// A generator may take its items from another generator, and so on.
		if err := b.Enter(); err != nil {
			return nil, false, err
		}
		defer b.Leave()
		if next == nil {
			first, err := begin(b)
			if err != nil {
				next = nothing
				return nil, false, err
			}
			next = first
		}
		value, ok, err := next(b)
		if !ok || err != nil {
			next = nothing
		}
		return value, ok, err
	}}
}
