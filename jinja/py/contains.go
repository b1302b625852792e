package py

import (
	"errors"
	"strings"
)

// Contains returns item in container.
func Contains(b *Budget, container, item Value) (bool, error) {
	if err := b.Step(1); err != nil {
		return false, err
	}
	if text, ok := TextOf(container); ok {
		return textContains(b, text, item)
	}
	switch c := container.(type) {
	case Bytes:
		return bytesContain(c, item)
	case *Dict:
		_, ok, err := c.Get(item)
		return ok, err
	case *DictView:
		return c.contains(b, item)
	case *Range:
		return c.contains(item), nil
	}
	items, err := Iterate(b, container)
	if raised, ok := errors.AsType[*Error](err); ok && raised.Kind == Type {
		return false, typeError("argument of type '%s' is not iterable", container.TypeName())
	}
	if err != nil {
		return false, err
	}
	return anyMatches(b, items, item)
}

func textContains(b *Budget, text string, item Value) (bool, error) {
	part, ok := TextOf(item)
	if !ok {
		return false, typeError("'in <string>' requires string as left operand, not %s", item.TypeName())
	}
	if err := b.Step(len(text)/bytesPerStep + 1); err != nil {
		return false, err
	}
	return strings.Contains(text, part), nil
}

// anyMatches looks for item in what is left of items.
func anyMatches(b *Budget, items Iterator, item Value) (bool, error) {
	for {
		x, ok, err := items.Next(b)
		if err != nil || !ok {
			return false, err
		}
		if same, err := matches(b, x, item); err != nil || same {
			return same, err
		}
	}
}

func bytesContain(c Bytes, item Value) (bool, error) {
	if part, ok := item.(Bytes); ok {
		return strings.Contains(string(c), string(part)), nil
	}
	n, ok := asInt(item)
	if !ok {
		return false, typeError("a bytes-like object is required, not '%s'", item.TypeName())
	}
	if n.large != nil || n.small < 0 || n.small > 255 {
		return false, valueError("byte must be in range(0, 256)")
	}
	return strings.IndexByte(string(c), byte(n.small)) >= 0, nil
}
