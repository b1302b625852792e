package py

import (
	"slices"
	"strings"
)

// method is a method of a type: run gets the arguments in the order of params.
type method struct {
	params []Param
	run    func(b *Budget, self Value, args []Value) (Value, error)
	// inPython says that the method is not a built-in one, which makes it another type.
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
		return &Func{Name: name, Type: "method", Fn: fn}
	}
	return &Func{Name: name, Type: "builtin_function_or_method", Fn: fn}
}

// class is what the values of one type have for a template to see, besides what is in hiddenNames.
type class struct {
	methods map[string]method
	data    map[string]func(self Value) Value
	// refused are the methods that are there, and that the sandbox gives to nobody as they change self.
	refused []string
}

var classes = map[string]class{
	"str":       {methods: strMethods},
	"Markup":    {methods: markupMethods},
	"bytes":     {methods: bytesMethods},
	"int":       {methods: intMethods, data: intData},
	"bool":      {methods: intMethods, data: intData},
	"float":     {methods: floatMethods, data: floatData},
	"tuple":     {methods: tupleMethods},
	"range":     {methods: rangeMethods, data: rangeData},
	"dict_keys": {methods: viewMethods}, "dict_items": {methods: viewMethods},
	"generator": {methods: generatorMethods, data: generatorData, refused: []string{"gi_code", "gi_frame"}},
	"list": {
		methods: listMethods,
		refused: []string{"append", "extend", "insert", "remove", "reverse", "sort"},
	},
	"dict": {
		methods: dictMethods,
		refused: []string{"clear", "pop", "popitem", "setdefault", "update"},
	},
}

// Attr is Python's getattr(v, name), where found is false for what would be an AttributeError. Safe is false where the
// sandbox of Jinja refuses the attribute, whose value is then nil: names with a leading underscore, mutating
// methods, and internals.
func Attr(b *Budget, v Value, name string) (value Value, found, safe bool, err error) {
	if object, ok := v.(Attributed); ok {
		value, found, err = object.Attr(b, name)
		if err != nil || found {
			return value, found, !strings.HasPrefix(name, "_"), err
		}
	}
	switch v := v.(type) {
	case *Undefined:
		return undefinedAttr(v, name)
	case *Tuple:
		if i := slices.Index(v.Fields, name); i >= 0 {
			return v.Items[i], true, true, nil
		}
	case *Func:
		if v.Type == "type" {
			value, found, safe = typeAttr(v, name)
			return value, found, safe, nil
		}
	}
	if strings.HasPrefix(name, "_") {
		return nil, isHidden(v, name), false, nil
	}
	value, found, safe = classAttr(v, name)
	return value, found, safe, nil
}

func classAttr(v Value, name string) (value Value, found, safe bool) {
	if isStrFormat(v, name) {
		return strFormatMethod(v, name), true, true
	}
	of := classes[className(v)]
	if m, ok := of.methods[name]; ok {
		return m.of(v, name), true, true
	}
	if get, ok := of.data[name]; ok {
		return get(v), true, true
	}
	return nil, slices.Contains(of.refused, name), false
}

func className(v Value) string {
	if _, ok := v.(*Tuple); ok {
		return "tuple"
	}
	return v.TypeName()
}

// undefinedAttr is an attribute of what is not there: an error, but for the names that Python itself may ask
// any object for.
func undefinedAttr(u *Undefined, name string) (value Value, found, safe bool, err error) {
	if isHidden(u, name) {
		return nil, true, false, nil
	}
	if strings.HasPrefix(name, "__") {
		return nil, false, false, nil
	}
	return nil, false, false, u.Err()
}
