package source

import "slices"

// space is the white space between two parts of a quoted or plain scalar.
type space struct {
	blanks []place
	runes  []rune

	// breaks is the number of line breaks.
	breaks []place
}

// skip reads white space. Blanks next to a line break are not part of the text.
func (w *writing) skip(p place, broken bool) (space, place) {
	s := space{}
	for {
		r, ok := w.at(p)
		switch {
		case !ok || !isBlank(r) && r != '\n':
			return s, p
		case r == '\n':
			s.breaks, s.blanks, s.runes = append(s.breaks, p), nil, nil
		case len(s.breaks) == 0 && !broken:
			s.blanks, s.runes = append(s.blanks, p), append(s.runes, r)
		}
		p = w.next(p)
	}
}

// fold writes white space: a single line break becomes a space; of several, the first one is left out.
func (w *writing) fold(s space) {
	for i, at := range s.blanks {
		w.emit(s.runes[i], at)
	}
	if len(s.breaks) == 1 {
		w.emit(' ', s.breaks[0])
	}
	for _, at := range s.breaks[min(1, len(s.breaks)):] {
		w.emit('\n', at)
	}
}

// plain reads an unquoted text of n characters.
func (w *writing) plain(p place, n int) bool {
	for len(w.text) < n {
		r, ok := w.at(p)
		if !ok {
			return false
		}
		if isBlank(r) || r == '\n' {
			var s space
			s, p = w.skip(p, false)
			w.fold(s)
			continue
		}
		w.emit(r, p)
		p = w.next(p)
	}
	return true
}

// quoted reads a text from its opening quote to its closing one.
func (w *writing) quoted(p place, quote rune) bool {
	if r, ok := w.at(p); !ok || r != quote {
		return false
	}
	p = w.next(p)
	for {
		r, ok := w.at(p)
		if !ok {
			return false
		}
		var more bool
		switch {
		case isBlank(r) || r == '\n':
			var s space
			s, p = w.skip(p, false)
			w.fold(s)
			continue
		case r == quote:
			p, more = w.quote(p, quote)
		case r == '\\' && quote == '"':
			p, more = w.escape(p)
		default:
			w.emit(r, p)
			p, more = w.next(p), true
		}
		if !more {
			return r == quote
		}
	}
}

// quote reads a quote: the closing one or, for two single quotes, one that is part of the text.
func (w *writing) quote(p place, quote rune) (place, bool) {
	after := w.next(p)
	if r, _ := w.at(after); quote != '\'' || r != '\'' {
		return after, false
	}
	w.emit('\'', p)
	return w.next(after), true
}

var escapes = map[rune]rune{
	'0': 0, 'a': '\a', 'b': '\b', 't': '\t', '\t': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', 'e': '\x1b',
	' ': ' ', '"': '"', '\'': '\'', '/': '/', '\\': '\\', 'N': '\u0085', '_': '\u00a0', 'L': '\u2028', 'P': '\u2029',
}

var digits = map[rune]int{'x': 2, 'u': 4, 'U': 8}

// escape reads an escape sequence.
func (w *writing) escape(p place) (place, bool) {
	after := w.next(p)
	r, ok := w.at(after)
	if !ok {
		return p, false
	}
	if r == '\n' {
		s, next := w.skip(w.next(after), true)
		for _, at := range s.breaks {
			w.emit('\n', at)
		}
		return next, true
	}
	after = w.next(after)
	if value, ok := escapes[r]; ok {
		w.emit(value, p)
		return after, true
	}
	n := digits[r]
	if n == 0 {
		return p, false
	}
	value := rune(0)
	for range n {
		digit, ok := w.at(after)
		i := slices.Index([]rune("0123456789abcdef"), lower(digit))
		if !ok || i < 0 {
			return p, false
		}
		value, after = value<<4|rune(i), w.next(after)
	}
	w.emit(value, p)
	return after, true
}

func lower(r rune) rune {
	if 'A' <= r && r <= 'F' {
		return r + 'a' - 'A'
	}
	return r
}
