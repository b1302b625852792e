package py

import (
	"slices"
	"strings"
)

// method is a method of a type: run gets the arguments in the order of params.
type method struct {
	params []Param
	run    func(b *Budget, self Value, args []Value) (Value, error)
	// inPython says that the method is not a builtin one, and so of another type.
	inPython bool
}

func (m method) of(self Value, name string) *Func {
	fn := func(b *Budget, args Args) (Value, error) {
		values, err := Bind(name, args, m.params...)
		if err != nil {
			return nil, err
		}
		return m.run(b, self, values)
	}
	if m.inPython {
		return &Func{Name: name, Type: "method", Fn: fn, Self: self}
	}
	return &Func{Name: name, Type: "builtin_function_or_method", Fn: fn, Self: self}
}

// class has the attributes of the values of one type that a template can see, besides those in hiddenNames.
type class struct {
	methods map[string]method
	data    map[string]func(self Value) Value
	// refused has the methods that exist, and that the sandbox refuses because they change self.
	refused []string
	// unsupported has the methods that exist only in Python: if they were undefined, the output would differ without an
	// error.
	unsupported []string
}

var classes = map[string]class{
	"str":         {methods: strMethods},
	"Markup":      {methods: markupMethods},
	"bytes":       {methods: bytesMethods},
	"int":         {methods: intMethods, data: intData},
	"bool":        {methods: intMethods, data: intData},
	"float":       {methods: floatMethods, data: floatData},
	"complex":     {unsupported: []string{"conjugate", "imag", "real"}},
	"tuple":       {methods: tupleMethods},
	"range":       {methods: rangeMethods, data: rangeData},
	"dict_keys":   {methods: viewMethods, unsupported: []string{"mapping"}},
	"dict_items":  {methods: viewMethods, unsupported: []string{"mapping"}},
	"dict_values": {unsupported: []string{"mapping"}},
	"list": {
		methods: listMethods,
		refused: []string{"append", "extend", "insert", "remove", "reverse", "sort"},
	},
	"dict": {
		methods: dictMethods,
		refused: []string{"clear", "pop", "popitem", "setdefault", "update"},
	},
	"generator": {
		methods:     generatorMethods,
		data:        generatorData,
		refused:     []string{"gi_code", "gi_frame"},
		unsupported: []string{"gi_suspended"},
	},
}

// Attr returns Python's getattr(v, name); found is false for an AttributeError. Safe is false if Jinja's sandbox refuses
// the attribute: names with a leading underscore, mutating methods, and internals. Its value is then None.
func Attr(b *Budget, v Value, name string) (value Value, found, safe bool, err error) {
	if object, ok := v.(Attributed); ok {
		value, found, err = object.Attr(b, name)
		if err != nil || found {
			return value, found, !strings.HasPrefix(name, "_"), err
		}
	}
	if u, ok := v.(*Undefined); ok && !isHidden(u, name) && !strings.HasPrefix(name, "__") {
		return nil, false, false, u.Err()
	}
	if strings.HasPrefix(name, "_") {
		return None{}, isHidden(v, name) || isHiddenInType(v, name), false, nil
	}
	return classAttr(v, name)
}

// classAttr returns an attribute that v has because of its type.
func classAttr(v Value, name string) (value Value, found, safe bool, err error) {
	switch v := v.(type) {
	case *Tuple:
		if i := slices.Index(v.Fields, name); i >= 0 {
			return v.Items[i], true, true, nil
		}
	case *Func:
		if v.Type == "type" || v.Type == "GenericAlias" {
			return typeAttr(v, name)
		}
	}
	if isStrFormat(v, name) {
		return strFormatMethod(v, name), true, true, nil
	}
	return classes[className(v)].attr(v, name)
}

func className(v Value) string {
	if _, ok := v.(*Tuple); ok {
		return "tuple"
	}
	return v.TypeName()
}

func (c class) attr(v Value, name string) (value Value, found, safe bool, err error) {
	if m, ok := c.methods[name]; ok {
		return m.of(v, name), true, true, nil
	}
	if get, ok := c.data[name]; ok {
		return get(v), true, true, nil
	}
	if slices.Contains(c.unsupported, name) {
		return nil, false, false, exception("NotImplementedError", "the attribute '%s' of a '%s' object is not supported",
			name, v.TypeName())
	}
	return None{}, slices.Contains(c.refused, name), false, nil
}
