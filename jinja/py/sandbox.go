package py

import (
	"errors"
	"fmt"
	"slices"
)

// SandboxAttr is obj.name in a template: the attribute, else the item of that name, else Undefined, which takes the name
// for computed: see Written.
// What the sandbox refuses is an Undefined whose every use is a security error.
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

// SandboxItem is obj[key] in a template: the item, else the attribute of that name, else Undefined.
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

// Written returns v as what looking up a name gives that stands in the template: an error may tell the name.
func Written(v, obj Value, name string) Value {
	if u, ok := v.(*Undefined); ok && u.Computed && u.Object == obj && u.Name == name {
		written := *u
		written.Computed = false
		return &written
	}
	return v
}

// isLookupFailure reports whether err is one that looking something up hides: TypeError or LookupError.
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

// missing is what a look-up without a result gives. A key that is no name may be secret.
func missing(obj, key Value) *Undefined {
	if name, ok := TextOf(key); ok {
		return &Undefined{Name: name, Object: obj, Computed: true}
	}
	return &Undefined{
		Object: obj,
		Hint:   fmt.Sprintf("'%s object' has no element with this key, of type '%s'", obj.TypeName(), key.TypeName()),
	}
}

// TextOf returns the text of a str, which a Markup is, too.
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
