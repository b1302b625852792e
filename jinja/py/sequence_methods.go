package py

import (
	"math"
	"slices"
)

var indexParams = []Param{
	required("value"), optional("start", Int{}), optional("stop", Int{small: math.MaxInt64}),
}

// listMethods has the methods of list that the sandbox allows; two of them change the list.
var listMethods = map[string]method{
	"clear": {run: listClear},
	"copy":  {run: listCopy},
	"count": {params: []Param{required("value")}, run: sequenceCount},
	"index": {params: indexParams, run: sequenceIndexOf},
	"pop":   {params: []Param{optional("index", Int{small: -1})}, run: listPop},
}

var tupleMethods = map[string]method{
	"count": {params: []Param{required("value")}, run: sequenceCount},
	"index": {params: indexParams, run: sequenceIndexOf},
}

func itemsOf(self Value) []Value {
	switch self := self.(type) {
	case *List:
		return self.Items
	case *Tuple:
		return self.Items
	default:
		return nil
	}
}

func listClear(_ *Budget, self Value, _ []Value) (Value, error) {
	list, _ := self.(*List)
	list.Items = nil
	return None{}, nil
}

func listCopy(b *Budget, self Value, _ []Value) (Value, error) {
	items, err := Collect(b, self)
	return &List{Items: items}, err
}

func listPop(b *Budget, self Value, args []Value) (Value, error) {
	i, err := sizeArgument(args[0])
	if err != nil {
		return nil, err
	}
	list, _ := self.(*List)
	if len(list.Items) == 0 {
		return nil, exception("IndexError", "pop from empty list")
	}
	if i < 0 {
		i += len(list.Items)
	}
	if i < 0 || i >= len(list.Items) {
		return nil, exception("IndexError", "pop index out of range")
	}
	item := list.Items[i]
	// Another list may share the array, so no item is moved in it.
	list.Items = slices.Concat(list.Items[:i], list.Items[i+1:])
	return item, b.Step(len(list.Items)/bytesPerStep + 1)
}

func sequenceCount(b *Budget, self Value, args []Value) (Value, error) {
	n := int64(0)
	for _, item := range itemsOf(self) {
		same, err := matches(b, item, args[0])
		if err != nil {
			return nil, err
		}
		if same {
			n++
		}
	}
	return Int{small: n}, nil
}

func sequenceIndexOf(b *Budget, self Value, args []Value) (Value, error) {
	items := itemsOf(self)
	start, err := sequenceIndex(args[1], len(items))
	if err != nil {
		return nil, err
	}
	stop, err := sequenceIndex(args[2], len(items))
	if err != nil {
		return nil, err
	}
	for i := start; i < min(stop, len(items)); i++ {
		same, err := matches(b, items[i], args[0])
		if err != nil {
			return nil, err
		}
		if same {
			return Int{small: int64(i)}, nil
		}
	}
	return nil, valueError("value is not in %s", self.TypeName())
}

// matches compares as a container does that looks for x: by identity, then by equality.
func matches(b *Budget, item, x Value) (bool, error) {
	if err := b.Step(1); err != nil {
		return false, err
	}
	if Same(item, x) {
		return true, nil
	}
	return Equal(b, item, x)
}

var rangeMethods = map[string]method{
	"count": {params: []Param{required("value")}, run: rangeCount},
	"index": {params: []Param{required("value")}, run: rangeIndex},
}

var rangeData = map[string]func(self Value) Value{
	"start": func(self Value) Value { return Int{small: self.(*Range).Start} },
	"stop":  func(self Value) Value { return Int{small: self.(*Range).Stop} },
	"step":  func(self Value) Value { return Int{small: self.(*Range).Step} },
}

func rangeCount(b *Budget, self Value, args []Value) (Value, error) {
	found, err := Contains(b, self, args[0])
	if err != nil || !found {
		return Int{}, err
	}
	return Int{small: 1}, nil
}

func rangeIndex(b *Budget, self Value, args []Value) (Value, error) {
	items, err := Iterate(b, self)
	if err != nil {
		return nil, err
	}
	for i := int64(0); ; i++ {
		item, ok, err := items.Next(b)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, valueError("value is not in range")
		}
		same, err := matches(b, item, args[0])
		if err != nil {
			return nil, err
		}
		if same {
			return Int{small: i}, nil
		}
	}
}
