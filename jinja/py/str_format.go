package py

import (
	"strconv"
	"strings"
)

// isStrFormat reports whether name is one of the two methods of str that look at attributes.
func isStrFormat(v Value, name string) bool {
	_, isText := TextOf(v)
	return isText && (name == "format" || name == "format_map")
}

// strFormatMethod returns format or format_map of the text v, which obey the sandbox.
func strFormatMethod(v Value, name string) *Func {
	fn := func(b *Budget, args Args) (Value, error) { return StrFormat(b, v, args) }
	if name == "format_map" {
		fn = func(b *Budget, args Args) (Value, error) { return strFormatMap(b, v, args) }
	}
	return &Func{Name: name, Type: "function", Fn: fn}
}

// StrFormat returns format.format(*args, **kwargs) with the rules of the sandbox: fields look up attributes and items as
// templates do. A Markup escapes its arguments.
func StrFormat(b *Budget, format Value, args Args) (Value, error) {
	named := make(map[string]Value, len(args.Named))
	for _, arg := range args.Named {
		named[arg.Name] = arg.Value
	}
	return formatFields(b, format, args.Pos, func(_ *Budget, name string) (Value, error) {
		if v, ok := named[name]; ok {
			return v, nil
		}
		return nil, exception("KeyError", "there is no argument of this name")
	})
}

func strFormatMap(b *Budget, format Value, args Args) (Value, error) {
	if len(args.Named) > 0 {
		return nil, typeError("format_map() takes no keyword arguments")
	}
	if len(args.Pos) != 1 {
		return nil, typeError("format_map() takes exactly one argument (%d given)", len(args.Pos))
	}
	named := func(b *Budget, name string) (Value, error) { return Item(b, args.Pos[0], Str(name)) }
	return formatFields(b, format, nil, named)
}

func formatFields(
	b *Budget, format Value, items []Value, named func(b *Budget, name string) (Value, error),
) (Value, error) {
	text, ok := TextOf(format)
	if !ok {
		return nil, typeError("format() needs a str, not '%s'", format.TypeName())
	}
	_, markup := format.(Markup)
	f := &fieldFormatter{b: b, items: items, named: named, markup: markup}
	result, err := f.format(text, fieldNesting)
	if err != nil {
		return nil, err
	}
	if markup {
		return Markup(result), nil
	}
	return Str(result), nil
}

// fieldNesting is how deep fields may be in the format specifications of others.
const fieldNesting = 2

// fieldFormatter is the state of formatting a text by str.format.
type fieldFormatter struct {
	b      *Budget
	items  []Value
	named  func(b *Budget, name string) (Value, error)
	markup bool
	// counted is how many fields had no number, and got one by counting; numbered says that fields had numbers. A text
	// cannot have both.
	counted  int
	numbered bool
}

// format formats text, whose fields may nest to a depth.
func (f *fieldFormatter) format(text string, nesting int) (string, error) {
	if nesting < 0 {
		return "", valueError("Max string recursion exceeded")
	}
	var result strings.Builder
	for text != "" {
		part, rest, err := nextField(text)
		if err != nil {
			return "", err
		}
		text = rest
		value := ""
		if part.isField {
			if value, err = f.field(part, nesting); err != nil {
				return "", err
			}
		}
		if err := f.b.Append(result.Len(), len(part.literal)+len(value)); err != nil {
			return "", err
		}
		result.WriteString(part.literal)
		result.WriteString(value)
	}
	return result.String(), nil
}

// field returns the text of one replacement field.
func (f *fieldFormatter) field(part formatField, nesting int) (string, error) {
	name, err := f.numberedName(part.name)
	if err != nil {
		return "", err
	}
	v, err := f.lookUp(name)
	if err != nil {
		return "", err
	}
	if v, err = f.convert(v, part.conversion); err != nil {
		return "", err
	}
	spec, err := f.format(part.spec, nesting-1)
	if err != nil {
		return "", err
	}
	if f.markup {
		return f.formatMarkup(v, spec)
	}
	return Format(f.b, v, spec)
}

// numberedName returns name or, if it is empty, the next number.
func (f *fieldFormatter) numberedName(name string) (string, error) {
	switch {
	case name == "" && f.numbered:
		return "", valueError("cannot switch from manual field specification to automatic field numbering")
	case name == "":
		f.counted++
		return strconv.Itoa(f.counted - 1), nil
	case all(name, isDigit) && f.counted > 0:
		return "", valueError("cannot switch from manual field specification to automatic field numbering")
	case all(name, isDigit):
		f.numbered = true
	}
	return name, nil
}

func (f *fieldFormatter) convert(v Value, conversion rune) (Value, error) {
	var text string
	var err error
	switch conversion {
	case noConversion:
		return v, nil
	case 's':
		text, err = ToStr(f.b, v)
	case 'r':
		text, err = Repr(f.b, v)
	case 'a':
		if text, err = Repr(f.b, v); err == nil {
			text, err = toASCII(f.b, text)
		}
	default:
		return nil, valueError("Unknown conversion specifier")
	}
	return Str(text), err
}

// formatMarkup formats as the formatter of markupsafe does: HTML accepts no specification.
func (f *fieldFormatter) formatMarkup(v Value, spec string) (string, error) {
	html, ok, err := htmlOf(f.b, v)
	if err != nil {
		return "", err
	}
	if ok && spec != "" {
		return "", valueError("Unsupported format specification for Markup.")
	}
	if ok {
		return string(html), nil
	}
	text, err := Format(f.b, v, spec)
	if err != nil {
		return "", err
	}
	html, err = Escape(f.b, Str(text))
	return string(html), err
}

// lookUp finds the value that the name of a field means: an argument, or attributes and items of one.
func (f *fieldFormatter) lookUp(name string) (Value, error) {
	path := fieldPath{rest: name}
	v, err := f.argument(path.first())
	for err == nil {
		var step pathStep
		var more bool
		if step, more, err = path.next(); err != nil || !more {
			break
		}
		switch number, isNumber, bad := fieldNumber(step.name); {
		case step.isAttribute:
			v, err = SandboxAttr(f.b, v, step.name)
		case bad != nil:
			err = bad
		case isNumber:
			v, err = SandboxItem(f.b, v, Int{small: int64(number)})
		default:
			v, err = SandboxItem(f.b, v, Str(step.name))
		}
	}
	return v, err
}

func (f *fieldFormatter) argument(name string) (Value, error) {
	number, isNumber, err := fieldNumber(name)
	switch {
	case err != nil:
		return nil, err
	case !isNumber:
		return f.named(f.b, name)
	case number >= len(f.items):
		return nil, exception("IndexError", "Replacement index %d out of range for positional args tuple", number)
	default:
		return f.items[number], nil
	}
}
