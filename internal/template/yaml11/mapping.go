package yaml11

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// mapping is a mapping with the keys of JSON.
type mapping struct {
	entries map[string]any
	order   []string

	// texts are the keys of JSON by the keys of YAML: 1, 1.0 and true are one key, but 1 and "1" are two.
	texts map[any]string
}

func newMapping(size int) *mapping {
	return &mapping{entries: make(map[string]any, size), texts: make(map[any]string, size)}
}

var (
	errKey  = errors.New("a key must be a string, a finite number, a boolean or null")
	errPart = errors.New("a mapping or list cannot be a key: put a text that begins with {{ in quotes")
	errTwin = errors.New("two keys of the mapping, such as 1 and '1', are the same in JSON")
)

// set gives a key its value. The last value counts, under the first of equal keys.
func (m *mapping) set(key, v any) error {
	text, ok := keyText(key)
	if _, number := key.(float64); !ok && !number {
		return errPart
	}
	if !ok {
		return errKey
	}
	identity := identify(key)
	if first, known := m.texts[identity]; known {
		text = first
	} else {
		if _, taken := m.entries[text]; taken {
			return errTwin
		}
		m.texts[identity] = text
		m.order = append(m.order, text)
	}
	m.entries[text] = v
	return nil
}

// identify returns what equal keys, as Python has it, have in common.
func identify(key any) any {
	switch k := key.(type) {
	case bool:
		if k {
			return int64(1)
		}
		return int64(0)
	case float64:
		if k != math.Trunc(k) {
			return k
		}
		whole, _ := big.NewFloat(k).Int(nil)
		return integer(whole)
	default:
		return k
	}
}

// keyText returns what Python writes in JSON for a key, if it can be one.
func keyText(key any) (text string, ok bool) {
	switch k := key.(type) {
	case nil:
		return "null", true
	case string:
		return k, true
	case bool:
		return strconv.FormatBool(k), true
	case int64:
		return strconv.FormatInt(k, 10), true
	case json.Number:
		return k.String(), true
	case float64:
		return floatText(k), !math.IsNaN(k) && !math.IsInf(k, 0)
	default:
		return "", false
	}
}

// floatText returns Python's repr of a number.
func floatText(f float64) string {
	if magnitude := math.Abs(f); magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}
