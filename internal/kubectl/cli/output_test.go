package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestDuration(t *testing.T) {
	for duration, want := range map[time.Duration]string{
		-time.Second:                        "0s",
		0:                                   "0s",
		time.Microsecond:                    "1ms",
		40 * time.Millisecond:               "40ms",
		time.Second:                         "1s",
		3249 * time.Millisecond:             "3.2s",
		9990 * time.Millisecond:             "9.9s",
		45*time.Second + time.Millisecond:   "45s",
		4 * time.Minute:                     "4m",
		4*time.Minute + 10*time.Second:      "4m10s",
		45*time.Minute + time.Second:        "45m",
		3 * time.Hour:                       "3h",
		3*time.Hour + 20*time.Minute:        "3h20m",
		2*24*time.Hour + 4*time.Hour:        "2d4h",
		400*24*time.Hour + 4*time.Hour + 33: "400d",
	} {
		if got := Duration(duration); got != want {
			t.Errorf("Duration(%d) = %q, want %q", duration, got, want)
		}
	}
}

func TestOutput(t *testing.T) {
	value := map[string]any{"a": 1, "b": []string{"x"}}
	for _, test := range []struct {
		flag, want string
	}{
		{"json", "{\n  \"a\": 1,\n  \"b\": [\n    \"x\"\n  ]\n}\n"},
		{"yaml", "a: 1\nb:\n- x\n"},
	} {
		var output Output
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		output.AddFlag(flags)
		if output.Structured() {
			t.Error("the zero value is for programs")
		}
		if err := flags.Parse([]string{"-o", test.flag}); err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := output.Write(&text, value); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, text.String()); diff != "" || !output.Structured() {
			t.Errorf("-o %s (structured %t):\n%s", test.flag, output.Structured(), diff)
		}
	}
	var output Output
	if err := output.Set("wide"); err == nil || output.Structured() {
		t.Errorf("-o wide: error %v, structured %t", err, output.Structured())
	}
	if err := output.Write(&bytes.Buffer{}, value); err == nil {
		t.Error("text was written")
	}
}

func TestTable(t *testing.T) {
	style := ColourStyle()
	var table Table
	table.Row("NAME", "STATE", "NOTE")
	table.Row("data", style.Good("Ready"), "")
	table.Row("日本", style.Bad("Failing"), "a long one")
	var text bytes.Buffer
	if err := table.Write(&text, "  "); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"  NAME   STATE     NOTE",
		"  data   \x1b[32mReady\x1b[0m",
		"  日本   \x1b[31mFailing\x1b[0m   a long one",
		"",
	}, "\n")
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
}

func TestPlain(t *testing.T) {
	if got, want := Plain("a\x1b[31mb\tc\r\nd\u202ee\u009b1m"), "a[31mb c\nde1m"; got != want {
		t.Errorf("Plain() = %q, want %q", got, want)
	}
}
