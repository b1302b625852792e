package jinja

import (
	"math/rand/v2"

	"github.com/albertofaria/pav/jinja/py"
)

// state is what filters, tests and global functions see of the render that calls them.
type state struct {
	budget     *py.Budget
	env        *Environment
	autoescape bool
	// random is seeded alike for each render, so that output is deterministic.
	random *rand.Rand
}

// filter makes a value of another; args are what stands in parentheses behind its name.
type filter func(s *state, value py.Value, args py.Args) (py.Value, error)

// test answers a question about a value.
type test func(s *state, value py.Value, args py.Args) (bool, error)

// attribute is value.name: an attribute, or else an item; undefined if it is neither.
func (s *state) attribute(object py.Value, name string) (py.Value, error) {
	return py.SandboxAttr(s.budget, object, name)
}

// item is object[key]: an item, or else an attribute; undefined if it is neither.
func (s *state) item(object, key py.Value) (py.Value, error) {
	return py.SandboxItem(s.budget, object, key)
}

// call calls what a template has named.
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
