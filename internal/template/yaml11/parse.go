package yaml11

import (
	"maps"
	"slices"
)

// parser makes nodes of tokens.
type parser struct {
	*scanner
	limits  Limits
	depth   int
	nodes   int
	handles map[string]string
	anchors map[string]*node
}

// properties are what may stand before a node's content.
type properties struct {
	mark   mark
	given  bool
	tag    string
	anchor string
}

var defaultHandles = map[string]string{"!": "!", "!!": tagNamespace}

// document parses the one document that a text may have, or returns nil if it has none.
func (p *parser) document() (*node, error) {
	root, err := p.root()
	if err != nil || root == nil {
		return nil, err
	}
	for {
		t, err := p.peek()
		if err != nil {
			return nil, err
		}
		switch t.kind {
		case streamEnd:
			return root, nil
		case documentEnd:
			if _, err := p.next(); err != nil {
				return nil, err
			}
		default:
			return nil, t.mark.errorf("there must be one document only, but %s follows", t.kind)
		}
	}
}

func (p *parser) root() (*node, error) {
	t, err := p.peek()
	if err != nil {
		return nil, err
	}
	switch t.kind {
	case streamEnd:
		return nil, nil
	case directive, documentStart:
	default:
		return p.node(block)
	}
	if err := p.directives(); err != nil {
		return nil, err
	}
	if t, err = p.expect(documentStart); err != nil {
		return nil, err
	}
	return p.nodeUnless(block, t.mark, directive, documentStart, documentEnd, streamEnd)
}

func (p *parser) directives() error {
	handles := map[string]string{}
	versions := 0
	for {
		t, err := p.peek()
		if err != nil {
			return err
		}
		if t.kind != directive {
			break
		}
		_, known := handles[t.handle]
		switch {
		case t.handle == "" && t.text == "YAML":
			versions++
			known = versions > 1
		case t.handle != "":
			handles[t.handle] = t.text
		}
		if known {
			return t.mark.errorf("this directive is there twice")
		}
		if _, err := p.next(); err != nil {
			return err
		}
	}
	p.handles = maps.Clone(defaultHandles)
	maps.Copy(p.handles, handles)
	return nil
}

// expect takes a token of the kind.
func (p *parser) expect(k kind) (token, error) {
	t, err := p.next()
	if err == nil && t.kind != k {
		return t, t.mark.errorf("%s is expected here, not %s", k, t.kind)
	}
	return t, err
}

// accept takes the next token if it is of the kind.
func (p *parser) accept(k kind) (bool, error) {
	if is, err := p.is(k); !is || err != nil {
		return false, err
	}
	_, err := p.next()
	return true, err
}

// is reports whether the next token is of one of the kinds.
func (p *parser) is(kinds ...kind) (bool, error) {
	t, err := p.peek()
	return err == nil && slices.Contains(kinds, t.kind), err
}

// place is where a node stands, which decides what it may be.
type place int

const (
	flow place = iota
	block
	blockInMapping // where a list need not be deeper than its key
)

// nodeUnless parses a node, or returns an empty scalar where one of the kinds follows.
func (p *parser) nodeUnless(where place, empty mark, kinds ...kind) (*node, error) {
	if is, err := p.is(kinds...); err != nil {
		return nil, err
	} else if is {
		return p.newNode(&node{tag: nullTag, mark: empty})
	}
	return p.node(where)
}

func (p *parser) newNode(n *node) (*node, error) {
	if p.nodes++; p.nodes > p.limits.Nodes {
		return nil, n.mark.errorf("there are too many values")
	}
	return n, nil
}

func (p *parser) node(where place) (*node, error) {
	t, err := p.peek()
	if err != nil {
		return nil, err
	}
	if t.kind == alias {
		return p.alias()
	}
	if p.depth++; p.depth > p.limits.Depth {
		return nil, t.mark.errorf("values are nested deeper than %d levels", p.limits.Depth)
	}
	defer func() { p.depth-- }()

	given, err := p.properties()
	if err != nil {
		return nil, err
	}
	n, err := p.newNode(&node{mark: given.mark, tag: given.tag})
	if err != nil {
		return nil, err
	}
	if given.anchor != "" {
		if _, known := p.anchors[given.anchor]; known {
			return nil, given.mark.errorf("this anchor is there twice")
		}
		p.anchors[given.anchor] = n
	}
	return n, p.content(n, where, given.given)
}

func (p *parser) alias() (*node, error) {
	t, err := p.next()
	if err != nil {
		return nil, err
	}
	n, ok := p.anchors[t.text]
	if !ok {
		return nil, t.mark.errorf("there is no anchor of this alias before it")
	}
	return p.newNode(n)
}

// properties parses an anchor and a tag, in any order.
func (p *parser) properties() (properties, error) {
	t, err := p.peek()
	given := properties{mark: t.mark}
	for err == nil && (t.kind == anchor && given.anchor == "" || t.kind == tag && given.tag == "") {
		given.given = true
		if t.kind == anchor {
			given.anchor = t.text
		} else if given.tag, err = p.fullTag(t); err != nil {
			return given, err
		}
		if _, err = p.next(); err != nil {
			return given, err
		}
		t, err = p.peek()
	}
	return given, err
}

func (p *parser) fullTag(t token) (string, error) {
	if t.handle == "" {
		return t.text, nil
	}
	prefix, ok := p.handles[t.handle]
	if !ok {
		return "", t.mark.errorf("there is no %%TAG for this tag's handle")
	}
	return prefix + t.text, nil
}
