package jinja

import (
	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/jinja/syntax"
)

// noBooleans returns the errors of statements that set one of Booleans to a value that is never a boolean, unless a later
// statement may correct it.
func (q Question) noBooleans(body []syntax.Stmt) []*Error {
	var all []*Error
	for name := range q.Booleans {
		wrong, _ := lastSet(name, body)
		all = append(all, wrong...)
	}
	return all
}

// lastSet returns the errors of the last statements that set a variable, and whether there are any such statements.
func lastSet(name string, body []syntax.Stmt) (wrong []*Error, sets bool) {
	for _, statement := range body {
		if s, ok := statement.(*syntax.If); ok {
			var inside []*Error
			setsInside := false
			for _, branch := range append(s.Branches, syntax.Branch{Body: s.Else}) {
				found, set := lastSet(name, branch.Body)
				inside = append(inside, found...)
				setsInside = setsInside || set
			}
			if setsInside {
				wrong, sets = inside, true
			}
			continue
		}
		if pos, isWrong, set := setOf(name, statement); set {
			wrong, sets = nil, true
			if isWrong {
				wrong = []*Error{{
					Kind: py.Type, Line: pos.Line, Column: pos.Column,
					Message: "the variable " + name + " must be true or false, which this is not",
				}}
			}
		}
	}
	return wrong, sets
}

// setOf reports whether a statement sets a variable, where, and whether its value is never a boolean.
func setOf(name string, statement syntax.Stmt) (pos syntax.Pos, wrong, sets bool) {
	switch s := statement.(type) {
	case *syntax.Assign:
		_, isName := s.Target.(*syntax.Name)
		targets := map[string]bool{}
		addTargets(targets, s.Target)
		return beginning(s.Value), isName && neverBoolean(s.Value), targets[name]
	case *syntax.AssignBlock:
		target, ok := s.Target.(*syntax.Name)
		// The result of a filter may be of any type.
		return s.Target.Position(), s.Filter == nil, ok && target.Name == name
	case *syntax.Macro:
		return s.Pos, true, s.Name == name
	default:
		return syntax.Pos{}, false, false
	}
}

func neverBoolean(value syntax.Expr) bool {
	switch v := value.(type) {
	case *syntax.Const:
		_, ok := v.Value.(py.Bool)
		return !ok
	case *syntax.List, *syntax.Tuple, *syntax.Dict, *syntax.Concat:
		return true
	default:
		return false
	}
}
