package py

import (
	"math"
	"strings"
	"unicode/utf8"
)

// formatSpec is a format specification: [[fill]align][sign][z][#][0][width][grouping][.precision][type].
type formatSpec struct {
	fill  string
	align byte // '<', '>', '^' or '='
	// sign is '+', ' ', '-' or 0.
	sign       byte
	noNegative bool // z: no negative zero
	alternate  bool
	width      int // -1: none
	// separator is the separator of groups of digits, if any.
	separator string
	precision int // -1: none
	kind      rune
}

const alignments = "<>=^"

// specReader reads a format specification from its start.
type specReader struct{ rest string }

// parseSpec parses spec; kind and align are the defaults.
func parseSpec(spec string, kind rune, align byte) (formatSpec, error) {
	r := &specReader{rest: spec}
	parsed := formatSpec{fill: " ", align: align, kind: kind}
	filled, aligned := r.alignment(&parsed)
	if r.rest != "" && strings.IndexByte(" +-", r.rest[0]) >= 0 {
		parsed.sign, r.rest = r.rest[0], r.rest[1:]
	}
	parsed.noNegative = r.take("z")
	parsed.alternate = r.take("#")
	if !filled && r.take("0") {
		parsed.fill = "0"
		if !aligned && align == '>' {
			parsed.align = '='
		}
	}
	if err := r.sizes(&parsed); err != nil {
		return formatSpec{}, err
	}
	if r.rest != "" {
		last, size := utf8.DecodeRuneInString(r.rest)
		if size < len(r.rest) {
			return formatSpec{}, valueError("Invalid format specifier")
		}
		parsed.kind = last
	}
	return parsed, parsed.checkSeparator()
}

func (r *specReader) take(prefix string) bool {
	rest, found := strings.CutPrefix(r.rest, prefix)
	r.rest = rest
	return found
}

func (r *specReader) alignment(parsed *formatSpec) (filled, aligned bool) {
	_, size := utf8.DecodeRuneInString(r.rest)
	if after := r.rest[size:]; after != "" && strings.IndexByte(alignments, after[0]) >= 0 {
		parsed.fill, parsed.align = r.rest[:size], after[0]
		r.rest = after[1:]
		return true, true
	}
	if r.rest != "" && strings.IndexByte(alignments, r.rest[0]) >= 0 {
		parsed.align, r.rest = r.rest[0], r.rest[1:]
		return false, true
	}
	return false, false
}

// sizes reads width, grouping and precision.
func (r *specReader) sizes(parsed *formatSpec) (err error) {
	if parsed.width, err = r.number(); err != nil {
		return err
	}
	if r.take(",") {
		parsed.separator = ","
	}
	if r.take("_") {
		if parsed.separator != "" {
			return valueError("Cannot specify both ',' and '_'.")
		}
		parsed.separator = "_"
	}
	if parsed.separator == "_" && strings.HasPrefix(r.rest, ",") {
		return valueError("Cannot specify both ',' and '_'.")
	}
	parsed.precision = -1
	if !r.take(".") {
		return nil
	}
	parsed.precision, err = r.number()
	if err == nil && parsed.precision < 0 {
		return valueError("Format specifier missing precision")
	}
	return err
}

// number reads a number with the digits of any script; it is -1 if there is none.
func (r *specReader) number() (int, error) {
	n, read, ok := leadingNumber(r.rest)
	if !ok {
		return 0, valueError("Too many decimal digits in format string")
	}
	if read == 0 {
		return -1, nil
	}
	r.rest = r.rest[read:]
	return n, nil
}

// leadingNumber returns the number at the beginning of s, and its length in bytes; ok is false if it is too large.
func leadingNumber(s string) (n, read int, ok bool) {
	for i, r := range s {
		digit := decimalDigit(r)
		if digit < 0 {
			return n, i, true
		}
		if n > (math.MaxInt-digit)/10 {
			return 0, 0, false
		}
		n = n*10 + digit
	}
	return n, len(s), true
}

func (f *formatSpec) checkSeparator() error {
	switch {
	case f.separator == "" || strings.ContainsRune("defgEGF%\x00", f.kind):
		return nil
	case f.separator == "_" && strings.ContainsRune("boxX", f.kind):
		return nil
	default:
		return valueError("Cannot specify '%s' with this format code.", f.separator)
	}
}

func unknownFormat(typeName string) error {
	return valueError("Unknown format code for object of type '%s'", typeName)
}
