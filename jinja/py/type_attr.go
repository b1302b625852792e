package py

import "strings"

// typeMethods has the types that templates know by name, with their methods. These take the object as an argument. In
// Jinja, that lets methods that change it pass the sandbox; here, it does not.
var typeMethods = map[string]class{
	"dict": {
		methods:     dictMethods,
		unsupported: []string{"clear", "pop", "popitem", "setdefault", "update"},
	},
	"Cycler": {unsupported: []string{"current", "next", "reset"}},
}

// bareName returns the name of a type without that of its module.
func bareName(of *Func) string { return of.Name[strings.LastIndexByte(of.Name, '.')+1:] }

// isHiddenInType reports whether v is a type whose objects have the hidden attribute name, so that it has it, too.
func isHiddenInType(v Value, name string) bool {
	of, ok := v.(*Func)
	return ok && of.Type == "type" && hiddenNames[bareName(of)][name]
}

// typeAttr returns an attribute of a type.
func typeAttr(of *Func, name string) (value Value, found, safe bool, err error) {
	if name == "mro" {
		return None{}, true, false, nil
	}
	typeName := bareName(of)
	methods := typeMethods[typeName]
	m, ok := methods.methods[name]
	if !ok {
		return methods.attr(of, name)
	}
	if name == "fromkeys" {
		return m.of(of, name), true, true, nil
	}
	return &Func{Name: name, Type: "method_descriptor", Fn: func(b *Budget, args Args) (Value, error) {
		if len(args.Pos) == 0 {
			return nil, typeError("unbound method %s.%s() needs an argument", typeName, name)
		}
		self := args.Pos[0]
		if self.TypeName() != typeName {
			return nil, typeError("descriptor '%s' for '%s' objects doesn't apply to a '%s' object", name, typeName,
				self.TypeName())
		}
		return m.of(self, name).Call(b, Args{Pos: args.Pos[1:], Named: args.Named})
	}}, true, true, nil
}
