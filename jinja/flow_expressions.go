package jinja

import (
	"regexp"

	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/jinja/syntax"
)

// eval returns the possible values of an expression, and notes which parts of objects it reads.
func (t *tracer) eval(node syntax.Expr) *tracked {
	v := t.access(node)
	if v != nil && isChain(node) {
		for _, object := range v.objects {
			t.path(object, t.absent.soft[node])
			t.tested[object.id] = t.tested[object.id] || t.absent.asked[node]
			t.defaulted[object.id] = t.defaulted[object.id] || t.absent.defaulted[node]
		}
	}
	return v
}

func isChain(node syntax.Expr) bool {
	switch node.(type) {
	case *syntax.Name, *syntax.Attribute, *syntax.Item:
		return true
	}
	return false
}

// access is eval for an expression that may be part of a longer chain of attributes.
func (t *tracer) access(node syntax.Expr) *tracked { //nolint:gocyclo // one case an expression
	if !t.step(1) {
		return nil
	}
	switch e := node.(type) {
	case *syntax.Name:
		if c, ok := t.cells[e]; ok {
			return t.value(c, e.Pos)
		}
	case *syntax.Attribute:
		return t.member(t.access(e.Object), e.Name)
	case *syntax.Item:
		return t.item(e)
	case *syntax.Tuple:
		return t.ofItems(t.evalAll(e.Items))
	case *syntax.List:
		return t.ofItems(t.evalAll(e.Items))
	case *syntax.Dict:
		return t.dict(e)
	case *syntax.Cond:
		t.eval(e.Test)
		then := t.eval(e.Then)
		if e.Else == nil {
			return then
		}
		return t.join(then, t.eval(e.Else))
	case *syntax.Logic:
		left := t.eval(e.Left)
		return t.join(left, t.eval(e.Right))
	case *syntax.Binary:
		return t.binary(e)
	case *syntax.Concat:
		return ofTexts(t.together(t.evalAll(e.Parts)...))
	case *syntax.Call:
		return t.call(e, nil)
	case *syntax.Filter:
		return t.filter(e)
	case *syntax.Test:
		t.test(e)
	case *syntax.Compare:
		t.compare(e)
	case *syntax.Data, *syntax.Const:
	default: // Not, Unary, Slice: they yield no text.
		for _, child := range node.Children() {
			if operand, ok := child.(syntax.Expr); ok {
				t.eval(operand)
			}
		}
	}
	return nil
}

func (t *tracer) test(e *syntax.Test) {
	t.eval(e.Input)
	t.args(e.Args)
}

// compare notes keys that are tested for: 'key' in object.
func (t *tracer) compare(e *syntax.Compare) {
	operands := append([]syntax.Expr{e.First}, e.Rest...)
	values := t.evalAll(operands)
	for i, op := range e.Ops {
		key, ok := constantString(operands[i])
		if !ok || !op.In && !op.NotIn || values[i+1] == nil {
			continue
		}
		for _, object := range values[i+1].objects {
			t.tested[object.key(key).id] = true
		}
	}
}

func (t *tracer) evalAll(nodes []syntax.Expr) []*tracked {
	values := make([]*tracked, len(nodes))
	for i, node := range nodes {
		values[i] = t.eval(node)
	}
	return values
}

// constantString returns the text of a literal.
func constantString(node syntax.Expr) (string, bool) {
	literal, ok := node.(*syntax.Const)
	if !ok {
		return "", false
	}
	return py.TextOf(literal.Value)
}

func (t *tracer) item(e *syntax.Item) *tracked {
	if key, ok := constantString(e.Key); ok {
		return t.member(t.access(e.Object), key)
	}
	object := t.eval(e.Object)
	t.eval(e.Key)
	if object == nil {
		return nil
	}
	if _, ok := e.Key.(*syntax.Slice); ok {
		rest := ofElement(t.elements(&tracked{items: object.items, element: object.element}))
		return t.join(rest, t.altered(&tracked{objects: object.objects, texts: object.texts}))
	}
	if literal, ok := e.Key.(*syntax.Const); ok {
		if index, isInt := literal.Value.(py.Int); isInt {
			return t.at(object, index)
		}
	}
	return t.entries(object)
}

// at returns the possible values of the element at index.
func (t *tracer) at(list *tracked, index py.Int) *tracked {
	i, ok := index.Int64()
	if !ok || i < 0 || i >= int64(len(list.items)) {
		return t.entries(list)
	}
	rest := *list
	rest.items = nil
	return t.join(list.items[i], t.entries(&rest))
}

func (t *tracer) dict(e *syntax.Dict) *tracked {
	fields := map[string]*tracked{}
	var element *tracked
	for i, key := range e.Keys {
		value := t.eval(e.Values[i])
		if name, ok := constantString(key); ok {
			fields[name] = value
		} else {
			element = t.join(element, t.join(t.eval(key), value))
		}
	}
	return t.ofFields(fields, element)
}

func (t *tracer) binary(e *syntax.Binary) *tracked {
	left, right := t.eval(e.Left), t.eval(e.Right)
	switch e.Op {
	case py.OpAdd:
		return t.sum(left, right)
	case py.OpMul:
		return t.altered(left, right)
	case py.OpMod:
		return t.formatted(e.Left, left, right)
	default:
		return nil // a number
	}
}

// sum returns the concatenation of two texts or lists.
func (t *tracer) sum(left, right *tracked) *tracked {
	var element *tracked
	var texts []textPart
	for _, v := range []*tracked{left, right} {
		if v == nil {
			continue
		}
		element = t.join(element, t.elements(&tracked{items: v.items, element: v.element}))
		t.addTexts(&texts, t.text(&tracked{objects: v.objects, texts: v.texts}))
	}
	return t.join(ofElement(element), ofTexts(texts))
}

var (
	// plainPercent has the formats for % that keep words whole, plainBraces those for the method format.
	plainPercent = regexp.MustCompile(`^(?:[^%]|%[sdi%])*$`)
	plainBraces  = regexp.MustCompile(`^(?:[^{}]|\{\w*\}|\{\{|\}\})*$`)
)

// formatted returns what the text of format % values may contain; node is that of format.
func (t *tracer) formatted(node syntax.Expr, format *tracked, values ...*tracked) *tracked {
	if pattern, ok := constantString(node); ok && plainPercent.MatchString(pattern) {
		return ofTexts(t.together(values...))
	}
	return t.altered(append(values, format)...)
}
