package template

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/albertofaria/pav/jinja/py"
)

// Text returns an evaluated value that must be a string; a number is converted to decimal text.
func Text(field string, value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return py.FloatText(v), nil
	default:
		return "", &Error{Field: field, Err: fmt.Errorf("must be a string, not %s", describe(value))}
	}
}

// TextList returns an evaluated value that must be a list of strings.
func TextList(field string, value any) ([]string, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, &Error{Field: field, Err: fmt.Errorf("must be a list of strings, not %s", describe(value))}
	}
	out := make([]string, len(list))
	for i, item := range list {
		text, err := Text(field+"["+strconv.Itoa(i)+"]", item)
		if err != nil {
			return nil, err
		}
		out[i] = text
	}
	return out, nil
}

// Capacity returns an evaluated capacity in whole bytes: a quantity such as 10Gi, or an integer. It must be above
// zero.
func Capacity(field string, value any) (int64, error) {
	text, err := Text(field, value)
	if err != nil {
		return 0, &Error{Field: field, Err: fmt.Errorf("must be a quantity such as 10Gi or a number of bytes, not %s", describe(value))}
	}
	bytes, err := ParseCapacity(text)
	if err != nil {
		return 0, &Error{Field: field, Err: err}
	}
	return bytes, nil
}

// ParseCapacity returns a Kubernetes quantity in whole bytes.
func ParseCapacity(text string) (int64, error) {
	quantity, err := parseQuantity(text)
	if err != nil {
		return 0, err
	}
	bytes := quantity.Value()
	switch {
	case quantity.Sign() <= 0:
		return 0, errors.New("the capacity is not above zero")
	case quantity.CmpInt64(bytes) != 0:
		return 0, errors.New("the capacity is not a whole number of bytes")
	default:
		return bytes, nil
	}
}

// Count returns an evaluated number of things: a whole number that is not below zero.
func Count(field string, value any) (int64, error) {
	text, err := Text(field, value)
	if err != nil {
		return 0, &Error{Field: field, Err: fmt.Errorf("must be a whole number, not %s", describe(value))}
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 0 {
		return 0, &Error{Field: field, Err: errNoCount}
	}
	return number, nil
}

var errNoCount = errors.New("must be a whole number of at least 0")

var (
	errNoQuantity = errors.New("the capacity is neither a quantity such as 10Gi nor a number of bytes")
	errTooMuch    = fmt.Errorf("the capacity is more than %d bytes", int64(math.MaxInt64))
)

// hugeExponent matches exponents with which the comparison of a quantity would take forever; no capacity has one.
var hugeExponent = regexp.MustCompile(`[eE][-+]?[0-9]{3}`)

// parseQuantity parses a quantity of at most as many bytes as an int64 can count.
func parseQuantity(text string) (resource.Quantity, error) {
	const longest = 64
	if len(text) > longest || hugeExponent.MatchString(text) {
		return resource.Quantity{}, errNoQuantity
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, errNoQuantity
	}
	if quantity.CmpInt64(math.MaxInt64) > 0 {
		return resource.Quantity{}, errTooMuch
	}
	return quantity, nil
}

// Object returns an evaluated value that must be a mapping.
func Object(field string, value any) (map[string]any, error) {
	object, ok := value.(map[string]any)
	if !ok {
		return nil, &Error{Field: field, Err: fmt.Errorf("must be a mapping, not %s; a template that is to yield one must {%% set yaml = true %%}", describe(value))}
	}
	return object, nil
}

func describe(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	default:
		return fmt.Sprintf("a %T", value)
	}
}
