package controller

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"k8s.io/utils/lru"
)

// sharing lets objects in the cache share what is the same in many of them. A claim's annotations and its request are a
// third of its memory, and those of a thousand claims are often the same.
//
// What is shared must never be changed. That holds for all that the cache has: its readers get copies.
type sharing struct {
	known   *lru.Cache
	largest int
}

// newSharing remembers the values that were used last, so many at most. Values whose JSON has more bytes than the largest are
// not shared: they would stay in memory after the objects that had them.
func newSharing(values, largest int) *sharing {
	return &sharing{known: lru.New(values), largest: largest}
}

// replacement is what JSON has in place of bytes that are no text: texts that differ in these have the same JSON.
var replacement = []byte(`\ufffd`)

// share returns a value that was given before if it has the same type and the same JSON, and otherwise the given one.
func share[T any](s *sharing, value T) T {
	encoded, err := json.Marshal(value)
	if err != nil || len(encoded) > s.largest || bytes.Contains(encoded, replacement) {
		return value
	}
	key := sha256.Sum256(fmt.Appendf(encoded, "%T", value))
	if known, ok := s.known.Get(key); ok {
		if same, ok := known.(T); ok {
			return same
		}
	}
	s.known.Add(key, value)
	return value
}
