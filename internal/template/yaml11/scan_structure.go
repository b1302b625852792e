package yaml11

import "slices"

// fetchEnd ends the text.
func (s *scanner) fetchEnd() error {
	s.unwind(-1)
	if err := s.dropKey(s.flow); err != nil {
		return err
	}
	s.keys = nil
	s.add(streamEnd, s.mark)
	s.done = true
	return nil
}

func (s *scanner) fetchDirective() error {
	s.unwind(-1)
	if err := s.dropKey(s.flow); err != nil {
		return err
	}
	s.keyAllowed = false
	t, err := s.directive()
	s.tokens = append(s.tokens, t)
	return err
}

// fetchSeparator takes '---' or '...'.
func (s *scanner) fetchSeparator(r rune) error {
	s.unwind(-1)
	if err := s.dropKey(s.flow); err != nil {
		return err
	}
	s.keyAllowed = false
	if r == '-' {
		s.add(documentStart, s.mark)
	} else {
		s.add(documentEnd, s.mark)
	}
	s.skip(3)
	return nil
}

func (s *scanner) fetchFlowStart(k kind) error {
	if err := s.saveKey(); err != nil {
		return err
	}
	s.flow++
	s.keys = append(s.keys, simpleKey{})
	s.keyAllowed = true
	s.add(k, s.mark)
	s.skip(1)
	return nil
}

func (s *scanner) fetchFlowEnd(k kind) error {
	if s.flow == 0 {
		return s.errorf("%s ends nothing", k)
	}
	if err := s.dropKey(s.flow); err != nil {
		return err
	}
	s.keys = s.keys[:s.flow]
	s.flow--
	s.keyAllowed = false
	s.add(k, s.mark)
	s.skip(1)
	return nil
}

func (s *scanner) fetchFlowEntry() error {
	s.keyAllowed = true
	if err := s.dropKey(s.flow); err != nil {
		return err
	}
	s.add(flowEntry, s.mark)
	s.skip(1)
	return nil
}

// fetchIndicator takes a '-', '?' or ':' that is no part of a scalar.
func (s *scanner) fetchIndicator(r rune) error {
	switch r {
	case '-':
		return s.fetchBlockIndicator(blockEntry, blockSequenceStart, true)
	case '?':
		return s.fetchBlockIndicator(key, blockMappingStart, s.flow == 0)
	}
	if !s.keys[s.flow].possible {
		return s.fetchBlockIndicator(value, blockMappingStart, s.flow == 0)
	}

	// A key goes before the token that has turned out to be one.
	k := s.keys[s.flow]
	s.keys[s.flow] = simpleKey{}
	position := k.token - s.taken
	s.tokens = slices.Insert(s.tokens, position, token{kind: key, mark: k.mark})
	if s.flow == 0 {
		s.addIndent(k.mark.column, blockMappingStart, k.mark, position)
	}
	s.keyAllowed = false
	s.add(value, s.mark)
	s.skip(1)
	return nil
}

// fetchBlockIndicator takes an indicator that, in block context, may begin a collection.
func (s *scanner) fetchBlockIndicator(k, collection kind, keyAllowed bool) error {
	if s.flow == 0 {
		if !s.keyAllowed {
			return s.errorf("%s cannot stand here", k)
		}
		s.addIndent(s.column, collection, s.mark, len(s.tokens))
	}
	s.keyAllowed = keyAllowed
	if err := s.dropKey(s.flow); err != nil {
		return err
	}
	s.add(k, s.mark)
	s.skip(1)
	return nil
}

// fetchWord takes a token that may be a key.
func (s *scanner) fetchWord(scan func(*scanner) (token, error)) error {
	if err := s.saveKey(); err != nil {
		return err
	}
	s.keyAllowed = false
	t, err := scan(s)
	s.tokens = append(s.tokens, t)
	return err
}

func (s *scanner) fetchBlockScalar() error {
	if s.flow > 0 {
		return s.errorf("no value inside brackets can begin with '|' or '>': quote the text")
	}
	s.keyAllowed = true
	if err := s.dropKey(s.flow); err != nil {
		return err
	}
	t, err := s.blockScalar()
	s.tokens = append(s.tokens, t)
	return err
}
