package py

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ToStr returns str(v). That of an undefined value is empty.
func ToStr(b *Budget, v Value) (string, error) {
	if text, ok := TextOf(v); ok {
		return text, nil
	}
	if _, ok := v.(*Undefined); ok {
		return "", nil
	}
	return Repr(b, v)
}

// Repr returns repr(v).
func Repr(b *Budget, v Value) (string, error) {
	w := &reprWriter{budget: b}
	if err := w.value(v); err != nil {
		return "", err
	}
	return w.text.String(), nil
}

// reprWriter collects the text of nested values.
type reprWriter struct {
	budget *Budget
	text   strings.Builder
	// open has the containers that are being written: inside themselves, they are shown as an ellipsis.
	open []Value
}

func (w *reprWriter) write(text string) error {
	if err := w.budget.Append(w.text.Len(), len(text)); err != nil {
		return err
	}
	w.text.WriteString(text)
	return nil
}

func (w *reprWriter) value(v Value) error {
	if text, ok := simpleRepr(v); ok {
		return w.write(text)
	}
	switch v := v.(type) {
	case Str:
		return w.quoted(string(v))
	case Markup:
		return w.enclosed("Markup(", ")", func() error { return w.quoted(string(v)) })
	case Bytes:
		return w.write(bytesRepr(string(v)))
	case Int:
		return w.integer(v)
	case *List:
		return w.container(v, "[", "]", func() error { return w.items(len(v.Items), func(i int) Value { return v.Items[i] }) })
	case *Tuple:
		return w.container(v, "(", ")", func() error { return w.tuple(v) })
	case *Dict:
		return w.container(v, "{", "}", func() error { return w.dict(v) })
	case *DictView:
		return w.container(v, v.Kind+"([", "])", func() error { return w.items(v.Dict.Len(), v.at) })
	case Representable:
		return w.object(v)
	}
	text, err := objectRepr(v)
	if err != nil {
		return err
	}
	return w.write(text)
}

func (w *reprWriter) object(v Representable) error {
	if err := w.budget.Enter(); err != nil {
		return err
	}
	defer w.budget.Leave()
	text, err := v.Repr(w.budget)
	if err != nil {
		return err
	}
	return w.write(text)
}

// simpleRepr returns the text of a value without parts.
func simpleRepr(v Value) (string, bool) {
	switch v := v.(type) {
	case None:
		return "None", true
	case Bool:
		if v {
			return "True", true
		}
		return "False", true
	case Float:
		return FloatText(float64(v)), true
	case *Undefined:
		return "Undefined", true
	case *Range:
		if v.Step == 1 {
			return fmt.Sprintf("range(%d, %d)", v.Start, v.Stop), true
		}
		return fmt.Sprintf("range(%d, %d, %d)", v.Start, v.Stop, v.Step), true
	}
	return "", false
}

// objectRepr returns the text of objects without a text of their own. In Python it usually contains their address, which is
// another one each time. Nobody wants that in a text, so it is an error.
func objectRepr(v Value) (string, error) {
	f, ok := v.(*Func)
	switch {
	case ok && f.Type == "type":
		return "<class '" + f.Name + "'>", nil
	case ok && f.Type == "GenericAlias":
		return f.Name, nil
	}
	return "", typeError("an object of type '%s' has no text", v.TypeName())
}

func (w *reprWriter) integer(i Int) error {
	if n, ok := i.Int64(); ok {
		return w.write(strconv.FormatInt(n, 10))
	}
	const bitsPerDigit = 4 // a little less, in fact
	if i.bits() > maxDigits*bitsPerDigit {
		return tooManyDigits()
	}
	text := i.large.String()
	if len(strings.TrimPrefix(text, "-")) > maxDigits {
		return tooManyDigits()
	}
	return w.write(text)
}

func tooManyDigits() error {
	return valueError("exceeds the limit (%d digits) for integer string conversion", maxDigits)
}

func (w *reprWriter) enclosed(open, closing string, inside func() error) error {
	if err := w.write(open); err != nil {
		return err
	}
	if err := inside(); err != nil {
		return err
	}
	return w.write(closing)
}

// container writes a value that contains others.
func (w *reprWriter) container(v Value, open, closing string, inside func() error) error {
	if slices.Contains(w.open, v) {
		return w.write(open + "..." + closing)
	}
	if err := w.budget.Enter(); err != nil {
		return err
	}
	defer w.budget.Leave()
	w.open = append(w.open, v)
	defer func() { w.open = w.open[:len(w.open)-1] }()
	return w.enclosed(open, closing, inside)
}

func (w *reprWriter) items(n int, at func(i int) Value) error {
	for i := range n {
		if i > 0 {
			if err := w.write(", "); err != nil {
				return err
			}
		}
		if err := w.value(at(i)); err != nil {
			return err
		}
	}
	return nil
}

func (w *reprWriter) tuple(t *Tuple) error {
	if err := w.items(len(t.Items), func(i int) Value { return t.Items[i] }); err != nil {
		return err
	}
	if len(t.Items) == 1 {
		return w.write(",")
	}
	return nil
}

func (w *reprWriter) dict(d *Dict) error {
	for i := range d.Len() {
		key, value := d.Entry(i)
		if i > 0 {
			if err := w.write(", "); err != nil {
				return err
			}
		}
		if err := w.value(key); err != nil {
			return err
		}
		if err := w.write(": "); err != nil {
			return err
		}
		if err := w.value(value); err != nil {
			return err
		}
	}
	return nil
}

func (w *reprWriter) quoted(text string) error {
	if err := w.budget.Text(len(text)); err != nil {
		return err
	}
	return w.write(textRepr(text))
}

// reprEscapes has the characters with special escapes in repr.
var reprEscapes = map[rune]string{'\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

// textRepr quotes text as Python does: with ', unless text contains ' and no ".
func textRepr(text string) string {
	if isPlain(text) {
		return "'" + text + "'"
	}
	quote := '\''
	if strings.Contains(text, "'") && !strings.Contains(text, `"`) {
		quote = '"'
	}
	var out strings.Builder
	out.WriteRune(quote)
	for _, r := range text {
		escaped, special := reprEscapes[r]
		switch {
		case special:
			out.WriteString(escaped)
		case r == quote:
			out.WriteString(`\` + string(r))
		case isPrintable(r):
			out.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&out, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			fmt.Fprintf(&out, `\U%08x`, r)
		}
	}
	out.WriteRune(quote)
	return out.String()
}

// isPlain reports whether no character of text has to be escaped.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '\\' || c == '\'' {
			return false
		}
	}
	return true
}

// bytesRepr quotes bytes: those that are not ASCII are written as their codes.
func bytesRepr(text string) string {
	quote := byte('\'')
	if strings.Contains(text, "'") && !strings.Contains(text, `"`) {
		quote = '"'
	}
	var out strings.Builder
	out.WriteString("b" + string(quote))
	for i := range len(text) {
		c := text[i]
		escaped, special := reprEscapes[rune(c)]
		switch {
		case special:
			out.WriteString(escaped)
		case c == quote:
			out.WriteString(`\` + string(c))
		case ' ' <= c && c <= '~':
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, `\x%02x`, c)
		}
	}
	out.WriteByte(quote)
	return out.String()
}
