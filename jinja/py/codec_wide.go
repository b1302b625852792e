package py

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// byteOrder reads and writes units of several bytes.
type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// wide is the codec with units of several bytes. A marked one begins with the byte order mark.
func wide(size int, order byteOrder, marked bool) codec {
	w := wideCodec{size: size, order: order, marked: marked}
	return codec{encode: w.encode, decode: w.decode}
}

type wideCodec struct {
	size   int
	order  byteOrder
	marked bool
}

func (w wideCodec) encode(b *Budget, s, _ string) (string, error) {
	if w.marked {
		s = byteOrderMark + s
	}
	if err := b.Alloc(utf8.RuneCountInString(s) * 4); err != nil {
		return "", err
	}
	var data []byte
	for _, r := range s {
		if w.size == 4 {
			data = w.order.AppendUint32(data, uint32(r))
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			data = w.order.AppendUint16(data, unit)
		}
	}
	return string(data), b.Text(len(data))
}

// decode returns an error for invalid text, whatever the error handler is.
func (w wideCodec) decode(b *Budget, data, _ string) (string, error) {
	if err := b.Alloc(len(data) * 2); err != nil {
		return "", err
	}
	units := []byte(data)
	if w.marked {
		units = w.unmarked(units)
	}
	var text []byte
	for len(units) > 0 {
		r, size := w.next(units)
		if size == 0 {
			return "", exception("UnicodeDecodeError", "can't decode bytes: illegal encoding")
		}
		text = utf8.AppendRune(text, r)
		units = units[size:]
	}
	return string(text), b.Text(len(text))
}

// unmarked removes the byte order mark, which decides the order.
func (w *wideCodec) unmarked(units []byte) []byte {
	for _, order := range []byteOrder{binary.LittleEndian, binary.BigEndian} {
		marked := wideCodec{size: w.size, order: order}
		if r, size := marked.next(units); size > 0 && r == 0xfeff {
			w.order = order
			return units[size:]
		}
	}
	return units
}

// next decodes one code point; its size is 0 if there is none.
func (w wideCodec) next(units []byte) (r rune, size int) {
	if len(units) < w.size {
		return 0, 0
	}
	if w.size == 4 {
		n := w.order.Uint32(units)
		if n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
			return 0, 0
		}
		return rune(n), 4
	}
	r = rune(w.order.Uint16(units))
	if !utf16.IsSurrogate(r) {
		return r, 2
	}
	if len(units) < 4 {
		return 0, 0
	}
	if r = utf16.DecodeRune(r, rune(w.order.Uint16(units[2:]))); r == utf8.RuneError {
		return 0, 0
	}
	return r, 4
}
