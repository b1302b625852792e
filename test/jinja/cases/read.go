package cases

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Case is a case of the acceptance data. Each case is one line.
type Case struct {
	ID       string
	Category string
	Template string
	// Context is plain data. Its mappings keep their order.
	Context any
	// Expected are the acceptable outcomes. It may be empty.
	Expected []Outcome
}

// maxLine is the maximum length of a line, in bytes.
const maxLine = 64 << 20

// Reader reads cases, one at a time.
type Reader struct {
	lines  *bufio.Scanner
	number int
	shared map[string]any
}

// NewReader returns a Reader. Lines end only with "\n", because a template may contain other line separators.
func NewReader(in io.Reader) *Reader {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	lines.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			return i + 1, data[:i], nil
		}
		if atEOF && len(data) > 0 {
			return len(data), data, nil
		}
		return 0, nil, nil
	})
	return &Reader{lines: lines}
}

type line struct {
	Contexts map[string]json.RawMessage `json:"contexts"`

	ID         string          `json:"id"`
	Category   string          `json:"cat"`
	Template   *string         `json:"template"`
	Context    json.RawMessage `json:"ctx"`
	Expect     *Outcome        `json:"expect"`
	ExpectSync *Outcome        `json:"expect_sync"`
	Expect303  *Outcome        `json:"expect_303"`
}

// Next returns the next case, or io.EOF after the last one.
func (r *Reader) Next() (Case, error) {
	for r.lines.Scan() {
		r.number++
		raw := bytes.TrimSpace(r.lines.Bytes())
		if len(raw) == 0 {
			continue
		}
		c, isCase, err := r.parse(withoutNonFinite(raw))
		if err != nil {
			return Case{}, fmt.Errorf("line %d: %w", r.number, err)
		}
		if isCase {
			return c, nil
		}
	}
	if err := r.lines.Err(); err != nil {
		return Case{}, fmt.Errorf("line %d: %w", r.number+1, err)
	}
	return Case{}, io.EOF
}

func (r *Reader) parse(raw []byte) (c Case, isCase bool, err error) {
	var l line
	if err := json.Unmarshal(raw, &l); err != nil {
		return Case{}, false, err
	}
	if l.Contexts != nil {
		return Case{}, false, r.share(l.Contexts)
	}
	if l.Template == nil {
		return Case{}, false, errors.New("there is no template")
	}
	c = Case{ID: l.ID, Category: l.Category, Template: *l.Template}
	for _, outcome := range []*Outcome{l.Expect, l.ExpectSync, l.Expect303} {
		if outcome != nil {
			c.Expected = append(c.Expected, *outcome)
		}
	}
	c.Context, err = r.context(l.Context)
	return c, true, err
}

func (r *Reader) share(contexts map[string]json.RawMessage) error {
	r.shared = make(map[string]any, len(contexts))
	for name, raw := range contexts {
		context, err := DecodeContext(raw)
		if err != nil {
			return fmt.Errorf("context %q: %w", name, err)
		}
		r.shared[name] = context
	}
	return nil
}

func (r *Reader) context(raw json.RawMessage) (any, error) {
	var name string
	if len(raw) == 0 || raw[0] != '"' {
		return DecodeContext(raw)
	}
	if err := json.Unmarshal(raw, &name); err != nil {
		return nil, err
	}
	context, ok := r.shared[name]
	if !ok {
		return nil, fmt.Errorf("there is no context %q", name)
	}
	return context, nil
}

// withoutNonFinite replaces NaN and infinities, which Python writes as numbers but JSON does not allow. It writes them
// in the same form as other values that JSON does not have.
func withoutNonFinite(raw []byte) []byte {
	if !bytes.Contains(raw, []byte("NaN")) && !bytes.Contains(raw, []byte("Infinity")) {
		return raw
	}
	words := []struct{ word, repr string }{{"NaN", "nan"}, {"-Infinity", "-inf"}, {"Infinity", "inf"}}
	var out bytes.Buffer
	inString := false
next:
	for i := 0; i < len(raw); i++ {
		if !inString {
			for _, w := range words {
				if bytes.HasPrefix(raw[i:], []byte(w.word)) {
					fmt.Fprintf(&out, `{"__repr__": %q}`, w.repr)
					i += len(w.word) - 1
					continue next
				}
			}
		}
		switch {
		case raw[i] == '"':
			inString = !inString
		case raw[i] == '\\' && inString && i+1 < len(raw):
			out.WriteByte(raw[i])
			i++
		}
		out.WriteByte(raw[i])
	}
	return out.Bytes()
}

// All yields all remaining cases, up to the end or to the first error.
func (r *Reader) All() iter.Seq2[Case, error] {
	return func(yield func(Case, error) bool) {
		for {
			c, err := r.Next()
			if errors.Is(err, io.EOF) || !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// Passes reports whether got is one of the expected outcomes.
func (c Case) Passes(got Outcome) bool { return c.Verdict(got) == Same }

// Verdict returns the best verdict on got, over all expected outcomes.
func (c Case) Verdict(got Outcome) Verdict {
	best := Different
	for _, want := range c.Expected {
		best = min(best, Judge(want, got))
	}
	return best
}
