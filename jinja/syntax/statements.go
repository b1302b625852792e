package syntax

import (
	"strings"

	"github.com/albertofaria/pav/jinja/py"
)

func (p *parser) forLoop() (Stmt, error) {
	loop := &For{Pos: p.take().Pos}
	var err error
	if loop.Target, err = p.target(Store); err != nil {
		return nil, err
	}
	if err = p.expectName("in"); err != nil {
		return nil, err
	}
	if loop.Iter, err = p.tuple(p.or, false); err != nil {
		return nil, err
	}
	if p.skipName("if") {
		if loop.Test, err = p.expression(); err != nil {
			return nil, err
		}
	}
	loop.Recursive = p.skipName("recursive")
	if loop.Body, err = p.body("endfor", "else"); err != nil {
		return nil, err
	}
	if p.take().text == "else" {
		loop.Else, err = p.bodyUntil("endfor")
	}
	return loop, err
}

func (p *parser) ifElse() (Stmt, error) {
	statement := &If{Pos: p.take().Pos}
	for {
		test, err := p.tuple(p.or, false)
		if err != nil {
			return nil, err
		}
		body, err := p.body("elif", "else", "endif")
		if err != nil {
			return nil, err
		}
		statement.Branches = append(statement.Branches, Branch{test, body})
		switch p.take().text {
		case "elif":
			continue
		case "else":
			if p.current().is("if") {
				return nil, errorAt(p.current().Pos, "expected '%%}', got 'if'; another test begins with 'elif'")
			}
			statement.Else, err = p.bodyUntil("endif")
		}
		return statement, err
	}
}

func (p *parser) set() (Stmt, error) {
	pos := p.take().Pos
	target, err := p.setTarget()
	if err != nil {
		return nil, err
	}
	if p.skip("=") {
		value, err := p.tuple(p.expression, false)
		return &Assign{pos, target, value}, err
	}
	var filter Expr
	if p.current().kind == "|" {
		if filter, err = p.filters(nil); err != nil {
			return nil, err
		}
	}
	body, err := p.bodyUntil("endset")
	return &AssignBlock{pos, target, filter, body}, err
}

func (p *parser) setTarget() (Expr, error) {
	if p.look().kind != "." {
		return p.target(Store)
	}
	name, err := p.expect(kindName)
	if err != nil {
		return nil, err
	}
	p.take()
	attribute, err := p.expect(kindName)
	return &NamespaceRef{name.Pos, name.text, attribute.text}, err
}

func (p *parser) with() (Stmt, error) {
	statement := &With{Pos: p.take().Pos}
	for p.current().kind != kindBlockEnd {
		if len(statement.Targets) > 0 {
			if _, err := p.expect(","); err != nil {
				return nil, err
			}
		}
		target, err := p.target(Param)
		if err != nil {
			return nil, err
		}
		if _, err = p.expect("="); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		statement.Targets = append(statement.Targets, target)
		statement.Values = append(statement.Values, value)
	}
	var err error
	statement.Body, err = p.bodyUntil("endwith")
	return statement, err
}

func (p *parser) macro() (Stmt, error) {
	statement := &Macro{Pos: p.take().Pos}
	name, err := p.targetName()
	if err != nil {
		return nil, err
	}
	statement.Name = name.Name
	if statement.Signature, err = p.signature(); err != nil {
		return nil, err
	}
	statement.Body, err = p.bodyUntil("endmacro")
	return statement, err
}

func (p *parser) signature() (Signature, error) {
	var s Signature
	if _, err := p.expect("("); err != nil {
		return s, err
	}
	for p.current().kind != ")" {
		if len(s.Params) > 0 {
			if _, err := p.expect(","); err != nil {
				return s, err
			}
		}
		name, err := p.targetName()
		if err != nil {
			return s, err
		}
		name.Use = Param
		if p.skip("=") {
			value, err := p.expression()
			if err != nil {
				return s, err
			}
			s.Defaults = append(s.Defaults, value)
		} else if len(s.Defaults) > 0 {
			return s, errorAt(name.Pos, "a parameter without a default follows one with a default")
		}
		s.Params = append(s.Params, name)
	}
	p.take()
	return s, nil
}

func (p *parser) callBlock() (Stmt, error) {
	statement := &CallBlock{Pos: p.take().Pos}
	var err error
	if p.current().kind == "(" {
		if statement.Signature, err = p.signature(); err != nil {
			return nil, err
		}
	}
	value, err := p.expression()
	if err != nil {
		return nil, err
	}
	call, ok := value.(*Call)
	if !ok {
		return nil, errorAt(value.Position(), "expected a call, as in {%% call macro() %%}")
	}
	statement.Call = call
	statement.Body, err = p.bodyUntil("endcall")
	return statement, err
}

func (p *parser) filterBlock() (Stmt, error) {
	statement := &FilterBlock{Pos: p.take().Pos}
	first, err := p.filter(nil)
	if err != nil {
		return nil, err
	}
	if statement.Filter, err = p.filters(first); err != nil {
		return nil, err
	}
	statement.Body, err = p.bodyUntil("endfilter")
	return statement, err
}

func (p *parser) autoescape() (Stmt, error) {
	statement := &Autoescape{Pos: p.take().Pos}
	var err error
	if statement.Value, err = p.expression(); err != nil {
		return nil, err
	}
	statement.Body, err = p.bodyUntil("endautoescape")
	return statement, err
}

func (p *parser) block() (Stmt, error) {
	statement := &Block{Pos: p.take().Pos}
	p.blocks = append(p.blocks, statement)
	name, err := p.expect(kindName)
	if err != nil {
		return nil, err
	}
	statement.Name = name.text
	statement.Scoped = p.skipName("scoped")
	statement.Required = p.skipName("required")
	if p.current().kind == "-" {
		return nil, errorAt(p.current().Pos, "the name of a block may not contain '-'; use '_'")
	}
	if statement.Body, err = p.bodyUntil("endblock"); err != nil {
		return nil, err
	}
	if statement.Required && !onlySpace(statement.Body) {
		return nil, errorAt(statement.Pos, "a required block may contain only comments and whitespace")
	}
	p.skipName(statement.Name)
	return statement, nil
}

func onlySpace(body []Stmt) bool {
	for _, statement := range body {
		output, ok := statement.(*Output)
		if !ok {
			return false
		}
		for _, item := range output.Items {
			if data, ok := item.(*Data); !ok || strings.TrimFunc(data.Text, py.IsSpaceRune) != "" {
				return false
			}
		}
	}
	return true
}

func (p *parser) print() (Stmt, error) {
	statement := &Output{Pos: p.take().Pos}
	for p.current().kind != kindBlockEnd {
		if len(statement.Items) > 0 {
			if _, err := p.expect(","); err != nil {
				return nil, err
			}
		}
		item, err := p.expression()
		if err != nil {
			return nil, err
		}
		statement.Items = append(statement.Items, item)
	}
	return statement, nil
}

func (p *parser) extends() (Stmt, error) {
	tag := p.take()
	template, err := p.expression()
	return &Other{Pos: tag.Pos, Tag: tag.text, Template: template}, err
}

func (p *parser) include() (Stmt, error) {
	tag := p.take()
	template, err := p.expression()
	if err != nil {
		return nil, err
	}
	statement := &Other{Pos: tag.Pos, Tag: tag.text, Template: template}
	if p.current().is("ignore") && p.look().is("missing") {
		p.next += 2
		statement.IgnoreMissing = true
	}
	p.importContext()
	return statement, nil
}

// importContext reads "with context" or "without context", and reports whether there was one.
func (p *parser) importContext() bool {
	if (p.current().is("with") || p.current().is("without")) && p.look().is("context") {
		p.next += 2
		return true
	}
	return false
}

func (p *parser) importAs() (Stmt, error) {
	tag := p.take()
	template, err := p.expression()
	if err != nil {
		return nil, err
	}
	if err = p.expectName("as"); err != nil {
		return nil, err
	}
	name, err := p.targetName()
	if err != nil {
		return nil, err
	}
	p.importContext()
	return &Other{Pos: tag.Pos, Tag: tag.text, Template: template, Binds: []string{name.Name}}, nil
}

func (p *parser) fromImport() (Stmt, error) {
	tag := p.take()
	template, err := p.expression()
	if err != nil {
		return nil, err
	}
	if err = p.expectName("import"); err != nil {
		return nil, err
	}
	statement := &Other{Pos: tag.Pos, Tag: tag.text, Template: template}
	for {
		if len(statement.Binds) > 0 {
			if _, err = p.expect(","); err != nil {
				return nil, err
			}
		}
		if p.importContext() {
			return statement, nil
		}
		name, err := p.imported()
		if err != nil {
			return nil, err
		}
		statement.Binds = append(statement.Binds, name.Name)
		if p.importContext() || p.current().kind != "," {
			return statement, nil
		}
	}
}

// imported reads one name, or name as other, and returns the name to which it is bound.
func (p *parser) imported() (*Name, error) {
	name, err := p.targetName()
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(name.Name, "_") {
		return nil, errorAt(name.Pos, "names with a leading underscore cannot be imported")
	}
	if !p.skipName("as") {
		return name, nil
	}
	return p.targetName()
}

// target reads the target of an assignment: a name, or a tuple of names.
func (p *parser) target(use Use) (Expr, error) {
	target, err := p.tuple(p.primary, false)
	if err != nil {
		return nil, err
	}
	return target, assign(target, use)
}

func (p *parser) targetName() (*Name, error) {
	t, err := p.expect(kindName)
	if err != nil {
		return nil, err
	}
	if _, ok := constants[t.text]; ok {
		return nil, errorAt(t.Pos, "cannot assign to '%s'", t.text)
	}
	return &Name{t.Pos, t.text, Store}, nil
}

// assign marks the names of target as assigned to.
func assign(target Expr, use Use) error {
	switch t := target.(type) {
	case *Name:
		t.Use = use
		return nil
	case *Tuple:
		for _, item := range t.Items {
			if err := assign(item, use); err != nil {
				return err
			}
		}
		return nil
	}
	return errorAt(target.Position(), "cannot assign to this expression; expected a name")
}
