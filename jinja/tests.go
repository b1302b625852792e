package jinja

import "github.com/albertofaria/pav/jinja/py"

// builtinTests has Jinja's tests by name.
var builtinTests = map[string]test{
	"odd":         bound("odd", testOdd, required("value")),
	"even":        bound("even", testEven, required("value")),
	"divisibleby": bound("divisibleby", testDivisibleBy, required("value"), required("num")),
	"defined":     bound("defined", testDefined, required("value")),
	"undefined":   bound("undefined", testType[*py.Undefined], required("value")),
	"filter":      bound("filter", testFilter, required("value")),
	"test":        bound("test", testTest, required("value")),
	"none":        bound("none", testType[py.None], required("value")),
	"boolean":     bound("boolean", testType[py.Bool], required("value")),
	"false":       bound("false", testIs(py.Bool(false)), required("value")),
	"true":        bound("true", testIs(py.Bool(true)), required("value")),
	"integer":     bound("integer", testType[py.Int], required("value")),
	"float":       bound("float", testType[py.Float], required("value")),
	"lower":       bound("lower", testCase("islower"), required("value")),
	"upper":       bound("upper", testCase("isupper"), required("value")),
	"string":      bound("string", testString, required("value")),
	"mapping":     bound("mapping", testType[*py.Dict], required("value")),
	"number":      bound("number", testNumber, required("value")),
	"sequence":    bound("sequence", testSequence, required("value")),
	"iterable":    bound("iterable", testIterable, required("value")),
	"callable":    bound("callable", testCallable, positional("obj")),
	"sameas":      bound("sameas", testSameAs, required("value"), required("other")),
	"escaped":     bound("escaped", testType[py.Markup], required("value")),
	"in":          bound("in", testIn, required("value"), required("seq")),
	"==":          comparison("eq", py.OpEq),
	"eq":          comparison("eq", py.OpEq),
	"equalto":     comparison("eq", py.OpEq),
	"!=":          comparison("ne", py.OpNe),
	"ne":          comparison("ne", py.OpNe),
	">":           comparison("gt", py.OpGt),
	"gt":          comparison("gt", py.OpGt),
	"greaterthan": comparison("gt", py.OpGt),
	">=":          comparison("ge", py.OpGe),
	"ge":          comparison("ge", py.OpGe),
	"<":           comparison("lt", py.OpLt),
	"lt":          comparison("lt", py.OpLt),
	"lessthan":    comparison("lt", py.OpLt),
	"<=":          comparison("le", py.OpLe),
	"le":          comparison("le", py.OpLe),
}

func comparison(function string, op py.CompareOp) test {
	return bound(function, func(s *state, args []py.Value) (bool, error) {
		return py.Compare(s.budget, op, args[0], args[1])
	}, positional("a"), positional("b"))
}

func testOdd(s *state, args []py.Value) (bool, error) {
	return s.hasRemainder(args[0], py.NewInt(2), 1)
}

func testEven(s *state, args []py.Value) (bool, error) {
	return s.hasRemainder(args[0], py.NewInt(2), 0)
}

func testDivisibleBy(s *state, args []py.Value) (bool, error) {
	return s.hasRemainder(args[0], args[1], 0)
}

// hasRemainder returns value % divisor == remainder, with the value's own operator %.
func (s *state) hasRemainder(value, divisor py.Value, remainder int64) (bool, error) {
	modulo, err := py.Binary(s.budget, py.OpMod, value, divisor)
	if err != nil {
		return false, err
	}
	return py.Equal(s.budget, modulo, py.NewInt(remainder))
}

func testDefined(_ *state, args []py.Value) (bool, error) { return !isUndefined(args[0]), nil }

func testFilter(s *state, args []py.Value) (bool, error) {
	_, err := s.filterOf(args[0])
	return isKnown(err)
}

func testTest(s *state, args []py.Value) (bool, error) {
	_, err := s.testOf(args[0])
	return isKnown(err)
}

// isKnown reports whether a look-up by name has found something; err is the error of the look-up.
func isKnown(err error) (bool, error) {
	if raised(err, "TemplateRuntimeError") {
		return false, nil
	}
	return err == nil, err
}

func testType[T py.Value](_ *state, args []py.Value) (bool, error) {
	_, is := args[0].(T)
	return is, nil
}

func testIs(value py.Bool) func(s *state, args []py.Value) (bool, error) {
	return func(_ *state, args []py.Value) (bool, error) {
		is, isBool := args[0].(py.Bool)
		return isBool && is == value, nil
	}
}

// testCase calls a method of the text of a value.
func testCase(method string) func(s *state, args []py.Value) (bool, error) {
	return func(s *state, args []py.Value) (bool, error) {
		text, err := plainString(s.budget, args[0])
		if err != nil {
			return false, err
		}
		answer, err := s.method(text, method)
		return answer == py.Value(py.Bool(true)), err
	}
}

func testString(_ *state, args []py.Value) (bool, error) {
	_, isString := py.TextOf(args[0])
	return isString, nil
}

func testNumber(_ *state, args []py.Value) (bool, error) {
	switch args[0].(type) {
	case py.Bool, py.Int, py.Float:
		return true, nil
	}
	return false, nil
}

// testSequence is true for values with a length and items.
func testSequence(_ *state, args []py.Value) (bool, error) {
	switch args[0].(type) {
	case py.Str, py.Markup, py.Bytes, *py.List, *py.Tuple, *py.Dict, *py.Range, *py.Undefined:
		return true, nil
	}
	return false, nil
}

// testIterable is also true for self, whose iteration fails: it can be asked for items.
func testIterable(s *state, args []py.Value) (bool, error) {
	if _, ok := args[0].(*selfReference); ok {
		return true, nil
	}
	_, err := py.Iterate(s.budget, args[0])
	if raised(err, "TypeError") {
		return false, nil
	}
	return err == nil, err
}

// testCallable is also true for undefined values: a call of them has an error of its own.
func testCallable(_ *state, args []py.Value) (bool, error) {
	_, callable := args[0].(py.Callable)
	return callable || isUndefined(args[0]), nil
}

func testSameAs(_ *state, args []py.Value) (bool, error) { return py.Same(args[0], args[1]), nil }

func testIn(s *state, args []py.Value) (bool, error) { return py.Contains(s.budget, args[1], args[0]) }
