package py

import (
	"crypto/sha256"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Hashes of equal values are equal. They have a type of their own if no Go value can be used.
type (
	bytesHash     string
	bigHash       string
	nanHash       uint64
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

// hashOf returns the comparable Go value that represents v among keys.
func hashOf(v Value) (any, error) {
	if text, ok := TextOf(v); ok {
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
		return v.hash()
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

// storable returns the error of a key that no dictionary may get, although it can be looked up: a method, or a tuple with one.
// It depends on the identity of equal values whether methods are the same key. So a look finds none.
func storable(key Value) error {
	switch key := key.(type) {
	case *Func:
		if key.Self != nil {
			return exception("NotImplementedError", "the method '%s' as a key is not supported", key.Name)
		}
	case *Tuple: // it has a hash, and so an end
		for _, item := range key.Items {
			if err := storable(item); err != nil {
				return err
			}
		}
	}
	return nil
}

func unhashable(v Value) error { return typeError("unhashable type: '%s'", v.TypeName()) }

// hashBase is a base that text is made in quickly.
const hashBase = 32

func (i Int) hash() any {
	if i.large != nil {
		return bigHash(i.large.Text(hashBase))
	}
	return i.small
}

// The hash of a whole number is that of the integer.
func (f Float) hash() any {
	const exact = 1 << 62
	switch x := float64(f); {
	case math.IsNaN(x):
		return nanHash(math.Float64bits(x))
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

// What a tuple that is a key may have inside: tuples may hold each other many times over.
const (
	maxHashDepth = 100
	maxHashSize  = 64 << 10
)

func (t *Tuple) hash() (any, error) { return new(tupleHasher).hash(t, 0) }

// tupleHasher counts the items that have been read of a tuple and the tuples in it.
type tupleHasher struct{ size int }

// hash writes the hashes of the items one after another, each with its type and length.
func (h *tupleHasher) hash(t *Tuple, depth int) (any, error) {
	if depth > maxHashDepth {
		return nil, limitError("a key nests deeper than %d levels", maxHashDepth)
	}
	var text strings.Builder
	for _, item := range t.Items {
		var hash any
		var err error
		if inner, ok := item.(*Tuple); ok {
			hash, err = h.hash(inner, depth+1)
		} else {
			hash, err = hashOf(item)
		}
		if err != nil {
			return nil, err
		}
		kind, part := hashText(hash)
		if h.size += len(part) + 1; h.size > maxHashSize {
			return nil, limitError("a key is larger than %d bytes", maxHashSize)
		}
		text.WriteString(kind + strconv.Itoa(len(part)) + ":" + part)
	}
	return tupleHash(shortened(text.String())), nil
}

// shortened avoids that a dictionary stores the content of its keys twice.
func shortened(text string) string {
	if len(text) <= 4*sha256.Size {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return string(sum[:])
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
	switch hash := hash.(type) {
	case rangeHash, nanHash:
		return "r", fmt.Sprint(hash)
	}
	// Objects are keys by identity, not by content.
	return "o", fmt.Sprintf("%T %p", hash, hash)
}
