package py

import "math/big"

// Value is one of the kinds of this package, or an object of the interpreter that uses it.
type Value interface {
	// TypeName returns Python's type(x).__name__, as in error messages.
	TypeName() string
}

// The values without parts.
type (
	// None is Python's None.
	None struct{}
	// Bool is a truth value, and an integer as well.
	Bool bool
	// Float is a floating-point number.
	Float float64
	// Str holds valid UTF-8, and is indexed by code point.
	Str string
	// Markup is a Str that is known to be HTML.
	Markup string
	// Bytes holds any bytes.
	Bytes string
)

// Int is an integer of any size.
type Int struct {
	small int64
	// large is nil where the integer fits into small; it is never changed.
	large *big.Int
}

// List is a mutable sequence.
type List struct{ Items []Value }

// Tuple is an immutable sequence; one with Fields is a named tuple.
type Tuple struct {
	Items  []Value
	Fields []string
}

// Undefined is the value of a name that does not exist. It can be tested, compared and iterated over; every other use is an
// error, which its fields explain.
type Undefined struct {
	// Name is the variable, attribute or key that was looked up.
	Name string
	// Object is the object of the look-up, or nil for a variable.
	Object Value
	// Hint replaces the message, if there is one.
	Hint string
	// Unsafe says that it exists but may not be used: every use is a security error.
	Unsafe bool
	// Computed says that Name is not written in the template, but a value, which may be secret.
	Computed bool
}

// Args are the arguments of a call.
type Args struct {
	Pos   []Value
	Named []NamedArg
}

// NamedArg is a keyword argument.
type NamedArg struct {
	Name  string
	Value Value
	// Computed says that Name is not written in the template, but a value, which may be secret.
	Computed bool
}

// Label returns the name as errors may show it.
func (a NamedArg) Label() string {
	if a.Computed {
		return "of the mapping behind **"
	}
	return "'" + a.Name + "'"
}

// Callable is a Value that can be called.
type Callable interface {
	Value
	Call(b *Budget, args Args) (Value, error)
}

// Attributed is a Value with attributes of its own. Found is false if it has none of that name.
type Attributed interface {
	Value
	Attr(b *Budget, name string) (value Value, found bool, err error)
}

// Representable is a Value with a text of its own, besides the kinds of this package. The text contains no address, so
// output is deterministic.
type Representable interface {
	Value
	Repr(b *Budget) (string, error)
}

// Iterable is a Value that can be iterated, besides the kinds of this package.
type Iterable interface {
	Value
	Iter(b *Budget) (Iterator, error)
}

// Iterator returns values, one in each call, until ok is false.
type Iterator interface {
	Next(b *Budget) (value Value, ok bool, err error)
}

// Func is a function of the program. Type is the result of TypeName: function, type, method.
type Func struct {
	Name string
	Type string
	Fn   func(b *Budget, args Args) (Value, error)
	// Self is the value whose method this is; nil if it is none.
	Self Value
}

// Generator is an iterator as a value: an item that has been taken from it is gone.
type Generator struct {
	// Type is the result of TypeName: generator, list_reverseiterator, ….
	Type string
	Fn   func(b *Budget) (value Value, ok bool, err error)
}

// TypeName implements Value.
func (None) TypeName() string { return "NoneType" }

// TypeName implements Value.
func (Bool) TypeName() string { return "bool" }

// TypeName implements Value.
func (Int) TypeName() string { return "int" }

// TypeName implements Value.
func (Float) TypeName() string { return "float" }

// TypeName implements Value.
func (Str) TypeName() string { return "str" }

// TypeName implements Value.
func (Markup) TypeName() string { return "Markup" }

// TypeName implements Value.
func (Bytes) TypeName() string { return "bytes" }

// TypeName implements Value.
func (*List) TypeName() string { return "list" }

// TypeName implements Value.
func (*Undefined) TypeName() string { return "Undefined" }

// TypeName implements Value.
func (f *Func) TypeName() string { return f.Type }

// TypeName implements Value.
func (t *Tuple) TypeName() string {
	if t.Fields != nil {
		return "_GroupTuple"
	}
	return "tuple"
}

// TypeName implements Value.
func (g *Generator) TypeName() string { return g.Type }

// Call implements Callable.
func (f *Func) Call(b *Budget, args Args) (Value, error) { return f.Fn(b, args) }

// Next implements Iterator.
func (g *Generator) Next(b *Budget) (Value, bool, error) { return g.Fn(b) }

// Iter implements Iterable.
func (g *Generator) Iter(*Budget) (Iterator, error) { return g, nil }
