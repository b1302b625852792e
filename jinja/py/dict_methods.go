package py

// dictMethods has the methods of dict that the sandbox allows: they do not change it.
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
	if err := b.Alloc(dict.Len() * entrySize); err != nil {
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

// viewIsDisjoint looks up the elements of the smaller set in the larger one.
func viewIsDisjoint(b *Budget, self Value, args []Value) (Value, error) {
	other := args[0]
	if view, ok := self.(*DictView); ok {
		if larger, ok := other.(*DictView); ok && larger.isSet() && larger.Dict.Len() > view.Dict.Len() {
			self, other = other, self
		}
	}
	others, err := Iterate(b, other)
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
