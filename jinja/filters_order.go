package jinja

import "github.com/albertofaria/pav/jinja/py"

func doSort(s *state, args []py.Value) (py.Value, error) {
	value, reverse, caseSensitive, attribute := args[0], args[1], args[2], args[3]
	sensitive, err := py.Truth(s.budget, caseSensitive)
	if err != nil {
		return nil, err
	}
	key, err := s.attributesGetter(attribute, !sensitive)
	if err != nil {
		return nil, err
	}
	return s.sorted(value, key, reverse)
}

// sorted does what Python's function of that name does.
func (s *state) sorted(value py.Value, key getter, reverse py.Value) (py.Value, error) {
	items, err := py.Collect(s.budget, value)
	if err != nil {
		return nil, err
	}
	backwards, err := py.Index(reverse)
	if err != nil {
		return nil, err
	}
	if n := clipped(backwards); n != int(int32(n)) {
		return nil, raisef("OverflowError", "Python int too large to convert to C int")
	}
	sorted, err := s.sortBy(items, key, backwards.Sign() != 0)
	return &py.List{Items: sorted}, err
}

func doDictSort(s *state, args []py.Value) (py.Value, error) {
	value, caseSensitive, by, reverse := args[0], args[1], args[2], args[3]
	position := 0
	switch name, _ := py.TextOf(by); name {
	case "key":
	case "value":
		position = 1
	default:
		return nil, raisef("FilterArgumentError", `You can only sort by either "key" or "value"`)
	}
	dict, err := items(value)
	if err != nil {
		return nil, err
	}
	sensitive, err := py.Truth(s.budget, caseSensitive)
	if err != nil {
		return nil, err
	}
	key := func(item py.Value) (py.Value, error) {
		pair, _ := item.(*py.Tuple)
		if sensitive {
			return pair.Items[position], nil
		}
		return s.ignoreCase(pair.Items[position])
	}
	return s.sorted(&py.DictView{Dict: dict, Kind: "dict_items"}, key, reverse)
}

// doUnique returns the first of the items with the same attribute.
func doUnique(s *state, args []py.Value) (py.Value, error) {
	value, caseSensitive, attribute := args[0], args[1], args[2]
	return lazily(func(b *py.Budget) (nextItem, error) {
		sensitive, err := py.Truth(b, caseSensitive)
		if err != nil {
			return nil, err
		}
		key, err := s.attributeGetter(attribute, py.None{}, !sensitive)
		if err != nil {
			return nil, err
		}
		items, err := py.Iterate(b, value)
		if err != nil {
			return nil, err
		}
		seen := py.NewDict()
		return func(b *py.Budget) (py.Value, bool, error) {
			for {
				item, ok, err := items.Next(b)
				if !ok || err != nil {
					return nil, false, err
				}
				isNew, err := s.addNew(seen, item, key)
				if isNew || err != nil {
					return item, isNew, err
				}
			}
		}, nil
	}), nil
}

// addNew adds the key of item to seen, unless it is there already.
func (s *state) addNew(seen *py.Dict, item py.Value, key getter) (bool, error) {
	by, err := key(item)
	if err != nil {
		return false, err
	}
	if _, found, err := seen.Get(by); found || err != nil {
		return false, err
	}
	if err := s.budget.Alloc(4 * valueSize); err != nil {
		return false, err
	}
	return true, seen.Set(by, py.None{})
}

// extreme returns min or max: the first item that is before or after all others.
func extreme(op py.CompareOp) func(s *state, args []py.Value) (py.Value, error) {
	return func(s *state, args []py.Value) (py.Value, error) {
		value, caseSensitive, attribute := args[0], args[1], args[2]
		items, err := py.Iterate(s.budget, value)
		if err != nil {
			return nil, err
		}
		first, ok, err := items.Next(s.budget)
		if err != nil {
			return nil, err
		}
		if !ok {
			return &py.Undefined{Hint: "No aggregated item, sequence was empty."}, nil
		}
		sensitive, err := py.Truth(s.budget, caseSensitive)
		if err != nil {
			return nil, err
		}
		key, err := s.attributeGetter(attribute, py.None{}, !sensitive)
		if err != nil {
			return nil, err
		}
		return s.extremeOf(first, items, key, op)
	}
}

func (s *state) extremeOf(first py.Value, rest py.Iterator, key getter, op py.CompareOp) (py.Value, error) {
	best := first
	bestKey, err := key(first)
	if err != nil {
		return nil, err
	}
	for {
		item, ok, err := rest.Next(s.budget)
		if !ok || err != nil {
			return best, err
		}
		itemKey, err := key(item)
		if err != nil {
			return nil, err
		}
		better, err := py.Compare(s.budget, op, itemKey, bestKey)
		if err != nil {
			return nil, err
		}
		if better {
			best, bestKey = item, itemKey
		}
	}
}

// doSum adds as Python's sum does, which refuses to add up strings.
func doSum(s *state, args []py.Value) (py.Value, error) {
	value, attribute, start := args[0], args[1], args[2]
	items, err := s.attributesOf(value, attribute)
	if err != nil {
		return nil, err
	}
	switch start.(type) {
	case py.Str, py.Markup, py.Bytes:
		return nil, raisef("TypeError", "sum() can't sum %s", start.TypeName())
	}
	sum := start
	for {
		item, ok, err := items.Next(s.budget)
		if !ok || err != nil {
			return sum, err
		}
		if sum, err = py.Binary(s.budget, py.OpAdd, sum, item); err != nil {
			return nil, err
		}
	}
}
