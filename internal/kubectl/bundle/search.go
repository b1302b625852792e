package bundle

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// isMessage has the fields with text for people, which may quote a value that was removed.
var isMessage = map[string]bool{"message": true, "note": true}

// search finds values that were removed, in text that is kept.
type search struct{ replacer *strings.Replacer }

// search returns the search for all that was removed. A value that a kept field has, too, such as the name of a volume, is
// no secret.
func (c *cleaner) search() *search {
	var pairs []string
	for _, value := range slices.SortedFunc(maps.Keys(c.removed), compareLength) {
		if c.kept[value] {
			continue
		}
		pairs = append(pairs, value, Removed)
		if escaped := inJSON(value); escaped != value {
			pairs = append(pairs, escaped, Removed) // logs are JSON
		}
	}
	return &search{strings.NewReplacer(pairs...)}
}

// inJSON returns a value as it is between the quotes of a JSON text.
func inJSON(value string) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // a text can always be encoded
	return strings.TrimSuffix(strings.TrimPrefix(text.String(), `"`), "\"\n")
}

func (s *search) replace(text string) string { return s.replacer.Replace(text) }

// messages returns a value in whose messages nothing is left that was removed elsewhere.
func (s *search) messages(value any) any {
	return s.texts(value, func(key string) bool { return isMessage[key] })
}

// everywhere does what messages does, in all texts.
func (s *search) everywhere(value any) any {
	return s.texts(value, func(string) bool { return true })
}

func (s *search) texts(value any, in func(key string) bool) any {
	switch value := value.(type) {
	case map[string]any:
		found := make(map[string]any, len(value))
		for key, field := range value {
			if text, is := field.(string); is && in(key) {
				found[key] = s.replace(text)
			} else {
				found[key] = s.texts(field, in)
			}
		}
		return found
	case []any:
		list := make([]any, len(value))
		for i := range value {
			list[i] = s.texts(value[i], in)
		}
		return list
	}
	return value
}
