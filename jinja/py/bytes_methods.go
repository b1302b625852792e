package py

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// bytesMethods has the methods of bytes. Most are methods of str, applied to a text that represents the bytes.
var bytesMethods = func() map[string]method {
	methods := map[string]method{
		"decode":    {params: codecParams, run: bytesDecode},
		"fromhex":   {params: []Param{required("string")}, run: bytesFromHex},
		"hex":       {params: []Param{byName("sep", absent{}), byName("bytes_per_sep", Int{small: 1})}, run: bytesHex},
		"isascii":   {run: bytesIsASCII},
		"maketrans": {params: []Param{required("from"), required("to")}, run: bytesMakeTrans},
		"translate": {params: []Param{required("table"), byName("delete", Bytes(""))}, run: bytesTranslate},
	}
	for _, name := range []string{
		"capitalize", "center", "count", "endswith", "expandtabs", "find", "index", "isalnum", "isalpha",
		"isdigit", "islower", "isspace", "istitle", "isupper", "join", "ljust", "lower", "lstrip", "partition",
		"removeprefix", "removesuffix", "replace", "rfind", "rindex", "rjust", "rpartition", "rsplit", "rstrip", "split",
		"splitlines", "startswith", "strip", "swapcase", "title", "upper", "zfill",
	} {
		m := bytesMethod{of: strMethods[name], special: separators}
		switch name {
		case "count", "find", "index", "rfind", "rindex":
			m.takesByte = true
		case "splitlines":
			m.special += "\v\f"
		}
		methods[name] = m.method()
	}
	return methods
}()

// privateUse is the first of the code points for bytes that have a meaning as text, but not as bytes.
const privateUse = 0xf700

// separators has the control characters that are white space only in text. Bytes above ASCII are treated like them.
const separators = "\x1c\x1d\x1e\x1f"

func toText(data, special string) string {
	if isASCII(data) && !strings.ContainsAny(data, special) {
		return data
	}
	var text strings.Builder
	for i := range len(data) {
		if data[i] >= utf8.RuneSelf || strings.IndexByte(special, data[i]) >= 0 {
			text.WriteRune(privateUse + rune(data[i]))
		} else {
			text.WriteByte(data[i])
		}
	}
	return text.String()
}

func fromText(text string) Bytes {
	if isASCII(text) {
		return Bytes(text)
	}
	var data strings.Builder
	for _, r := range text {
		data.WriteByte(byte(r))
	}
	return Bytes(data.String())
}

// bytesMethod returns a method of str for bytes.
type bytesMethod struct {
	of      method
	special string
	// takesByte says that the argument may be the number of a byte.
	takesByte bool
}

func (m bytesMethod) method() method {
	params := slices.Clone(m.of.params)
	for i, param := range params {
		if fill, ok := param.Default.(Str); ok {
			params[i].Default = Bytes(fill)
		}
	}
	return method{params: params, run: m.run}
}

func (m bytesMethod) run(b *Budget, self Value, args []Value) (Value, error) {
	data, _ := self.(Bytes)
	text, err := m.text(b, data)
	if err != nil {
		return nil, err
	}
	texts := make([]Value, len(args))
	for i, arg := range args {
		if texts[i], err = m.argument(b, arg, m.of.params[i].Name); err != nil {
			return nil, err
		}
	}
	result, err := m.of.run(b, text, texts)
	if err != nil {
		return nil, err
	}
	return bytesResult(result), nil
}

// text returns the text that represents data.
func (m bytesMethod) text(b *Budget, data Bytes) (Value, error) {
	if err := b.Alloc(len(data) * utf8.UTFMax); err != nil {
		return nil, err
	}
	return Str(toText(string(data), m.special)), nil
}

// argument returns an argument of a method of bytes as one of the method of str.
func (m bytesMethod) argument(b *Budget, v Value, param string) (Value, error) {
	switch {
	case param == "iterable":
		return m.joined(b, v)
	case m.takesByte && param == "sub":
		return m.byteOrBytes(b, v)
	}
	switch v := v.(type) {
	case Str, Markup:
		return nil, typeError("a bytes-like object is required, not '%s'", v.TypeName())
	case Bytes:
		return m.text(b, v)
	case *Tuple:
		return m.affixes(b, v)
	default:
		return v, nil
	}
}

// affixes has several prefixes or suffixes; one that is not bytes is an error only if none before it matches.
func (m bytesMethod) affixes(b *Budget, v *Tuple) (Value, error) {
	texts := make([]Value, len(v.Items))
	for i, item := range v.Items {
		texts[i] = None{}
		if data, ok := item.(Bytes); ok {
			text, err := m.text(b, data)
			if err != nil {
				return nil, err
			}
			texts[i] = text
		}
	}
	return &Tuple{Items: texts}, nil
}

// byteOrBytes is what bytes can be searched for: bytes, or the number of a byte.
func (m bytesMethod) byteOrBytes(b *Budget, v Value) (Value, error) {
	data, ok := v.(Bytes)
	if !ok {
		n, err := Index(v)
		if err != nil {
			return nil, typeError("argument should be integer or bytes-like object, not '%s'", v.TypeName())
		}
		code, ok := n.Int64()
		if !ok || code < 0 || code > math.MaxUint8 {
			return nil, valueError("byte must be in range(0, 256)")
		}
		data = Bytes([]byte{byte(code)})
	}
	return m.text(b, data)
}

func (m bytesMethod) joined(b *Budget, v Value) (Value, error) {
	items, err := Collect(b, v)
	if err != nil {
		return nil, err
	}
	texts := make([]Value, len(items))
	for i, item := range items {
		data, ok := item.(Bytes)
		if !ok {
			return nil, typeError("expected a bytes-like object, %s found", item.TypeName())
		}
		if texts[i], err = m.text(b, data); err != nil {
			return nil, err
		}
	}
	return &Tuple{Items: texts}, nil
}

func bytesResult(v Value) Value {
	switch v := v.(type) {
	case Str:
		return fromText(string(v))
	case *List:
		for i, item := range v.Items {
			v.Items[i] = bytesResult(item)
		}
	case *Tuple:
		for i, item := range v.Items {
			v.Items[i] = bytesResult(item)
		}
	}
	return v
}

func bytesIsASCII(_ *Budget, self Value, _ []Value) (Value, error) {
	data, _ := self.(Bytes)
	return Bool(isASCII(string(data))), nil
}
