package definition

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// schema describes the JSON fields of a struct type.
type schema struct {
	// names are the fields in the order of the declaration, mandatory ones first.
	names []string
	types map[string]reflect.Type
}

var schemas sync.Map // of reflect.Type to *schema

// schemaOf returns the schema of a struct type.
func schemaOf(typ reflect.Type) *schema {
	if known, ok := schemas.Load(typ); ok {
		return known.(*schema)
	}
	s := &schema{types: map[string]reflect.Type{}}
	mandatory, optional := s.addFields(typ)
	s.names = slices.Concat(mandatory, optional)
	schemas.Store(typ, s)
	return s
}

func (s *schema) addFields(typ reflect.Type) (mandatory, optional []string) {
	for field := range typ.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case name == "" && field.Anonymous:
			more, rest := s.addFields(bare(field.Type))
			mandatory, optional = append(mandatory, more...), append(optional, rest...)
		case name == "":
		default:
			s.types[name] = field.Type
			if strings.Contains(options, "omitempty") {
				optional = append(optional, name)
			} else {
				mandatory = append(mandatory, name)
			}
		}
	}
	return mandatory, optional
}

// bare returns the element type of a pointer type, and other types unchanged.
func bare(typ reflect.Type) reflect.Type {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	return typ
}

// element returns the struct type that the type is, or is a list of; nil if it is neither.
func element(typ reflect.Type) reflect.Type {
	typ = bare(typ)
	if typ.Kind() == reflect.Slice {
		typ = bare(typ.Elem())
	}
	if typ.Kind() != reflect.Struct || isScalar(typ) {
		return nil
	}
	return typ
}
