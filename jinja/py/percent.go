package py

import (
	"math"
	"strings"
	"unicode/utf8"
)

// PercentFormat returns format % args. A Markup escapes its arguments.
func PercentFormat(b *Budget, format, args Value) (Value, error) {
	text, ok := TextOf(format)
	if !ok {
		return nil, typeError("unsupported operand type(s) for %%: '%s' and '%s'", format.TypeName(), args.TypeName())
	}
	_, markup := format.(Markup)
	p := &percentFormatter{b: b, rest: text, items: []Value{args}, markup: markup}
	if tuple, ok := args.(*Tuple); ok {
		p.items = tuple.Items
	} else if isMapping(args) {
		p.mapping = args
	}
	if err := p.run(); err != nil {
		return nil, err
	}
	if markup {
		return Markup(p.text.String()), nil
	}
	return Str(p.text.String()), nil
}

// isMapping reports whether v could be a mapping of names to arguments; for Python, every object with items is one.
func isMapping(v Value) bool {
	_, isText := TextOf(v)
	return !isText && isHidden(v, "__getitem__")
}

// percentFormatter is the state of formatting a text by %.
type percentFormatter struct {
	b    *Budget
	rest string
	text strings.Builder
	// items are the arguments; used is how many of them have been used.
	items []Value
	used  int
	// mapping has the arguments by name, if they are a mapping.
	mapping Value
	// markup says that arguments are wrapped as by markupsafe: they are escaped, and not numbers, but can be converted to
	// numbers.
	markup bool
}

// directive is %[(key)][flags][width][.precision][hlL]verb.
type directive struct {
	left, plus, blank, alternate, zero bool
	width, precision                   int // -1: none
	verb                               rune
}

func (p *percentFormatter) run() error {
	for {
		literal, rest, found := strings.Cut(p.rest, "%")
		if err := p.write(literal); err != nil {
			return err
		}
		p.rest = rest
		if !found {
			break
		}
		if p.take("%") {
			p.text.WriteByte('%')
			continue
		}
		d, err := p.directive()
		if err != nil {
			return err
		}
		if err := p.convert(d); err != nil {
			return err
		}
	}
	if p.used < len(p.items) && p.mapping == nil {
		return typeError("not all arguments converted during string formatting")
	}
	return nil
}

func (p *percentFormatter) write(text string) error {
	if err := p.b.Append(p.text.Len(), len(text)); err != nil {
		return err
	}
	p.text.WriteString(text)
	return nil
}

func (p *percentFormatter) take(prefix string) bool {
	rest, found := strings.CutPrefix(p.rest, prefix)
	p.rest = rest
	return found
}

// next takes the next argument.
func (p *percentFormatter) next() (Value, error) {
	if p.used >= len(p.items) {
		return nil, typeError("not enough arguments for format string")
	}
	p.used++
	return p.items[p.used-1], nil
}

func (p *percentFormatter) directive() (directive, error) {
	d := directive{width: -1, precision: -1}
	if p.take("(") {
		if err := p.lookUp(); err != nil {
			return d, err
		}
	}
	p.flags(&d)
	width, given, err := p.size(math.MaxInt, "width")
	if err != nil {
		return d, err
	}
	if given {
		d.left = d.left || width < 0
		// The smallest integer has no positive counterpart; no text is that long anyway.
		d.width = max(width, -width)
	}
	if p.take(".") {
		if d.precision, _, err = p.size(math.MaxInt32, "precision"); err != nil {
			return d, err
		}
		d.precision = max(d.precision, 0)
	}
	if p.rest != "" && strings.IndexByte("hlL", p.rest[0]) >= 0 {
		p.rest = p.rest[1:]
	}
	if p.rest == "" {
		return d, valueError("incomplete format")
	}
	verb, size := utf8.DecodeRuneInString(p.rest)
	d.verb, p.rest = verb, p.rest[size:]
	return d, nil
}

// lookUp selects the argument of the name in parentheses.
func (p *percentFormatter) lookUp() error {
	if p.mapping == nil {
		return typeError("format requires a mapping")
	}
	depth := 1
	end := strings.IndexFunc(p.rest, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth == 0
	})
	if end < 0 {
		return valueError("incomplete format key")
	}
	v, err := Item(p.b, p.mapping, Str(p.rest[:end]))
	if err != nil {
		return err
	}
	p.rest = p.rest[end+1:]
	p.items, p.used = []Value{v}, 0
	return nil
}

func (p *percentFormatter) flags(d *directive) {
	for p.rest != "" {
		switch p.rest[0] {
		case '-':
			d.left = true
		case '+':
			d.plus = true
		case ' ':
			d.blank = true
		case '#':
			d.alternate = true
		case '0':
			d.zero = true
		default:
			return
		}
		p.rest = p.rest[1:]
	}
}

// size reads a width or precision: a number, or * for an argument.
func (p *percentFormatter) size(largest int, what string) (n int, given bool, err error) {
	if p.take("*") {
		n, err = p.sizeArgument(largest)
		return n, true, err
	}
	for p.rest != "" && p.rest[0] >= '0' && p.rest[0] <= '9' {
		digit := int(p.rest[0] - '0')
		if n > (largest-digit)/10 {
			return 0, false, valueError("%s too big", what)
		}
		n, given = n*10+digit, true
		p.rest = p.rest[1:]
	}
	return n, given, nil
}

func (p *percentFormatter) sizeArgument(largest int) (int, error) {
	v, err := p.next()
	if err != nil {
		return 0, err
	}
	n, ok := asInt(v)
	if !ok || p.markup {
		return 0, typeError("* wants int")
	}
	small, ok := n.Int64()
	if !ok || small > int64(largest) || small < -int64(largest)-1 {
		return 0, exception("OverflowError", "Python int too large to convert to C")
	}
	return int(small), nil
}
