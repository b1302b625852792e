package jinja

import "github.com/albertofaria/pav/jinja/py"

// calculation does operations of Python one after another until one fails: the operations after that do nothing and
// return None or false. It is for filters that accept every type with these operations, as Jinja's filters do.
type calculation struct {
	s   *state
	err error
}

// value returns the result of do, unless an operation has failed before.
func (c *calculation) value(do func(b *py.Budget) (py.Value, error)) py.Value {
	if c.err != nil {
		return py.None{}
	}
	value, err := do(c.s.budget)
	if err != nil {
		c.err = err
		return py.None{}
	}
	return value
}

// truth returns the result of ask, unless an operation has failed before.
func (c *calculation) truth(ask func(b *py.Budget) (bool, error)) bool {
	if c.err != nil {
		return false
	}
	answer, err := ask(c.s.budget)
	c.err = err
	return answer && err == nil
}

func (c *calculation) binary(op py.BinaryOp, x, y py.Value) py.Value {
	return c.value(func(b *py.Budget) (py.Value, error) { return py.Binary(b, op, x, y) })
}

func (c *calculation) add(x, y py.Value) py.Value { return c.binary(py.OpAdd, x, y) }

func (c *calculation) compare(op py.CompareOp, x, y py.Value) bool {
	return c.truth(func(b *py.Budget) (bool, error) { return py.Compare(b, op, x, y) })
}

func (c *calculation) isTrue(x py.Value) bool {
	return c.truth(func(b *py.Budget) (bool, error) { return py.Truth(b, x) })
}

func (c *calculation) length(x py.Value) py.Value {
	return c.value(func(b *py.Budget) (py.Value, error) {
		n, err := py.Len(b, x)
		return py.NewInt(int64(n)), err
	})
}

func (c *calculation) item(x, key py.Value) py.Value {
	return c.value(func(b *py.Budget) (py.Value, error) { return py.Item(b, x, key) })
}

func (c *calculation) method(x py.Value, name string, args ...py.Value) py.Value {
	return c.value(func(*py.Budget) (py.Value, error) { return c.s.method(x, name, args...) })
}

// collect returns the items of x.
func (c *calculation) collect(x py.Value) []py.Value {
	if c.err != nil {
		return nil
	}
	items, err := py.Collect(c.s.budget, x)
	c.err = err
	return items
}

// result returns value, unless an operation has failed.
func (c *calculation) result(value py.Value) (py.Value, error) {
	if c.err != nil {
		return nil, c.err
	}
	return value, nil
}

// method calls a method of value. It is for filters, which may also call methods that templates may not
// use.
func (s *state) method(value py.Value, name string, args ...py.Value) (py.Value, error) {
	method, found, _, err := py.Attr(s.budget, value, name)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, raisef("AttributeError", "'%s' object has no attribute '%s'", value.TypeName(), name)
	}
	return py.Call(s.budget, method, py.Args{Pos: args})
}
