package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Fields are the values of an object, by their paths.
type Fields map[string]string

// FieldsOf returns the fields of an object. Those of a list have the path of the list and "[]", with their index if there is more than one.
func FieldsOf(object any) (Fields, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	fields := Fields{}
	fields.add("", value)
	return fields, nil
}

func (f Fields) add(path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 {
			f[path] = "{}"
		}
		for name, part := range v {
			f.add(path+"."+name, part)
		}
	case []any:
		if len(v) == 0 {
			f[path] = "[]"
		}
		for i, part := range v {
			if len(v) == 1 {
				f.add(path+"[]", part)
			} else {
				f.add(fmt.Sprintf("%s[%d]", path, i), part)
			}
		}
	case string:
		f[path] = v
		if v == "" {
			f[path] = `""`
		}
	default:
		text, _ := json.Marshal(v) // a number, a bool or nil, which came from JSON
		f[path] = string(text)
	}
}

// Without removes the fields that have one of these paths, or are below one of them.
func (f Fields) Without(paths ...string) Fields {
	maps.DeleteFunc(f, func(path, _ string) bool {
		return slices.ContainsFunc(paths, func(p string) bool {
			rest, is := strings.CutPrefix(path, p)
			return is && (rest == "" || rest[0] == '.' || rest[0] == '[')
		})
	})
	return f
}

// Replace replaces in all values what differs from object to object, as names and UIDs do. The pairs are old and new texts.
func (f Fields) Replace(pairs ...string) Fields {
	replacer := strings.NewReplacer(pairs...)
	for path, value := range f {
		f[path] = replacer.Replace(value)
	}
	return f
}

// Difference is a field that two objects have different values of. A value is empty where the field is absent.
type Difference struct {
	Object, Field, Theirs, Ours string
}

// Compare returns the differences between their object and PaV's.
func Compare(object string, theirs, ours Fields) []Difference {
	all := maps.Clone(theirs)
	maps.Copy(all, ours)
	var found []Difference
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if theirs[path] != ours[path] {
			found = append(found, Difference{Object: object, Field: path, Theirs: theirs[path], Ours: ours[path]})
		}
	}
	return found
}
