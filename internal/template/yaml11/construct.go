package yaml11

import "slices"

// constructor makes values of nodes.
type constructor struct {
	limits  *Limits
	readers map[string]reader
	depth   int
}

// reader makes a value of a node with a certain tag.
type reader func(c *constructor, n *node) (any, error)

// readers are those of the tags that there are.
var readers = map[string]reader{
	nullTag:      ofScalar(func(string) (any, error) { return nil, nil }),
	boolTag:      ofScalar(parseBool),
	intTag:       ofScalar(parseInt),
	floatTag:     ofScalar(parseFloat),
	timestampTag: ofScalar(parseTimestamp),
	binaryTag:    ofScalar(parseBinary),
	stringTag:    ofScalar(func(text string) (any, error) { return text, nil }),
	sequenceTag:  (*constructor).sequence,
	mappingTag:   (*constructor).mapping,
	setTag:       (*constructor).set,
	omapTag:      (*constructor).pairs,
	pairsTag:     (*constructor).pairs,
}

// ofScalar makes a reader of what parses a scalar's text.
func ofScalar(parse func(text string) (any, error)) reader {
	return func(_ *constructor, n *node) (any, error) {
		if n.form != scalarNode {
			return nil, n.mark.errorf("the tag takes a scalar, not %s", n.form)
		}
		v, err := parse(n.text)
		if err != nil {
			return nil, n.mark.errorf("%s", err)
		}
		return v, nil
	}
}

func (c *constructor) construct(n *node) (any, error) {
	read, ok := c.readers[n.tag]
	if !ok {
		return nil, n.mark.errorf("there is no such type of value; a text that begins with '!', or that is '=' or '<<', must be quoted")
	}
	leave, err := c.enter(n)
	if err != nil {
		return nil, err
	}
	defer leave()
	return read(c, n)
}

// enter counts a node, and refuses one that is a part of itself.
func (c *constructor) enter(n *node) (leave func(), err error) {
	if n.busy {
		return nil, n.mark.errorf("the value is a part of itself")
	}
	if c.depth >= c.limits.Depth {
		return nil, n.mark.errorf("values are nested deeper than %d levels", c.limits.Depth)
	}
	if err := c.count(n, 1, len(n.text)); err != nil {
		return nil, err
	}
	n.busy = true
	c.depth++
	return func() { n.busy = false; c.depth-- }, nil
}

func (c *constructor) count(n *node, nodes, bytes int) error {
	c.limits.Nodes -= nodes
	c.limits.Expanded -= bytes
	if c.limits.Nodes < 0 || c.limits.Expanded < 0 {
		return n.mark.errorf("there are too many values, as aliases and merges repeat them")
	}
	return nil
}

func (c *constructor) sequence(n *node) (any, error) {
	if n.form != sequenceNode {
		return nil, n.mark.errorf("the tag takes a list, not %s", n.form)
	}
	items := make([]any, len(n.items))
	for i, item := range n.items {
		var err error
		if items[i], err = c.construct(item); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// pairs makes a list of [key, value] of a list of mappings that have one entry each.
func (c *constructor) pairs(n *node) (any, error) {
	if n.form != sequenceNode {
		return nil, n.mark.errorf("the tag takes a list, not %s", n.form)
	}
	pairs := make([]any, len(n.items))
	for i, item := range n.items {
		if item.form != mappingNode || len(item.items) != 2 {
			return nil, item.mark.errorf("the tag takes a list of mappings of one entry each")
		}
		k, err := c.construct(item.items[0])
		if err != nil {
			return nil, err
		}
		v, err := c.construct(item.items[1])
		if err != nil {
			return nil, err
		}
		pairs[i] = []any{k, v}
	}
	return pairs, nil
}

func (c *constructor) set(n *node) (any, error) {
	m, err := c.entries(n)
	if err != nil {
		return nil, err
	}
	return Set(m.order), nil
}

func (c *constructor) mapping(n *node) (any, error) {
	m, err := c.entries(n)
	if err != nil {
		return nil, err
	}
	return m.entries, nil
}

func (c *constructor) entries(n *node) (*mapping, error) {
	if n.form != mappingNode {
		return nil, n.mark.errorf("the tag takes a mapping, not %s", n.form)
	}
	items, err := c.flatten(n)
	if err != nil {
		return nil, err
	}
	m := newMapping(len(items) / 2)
	for i := 0; i < len(items); i += 2 {
		k, err := c.key(items[i])
		if err != nil {
			return nil, err
		}
		v, err := c.construct(items[i+1])
		if err != nil {
			return nil, err
		}
		if err := m.set(k, v); err != nil {
			return nil, items[i].mark.errorf("%s", err)
		}
	}
	return m, nil
}

// key makes a value of a key, for which '=' is a string like any other.
func (c *constructor) key(n *node) (any, error) {
	if n.tag == valueTag {
		plain := *n
		plain.tag = stringTag
		n = &plain
	}
	return c.construct(n)
}

// flatten returns keys and values of a mapping, those of << first. Where a key is there twice, the last
// one counts: the mapping's own over merged ones, and of a list of merged ones the first of them.
func (c *constructor) flatten(n *node) ([]*node, error) {
	var merged, own []*node
	for i := 0; i < len(n.items); i += 2 {
		k, v := n.items[i], n.items[i+1]
		if k.tag != mergeTag {
			own = append(own, k, v)
			continue
		}
		items, err := c.merge(v)
		if err != nil {
			return nil, err
		}
		merged = append(merged, items...)
	}
	return append(merged, own...), c.count(n, len(merged)/2, 0)
}

// merge returns keys and values of what << refers to: a mapping, or a list of mappings.
func (c *constructor) merge(n *node) ([]*node, error) {
	leave, err := c.enter(n)
	if err != nil {
		return nil, err
	}
	defer leave()
	switch n.form {
	case mappingNode:
		return c.flatten(n)
	case sequenceNode:
	default:
		return nil, n.mark.errorf("'<<' takes a mapping or a list of mappings, not %s", n.form)
	}
	var merged []*node
	for _, item := range slices.Backward(n.items) {
		if item.form != mappingNode {
			return nil, item.mark.errorf("'<<' takes a list of mappings, not of %s", item.form)
		}
		items, err := c.merge(item)
		if err != nil {
			return nil, err
		}
		merged = append(merged, items...)
	}
	return merged, nil
}
