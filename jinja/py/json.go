package py

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"unicode/utf8"
)

// DecodeJSON returns JSON as data, with Object for objects, in their order. Of members with the same key, the last one
// counts. Integers are int64, or json.Number where they are larger. Text that is not Unicode is an error.
func DecodeJSON(raw []byte) (any, error) {
	if !utf8.Valid(raw) || hasLoneSurrogate(raw) {
		return nil, errors.New("decoding JSON: it has text that is not Unicode")
	}
	r := jsonReader{decoder: json.NewDecoder(bytes.NewReader(raw))}
	r.decoder.UseNumber()
	value, err := r.value()
	if err != nil {
		return nil, fmt.Errorf("decoding JSON: %w", err)
	}
	if _, err := r.decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("decoding JSON: text after the value")
	}
	return value, nil
}

// jsonReader reads values in the order of the text.
type jsonReader struct {
	decoder *json.Decoder
	depth   int
}

// maxJSONDepth is the maximum depth of JSON, the same as in package json.
const maxJSONDepth = 10000

func (r *jsonReader) value() (any, error) {
	token, err := r.decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		if r.depth++; r.depth > maxJSONDepth {
			return nil, fmt.Errorf("it nests deeper than %d levels", maxJSONDepth)
		}
		defer func() { r.depth-- }()
		if token == '[' {
			return r.array()
		}
		return r.object()
	case json.Number:
		return decodeNumber(token)
	default:
		return token, nil
	}
}

func decodeNumber(number json.Number) (any, error) {
	if n, err := strconv.ParseInt(string(number), 10, 64); err == nil {
		return n, nil
	}
	if _, ok := new(big.Int).SetString(string(number), 10); ok {
		return number, nil
	}
	return number.Float64()
}

func (r *jsonReader) array() (any, error) {
	items := []any{}
	for r.decoder.More() {
		item, err := r.value()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := r.decoder.Token()
	return items, err
}

func (r *jsonReader) object() (any, error) {
	object := Object{}
	places := map[string]int{}
	for r.decoder.More() {
		token, err := r.decoder.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string)
		value, err := r.value()
		if err != nil {
			return nil, err
		}
		if place, ok := places[key]; ok {
			object[place].Value = value
			continue
		}
		places[key] = len(object)
		object = append(object, Member{key, value})
	}
	_, err := r.decoder.Token()
	return object, err
}

// hasLoneSurrogate reports whether an escape in JSON is half a character, which package json would replace.
func hasLoneSurrogate(raw []byte) bool {
	const escape = len(`\u0000`)
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return false
		}
		raw = raw[i:]
		unit := escapedUnit(raw)
		switch {
		case unit < 0:
			raw = raw[min(len(raw), len(`\n`)):]
		case unit < highSurrogates || unit >= afterSurrogates:
			raw = raw[escape:]
		default:
			low := escapedUnit(raw[escape:])
			if unit >= lowSurrogates || low < lowSurrogates || low >= afterSurrogates {
				return true
			}
			raw = raw[2*escape:]
		}
	}
}

// The two halves of the surrogates begin here, and what follows them.
const highSurrogates, lowSurrogates, afterSurrogates = 0xd800, 0xdc00, 0xe000

// escapedUnit returns the unit of UTF-16 of the escape at the beginning of raw, or -1.
func escapedUnit(raw []byte) int {
	if len(raw) < len(`\u0000`) || raw[0] != '\\' || raw[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return int(unit)
}
