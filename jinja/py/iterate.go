package py

import "unicode/utf8"

// Iterate returns an iterator over v.
func Iterate(b *Budget, v Value) (Iterator, error) {
	if text, ok := TextOf(v); ok {
		return &textIterator{text}, nil
	}
	switch v := v.(type) {
	case *List:
		return &listIterator{list: v}, nil
	case *Tuple:
		return indexed(len(v.Items), func(i int) Value { return v.Items[i] }), nil
	case *Dict:
		return indexed(v.Len(), func(i int) Value { return v.entries[i].key }), nil
	case *DictView:
		return indexed(v.Dict.Len(), v.at), nil
	case *Range:
		return indexed(v.Len(), v.at), nil
	case Bytes:
		return indexed(len(v), func(i int) Value { return Int{small: int64(v[i])} }), nil
	case *Undefined:
		return indexed(0, nil), nil
	case Iterable:
		return v.Iter(b)
	}
	return nil, typeError("'%s' object is not iterable", v.TypeName())
}

// indexedIterator returns the results of at for 0 to n.
type indexedIterator struct {
	next, n int
	at      func(i int) Value
}

func indexed(n int, at func(i int) Value) Iterator { return &indexedIterator{n: n, at: at} }

// Next implements Iterator.
func (it *indexedIterator) Next(b *Budget) (Value, bool, error) {
	if it.next >= it.n {
		return nil, false, nil
	}
	it.next++
	return it.at(it.next - 1), true, b.Step(1)
}

// listIterator sees changes of its list.
type listIterator struct {
	list *List
	next int
}

// Next implements Iterator.
func (it *listIterator) Next(b *Budget) (Value, bool, error) {
	if it.next >= len(it.list.Items) {
		return nil, false, nil
	}
	it.next++
	return it.list.Items[it.next-1], true, b.Step(1)
}

// textIterator returns the characters of a text.
type textIterator struct{ rest string }

// Next implements Iterator.
func (it *textIterator) Next(b *Budget) (Value, bool, error) {
	if it.rest == "" {
		return nil, false, nil
	}
	_, size := utf8.DecodeRuneInString(it.rest)
	char := it.rest[:size]
	it.rest = it.rest[size:]
	return Str(char), true, b.Step(1)
}

// itemSize is approximately how many bytes another value takes in a list that grows.
const itemSize = 48

// Collect returns list(v): a new slice.
func Collect(b *Budget, v Value) ([]Value, error) {
	items, err := Iterate(b, v)
	if err != nil {
		return nil, err
	}
	var all []Value
	for {
		item, ok, err := items.Next(b)
		if err != nil {
			return nil, err
		}
		if !ok {
			return all, nil
		}
		if err := b.Alloc(itemSize); err != nil {
			return nil, err
		}
		all = append(all, item)
	}
}

// Range is the result of range(): Start, Start+Step, … up to Stop, which it does not contain. Step is not zero.
type Range struct{ Start, Stop, Step int64 }

// TypeName implements Value.
func (*Range) TypeName() string { return "range" }

// Len returns how many integers there are.
func (r *Range) Len() int {
	low, high, step := r.Start, r.Stop, uint64(r.Step)
	if r.Step < 0 {
		low, high, step = r.Stop, r.Start, -uint64(r.Step)
	}
	if low >= high {
		return 0
	}
	return int((uint64(high)-uint64(low)-1)/step + 1)
}

func (r *Range) at(i int) Value { return Int{small: r.Start + int64(i)*r.Step} }

func (r *Range) contains(item Value) bool {
	if f, ok := item.(Float); ok {
		i, err := truncate(float64(f))
		if err != nil || compareIntFloat(i, float64(f)) != 0 {
			return false
		}
		item = i
	}
	i, ok := asInt(item)
	n := int64(r.Len())
	if !ok || i.large != nil || n == 0 {
		return false
	}
	first, last := r.Start, r.Start+(n-1)*r.Step
	return min(first, last) <= i.small && i.small <= max(first, last) && (i.small-first)%r.Step == 0
}
