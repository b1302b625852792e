package jinja

import (
	"slices"

	"github.com/albertofaria/pav/jinja/py"
)

// doBatch compares and subtracts as Python does, whatever the type of the batch size.
func doBatch(s *state, args []py.Value) (py.Value, error) {
	return lazily(func(b *py.Budget) (nextItem, error) {
		items, err := py.Iterate(b, args[0])
		if err != nil {
			return nil, err
		}
		g := &batches{s: s, items: items, size: args[1], filler: args[2]}
		return g.next, nil
	}), nil
}

type batches struct {
	s            *state
	items        py.Iterator
	size, filler py.Value
	// batch has the items of the next batch so far.
	batch []py.Value
	done  bool
}

func (g *batches) next(b *py.Budget) (py.Value, bool, error) {
	for !g.done {
		item, ok, err := g.items.Next(b)
		if err != nil {
			return nil, false, err
		}
		if !ok {
			return g.last()
		}
		full, err := py.Equal(b, py.NewInt(int64(len(g.batch))), g.size)
		if err != nil {
			return nil, false, err
		}
		if full {
			whole := g.batch
			g.batch = []py.Value{item}
			return &py.List{Items: whole}, true, nil
		}
		g.batch = append(g.batch, item)
	}
	return nil, false, nil
}

// last returns the last batch, filled up.
func (g *batches) last() (py.Value, bool, error) {
	g.done = true
	if len(g.batch) == 0 {
		return nil, false, nil
	}
	c := calculation{s: g.s}
	length := py.NewInt(int64(len(g.batch)))
	if !isNone(g.filler) && c.compare(py.OpLt, length, g.size) {
		missing := c.binary(py.OpSub, g.size, length)
		g.batch = append(g.batch, c.collect(c.binary(py.OpMul, &py.List{Items: []py.Value{g.filler}}, missing))...)
	}
	return &py.List{Items: g.batch}, c.err == nil, c.err
}

// doSlice divides items into n slices. If they cannot have the same length, the first ones have one item more.
func doSlice(_ *state, args []py.Value) (py.Value, error) {
	value, n, filler := args[0], args[1], args[2]
	return lazily(func(b *py.Budget) (nextItem, error) {
		items, err := py.Collect(b, value)
		if err != nil {
			return nil, err
		}
		if _, err := py.Binary(b, py.OpFloorDiv, py.NewInt(int64(len(items))), n); err != nil {
			return nil, err
		}
		count, err := py.Index(n)
		if err != nil {
			return nil, err
		}
		return sliced(items, clipped(count), filler), nil
	}), nil
}

func sliced(items []py.Value, n int, filler py.Value) nextItem {
	number := 0
	return func(b *py.Budget) (py.Value, bool, error) {
		if number >= n {
			return nil, false, nil
		}
		size, larger := len(items)/n, len(items)%n
		start := number*size + min(number, larger)
		slice := slices.Clone(items[start : start+size])
		if number < larger {
			slice = append(slice, items[start+size])
		} else if !isNone(filler) {
			slice = append(slice, filler)
		}
		number++
		return &py.List{Items: slice}, true, b.Alloc(valueSize * (len(slice) + 2))
	}
}

// doGroupBy groups sorted items, whose attribute is that of the first of each group.
func doGroupBy(s *state, args []py.Value) (py.Value, error) {
	value, attribute, fallback, caseSensitive := args[0], args[1], args[2], args[3]
	sensitive, err := py.Truth(s.budget, caseSensitive)
	if err != nil {
		return nil, err
	}
	key, err := s.attributeGetter(attribute, fallback, !sensitive)
	if err != nil {
		return nil, err
	}
	items, err := py.Collect(s.budget, value)
	if err != nil {
		return nil, err
	}
	sorted, err := s.sortBy(items, key, false)
	if err != nil {
		return nil, err
	}
	groups, err := s.groups(sorted, key)
	if err != nil {
		return nil, err
	}
	grouper, err := s.attributeGetter(attribute, fallback, false)
	if err != nil {
		return nil, err
	}
	list := &py.List{}
	for _, group := range groups {
		name, err := grouper(group[0])
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, &py.Tuple{
			Items: []py.Value{name, &py.List{Items: group}}, Fields: []string{"grouper", "list"},
		})
	}
	return list, s.budget.Alloc(8 * valueSize * len(groups))
}

// groups divides sorted items by key.
func (s *state) groups(items []py.Value, key getter) ([][]py.Value, error) {
	var groups [][]py.Value
	var current py.Value
	for _, item := range items {
		next, err := key(item)
		if err != nil {
			return nil, err
		}
		same := false
		if current != nil {
			if same, err = py.Equal(s.budget, current, next); err != nil {
				return nil, err
			}
		}
		if !same {
			groups, current = append(groups, nil), next
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], item)
	}
	return groups, nil
}
