package py

import "strings"

type nameSet map[string]bool

func names(list string) nameSet {
	set := nameSet{}
	for name := range strings.FieldsSeq(list) {
		set[name] = true
	}
	return set
}

// isHidden reports whether v has the attribute name, which begins with an underscore, so no template gets it. Such a name
// is refused, and others are undefined.
func isHidden(v Value, name string) bool {
	typeName := v.TypeName()
	if typeName == "Namespace" { // It asks its own attributes for every other name.
		return name == "__class__" || name == "_Namespace__attrs"
	}
	return objectNames[name] || hiddenNames[typeName][name]
}

// objectNames has the attributes of every object of Python.
var objectNames = names(`__class__ __delattr__ __dir__ __doc__ __eq__ __format__ __ge__ __getattribute__
	__getstate__ __gt__ __hash__ __init__ __init_subclass__ __le__ __lt__ __ne__ __new__ __reduce__ __reduce_ex__
	__repr__ __setattr__ __sizeof__ __str__ __subclasshook__`)

const (
	sequenceNames = "__add__ __contains__ __getitem__ __iter__ __len__ __mul__ __rmul__ "
	textNames     = sequenceNames + "__getnewargs__ __mod__ __rmod__ "
	mappingNames  = "__class_getitem__ __contains__ __getitem__ __ior__ __iter__ __len__ __or__ __reversed__ __ror__ "
	numberNames   = `__abs__ __add__ __bool__ __getnewargs__ __mul__ __neg__ __pos__ __pow__ __radd__ __rmul__ __rpow__
		__rsub__ __rtruediv__ __sub__ __truediv__ `
	realNames = numberNames + `__ceil__ __divmod__ __float__ __floor__ __floordiv__ __int__ __mod__ __rdivmod__
		__rfloordiv__ __rmod__ __round__ __trunc__ `
	intNames = realNames + `__and__ __index__ __invert__ __lshift__ __or__ __rand__ __rlshift__ __ror__ __rrshift__
		__rshift__ __rxor__ __xor__`
	iteratorNames = "__iter__ __length_hint__ __next__ "
	viewNames     = "__iter__ __len__ __reversed__ "
	setNames      = viewNames + "__and__ __contains__ __or__ __rand__ __ror__ __rsub__ __rxor__ __sub__ __xor__"
	// instanceNames has those of objects whose class is written in Python.
	instanceNames = "__dict__ __module__ __weakref__ "
	functionNames = "__call__ __module__ __name__ __qualname__ "
	// pythonNames has those of a function written in Python.
	pythonNames = functionNames + `__annotations__ __builtins__ __closure__ __code__ __defaults__ __dict__ __get__
		__globals__ __kwdefaults__ `
)

// hiddenNames has the attributes by type that begin with an underscore, besides those of every object.
var hiddenNames = map[string]nameSet{
	"NoneType":   names("__bool__"),
	"bool":       names(intNames),
	"int":        names(intNames),
	"float":      names(realNames + "__getformat__"),
	"complex":    names(numberNames + "__complex__"),
	"str":        names(textNames),
	"bytes":      names(textNames + "__bytes__"),
	"Markup":     names(textNames + "__html__ __html_format__ __module__ __radd__ __slots__"),
	"list":       names(sequenceNames + "__class_getitem__ __delitem__ __iadd__ __imul__ __reversed__ __setitem__"),
	"tuple":      names(sequenceNames + "__class_getitem__ __getnewargs__"),
	"dict":       names(mappingNames + "__delitem__ __setitem__"),
	"range":      names("__bool__ __contains__ __getitem__ __iter__ __len__ __reversed__"),
	"dict_keys":  names(setNames),
	"dict_items": names(setNames), "dict_values": names(viewNames),
	"generator":            names("__del__ __iter__ __name__ __next__ __qualname__"),
	"map":                  names("__iter__ __next__"),
	"list_reverseiterator": names(iteratorNames + "__setstate__"),
	"range_iterator":       names(iteratorNames + "__setstate__"),
	"reversed":             names(iteratorNames + "__setstate__"),

	"dict_reversekeyiterator":   names(iteratorNames),
	"dict_reversevalueiterator": names(iteratorNames),
	"dict_reverseitemiterator":  names(iteratorNames),

	"_GroupTuple": names(sequenceNames + `__annotations__ __class_getitem__ __getnewargs__ __match_args__ __module__
		__orig_bases__ __slots__ _asdict _field_defaults _fields _make _replace`),
	"function":                   names(pythonNames),
	"method":                     names(pythonNames + "__func__ __self__"),
	"builtin_function_or_method": names(functionNames + "__self__ __text_signature__"),
	"method_descriptor":          names("__call__ __get__ __name__ __objclass__ __qualname__ __text_signature__"),
	"type": names(functionNames + `__annotations__ __base__ __bases__ __basicsize__ __dict__ __dictoffset__ __flags__
		__instancecheck__ __itemsize__ __mro__ __or__ __prepare__ __ror__ __subclasscheck__ __subclasses__
		__text_signature__ __weakrefoffset__`),
	"Undefined": names(`__add__ __aiter__ __bool__ __call__ __complex__ __div__ __float__ __floordiv__ __getattr__
		__getitem__ __int__ __iter__ __len__ __mod__ __module__ __mul__ __neg__ __pos__ __pow__ __radd__ __rdiv__
		__rfloordiv__ __rmod__ __rmul__ __rpow__ __rsub__ __rtruediv__ __sub__ __truediv__
		_fail_with_undefined_error _undefined_exception _undefined_hint _undefined_message _undefined_name
		_undefined_obj`),
	"LoopContext": names(instanceNames + `__annotations__ __call__ __iter__ __len__ __next__ _after _before _current
		_iterable _iterator _last_changed_value _length _peek_next _recurse _to_iterator _undefined`),
	"Macro": names(instanceNames + `__call__ _argument_count _async_invoke _default_autoescape _environment _func
		_invoke`),
	"Cycler":            names(instanceNames + "__next__"),
	"Joiner":            names(instanceNames + "__call__"),
	"TemplateReference": names(instanceNames + "__getitem__ _TemplateReference__context"),
	"BlockReference":    names(instanceNames + "__call__ _async_call _context _depth _stack"),
	"TemplateModule":    names(instanceNames + "__html__ __name__ _body_stream"),
}
