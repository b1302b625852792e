package py

import (
	"errors"
	"fmt"
	"slices"
)

// SandboxAttr returns obj.name in a template: the attribute, else the item of that name, else Undefined with a computed
// name: see Written.
// For a name that the sandbox refuses, it returns an Undefined whose every use is a security error.
func SandboxAttr(b *Budget, obj Value, name string) (Value, error) {
	value, found, safe, err := Attr(b, obj, name)
	if err != nil {
		return nil, err
	}
	if found {
		return sandboxed(obj, name, value, safe), nil
	}
	value, err = Item(b, obj, Str(name))
	if err == nil || !isLookupFailure(err) {
		return value, err
	}
	return missing(obj, Str(name)), nil
}

// SandboxItem returns obj[key] in a template: the item, else the attribute of that name, else Undefined.
func SandboxItem(b *Budget, obj, key Value) (Value, error) {
	value, err := Item(b, obj, key)
	if err == nil || !isLookupFailure(err) {
		return value, err
	}
	name, isText := TextOf(key)
	if !isText {
		return missing(obj, key), nil
	}
	value, found, safe, err := Attr(b, obj, name)
	if err != nil {
		return nil, err
	}
	if found {
		return sandboxed(obj, name, value, safe), nil
	}
	return missing(obj, key), nil
}

// Written returns v as the result for a name that is written in the template, so errors may contain it.
func Written(v, obj Value, name string) Value {
	if u, ok := v.(*Undefined); ok && u.Computed && u.Object == obj && u.Name == name {
		written := *u
		written.Computed = false
		return &written
	}
	return v
}

// isLookupFailure reports whether err is one that a look-up hides: TypeError or LookupError.
func isLookupFailure(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && (e.Kind == Type || isLookupError(e))
}

func isLookupError(e *Error) bool {
	return slices.Contains([]string{"LookupError", "KeyError", "IndexError"}, e.Exception)
}

func sandboxed(obj Value, name string, value Value, safe bool) Value {
	if !safe {
		return &Undefined{Name: name, Object: obj, Unsafe: true, Computed: true}
	}
	return value
}

// missing returns the result of a look-up that finds nothing. A key that is not a name may be secret.
func missing(obj, key Value) *Undefined {
	if name, ok := TextOf(key); ok {
		return &Undefined{Name: name, Object: obj, Computed: true}
	}
	return &Undefined{
		Object: obj,
		Hint:   fmt.Sprintf("'%s object' has no element with this key, of type '%s'", obj.TypeName(), key.TypeName()),
	}
}

// TextOf returns the text of a str or a Markup.
func TextOf(v Value) (string, bool) {
	switch v := v.(type) {
	case Str:
		return string(v), true
	case Markup:
		return string(v), true
	default:
		return "", false
	}
}
