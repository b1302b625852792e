package py

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Dict is a mutable mapping in the order of insertion.
type Dict struct {
	entries []dictEntry
	// index finds entries by hash, where there are too many to look through.
	index map[any]int
	// data is what the entries are made of when they are first needed: many a context is never looked at.
	data any
}

type dictEntry struct {
	key, value Value
	hash       any
}

// scanned is up to how many entries are looked through one after another.
const scanned = 8

// TypeName implements Value.
func (*Dict) TypeName() string { return "dict" }

// NewDict returns an empty dictionary.
func NewDict() *Dict { return &Dict{} }

func (d *Dict) load() {
	if d.data == nil {
		return
	}
	data := d.data
	d.data = nil
	switch data := data.(type) {
	case map[string]any:
		d.entries = make([]dictEntry, 0, len(data))
		for _, key := range slices.Sorted(maps.Keys(data)) {
			d.SetStr(key, fromData(data[key]))
		}
	case Object:
		d.entries = make([]dictEntry, 0, len(data))
		for _, member := range data {
			d.SetStr(member.Key, fromData(member.Value))
		}
	}
}

// Len returns the number of entries.
func (d *Dict) Len() int {
	d.load()
	return len(d.entries)
}

// Entry returns the entry at i, of Len, in order of insertion.
func (d *Dict) Entry(i int) (key, value Value) {
	d.load()
	return d.entries[i].key, d.entries[i].value
}

// Get returns the value of a key. The error is that of a key that cannot be one.
func (d *Dict) Get(key Value) (value Value, ok bool, err error) {
	hash, err := hashOf(key)
	if err != nil {
		return nil, false, err
	}
	value, ok = d.get(hash)
	return value, ok, nil
}

// GetStr is Get for text.
func (d *Dict) GetStr(key string) (value Value, ok bool) { return d.get(key) }

func (d *Dict) get(hash any) (Value, bool) {
	d.load()
	if i := d.find(hash); i >= 0 {
		return d.entries[i].value, true
	}
	return nil, false
}

func (d *Dict) find(hash any) int {
	if d.index != nil {
		if i, ok := d.index[hash]; ok {
			return i
		}
		return -1
	}
	for i := range d.entries {
		if d.entries[i].hash == hash {
			return i
		}
	}
	return -1
}

// Set sets the value of a key, which stays where it is if it is there.
func (d *Dict) Set(key, value Value) error {
	hash, err := hashOf(key)
	if err != nil {
		return err
	}
	d.load()
	d.set(hash, key, value)
	return nil
}

// SetStr is Set for text.
func (d *Dict) SetStr(key string, value Value) {
	d.load()
	d.set(key, Str(key), value)
}

func (d *Dict) set(hash any, key, value Value) {
	if i := d.find(hash); i >= 0 {
		d.entries[i].value = value
		return
	}
	d.entries = append(d.entries, dictEntry{key, value, hash})
	switch {
	case d.index != nil:
		d.index[hash] = len(d.entries) - 1
	case len(d.entries) > scanned:
		d.index = make(map[any]int, 2*len(d.entries))
		for i := range d.entries {
			d.index[d.entries[i].hash] = i
		}
	}
}

// Copy returns a dictionary with the same entries.
func (d *Dict) Copy() *Dict {
	d.load()
	return &Dict{entries: slices.Clone(d.entries), index: maps.Clone(d.index)}
}

// Hashes of values that are equal are equal, and have a type of their own where no Go value serves.
type (
	bytesHash     string
	bigHash       string
	tupleHash     string
	rangeHash     struct{ length, start, step int64 }
	noneHash      struct{}
	undefinedHash struct{}
)

// Hashable returns the TypeError of a value that cannot be a key.
func Hashable(v Value) error {
	_, err := hashOf(v)
	return err
}

// hashOf returns what stands for v among keys: a comparable Go value.
func hashOf(v Value) (any, error) {
	if text, ok := textOf(v); ok {
		return text, nil
	}
	if i, ok := asInt(v); ok {
		return i.hash(), nil
	}
	switch v := v.(type) {
	case Float:
		return v.hash(), nil
	case None:
		return noneHash{}, nil
	case Bytes:
		return bytesHash(v), nil
	case *Tuple:
		return v.hash(0)
	case *Range:
		return v.hash(), nil
	case *Undefined:
		return undefinedHash{}, nil
	case *List, *Dict, *SliceKey:
		return nil, unhashable(v)
	case *DictView:
		if v.Kind != "dict_values" {
			return nil, unhashable(v)
		}
	}
	return v, nil
}

func unhashable(v Value) error { return typeError("unhashable type: '%s'", v.TypeName()) }

func (i Int) hash() any {
	if i.large != nil {
		return bigHash(i.large.String())
	}
	return i.small
}

// hash of a whole number is that of the integer.
func (f Float) hash() any {
	const exact = 1 << 62
	switch x := float64(f); {
	case x != math.Floor(x) || math.IsInf(x, 0):
		return x
	case math.Abs(x) < exact:
		return int64(x)
	default:
		i, _ := truncate(x)
		return i.hash()
	}
}

func (r *Range) hash() any {
	switch n := int64(r.Len()); n {
	case 0:
		return rangeHash{}
	case 1:
		return rangeHash{n, r.Start, 0}
	default:
		return rangeHash{n, r.Start, r.Step}
	}
}

// maxHashDepth is how deep tuples may nest that are keys.
const maxHashDepth = 100

// hash writes the hashes of the items behind each other, each with its type and length.
func (t *Tuple) hash(depth int) (any, error) {
	if depth > maxHashDepth {
		return nil, limitError("a key nests deeper than %d levels", maxHashDepth)
	}
	var text strings.Builder
	for _, item := range t.Items {
		var hash any
		var err error
		if inner, ok := item.(*Tuple); ok {
			hash, err = inner.hash(depth + 1)
		} else {
			hash, err = hashOf(item)
		}
		if err != nil {
			return nil, err
		}
		kind, part := hashText(hash)
		text.WriteString(kind + strconv.Itoa(len(part)) + ":" + part)
	}
	return tupleHash(text.String()), nil
}

// hashText returns a hash as text, and the kind of it.
func hashText(hash any) (kind, text string) {
	switch hash := hash.(type) {
	case string:
		return "s", hash
	case int64:
		return "i", strconv.FormatInt(hash, 10)
	case float64:
		return "f", strconv.FormatFloat(hash, 'g', -1, 64)
	case bigHash:
		return "i", string(hash)
	case bytesHash:
		return "b", string(hash)
	case tupleHash:
		return "t", string(hash)
	}
	if r, ok := hash.(rangeHash); ok {
		return "r", fmt.Sprint(r)
	}
	// Objects are keys by what they are, not by what they contain.
	return "o", fmt.Sprintf("%T %p", hash, hash)
}
