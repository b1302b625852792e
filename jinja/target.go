package jinja

import (
	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/jinja/syntax"
)

// target is the target of an assignment.
type target interface {
	// check reports errors of the target before the value is evaluated.
	check(r *run) error
	set(r *run, value py.Value) error
}

// target compiles the target of an assignment in f.
func (c *compiler) target(node syntax.Expr, f *frame) (target, error) {
	switch t := node.(type) {
	case *syntax.Name:
		id, _ := f.symbols.find(t.Name)
		c.notes.variable(t, id, f)
		return variable{ref: f.reference(id), name: t.Name, toplevel: f.toplevel && t.Use == syntax.Store}, nil
	case *syntax.NamespaceRef:
		id, _ := f.symbols.find(t.Name)
		c.notes.variable(t, id, f)
		return member{f.reference(id), t.Attribute}, nil
	case *syntax.Tuple:
		parts := make(unpacking, len(t.Items))
		for i, item := range t.Items {
			part, err := c.target(item, f)
			if err != nil {
				return nil, err
			}
			parts[i] = part
		}
		return parts, nil
	}
	return nil, syntaxError(node.Position(), "cannot assign to this expression")
}

// variable is a variable as a target; at the top level it becomes a variable of the render, too.
type variable struct {
	ref      reference
	name     string
	toplevel bool
}

func (variable) check(*run) error { return nil }

func (v variable) set(r *run, value py.Value) error {
	*v.ref.in(r.frame) = value
	if v.toplevel {
		r.scope.set[v.name] = value
	}
	return nil
}

// member is an attribute of a namespace as a target.
type member struct {
	ref  reference
	name string
}

func (m member) check(r *run) error {
	if _, ok := (*m.ref.in(r.frame)).(*namespace); !ok {
		return raisef("TemplateRuntimeError", "cannot assign to attribute '%s': the variable is no namespace(); expected {%% set x = namespace(…) %%} before", m.name)
	}
	return nil
}

func (m member) set(r *run, value py.Value) error {
	if space, ok := (*m.ref.in(r.frame)).(*namespace); ok {
		return space.set(r.budget, m.name, value)
	}
	return m.check(r)
}

// unpacking is a tuple of targets.
type unpacking []target

func (unpacking) check(*run) error { return nil }

func (u unpacking) set(r *run, value py.Value) error {
	values, err := u.unpack(r, value)
	if err != nil {
		return err
	}
	for i, part := range u {
		if err := part.set(r, values[i]); err != nil {
			return err
		}
	}
	return nil
}

// unpack returns the values of an iterable; there must be as many as targets.
func (u unpacking) unpack(r *run, value py.Value) ([]py.Value, error) {
	items, err := py.Iterate(r.budget, value)
	if raised, ok := err.(*py.Error); ok && raised.Kind == py.Type { //nolint:errorlint // it is made right there
		return nil, raisef("TypeError", "cannot unpack non-iterable %s object", value.TypeName())
	}
	if err != nil {
		return nil, err
	}
	values := make([]py.Value, 0, len(u))
	for {
		item, ok, err := items.Next(r.budget)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if len(values) == len(u) {
			return nil, raisef("ValueError", "too many values to unpack (expected %d); for keys and values of a mapping, use .items()", len(u))
		}
		values = append(values, item)
	}
	if len(values) < len(u) {
		return nil, raisef("ValueError", "not enough values to unpack (expected %d, got %d)", len(u), len(values))
	}
	return values, nil
}
