package syntax

import (
	"slices"
	"strings"
)

// Template is a whole template. Blocks has its blocks, at any depth.
type Template struct {
	Body   []Stmt
	Blocks []*Block
}

// maxNesting is how deep statements and expressions may nest. Jinja itself gives up at about eighty brackets.
const maxNesting = 200

// parser reads tokens by recursive descent; what it expects next is the method that it is in.
type parser struct {
	tokens []token
	next   int
	depth  int
	// open has the tags of the statements around the parser's position, and ends the tags that may end each of them.
	open []string
	ends [][]string
	// blocks has the blocks that have been read.
	blocks []*Block
}

// Parse returns the tree of source. An error is of type *Error.
func Parse(source string) (*Template, error) {
	tokens, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	body, err := p.statements(nil)
	if err != nil {
		return nil, err
	}
	return &Template{Body: body, Blocks: p.blocks}, nil
}

func (p *parser) current() *token { return &p.tokens[p.next] }

// look returns the token after the current one.
func (p *parser) look() *token {
	return &p.tokens[min(p.next+1, len(p.tokens)-1)]
}

// take returns the current token and moves to the next.
func (p *parser) take() *token {
	t := &p.tokens[p.next]
	if t.kind != kindEOF {
		p.next++
	}
	return t
}

// skip moves to the next token if the current one is of kind k, and reports whether it was.
func (p *parser) skip(k kind) bool {
	if p.current().kind != k {
		return false
	}
	p.next++
	return true
}

// skipName is skip for a keyword.
func (p *parser) skipName(name string) bool {
	if !p.current().is(name) {
		return false
	}
	p.next++
	return true
}

func (p *parser) expect(k kind) (*token, error) {
	t := p.current()
	if t.kind != k {
		return t, p.expected(string(k))
	}
	return p.take(), nil
}

func (p *parser) expectName(name string) error {
	if !p.skipName(name) {
		return p.expected(name)
	}
	return nil
}

// expected returns the error that something else is required at the current token.
func (p *parser) expected(what string) error {
	return errorAt(p.current().Pos, "expected '%s', got '%s'", what, p.current().describe())
}

// enter goes one level deeper; leave must follow.
func (p *parser) enter() error {
	if p.depth++; p.depth > maxNesting {
		return errorAt(p.current().Pos, "statements or brackets nest deeper than %d levels", maxNesting)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// statements reads until one of the tags ends, which remains the current token; or, if ends is nil, until the end of the
// source.
func (p *parser) statements(ends []string) ([]Stmt, error) {
	if ends != nil {
		p.ends = append(p.ends, ends)
		defer func() { p.ends = p.ends[:len(p.ends)-1] }()
	}
	var body []Stmt
	var output *Output
	show := func(item Expr) {
		if output == nil {
			output = &Output{Pos: item.Position()}
			body = append(body, output)
		}
		output.Items = append(output.Items, item)
	}
	for {
		switch t := p.take(); t.kind {
		case kindData:
			show(&Data{t.Pos, t.text})
		case kindVariableBegin:
			value, err := p.printed()
			if err != nil {
				return nil, err
			}
			show(value)
		case kindBlockBegin:
			output = nil
			if tag := p.current(); tag.kind == kindName && slices.Contains(ends, tag.text) {
				return body, nil
			}
			statement, err := p.statement()
			if err != nil {
				return nil, err
			}
			body = append(body, statement)
		default:
			if ends != nil {
				return nil, p.unclosed()
			}
			return body, nil
		}
	}
}

// printed reads the expression between {{ and }}.
func (p *parser) printed() (Expr, error) {
	value, err := p.tuple(p.expression, false)
	if err != nil {
		return nil, err
	}
	_, err = p.expect(kindVariableEnd)
	return value, err
}

// body reads the end of a tag and the statements until one of ends, which remains the current token.
func (p *parser) body(ends ...string) ([]Stmt, error) {
	p.skip(":")
	if _, err := p.expect(kindBlockEnd); err != nil {
		return nil, err
	}
	return p.statements(ends)
}

// bodyUntil is body with one possible end, which it also reads.
func (p *parser) bodyUntil(end string) ([]Stmt, error) {
	body, err := p.body(end)
	if err == nil {
		p.take()
	}
	return body, err
}

// statementParsers are the statements by their tag.
var statementParsers map[string]func(*parser) (Stmt, error)

// The table refers to parsers that refer to the table.
func init() {
	statementParsers = map[string]func(*parser) (Stmt, error){
		"for": (*parser).forLoop, "if": (*parser).ifElse, "set": (*parser).set, "with": (*parser).with,
		"macro": (*parser).macro, "call": (*parser).callBlock, "filter": (*parser).filterBlock,
		"block": (*parser).block, "autoescape": (*parser).autoescape, "print": (*parser).print,
		"include": (*parser).include, "import": (*parser).importAs, "from": (*parser).fromImport, "extends": (*parser).extends,
	}
}

// statement reads one statement with the end of its last tag.
func (p *parser) statement() (Stmt, error) {
	tag := p.current()
	if tag.kind != kindName {
		return nil, p.expected("name of a statement")
	}
	parse, ok := statementParsers[tag.text]
	if !ok {
		return nil, p.unknown(tag)
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	p.open = append(p.open, tag.text)
	defer func() { p.open = p.open[:len(p.open)-1] }()
	statement, err := parse(p)
	if err != nil {
		return nil, err
	}
	_, err = p.expect(kindBlockEnd)
	return statement, err
}

// unknown returns the error of a tag that does not exist, or is not allowed here.
func (p *parser) unknown(tag *token) error {
	message := "there is no statement '" + tag.text + "'"
	switch {
	case tag.text == "elseif" || tag.text == "elsif":
		message += ", but 'elif'"
	case strings.HasPrefix(tag.text, "end") && statementParsers[tag.text[len("end"):]] != nil:
		message = "'" + tag.text + "' closes nothing"
	}
	for _, ends := range p.ends {
		if slices.Contains(ends, tag.text) {
			message = "'" + tag.text + "' does not belong here"
		}
	}
	if len(p.ends) > 0 {
		return errorAt(tag.Pos, "%s; %s", message, p.waiting())
	}
	return errorAt(tag.Pos, "%s", message)
}

func (p *parser) unclosed() error {
	return errorAt(p.current().Pos, "unexpected end of template; %s", p.waiting())
}

// waiting returns the tags that would end the innermost open statement.
func (p *parser) waiting() string {
	return "expected '" + strings.Join(p.ends[len(p.ends)-1], "' or '") + "' for the open '" + p.open[len(p.open)-1] + "'"
}
