package py

// dictMethods are those methods of dict that the sandbox lets through: they do not change it.
var dictMethods = map[string]method{
	"copy":     {run: dictCopy},
	"fromkeys": {params: fromKeysParams, run: dictFromKeys},
	"get":      {params: []Param{required("key"), optional("default", None{})}, run: dictGet},
	"items":    {run: dictView("dict_items")},
	"keys":     {run: dictView("dict_keys")},
	"values":   {run: dictView("dict_values")},
}

var fromKeysParams = []Param{required("iterable"), optional("value", None{})}

func dictView(kind string) func(b *Budget, self Value, args []Value) (Value, error) {
	return func(_ *Budget, self Value, _ []Value) (Value, error) {
		dict, _ := self.(*Dict)
		return &DictView{Dict: dict, Kind: kind}, nil
	}
}

func dictGet(_ *Budget, self Value, args []Value) (Value, error) {
	dict, _ := self.(*Dict)
	v, ok, err := dict.Get(args[0])
	if err != nil {
		return nil, err
	}
	if !ok {
		return args[1], nil
	}
	return v, nil
}

// entrySize is how many bytes one more entry in a dictionary takes.
const entrySize = 96

func dictCopy(b *Budget, self Value, _ []Value) (Value, error) {
	dict, _ := self.(*Dict)
	if err := room(b, 0, dict.Len(), entrySize); err != nil {
		return nil, err
	}
	return dict.Copy(), nil
}

func dictFromKeys(b *Budget, _ Value, args []Value) (Value, error) {
	keys, err := Collect(b, args[0])
	if err != nil {
		return nil, err
	}
	if err := b.Alloc(len(keys) * entrySize); err != nil {
		return nil, err
	}
	dict := NewDict()
	for _, key := range keys {
		if err := dict.Set(key, args[1]); err != nil {
			return nil, err
		}
	}
	return dict, nil
}

var viewMethods = map[string]method{"isdisjoint": {params: []Param{required("other")}, run: viewIsDisjoint}}

func viewIsDisjoint(b *Budget, self Value, args []Value) (Value, error) {
	others, err := Iterate(b, args[0])
	if err != nil {
		return nil, err
	}
	for {
		other, ok, err := others.Next(b)
		if err != nil || !ok {
			return Bool(true), err
		}
		shared, err := Contains(b, self, other)
		if err != nil || shared {
			return Bool(false), err
		}
	}
}

// generatorMethods are of no use in a template, and yet there.
var generatorMethods = map[string]method{
	"close": {run: generatorClose},
	"send":  {params: []Param{required("value")}, run: generatorSend},
	"throw": {params: []Param{required("exception"), optional("value", None{}), optional("traceback", None{})}, run: generatorThrow},
}

var generatorData = map[string]func(self Value) Value{
	"gi_running":   func(Value) Value { return Bool(false) },
	"gi_suspended": func(Value) Value { return Bool(false) },
	"gi_yieldfrom": func(Value) Value { return None{} },
}

func generatorClose(_ *Budget, self Value, _ []Value) (Value, error) {
	generator, _ := self.(*Generator)
	generator.Fn = func(*Budget) (Value, bool, error) { return nil, false, nil }
	return None{}, nil
}

func generatorSend(b *Budget, self Value, _ []Value) (Value, error) {
	generator, _ := self.(*Generator)
	v, ok, err := generator.Next(b)
	if err == nil && !ok {
		err = exception("StopIteration", "the generator is exhausted")
	}
	return v, err
}

func generatorThrow(*Budget, Value, []Value) (Value, error) {
	return nil, typeError("exceptions must be classes or instances deriving from BaseException")
}

// dictTypeMethods are what the type dict has besides its methods: as they take the dictionary as an argument, they get past
// the sandbox.
var dictTypeMethods = map[string]method{
	"setdefault": {params: []Param{required("key"), optional("default", None{})}, run: dictSetDefault},
}

func dictSetDefault(_ *Budget, self Value, args []Value) (Value, error) {
	dict, _ := self.(*Dict)
	v, ok, err := dict.Get(args[0])
	if err != nil || ok {
		return v, err
	}
	return args[1], dict.Set(args[0], args[1])
}

// typeAttr is an attribute of a type.
func typeAttr(of *Func, name string) (value Value, found, safe bool) {
	if isHidden(of, name) || name == "mro" {
		return nil, true, false
	}
	if of.Name != "dict" {
		return nil, false, false
	}
	if name == "fromkeys" {
		return dictMethods[name].of(nil, name), true, true
	}
	m, ok := dictMethods[name]
	if !ok {
		m, ok = dictTypeMethods[name]
	}
	if !ok {
		return nil, false, false
	}
	return &Func{Name: name, Type: "method_descriptor", Fn: func(b *Budget, args Args) (Value, error) {
		if len(args.Pos) == 0 {
			return nil, typeError("unbound method dict.%s() needs an argument", name)
		}
		self, ok := args.Pos[0].(*Dict)
		if !ok {
			return nil, typeError("descriptor '%s' for 'dict' objects doesn't apply to a '%s' object", name,
				args.Pos[0].TypeName())
		}
		return m.of(self, name).Call(b, Args{Pos: args.Pos[1:], Named: args.Named})
	}}, true, true
}
