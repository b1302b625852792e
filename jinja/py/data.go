package py

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
)

// Object is an ordered mapping as data.
type Object []Member

// Member is an entry of an Object.
type Member struct {
	Key   string
	Value any
}

// FromData returns data as a value: nil, bool, int, int32, int64, float64, json.Number, string, []any, map[string]any
// (in the order of its keys) and Object, to any depth. The data is never changed. Mappings are converted when they are
// first read; values of other types in them are undefined.
func FromData(data any) (Value, error) {
	value := fromData(data)
	if u, ok := value.(*Undefined); ok {
		return nil, errors.New(u.Hint)
	}
	return value, nil
}

func fromData(data any) Value {
	switch data := data.(type) {
	case nil:
		return None{}
	case bool:
		return Bool(data)
	case string:
		return Str(data)
	case int:
		return NewInt(int64(data))
	case int32:
		return NewInt(int64(data))
	case int64:
		return NewInt(data)
	case float64:
		return Float(data)
	case json.Number:
		return fromNumber(data)
	case []any:
		items := make([]Value, len(data))
		for i, item := range data {
			items[i] = fromData(item)
		}
		return &List{Items: items}
	case map[string]any, Object:
		return &Dict{data: data}
	}
	return &Undefined{Hint: fmt.Sprintf("a Go value of type %T is not data", data)}
}

func fromNumber(number json.Number) Value {
	if n, ok := new(big.Int).SetString(string(number), 10); ok {
		return NewBigInt(n)
	}
	f, err := number.Float64()
	if err != nil {
		return &Undefined{Hint: "a number of the data is none"}
	}
	return Float(f)
}

// ToData returns a plain value as data: mappings become map[string]any, integers int64 or json.Number.
func ToData(b *Budget, v Value) (any, error) {
	if err := b.Enter(); err != nil {
		return nil, err
	}
	defer b.Leave()
	if text, ok := TextOf(v); ok {
		return text, nil
	}
	switch v := v.(type) {
	case None:
		return nil, nil
	case Bool:
		return bool(v), nil
	case Int:
		if n, ok := v.Int64(); ok {
			return n, nil
		}
		return json.Number(v.Big().String()), nil
	case Float:
		return float64(v), nil
	case *List:
		return itemsToData(b, v.Items)
	case *Tuple:
		return itemsToData(b, v.Items)
	case *Dict:
		return dictToData(b, v)
	}
	return nil, typeError("a value of type %s is not plain data", v.TypeName())
}

func itemsToData(b *Budget, items []Value) (any, error) {
	if err := b.Alloc(len(items) * itemSize); err != nil {
		return nil, err
	}
	data := make([]any, len(items))
	for i, item := range items {
		var err error
		if data[i], err = ToData(b, item); err != nil {
			return nil, err
		}
	}
	return data, nil
}

func dictToData(b *Budget, dict *Dict) (any, error) {
	if err := b.Alloc(dict.Len() * entrySize); err != nil {
		return nil, err
	}
	data := make(map[string]any, dict.Len())
	for i := range dict.Len() {
		key, value := dict.Entry(i)
		name, ok := TextOf(key)
		if !ok {
			return nil, typeError("a key of type %s is not plain data", key.TypeName())
		}
		converted, err := ToData(b, value)
		if err != nil {
			return nil, err
		}
		data[name] = converted
	}
	return data, nil
}
