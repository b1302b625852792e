package syntax

import "github.com/albertofaria/pav/jinja/py"

// expression reads a whole expression: a conditional one, of all the operators below in rising precedence.
func (p *parser) expression() (Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	value, err := p.or()
	if err != nil {
		return nil, err
	}
	for p.current().is("if") {
		pos := value.Position()
		p.take()
		test, err := p.or()
		if err != nil {
			return nil, err
		}
		var otherwise Expr
		if p.skipName("else") {
			if otherwise, err = p.expression(); err != nil {
				return nil, err
			}
		}
		value = &Cond{pos, test, value, otherwise}
	}
	return value, nil
}

// operand reads the operands of one level of precedence.
type operand func() (Expr, error)

// leftToRight reads operands with left-associative operators in between. Join returns an expression for an operator and its
// operands, or nil if the token is not an operator of this level.
func (p *parser) leftToRight(operand operand, join func(t *token, left, right Expr) Expr) (Expr, error) {
	left, err := operand()
	if err != nil {
		return nil, err
	}
	for {
		t := p.current()
		if join(t, nil, nil) == nil {
			return left, nil
		}
		p.take()
		right, err := operand()
		if err != nil {
			return nil, err
		}
		left = join(t, left, right)
	}
}

func (p *parser) or() (Expr, error) {
	return p.leftToRight(p.and, func(t *token, left, right Expr) Expr {
		if !t.is("or") {
			return nil
		}
		return &Logic{t.Pos, false, left, right}
	})
}

func (p *parser) and() (Expr, error) {
	return p.leftToRight(p.not, func(t *token, left, right Expr) Expr {
		if !t.is("and") {
			return nil
		}
		return &Logic{t.Pos, true, left, right}
	})
}

func (p *parser) not() (Expr, error) {
	if !p.current().is("not") {
		return p.compare()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	pos := p.take().Pos
	operand, err := p.not()
	return &Not{pos, operand}, err
}

var comparisons = map[kind]py.CompareOp{
	"==": py.OpEq, "!=": py.OpNe, "<": py.OpLt, "<=": py.OpLe, ">": py.OpGt, ">=": py.OpGe,
}

func (p *parser) compare() (Expr, error) {
	first, err := p.sum()
	if err != nil {
		return nil, err
	}
	chain := &Compare{Pos: p.current().Pos, First: first}
	for {
		op, ok := p.comparison()
		if !ok {
			break
		}
		operand, err := p.sum()
		if err != nil {
			return nil, err
		}
		chain.Ops = append(chain.Ops, op)
		chain.Rest = append(chain.Rest, operand)
	}
	if len(chain.Ops) == 0 {
		return first, nil
	}
	return chain, nil
}

// comparison reads a comparison operator, if there is one.
func (p *parser) comparison() (CompareOp, bool) {
	t := p.current()
	if op, ok := comparisons[t.kind]; ok {
		p.take()
		return CompareOp{Op: op}, true
	}
	if p.skipName("in") {
		return CompareOp{In: true}, true
	}
	if t.is("not") && p.look().is("in") {
		p.next += 2
		return CompareOp{NotIn: true}, true
	}
	return CompareOp{}, false
}

// arithmetic returns the join of one level of binary operators.
func arithmetic(ops map[kind]py.BinaryOp) func(t *token, left, right Expr) Expr {
	return func(t *token, left, right Expr) Expr {
		op, ok := ops[t.kind]
		if !ok {
			return nil
		}
		return &Binary{t.Pos, op, left, right}
	}
}

var (
	sums     = arithmetic(map[kind]py.BinaryOp{"+": py.OpAdd, "-": py.OpSub})
	products = arithmetic(map[kind]py.BinaryOp{"*": py.OpMul, "/": py.OpDiv, "//": py.OpFloorDiv, "%": py.OpMod})
	powers   = arithmetic(map[kind]py.BinaryOp{"**": py.OpPow})
)

func (p *parser) sum() (Expr, error)     { return p.leftToRight(p.concat, sums) }
func (p *parser) product() (Expr, error) { return p.leftToRight(p.power, products) }
func (p *parser) power() (Expr, error)   { return p.leftToRight(p.filtered, powers) }

// concat reads a ~ b ~ c, which has a higher precedence than + in Jinja.
func (p *parser) concat() (Expr, error) {
	first, err := p.product()
	if err != nil || p.current().kind != "~" {
		return first, err
	}
	joined := &Concat{p.current().Pos, []Expr{first}}
	for p.skip("~") {
		part, err := p.product()
		if err != nil {
			return nil, err
		}
		joined.Parts = append(joined.Parts, part)
	}
	return joined, nil
}

// filtered reads an operand with the filters, tests and calls after it.
func (p *parser) filtered() (Expr, error) {
	value, err := p.unary()
	for err == nil {
		switch t := p.current(); {
		case t.kind == "|":
			value, err = p.filters(value)
		case t.is("is"):
			value, err = p.test(value)
		case t.kind == "(":
			value, err = p.call(value)
		default:
			return value, nil
		}
	}
	return nil, err
}

// unary reads an operand with its sign and its postfixes; the postfixes apply to the result of the sign, as in Jinja.
func (p *parser) unary() (Expr, error) {
	t := p.current()
	var value Expr
	var err error
	if t.kind == "-" || t.kind == "+" {
		if err = p.enter(); err != nil {
			return nil, err
		}
		defer p.leave()
		p.take()
		var operand Expr
		operand, err = p.unary()
		value = &Unary{t.Pos, t.kind == "-", operand}
	} else {
		value, err = p.primary()
	}
	if err != nil {
		return nil, err
	}
	return p.postfix(value)
}

func (p *parser) postfix(value Expr) (Expr, error) {
	var err error
	for err == nil {
		switch p.current().kind {
		case ".":
			value, err = p.attribute(value)
		case "[":
			value, err = p.subscript(value)
		case "(":
			value, err = p.call(value)
		default:
			return value, nil
		}
	}
	return nil, err
}

func (p *parser) attribute(object Expr) (Expr, error) {
	pos := p.take().Pos
	switch t := p.take(); t.kind {
	case kindName:
		return &Attribute{pos, object, t.text}, nil
	case kindInteger:
		return &Item{pos, object, &Const{t.Pos, t.value}}, nil
	default:
		return nil, errorAt(t.Pos, "expected a name or number after '.', got '%s'", t.describe())
	}
}

func (p *parser) subscript(object Expr) (Expr, error) {
	pos := p.take().Pos
	var keys []Expr
	for p.current().kind != "]" {
		if len(keys) > 0 {
			if _, err := p.expect(","); err != nil {
				return nil, err
			}
		}
		key, err := p.subscribed()
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	p.take()
	if len(keys) == 1 {
		return &Item{pos, object, keys[0]}, nil
	}
	return &Item{pos, object, &Tuple{pos, keys}}, nil
}

// subscribed reads one key: an expression or a slice.
func (p *parser) subscribed() (Expr, error) {
	slice := &Slice{Pos: p.current().Pos}
	if p.current().kind != ":" {
		start, err := p.expression()
		if err != nil || p.current().kind != ":" {
			return start, err
		}
		slice.Start = start
	}
	for _, part := range []*Expr{&slice.Stop, &slice.Step} {
		if !p.skip(":") {
			break
		}
		switch p.current().kind {
		case ":", "]", ",":
			continue
		default:
		}
		var err error
		if *part, err = p.expression(); err != nil {
			return nil, err
		}
	}
	return slice, nil
}
