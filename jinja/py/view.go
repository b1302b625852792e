package py

// DictView is the result of the methods keys, values and items of a dictionary.
type DictView struct {
	Dict *Dict
	// Kind is dict_keys, dict_values or dict_items.
	Kind string
}

// TypeName implements Value.
func (v *DictView) TypeName() string { return v.Kind }

// isSet reports whether v compares as a set does.
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

// equal compares v and w as sets; values are never equal.
func (v *DictView) equal(b *Budget, w *DictView) (bool, error) {
	if !v.isSet() || !w.isSet() {
		return v == w, nil
	}
	if v.Dict.Len() != w.Dict.Len() {
		return false, nil
	}
	return v.isSubset(b, w)
}

// compare orders v and w as sets: less means a subset.
func (v *DictView) compare(b *Budget, op CompareOp, w *DictView) (bool, error) {
	if op == OpGt || op == OpGe {
		v, w = w, v
	}
	size, other := v.Dict.Len(), w.Dict.Len()
	if size > other || size == other && (op == OpLt || op == OpGt) {
		return false, nil
	}
	return v.isSubset(b, w)
}

func (v *DictView) isSubset(b *Budget, w *DictView) (bool, error) {
	for i := range v.Dict.Len() {
		if found, err := Contains(b, w, v.at(i)); err != nil || !found {
			return false, err
		}
	}
	return true, nil
}

// contains reports whether x is an element of v.
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
