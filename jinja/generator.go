package jinja

import "github.com/albertofaria/pav/jinja/py"

// nextItem gives the items of a generator one by one, until ok is false.
type nextItem func(b *py.Budget) (value py.Value, ok bool, err error)

// nothing has no items.
func nothing(*py.Budget) (py.Value, bool, error) { return nil, false, nil }

// lazily makes a generator that begins when its first item is wanted, as Python's generators do, so
// that this is when its errors come up, if it is used at all.
func lazily(begin func(b *py.Budget) (nextItem, error)) *py.Generator {
	var next nextItem
	return &py.Generator{Type: "generator", Fn: func(b *py.Budget) (py.Value, bool, error) {
		// A generator may take its items from another one, and that from another.
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
