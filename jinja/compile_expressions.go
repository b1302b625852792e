package jinja

import (
	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/jinja/syntax"
)

// expression compiles one expression.
func (c *compiler) expression(node syntax.Expr, f *frame) (expr, error) {
	late := len(c.late)
	c.depth++
	compiled, err := c.one(node, f)
	if err == nil && compiled.replayed() {
		c.late = c.late[:late]
	}
	if err == nil && c.unhashable != nil && isComputed(node) {
		err = c.unhashable
	}
	if c.depth--; c.depth == 0 {
		c.unhashable = nil
	}
	return compiled, err
}

// isComputed reports whether Jinja tries to evaluate the expression, with all in it, before a render.
func isComputed(node syntax.Expr) bool {
	switch node.(type) {
	case *syntax.Const, *syntax.Name, *syntax.Tuple, *syntax.List, *syntax.Dict, *syntax.Slice:
		return false
	}
	return true
}

func (c *compiler) one(node syntax.Expr, f *frame) (expr, error) {
	switch e := node.(type) {
	case *syntax.Const:
		return expr{constant: e.Value, eval: replay(e.Value, nil)}, nil
	case *syntax.Name:
		return c.name(e, f)
	case *syntax.Tuple:
		return c.sequence(e.Items, f, func(items []py.Value) py.Value { return &py.Tuple{Items: items} })
	case *syntax.List:
		return c.sequence(e.Items, f, func(items []py.Value) py.Value { return &py.List{Items: items} })
	case *syntax.Dict:
		return c.dict(e, f)
	case *syntax.Cond:
		return c.cond(e, f)
	case *syntax.Logic:
		return c.logic(e, f)
	case *syntax.Not:
		return c.operation(e.Pos, f, func(s *state, v []py.Value) (py.Value, error) {
			truth, err := py.Truth(s.budget, v[0])
			return py.Bool(!truth), err
		}, e.Operand)
	case *syntax.Compare:
		return c.compare(e, f)
	case *syntax.Binary:
		return c.binary(e, f)
	case *syntax.Unary:
		return c.operation(e.Pos, f, func(s *state, v []py.Value) (py.Value, error) {
			if e.Negative {
				return py.Negative(s.budget, v[0])
			}
			return py.Positive(s.budget, v[0])
		}, e.Operand)
	case *syntax.Concat:
		return c.concat(e, f)
	case *syntax.Attribute:
		return c.operation(e.Pos, f, func(s *state, v []py.Value) (py.Value, error) {
			value, err := s.attribute(v[0], e.Name)
			return py.Written(value, v[0], e.Name), err
		}, e.Object)
	case *syntax.Item:
		return c.item(e, f)
	case *syntax.Slice:
		return c.misplacedSlice(e, f)
	case *syntax.Call:
		call, err := c.callExpression(e, f, nil)
		return expr{eval: call}, err
	case *syntax.Filter:
		return c.filter(e, f)
	case *syntax.Test:
		return c.test(e, f)
	}
	return expr{}, syntaxError(node.Position(), "this expression does not belong here")
}

// expressions compiles several expressions, without those that are nil.
func (c *compiler) expressions(nodes []syntax.Expr, f *frame) ([]expr, error) {
	compiled := make([]expr, 0, len(nodes))
	for _, node := range nodes {
		if node == nil {
			continue
		}
		one, err := c.expression(node, f)
		if err != nil {
			return nil, err
		}
		compiled = append(compiled, one)
	}
	return compiled, nil
}

// operation compiles an operation on the values of its operands; pos is the position for its errors.
func (c *compiler) operation(pos syntax.Pos, f *frame, compute func(s *state, values []py.Value) (py.Value, error), operands ...syntax.Expr) (expr, error) {
	parts, err := c.expressions(operands, f)
	if err != nil {
		return expr{}, err
	}
	return c.pure(parts, func(s *state, values []py.Value) (py.Value, error) {
		value, err := compute(s, values)
		return value, at(blamed(pos, operands, values), err)
	}), nil
}

// blamed returns the position of the first undefined operand or, without one, that of the operation.
func blamed(pos syntax.Pos, operands []syntax.Expr, values []py.Value) syntax.Pos {
	for i, value := range values {
		if isUndefined(value) {
			return operands[i].Position()
		}
	}
	return pos
}

func (c *compiler) name(e *syntax.Name, f *frame) (expr, error) {
	id, ok := f.symbols.find(e.Name)
	if !ok {
		// The filters of a set block are the one place where Jinja does not look for names.
		return expr{}, &Error{
			Kind: py.Other, Line: e.Line, Column: e.Column,
			Message: "the filter of a set block cannot use the variable '" + e.Name + "' unless the template uses it elsewhere, too; assign it first, or use a filter block",
		}
	}
	c.notes.read(e, id, f)
	ref := f.reference(id)
	return expr{eval: func(r *run) (py.Value, error) {
		if value := *ref.in(r.frame); value != nil {
			return value, nil
		}
		return r.undefinedVariable(e.Name)
	}}, nil
}

// undefinedVariable is the value of a variable that does not exist.
func (r *run) undefinedVariable(name string) (py.Value, error) {
	const size = 256 // with the suggestion
	if err := r.budget.Alloc(size); err != nil {
		return nil, err
	}
	undefined := &py.Undefined{Name: name}
	if filter, ok := pythonFunctions[name]; ok {
		undefined.Hint = "'" + name + "' is undefined; there is a filter '" + filter + "'"
	} else if similar := suggest(name, r.scope.variables); similar != "" {
		undefined.Hint = "'" + name + "' is undefined" + similar
	}
	return undefined, nil
}

// pythonFunctions maps functions of Python that authors may try to use to filters that do the same.
var pythonFunctions = map[string]string{
	"abs": "abs", "float": "float", "int": "int", "len": "length", "list": "list", "max": "max", "min": "min",
	"reversed": "reverse", "round": "round", "sorted": "sort", "str": "string", "sum": "sum",
}

func (c *compiler) sequence(items []syntax.Expr, f *frame, join func(items []py.Value) py.Value) (expr, error) {
	parts, err := c.expressions(items, f)
	if err != nil {
		return expr{}, err
	}
	return c.pure(parts, func(s *state, values []py.Value) (py.Value, error) {
		if err := s.budget.Alloc(valueSize * (len(values) + 1)); err != nil {
			return nil, err
		}
		return join(values), nil
	}), nil
}

// dictionary makes a dictionary from alternating keys and values.
func dictionary(s *state, values []py.Value) (py.Value, error) {
	if err := s.budget.Alloc(2 * valueSize * (len(values) + 1)); err != nil {
		return nil, err
	}
	dict := py.NewDict()
	for i := 0; i < len(values); i += 2 {
		if n, ok := values[i].(py.Int); ok {
			const perWord = 32
			if err := s.budget.Alloc(perWord * len(n.Big().Bits())); err != nil {
				return nil, err
			}
		}
		if err := dict.Set(values[i], values[i+1]); err != nil {
			return nil, err
		}
	}
	return dict, nil
}

func (c *compiler) dict(e *syntax.Dict, f *frame) (expr, error) {
	pairs := make([]syntax.Expr, 0, 2*len(e.Keys))
	for i := range e.Keys {
		pairs = append(pairs, e.Keys[i], e.Values[i])
	}
	parts, err := c.expressions(pairs, f)
	if err != nil {
		return expr{}, err
	}
	for i := 0; i < len(parts) && allConstant(parts[i:i+2]) && !c.volatile; i += 2 {
		if err := py.Hashable(parts[i].constant); err != nil {
			c.unhashable = at(e.Pos, err)
		}
	}
	return c.pure(parts, func(s *state, values []py.Value) (py.Value, error) {
		dict, err := dictionary(s, values)
		return dict, at(e.Pos, err)
	}), nil
}

func (c *compiler) item(e *syntax.Item, f *frame) (expr, error) {
	if slice, ok := e.Key.(*syntax.Slice); ok {
		object, err := c.expression(e.Object, f)
		if err != nil {
			return expr{}, err
		}
		return c.slice(e, object, slice, f)
	}
	written := ""
	if literal, ok := e.Key.(*syntax.Const); ok {
		written, _ = py.TextOf(literal.Value)
	}
	return c.operation(e.Pos, f, func(s *state, v []py.Value) (py.Value, error) {
		value, err := s.item(v[0], v[1])
		return py.Written(value, v[0], written), err
	}, e.Object, e.Key)
}

// misplacedSlice compiles a slice beside other keys, x[1:2, 3], for which Jinja generates invalid Python code.
func (c *compiler) misplacedSlice(e *syntax.Slice, f *frame) (expr, error) {
	c.late = append(c.late, &Error{Kind: py.Other, Line: e.Line, Column: e.Column, Message: "a slice stands alone in its brackets"})
	parts, err := c.bounds(e, f)
	if err != nil {
		return expr{}, err
	}
	return c.pure(parts, func(_ *state, v []py.Value) (py.Value, error) {
		return &py.SliceKey{Start: v[0], Stop: v[1], Step: v[2]}, nil
	}), nil
}

// bounds compiles the parts of a slice; parts that are missing are None.
func (c *compiler) bounds(slice *syntax.Slice, f *frame) ([]expr, error) {
	parts := make([]expr, 0, 3)
	for _, part := range []syntax.Expr{slice.Start, slice.Stop, slice.Step} {
		bound := constantOf(py.None{})
		if part != nil {
			var err error
			if bound, err = c.expression(part, f); err != nil {
				return nil, err
			}
		}
		parts = append(parts, bound)
	}
	return parts, nil
}

func (c *compiler) slice(e *syntax.Item, object expr, slice *syntax.Slice, f *frame) (expr, error) {
	bounds, err := c.bounds(slice, f)
	if err != nil {
		return expr{}, err
	}
	parts := append([]expr{object}, bounds...)
	key := func(v []py.Value) py.Value { return &py.SliceKey{Start: v[1], Stop: v[2], Step: v[3]} }
	return c.fold(parts,
		// Jinja looks a constant slice up like any item, and the result may be undefined; in a render it is an error.
		func(s *state) (py.Value, error) { return s.item(parts[0].constant, key(constants(parts))) },
		func(r *run) (py.Value, error) {
			values, err := evaluateAll(r, parts)
			if err != nil {
				return nil, err
			}
			value, err := py.Item(r.budget, values[0], key(values))
			return value, at(e.Pos, err)
		}), nil
}
