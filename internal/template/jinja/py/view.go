package py

// DictView is what the methods keys, values and items of a dictionary give.
type DictView struct {
	Dict *Dict
	// Kind is dict_keys, dict_values or dict_items.
	Kind string
}

// TypeName implements Value.
func (v *DictView) TypeName() string { return v.Kind }

// isSet says whether v compares as a set does.
func (v *DictView) isSet() bool { return v.Kind != "dict_values" }

// at returns the element at i.
func (v *DictView) at(i int) Value {
	key, value := v.Dict.Entry(i)
	switch v.Kind {
	case "dict_keys":
		return key
	case "dict_values":
		return value
	}
	return &Tuple{Items: []Value{key, value}}
}

// compare compares v and w as sets: less is a part of.
func (v *DictView) compare(b *Budget, op CompareOp, w *DictView) (bool, error) {
	size, other := v.Dict.Len(), w.Dict.Len()
	switch op {
	case OpGt, OpGe:
		return w.compare(b, map[CompareOp]CompareOp{OpGt: OpLt, OpGe: OpLe}[op], v)
	case OpEq:
		if size != other {
			return false, nil
		}
	case OpLt:
		if size >= other {
			return false, nil
		}
	case OpLe:
		if size > other {
			return false, nil
		}
	}
	for i := range size {
		if found, err := Contains(b, w, v.at(i)); err != nil || !found {
			return false, err
		}
	}
	return true, nil
}

// contains says whether x is an element of v.
func (v *DictView) contains(b *Budget, x Value) (bool, error) {
	switch v.Kind {
	case "dict_keys":
		_, ok, err := v.Dict.Get(x)
		return ok, err
	case "dict_items":
		pair, ok := x.(*Tuple)
		if !ok || len(pair.Items) != 2 {
			return false, nil
		}
		value, ok, err := v.Dict.Get(pair.Items[0])
		if err != nil || !ok {
			return false, err
		}
		return matches(b, value, pair.Items[1])
	}
	for i := range v.Dict.Len() {
		if same, err := matches(b, v.at(i), x); err != nil || same {
			return same, err
		}
	}
	return false, nil
}
