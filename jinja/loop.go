package jinja

import (
	"fmt"

	"github.com/albertofaria/pav/jinja/py"
)

// recursion executes the loop over items, one level deeper.
type recursion func(b *py.Budget, items py.Value, depth int) (py.Value, error)

// loopContext is the variable loop.
type loopContext struct {
	iterable py.Value
	// sized says that the length is that of iterable, if that has one; otherwise the items are counted when it is needed.
	sized   bool
	items   py.Iterator
	length  int
	index0  int
	depth0  int
	recurse recursion

	before, current, after py.Value
	// last has the arguments of the last call of changed.
	last py.Value
}

func newLoopContext(iterable py.Value, items py.Iterator, filtered bool, recurse recursion, depth int) *loopContext {
	return &loopContext{iterable: iterable, sized: !filtered, items: items, length: -1, index0: -1, depth0: depth, recurse: recurse}
}

// TypeName implements py.Value.
func (*loopContext) TypeName() string { return "LoopContext" }

// Repr implements py.Representable.
func (l *loopContext) Repr(b *py.Budget) (string, error) {
	length, err := l.Len(b)
	return fmt.Sprintf("<LoopContext %d/%d>", l.index0+1, length), err
}

// Next implements py.Iterator.
func (l *loopContext) Next(b *py.Budget) (py.Value, bool, error) {
	item, ok, err := l.peek(b)
	if err != nil || !ok {
		return nil, false, err
	}
	l.after = nil
	l.index0++
	l.before, l.current = l.current, item
	return item, true, nil
}

// peek returns the next item without taking it.
func (l *loopContext) peek(b *py.Budget) (py.Value, bool, error) {
	if l.after != nil {
		return l.after, true, nil
	}
	item, ok, err := l.items.Next(b)
	if err != nil || !ok {
		return nil, false, err
	}
	l.after = item
	return item, true, nil
}

// Len returns the number of all items.
func (l *loopContext) Len(b *py.Budget) (int, error) {
	if l.length >= 0 {
		return l.length, nil
	}
	if l.sized {
		if length, err := py.Len(b, l.iterable); err == nil {
			l.length = length
			return length, nil
		}
	}
	var rest []py.Value
	for {
		item, ok, err := l.items.Next(b)
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		if err := b.Alloc(valueSize); err != nil {
			return 0, err
		}
		rest = append(rest, item)
	}
	l.length = len(rest) + l.index0 + 1
	if l.after != nil {
		l.length++
	}
	var err error
	l.items, err = py.Iterate(b, &py.List{Items: rest})
	return l.length, err
}

// loopAttributes has the attributes of loop that are not methods.
var loopAttributes = map[string]func(l *loopContext, b *py.Budget) (py.Value, error){
	"index":    func(l *loopContext, _ *py.Budget) (py.Value, error) { return integer(l.index0 + 1) },
	"index0":   func(l *loopContext, _ *py.Budget) (py.Value, error) { return integer(l.index0) },
	"depth":    func(l *loopContext, _ *py.Budget) (py.Value, error) { return integer(l.depth0 + 1) },
	"depth0":   func(l *loopContext, _ *py.Budget) (py.Value, error) { return integer(l.depth0) },
	"first":    func(l *loopContext, _ *py.Budget) (py.Value, error) { return py.Bool(l.index0 == 0), nil },
	"last":     (*loopContext).isLast,
	"length":   func(l *loopContext, b *py.Budget) (py.Value, error) { return l.fromEnd(b, 0) },
	"revindex": func(l *loopContext, b *py.Budget) (py.Value, error) { return l.fromEnd(b, l.index0) },
	"revindex0": func(l *loopContext, b *py.Budget) (py.Value, error) {
		return l.fromEnd(b, l.index0+1)
	},
	"previtem": (*loopContext).previous,
	"nextitem": (*loopContext).next,
	"cycle":    func(l *loopContext, _ *py.Budget) (py.Value, error) { return method("cycle", l.cycle), nil },
	"changed":  func(l *loopContext, _ *py.Budget) (py.Value, error) { return method("changed", l.changed), nil },
}

func integer(n int) (py.Value, error) { return py.NewInt(int64(n)), nil }

func method(name string, fn func(b *py.Budget, args py.Args) (py.Value, error)) *py.Func {
	return &py.Func{Name: name, Type: "method", Fn: fn}
}

// Attr implements py.Attributed.
func (l *loopContext) Attr(b *py.Budget, name string) (py.Value, bool, error) {
	attribute, ok := loopAttributes[name]
	if !ok {
		return nil, false, nil
	}
	value, err := attribute(l, b)
	return value, true, err
}

func (l *loopContext) fromEnd(b *py.Budget, passed int) (py.Value, error) {
	length, err := l.Len(b)
	if err != nil {
		return nil, err
	}
	return integer(length - passed)
}

func (l *loopContext) isLast(b *py.Budget) (py.Value, error) {
	_, more, err := l.peek(b)
	return py.Bool(!more), err
}

func (l *loopContext) previous(*py.Budget) (py.Value, error) {
	if l.index0 == 0 {
		return &py.Undefined{Hint: "there is no previous item"}, nil
	}
	return l.before, nil
}

func (l *loopContext) next(b *py.Budget) (py.Value, error) {
	item, more, err := l.peek(b)
	if err == nil && !more {
		return &py.Undefined{Hint: "there is no next item"}, nil
	}
	return item, err
}

func (l *loopContext) cycle(_ *py.Budget, args py.Args) (py.Value, error) {
	if len(args.Named) > 0 {
		return nil, raisef("TypeError", "cycle() got an unexpected keyword argument %s", args.Named[0].Label())
	}
	if len(args.Pos) == 0 {
		return nil, raisef("TypeError", "no items for cycling given")
	}
	return args.Pos[l.index0%len(args.Pos)], nil
}

func (l *loopContext) changed(b *py.Budget, args py.Args) (py.Value, error) {
	if len(args.Named) > 0 {
		return nil, raisef("TypeError", "changed() got an unexpected keyword argument %s", args.Named[0].Label())
	}
	now := &py.Tuple{Items: args.Pos}
	if l.last != nil {
		same, err := py.Equal(b, l.last, now)
		if err != nil || same {
			return py.Bool(false), err
		}
	}
	l.last = now
	return py.Bool(true), nil
}

// Call implements py.Callable: a recursive loop is called with the items of the next level.
func (l *loopContext) Call(b *py.Budget, args py.Args) (py.Value, error) {
	bound, err := py.Bind("__call__", args, py.Param{Name: "iterable"})
	if err != nil {
		return nil, err
	}
	if l.recurse == nil {
		return nil, raisef("TypeError", "the loop must have the 'recursive' marker to be called recursively")
	}
	return l.recurse(b, bound[0], l.depth0+1)
}

// Iter implements py.Iterable: the loop does not get the items that are taken here.
func (l *loopContext) Iter(*py.Budget) (py.Iterator, error) {
	return &py.Generator{Fn: func(b *py.Budget) (py.Value, bool, error) {
		item, ok, err := l.Next(b)
		if err != nil || !ok {
			return nil, false, err
		}
		return &py.Tuple{Items: []py.Value{item, l}}, true, nil
	}}, nil
}
