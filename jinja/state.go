package jinja

import (
	"math/rand/v2"

	"github.com/albertofaria/pav/jinja/py"
)

// state is the part of a render that filters, tests and global functions see.
type state struct {
	budget     *py.Budget
	env        *Environment
	autoescape bool
	// random has the seed of the template, so output is deterministic.
	random *rand.Rand
}

// filter returns a value for another one; args are the arguments in parentheses after its name.
type filter func(s *state, value py.Value, args py.Args) (py.Value, error)

// test reports whether something is true of a value.
type test func(s *state, value py.Value, args py.Args) (bool, error)

// attribute returns value.name: an attribute or, without one, an item; undefined if there is neither.
func (s *state) attribute(object py.Value, name string) (py.Value, error) {
	return py.SandboxAttr(s.budget, object, name)
}

// item returns object[key]: an item or, without one, an attribute; undefined if there is neither.
func (s *state) item(object, key py.Value) (py.Value, error) {
	return py.SandboxItem(s.budget, object, key)
}

// call calls a value of the template.
func (s *state) call(function py.Value, args py.Args) (py.Value, error) {
	if err := s.budget.Enter(); err != nil {
		return nil, err
	}
	defer s.budget.Leave()
	return py.Call(s.budget, function, args)
}

// filterNamed looks up a filter by a name that is known only at run time.
func (s *state) filterNamed(name string) (filter, error) {
	if f, ok := s.env.filters[name]; ok {
		return f, nil
	}
	return nil, raisef("TemplateRuntimeError", "there is no filter of this name%s", suggest(name, s.env.filters))
}

// testNamed is filterNamed for tests.
func (s *state) testNamed(name string) (test, error) {
	if t, ok := s.env.tests[name]; ok {
		return t, nil
	}
	return nil, raisef("TemplateRuntimeError", "there is no test of this name%s", suggest(name, s.env.tests))
}
