package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// The values of -o; text is the default and has no value.
const (
	formatJSON = "json"
	formatYAML = "yaml"
)

// Output is the format of a command's result: text for people, or JSON or YAML for programs.
// The zero value is text. It is the value of a flag.
type Output struct {
	format string
}

// AddFlag adds the flag -o. Values other than json and yaml are refused when the flags are parsed.
func (o *Output) AddFlag(flags *pflag.FlagSet) {
	flags.VarP(o, "output", "o", "json or yaml, for programs; text if not given")
}

// Formats are the values of -o, for shell completion.
func Formats() []string { return []string{formatJSON, formatYAML} }

// Structured reports whether the result is JSON or YAML. Then only Write may write to standard output.
func (o *Output) Structured() bool { return o.format != "" }

// Write writes value as JSON or YAML; encoding/json must be able to encode it. If the format is text, Write does
// nothing: the command itself writes the text.
func (o *Output) Write(w io.Writer, value any) error {
	var text []byte
	var err error
	switch o.format {
	case formatJSON:
		text, err = json.MarshalIndent(value, "", "  ")
		text = append(text, '\n')
	case formatYAML:
		text, err = yaml.Marshal(value)
	default:
		return fmt.Errorf("writing %T: text is not for programs", value)
	}
	if err != nil {
		return fmt.Errorf("writing the result as %s: %w", o.format, err)
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// String implements pflag.Value.
func (o *Output) String() string { return o.format }

// Set implements pflag.Value.
func (o *Output) Set(text string) error {
	if text != formatJSON && text != formatYAML {
		return fmt.Errorf("it is %s or %s", formatJSON, formatYAML)
	}
	o.format = text
	return nil
}

// Type implements pflag.Value.
func (o *Output) Type() string { return "format" }

// Duration returns a duration in two or three significant figures: 40ms, 3.2s, 45s, 4m, 4m10s, 3h, 3h20m, 2d4h.
// A negative duration is written as 0s: the clocks of nodes may differ.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d <= 0:
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", max(1, d.Milliseconds()))
	case d < 10*time.Second:
		text := fmt.Sprintf("%.1f", d.Truncate(100*time.Millisecond).Seconds())
		if text[len(text)-2:] == ".0" {
			text = text[:len(text)-2]
		}
		return text + "s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 10*time.Minute:
		return parts(d, time.Minute, "m", time.Second, "s")
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < day:
		return parts(d, time.Hour, "h", time.Minute, "m")
	case d < 10*day:
		return parts(d, day, "d", time.Hour, "h")
	default:
		return fmt.Sprintf("%dd", d/day)
	}
}

// parts writes a duration in two units, and leaves out the smaller one if it is zero.
func parts(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d%s", d/large, largeName)
	if rest := d % large / small; rest > 0 {
		text += fmt.Sprintf("%d%s", rest, smallName)
	}
	return text
}
