package yaml11

import (
	"fmt"
	"strings"
)

// Date is what 2001-12-14 stands for.
type Date struct{ Year, Month, Day int }

// String returns the date as ISO 8601 has it, and Python's isoformat.
func (d Date) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.Year, d.Month, d.Day) }

// Repr returns the date as Python's repr.
func (d Date) Repr() string {
	return fmt.Sprintf("datetime.date(%d, %d, %d)", d.Year, d.Month, d.Day)
}

// Timestamp is what 2001-12-14t21:59:43.10-05:00 stands for.
type Timestamp struct {
	Date                              Date
	Hour, Minute, Second, Microsecond int

	// Zoned reports whether there is a time zone, which is Offset minutes east of UTC.
	Zoned  bool
	Offset int
}

// String returns the time as Python's isoformat.
func (t Timestamp) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%sT%02d:%02d:%02d", t.Date, t.Hour, t.Minute, t.Second)
	if t.Microsecond != 0 {
		fmt.Fprintf(&text, ".%06d", t.Microsecond)
	}
	if t.Zoned {
		sign, offset := '+', t.Offset
		if offset < 0 {
			sign, offset = '-', -offset
		}
		fmt.Fprintf(&text, "%c%02d:%02d", sign, offset/60, offset%60)
	}
	return text.String()
}

// Repr returns the time as Python's repr.
func (t Timestamp) Repr() string {
	var text strings.Builder
	fmt.Fprintf(&text, "datetime.datetime(%d, %d, %d, %d, %d", t.Date.Year, t.Date.Month, t.Date.Day, t.Hour, t.Minute)
	if t.Second != 0 || t.Microsecond != 0 {
		fmt.Fprintf(&text, ", %d", t.Second)
	}
	if t.Microsecond != 0 {
		fmt.Fprintf(&text, ", %d", t.Microsecond)
	}
	if t.Zoned {
		fmt.Fprintf(&text, ", tzinfo=%s", zoneRepr(t.Offset))
	}
	return text.String() + ")"
}

// zoneRepr writes an offset as days and the seconds that are left, which are never negative.
func zoneRepr(minutes int) string {
	switch {
	case minutes == 0:
		return "datetime.timezone.utc"
	case minutes < 0:
		return fmt.Sprintf("datetime.timezone(datetime.timedelta(days=-1, seconds=%d))", minutes*60+24*60*60)
	default:
		return fmt.Sprintf("datetime.timezone(datetime.timedelta(seconds=%d))", minutes*60)
	}
}

// Bytes are what !!binary stands for.
type Bytes string

// Set is what !!set stands for: its members are its keys, in order.
type Set []string
