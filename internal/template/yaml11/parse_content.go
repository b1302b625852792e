package yaml11

// content parses what a node consists of. A node with properties may have none.
func (p *parser) content(n *node, where place, optional bool) error {
	t, err := p.peek()
	if err != nil {
		return err
	}
	if parse := p.collection(n, t.kind, where); parse != nil {
		return parse(n)
	}
	switch {
	case t.kind == scalar:
		n.text = t.text
		n.resolveScalar(t.plain)
		_, err := p.next()
		return err
	case optional:
		n.resolveScalar(true)
		return nil
	default:
		return t.mark.errorf("a value is expected here, not %s", t.kind)
	}
}

// collection makes n the list or mapping that begins with a token of the kind, and returns what parses it; or nil.
func (p *parser) collection(n *node, k kind, where place) func(*node) error {
	switch {
	case k == flowSequenceStart:
		n.resolveCollection(sequenceNode, sequenceTag)
		return p.flowSequence
	case k == flowMappingStart:
		n.resolveCollection(mappingNode, mappingTag)
		return p.flowMapping
	case k == blockSequenceStart && where != flow:
		n.resolveCollection(sequenceNode, sequenceTag)
		return p.blockSequence
	case k == blockMappingStart && where != flow:
		n.resolveCollection(mappingNode, mappingTag)
		return p.blockMapping
	case k == blockEntry && where == blockInMapping:
		n.resolveCollection(sequenceNode, sequenceTag)
		return p.sequenceOfKey
	default:
		return nil
	}
}

// sequenceOfKey parses a list that is not deeper than its key.
func (p *parser) sequenceOfKey(n *node) error {
	return p.entries(n, blockEntry, key, value, blockEnd)
}

// add parses an item, or takes an empty one where one of the kinds follows.
func (p *parser) add(n *node, where place, m mark, empty ...kind) error {
	item, err := p.nodeUnless(where, m, empty...)
	n.items = append(n.items, item)
	return err
}

// addValue parses the value that belongs to the last key; it is empty if there is no ':'.
func (p *parser) addValue(n *node, where place, empty ...kind) error {
	t, err := p.peek()
	if err != nil {
		return err
	}
	if t.kind != value {
		item, err := p.newNode(&node{tag: nullTag, mark: t.mark})
		n.items = append(n.items, item)
		return err
	}
	if _, err := p.next(); err != nil {
		return err
	}
	return p.add(n, where, t.mark, empty...)
}

func (p *parser) blockSequence(n *node) error {
	if _, err := p.next(); err != nil {
		return err
	}
	if err := p.entries(n, blockEntry, blockEnd); err != nil {
		return err
	}
	t, err := p.next()
	if err == nil && t.kind != blockEnd {
		return t.mark.errorf("a further item of the list or its end is expected here, not %s: check the indentation", t.kind)
	}
	return err
}

// entries parses items that begin with '-'; one is empty if one of the kinds follows.
func (p *parser) entries(n *node, empty ...kind) error {
	for {
		t, err := p.peek()
		if err != nil || t.kind != blockEntry {
			return err
		}
		if _, err := p.next(); err != nil {
			return err
		}
		if err := p.add(n, block, t.mark, empty...); err != nil {
			return err
		}
	}
}

func (p *parser) blockMapping(n *node) error {
	if _, err := p.next(); err != nil {
		return err
	}
	for {
		t, err := p.next()
		if err != nil {
			return err
		}
		switch t.kind {
		case blockEnd:
			return nil
		case key:
		default:
			return t.mark.errorf("a key or the end of the mapping is expected here, not %s: check the indentation", t.kind)
		}
		if err := p.add(n, blockInMapping, t.mark, key, value, blockEnd); err != nil {
			return err
		}
		if err := p.addValue(n, blockInMapping, key, value, blockEnd); err != nil {
			return err
		}
	}
}

func (p *parser) flowSequence(n *node) error {
	return p.flowItems(flowSequenceEnd, func(t token) error {
		if t.kind != key {
			return p.add(n, flow, t.mark)
		}
		// "a: b" in a list is a mapping of its own.
		pair, err := p.newNode(&node{form: mappingNode, tag: mappingTag, mark: t.mark})
		if err != nil {
			return err
		}
		n.items = append(n.items, pair)
		return p.flowPair(pair, flowSequenceEnd)
	})
}

func (p *parser) flowMapping(n *node) error {
	return p.flowItems(flowMappingEnd, func(t token) error {
		if t.kind == key {
			return p.flowPair(n, flowMappingEnd)
		}
		if err := p.add(n, flow, t.mark); err != nil {
			return err
		}
		item, err := p.newNode(&node{tag: nullTag, mark: t.mark})
		n.items = append(n.items, item)
		return err
	})
}

// flowItems parses items with ',' between them up to the closing bracket.
func (p *parser) flowItems(closing kind, item func(token) error) error {
	if _, err := p.next(); err != nil {
		return err
	}
	for first := true; ; first = false {
		if closed, err := p.accept(closing); closed || err != nil {
			return err
		}
		if !first {
			if _, err := p.expect(flowEntry); err != nil {
				return err
			}
			if closed, err := p.accept(closing); closed || err != nil {
				return err
			}
		}
		t, err := p.peek()
		if err != nil {
			return err
		}
		if err := item(t); err != nil {
			return err
		}
	}
}

// flowPair parses a key and its value.
func (p *parser) flowPair(n *node, closing kind) error {
	t, err := p.expect(key)
	if err != nil {
		return err
	}
	if err := p.add(n, flow, t.mark, value, flowEntry, closing); err != nil {
		return err
	}
	return p.addValue(n, flow, flowEntry, closing)
}
