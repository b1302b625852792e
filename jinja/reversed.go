package jinja

import "github.com/albertofaria/pav/jinja/py"

// reversed does what Python's function of that name does.
func reversed(b *py.Budget, value py.Value) (*py.Generator, error) {
	switch v := value.(type) {
	case *py.List:
		return reversedList(v), nil
	case *py.Dict:
		return reversedView(&py.DictView{Dict: v, Kind: "dict_keys"}), nil
	case *py.DictView:
		return reversedView(v), nil
	case *py.Range:
		return backwards("range_iterator", v.Len(), itemOf(v)), nil
	case *py.Tuple, *py.Undefined, py.Str, py.Markup, py.Bytes:
		n, err := py.Len(b, v)
		return backwards("reversed", n, itemOf(v)), err
	}
	return nil, raisef("TypeError", "'%s' object is not reversible", value.TypeName())
}

// backwards returns a generator of n items, from the last to the first.
func backwards(typeName string, n int, item func(b *py.Budget, i int) (py.Value, error)) *py.Generator {
	return &py.Generator{Type: typeName, Fn: func(b *py.Budget) (py.Value, bool, error) {
		if n == 0 {
			return nil, false, nil
		}
		if err := b.Step(1); err != nil {
			return nil, false, err
		}
		n--
		value, err := item(b, n)
		return value, err == nil, err
	}}
}

func itemOf(value py.Value) func(b *py.Budget, i int) (py.Value, error) {
	return func(b *py.Budget, i int) (py.Value, error) { return py.Item(b, value, py.NewInt(int64(i))) }
}

// reversedList ends early if the list has become shorter.
func reversedList(list *py.List) *py.Generator {
	next := len(list.Items) - 1
	return &py.Generator{Type: "list_reverseiterator", Fn: func(b *py.Budget) (py.Value, bool, error) {
		if next < 0 || next >= len(list.Items) {
			next = -1
			return nil, false, nil
		}
		next--
		return list.Items[next+1], true, b.Step(1)
	}}
}

// reversedViewTypes has the types of iterators of views.
var reversedViewTypes = map[string]string{
	"dict_keys":   "dict_reversekeyiterator",
	"dict_values": "dict_reversevalueiterator",
	"dict_items":  "dict_reverseitemiterator",
}

func reversedView(view *py.DictView) *py.Generator {
	return backwards(reversedViewTypes[view.Kind], view.Dict.Len(), func(_ *py.Budget, i int) (py.Value, error) {
		key, value := view.Dict.Entry(i)
		switch view.Kind {
		case "dict_keys":
			return key, nil
		case "dict_values":
			return value, nil
		}
		return &py.Tuple{Items: []py.Value{key, value}}, nil
	})
}
