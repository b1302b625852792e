package py

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// partSize is how many bytes one more string in a list takes.
const partSize = 32

// parts collects the parts of a text.
type parts struct {
	b     *Budget
	items []Value
}

func (p *parts) add(s string) error {
	p.items = append(p.items, Str(s))
	return p.b.Alloc(partSize)
}

func strSplit(b *Budget, s string, args []Value) (Value, error) {
	limit, err := sizeArgument(args[1])
	if err != nil {
		return nil, err
	}
	found := &parts{b: b}
	if _, ok := args[0].(None); ok {
		err = found.splitSpace(s, limit)
	} else {
		err = found.split(s, args[0], limit)
	}
	return &List{Items: found.items}, err
}

func (p *parts) split(s string, by Value, limit int) error {
	sep, err := separatorOf(by)
	if err != nil {
		return err
	}
	for ; limit != 0; limit-- {
		before, after, found := strings.Cut(s, sep)
		if !found {
			break
		}
		if err := p.add(before); err != nil {
			return err
		}
		s = after
	}
	return p.add(s)
}

func (p *parts) splitSpace(s string, limit int) error {
	for ; limit != 0; limit-- {
		s = strings.TrimLeftFunc(s, isSpace)
		end := strings.IndexFunc(s, isSpace)
		if end < 0 {
			break
		}
		if err := p.add(s[:end]); err != nil {
			return err
		}
		s = s[end:]
	}
	if s = strings.TrimLeftFunc(s, isSpace); s == "" {
		return nil
	}
	return p.add(s)
}

func strRightSplit(b *Budget, s string, args []Value) (Value, error) {
	limit, err := sizeArgument(args[1])
	if err != nil {
		return nil, err
	}
	found := &parts{b: b}
	if _, ok := args[0].(None); ok {
		err = found.rightSplitSpace(s, limit)
	} else {
		err = found.rightSplit(s, args[0], limit)
	}
	slices.Reverse(found.items)
	return &List{Items: found.items}, err
}

func (p *parts) rightSplit(s string, by Value, limit int) error {
	sep, err := separatorOf(by)
	if err != nil {
		return err
	}
	for ; limit != 0; limit-- {
		i := strings.LastIndex(s, sep)
		if i < 0 {
			break
		}
		if err := p.add(s[i+len(sep):]); err != nil {
			return err
		}
		s = s[:i]
	}
	return p.add(s)
}

func (p *parts) rightSplitSpace(s string, limit int) error {
	for ; limit != 0; limit-- {
		s = strings.TrimRightFunc(s, isSpace)
		i := strings.LastIndexFunc(s, isSpace)
		if i < 0 {
			break
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		if err := p.add(s[i+size:]); err != nil {
			return err
		}
		s = s[:i]
	}
	if s = strings.TrimRightFunc(s, isSpace); s == "" {
		return nil
	}
	return p.add(s)
}

func separatorOf(v Value) (string, error) {
	sep, ok := TextOf(v)
	if !ok {
		return "", typeError("must be str or None, not %s", v.TypeName())
	}
	if sep == "" {
		return "", valueError("empty separator")
	}
	return sep, nil
}

func strSplitLines(b *Budget, s string, args []Value) (Value, error) {
	keep, err := flagArgument(args[0])
	if err != nil {
		return nil, err
	}
	found := &parts{b: b}
	for s != "" {
		end, next := lineEnd(s)
		line := s[:end]
		if keep {
			line = s[:next]
		}
		if err := found.add(line); err != nil {
			return nil, err
		}
		s = s[next:]
	}
	return &List{Items: found.items}, nil
}

// lineEnd returns where the first line of s ends without and with its line break.
func lineEnd(s string) (end, next int) {
	end = strings.IndexFunc(s, isLineBreak)
	if end < 0 {
		return len(s), len(s)
	}
	if strings.HasPrefix(s[end:], "\r\n") {
		return end, end + 2
	}
	_, size := utf8.DecodeRuneInString(s[end:])
	return end, end + size
}

// flagArgument returns an argument that is true or false, given as an integer.
func flagArgument(v Value) (bool, error) {
	n, err := cInt(v)
	return n != 0, err
}

func strStrip(left, right bool) strMethod {
	return func(b *Budget, s string, args []Value) (Value, error) {
		strip := isSpace
		if _, ok := args[0].(None); !ok {
			chars, ok := TextOf(args[0])
			if !ok {
				return nil, typeError("strip arg must be None or str")
			}
			if err := b.Alloc(len(chars) * itemSize); err != nil {
				return nil, err
			}
			strip = oneOf(chars)
		}
		if left {
			s = strings.TrimLeftFunc(s, strip)
		}
		if right {
			s = strings.TrimRightFunc(s, strip)
		}
		return Str(s), nil
	}
}

// oneOf returns a fast function that reports whether a code point is one of chars.
func oneOf(chars string) func(rune) bool {
	set := make(map[rune]bool, min(len(chars), 1024))
	for _, r := range chars {
		set[r] = true
	}
	return func(r rune) bool { return set[r] }
}

func strJoin(b *Budget, s string, args []Value) (Value, error) {
	items, err := Collect(b, args[0])
	if err != nil {
		return nil, err
	}
	size := 0
	for i, item := range items {
		text, ok := TextOf(item)
		if !ok {
			return nil, typeError("sequence item %d: expected str instance, %s found", i, item.TypeName())
		}
		size += len(text)
	}
	if err := room(b, size, max(len(items)-1, 0), len(s)); err != nil {
		return nil, err
	}
	var joined strings.Builder
	joined.Grow(size + max(len(items)-1, 0)*len(s))
	for i, item := range items {
		if i > 0 {
			joined.WriteString(s)
		}
		text, _ := TextOf(item)
		joined.WriteString(text)
	}
	return Str(joined.String()), nil
}
