package py

import "strings"

// Contains returns item in container.
func Contains(b *Budget, container, item Value) (bool, error) {
	if err := b.Step(1); err != nil {
		return false, err
	}
	if text, ok := textOf(container); ok {
		part, ok := textOf(item)
		if !ok {
			return false, typeError("'in <string>' requires string as left operand, not %s", item.TypeName())
		}
		return strings.Contains(text, part), b.Step(len(text)/bytesPerStep + 1)
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
	if raised, ok := err.(*Error); ok && raised.Kind == Type { //nolint:errorlint // Iterate has just made it
		return false, typeError("argument of type '%s' is not iterable", container.TypeName())
	}
	if err != nil {
		return false, err
	}
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
