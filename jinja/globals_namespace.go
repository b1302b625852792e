package jinja

import "github.com/albertofaria/pav/jinja/py"

// namespace is an object to which a template can assign attributes in inner scopes.
type namespace struct {
	attributes *py.Dict
	// open says that its representation is being written: inside itself, it is shown as an ellipsis.
	open bool
}

// newNamespace has the parameters of dict.
func newNamespace(b *py.Budget, args py.Args) (py.Value, error) {
	value, err := newDict(b, args)
	if err != nil {
		return nil, err
	}
	attributes, _ := value.(*py.Dict)
	return &namespace{attributes: attributes}, nil
}

// TypeName implements py.Value.
func (*namespace) TypeName() string { return "Namespace" }

// Attr implements py.Attributed.
func (n *namespace) Attr(_ *py.Budget, name string) (py.Value, bool, error) {
	if name == "_Namespace__attrs" {
		return n.attributes, true, nil
	}
	value, found := n.attributes.GetStr(name)
	return value, found, nil
}

// Repr implements py.Representable.
func (n *namespace) Repr(b *py.Budget) (string, error) {
	if n.open {
		return "<Namespace {...}>", nil
	}
	n.open = true
	defer func() { n.open = false }()
	attributes, err := py.Repr(b, n.attributes)
	if err != nil {
		return "", err
	}
	return "<Namespace " + attributes + ">", b.Text(len(attributes))
}

// set assigns to an attribute.
func (n *namespace) set(b *py.Budget, name string, value py.Value) error {
	if err := b.Alloc(4 * valueSize); err != nil {
		return err
	}
	n.attributes.SetStr(name, value)
	return nil
}
