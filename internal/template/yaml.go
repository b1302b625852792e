package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/albertofaria/pav/internal/template/yaml11"
)

// parseYAML parses the text of a template that sets yaml.
func parseYAML(text string, limits *yaml11.Limits) (any, error) {
	value, err := yaml11.Parse(text, limits)
	if err == nil {
		value, err = plain(value)
	}
	if err != nil {
		return nil, fmt.Errorf("the template sets yaml, but the text that it yields cannot be used: in that text, %w", err)
	}
	return value, nil
}

var (
	errLarge    = errors.New("an integer is larger than 64 bits can hold: quote it")
	errInfinite = errors.New("a number is infinite or not a number")
	errBinary   = errors.New("there is binary data (!!binary), which no field can hold: use base64 text")
	errSet      = errors.New("there is a set (!!set), which no field can hold: use a list")
)

// plain returns value as it is in Kubernetes objects: dates are text, as in PaV 0.1.
func plain(value any) (any, error) {
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			var err error
			if v[i], err = plain(item); err != nil {
				return nil, err
			}
		}
		return v, nil
	case map[string]any:
		for key, item := range v {
			converted, err := plain(item)
			if err != nil {
				return nil, err
			}
			v[key] = converted
		}
		return v, nil
	default:
		return plainScalar(v)
	}
}

func plainScalar(value any) (any, error) {
	switch v := value.(type) {
	case json.Number:
		return nil, errLarge
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, errInfinite
		}
		return v, nil
	case yaml11.Date:
		return v.String(), nil
	case yaml11.Timestamp:
		return v.String(), nil
	case yaml11.Bytes:
		return nil, errBinary
	case yaml11.Set:
		return nil, errSet
	default:
		return v, nil
	}
}
