package py

// generatorMethods has methods that are useless in templates, but exist.
var generatorMethods = map[string]method{
	"close": {run: generatorClose},
	"send":  {params: []Param{required("value")}, run: generatorSend},
	"throw": {params: []Param{required("exception"), optional("value", None{}), optional("traceback", None{})}, run: generatorThrow},
}

var generatorData = map[string]func(self Value) Value{
	"gi_running":   func(Value) Value { return Bool(false) },
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
