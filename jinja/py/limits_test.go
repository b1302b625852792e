package py

import (
	"errors"
	"testing"
)

// TestHugeResults checks that a huge result is rejected before it is created.
func TestHugeResults(t *testing.T) {
	huge := NewInt(1 << 40)
	call := func(self Value, method string, args ...Value) func(b *Budget) (Value, error) {
		return func(b *Budget) (Value, error) {
			v, err := SandboxAttr(b, self, method)
			if err != nil {
				return nil, err
			}
			return Call(b, v, pos(args...))
		}
	}
	percent := func(format string, args Value) func(b *Budget) (Value, error) {
		return func(b *Budget) (Value, error) { return PercentFormat(b, Str(format), args) }
	}
	long := Str(make([]byte, 1<<20))
	tests := map[string]func(b *Budget) (Value, error){
		"center":                       call(Str("x"), "center", huge),
		"ljust of markup":              call(Markup("x"), "ljust", NewInt(1<<62), Str("é")),
		"zfill":                        call(Str("x"), "zfill", NewInt(1<<62)),
		"expandtabs":                   call(Str("\t\t"), "expandtabs", NewInt(1<<31-1)),
		"replace of nothing":           call(long, "replace", Str(""), long),
		"join":                         call(long, "join", long),
		"split of characters":          call(textOfCall(t, long, "replace", Str("\x00"), Str(" x x x")), "split"),
		"splitlines":                   call(textOfCall(t, long, "replace", Str("\x00"), Str("\n\n\n\n")), "splitlines"),
		"translate":                    call(long, "translate", dictOf(NewInt(0), long)),
		"to_bytes":                     call(NewInt(1), "to_bytes", huge),
		"from a width in a format":     call(Str("{:>999999999}"), "format", NewInt(1)),
		"from a width of a width":      call(Str("{:{}}"), "format", NewInt(1), huge),
		"from zeros with separators":   call(Str("{:0999999999,}"), "format", NewInt(1)),
		"from a precision in a format": call(Str("{:.999999999f}"), "format", NewInt(1)),
		"from an alternate precision":  call(Str("{:#.999999999g}"), "format", NewInt(1)),
		"percent width":                percent("%999999999d", NewInt(1)),
		"percent precision":            percent("%.999999999d", NewInt(1)),
		"percent precision of floats":  percent("%.999999999e", NewInt(1)),
		"percent width of text":        percent("%*s", tupleOf(huge, Str(""))),
		"the same text often":          percent("%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s", dictOf(Str("a"), long)),
		"references of HTML":           call(Markup(textOfCall(t, long, "replace", Str("\x00"), Str("&#1"))), "unescape"),
	}
	for name, run := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := run(ample(t))
			if e, ok := errors.AsType[*Error](err); !ok || e.Kind != Limit {
				t.Errorf("got %v, want an error of the limit", err)
			}
		})
	}
}

// textOfCall returns the text that a method returns.
func textOfCall(t *testing.T, self Value, method string, args ...Value) Str {
	t.Helper()
	b := ample(t)
	v, err := SandboxAttr(b, self, method)
	if err == nil {
		v, err = Call(b, v, pos(args...))
	}
	if err != nil {
		t.Fatal(err)
	}
	text, _ := v.(Str)
	return text
}
