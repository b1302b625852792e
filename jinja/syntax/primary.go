package syntax

import (
	"strings"

	"github.com/albertofaria/pav/jinja/py"
)

// constants has the names of constants.
var constants = map[string]py.Value{
	"true": py.Bool(true), "True": py.Bool(true), "false": py.Bool(false), "False": py.Bool(false),
	"none": py.None{}, "None": py.None{},
}

func (p *parser) primary() (Expr, error) {
	switch t := p.current(); t.kind {
	case kindName:
		p.take()
		if value, ok := constants[t.text]; ok {
			return &Const{t.Pos, value}, nil
		}
		return &Name{t.Pos, t.text, Load}, nil
	case kindString:
		return p.strings(), nil
	case kindInteger, kindFloat:
		p.take()
		return &Const{t.Pos, t.value}, nil
	case "(":
		p.take()
		value, err := p.tuple(p.expression, true)
		if err != nil {
			return nil, err
		}
		_, err = p.expect(")")
		return value, err
	case "[":
		return p.list()
	case "{":
		return p.dict()
	default:
		return nil, errorAt(t.Pos, "expected an expression, got '%s'", t.describe())
	}
}

// strings reads adjacent string literals as one.
func (p *parser) strings() Expr {
	pos := p.current().Pos
	var text strings.Builder
	for p.current().kind == kindString {
		if part, ok := p.take().value.(py.Str); ok {
			text.WriteString(string(part))
		}
	}
	return &Const{pos, py.Str(text.String())}
}

// tuple reads items with commas in between, or a single item without a comma. Empty says that there may be none.
func (p *parser) tuple(item operand, empty bool) (Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	pos := p.current().Pos
	var items []Expr
	for !p.tupleEnds() {
		value, err := item()
		if err != nil {
			return nil, err
		}
		items = append(items, value)
		if !p.skip(",") {
			if len(items) == 1 {
				return value, nil
			}
			break
		}
	}
	if len(items) == 0 && !empty {
		return nil, errorAt(pos, "expected an expression, got '%s'", p.current().describe())
	}
	return &Tuple{pos, items}, nil
}

func (p *parser) tupleEnds() bool {
	switch p.current().kind {
	case kindVariableEnd, kindBlockEnd, ")":
		return true
	default:
		return false
	}
}

func (p *parser) list() (Expr, error) {
	list := &List{Pos: p.take().Pos}
	for p.current().kind != "]" {
		item, err := p.expression()
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, item)
		if p.skip(",") {
			continue
		}
		if p.current().kind != "]" {
			return nil, p.expected(",")
		}
	}
	p.take()
	return list, nil
}

func (p *parser) dict() (Expr, error) {
	dict := &Dict{Pos: p.take().Pos}
	for p.current().kind != "}" {
		key, err := p.expression()
		if err != nil {
			return nil, err
		}
		if _, err = p.expect(":"); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		dict.Keys = append(dict.Keys, key)
		dict.Values = append(dict.Values, value)
		if p.skip(",") {
			continue
		}
		if p.current().kind != "}" {
			return nil, p.expected(",")
		}
	}
	p.take()
	return dict, nil
}

func (p *parser) call(function Expr) (Expr, error) {
	pos := p.current().Pos
	args, err := p.args()
	return &Call{pos, function, args}, err
}

// args reads the arguments of a call in their parentheses.
func (p *parser) args() (Args, error) {
	open, err := p.expect("(")
	if err != nil {
		return Args{}, err
	}
	var args Args
	for first := true; p.current().kind != ")"; first = false {
		if !first {
			if _, err := p.expect(","); err != nil {
				return args, err
			}
			if p.current().kind == ")" {
				break
			}
		}
		if err := p.arg(&args, open.Pos); err != nil {
			return args, err
		}
	}
	p.take()
	return args, nil
}

// arg reads one argument into args. Positional ones come first, then names, then *, then **; names may follow *.
func (p *parser) arg(args *Args, open Pos) error {
	t := p.current()
	named := t.kind == kindName && p.look().kind == "="
	if !args.allows(t.kind, named) {
		return errorAt(open, "the arguments of this call are in the wrong order: expected positional ones, named ones, *list, **mapping")
	}
	switch {
	case named:
		p.next += 2
	case t.kind == "*", t.kind == "**":
		p.take()
	}
	value, err := p.expression()
	switch {
	case named:
		args.Named = append(args.Named, NamedArg{t.text, value})
	case t.kind == "*":
		args.Star = value
	case t.kind == "**":
		args.StarStar = value
	default:
		args.Pos = append(args.Pos, value)
	}
	return err
}

// allows reports whether an argument that begins with a token of kind k may follow the arguments so far.
func (a *Args) allows(k kind, named bool) bool {
	switch {
	case a.StarStar != nil:
		return false
	case named, k == "**":
		return true
	case k == "*":
		return a.Star == nil
	}
	return a.Star == nil && len(a.Named) == 0
}

// filters reads the filters after input, if any.
func (p *parser) filters(input Expr) (Expr, error) {
	for p.skip("|") {
		filtered, err := p.filter(input)
		if err != nil {
			return nil, err
		}
		input = filtered
	}
	return input, nil
}

// filter reads a filter's name and arguments.
func (p *parser) filter(input Expr) (Expr, error) {
	filter := &Filter{Pos: p.current().Pos, Input: input}
	var err error
	if filter.Name, err = p.dotted(); err != nil {
		return nil, err
	}
	if p.current().kind == "(" {
		filter.Args, err = p.args()
	}
	return filter, err
}

// dotted reads a name that may contain dots.
func (p *parser) dotted() (string, error) {
	t, err := p.expect(kindName)
	parts := []string{t.text}
	for err == nil && p.skip(".") {
		t, err = p.expect(kindName)
		parts = append(parts, t.text)
	}
	return strings.Join(parts, "."), err
}

// test reads "is", and a test of input.
func (p *parser) test(input Expr) (Expr, error) {
	pos := p.take().Pos
	negated := p.skipName("not")
	test := &Test{Pos: pos, Input: input}
	var err error
	if test.Name, err = p.dotted(); err != nil {
		return nil, err
	}
	if p.current().kind == "(" {
		test.Args, err = p.args()
	} else if p.argumentFollows() {
		err = p.testArgument(test)
	}
	if err != nil {
		return nil, err
	}
	if negated {
		return &Not{pos, test}, nil
	}
	return test, nil
}

// argumentFollows reports whether a test has an argument without parentheses, as in "is divisibleby 3".
func (p *parser) argumentFollows() bool {
	switch t := p.current(); t.kind {
	case kindString, kindInteger, kindFloat, "[", "{":
		return true
	case kindName:
		return t.text != "else" && t.text != "or" && t.text != "and"
	default:
		return false
	}
}

func (p *parser) testArgument(test *Test) error {
	if p.current().is("is") {
		return errorAt(p.current().Pos, "tests cannot be chained with 'is'")
	}
	argument, err := p.primary()
	if err != nil {
		return err
	}
	if argument, err = p.postfix(argument); err != nil {
		return err
	}
	test.Args.Pos = []Expr{argument}
	return nil
}
