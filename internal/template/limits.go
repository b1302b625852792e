package template

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/albertofaria/pav/jinja/py"
)

// Limits limits the resources for the evaluation of a field, so that no definition can affect the volumes of another
// one.
type Limits struct {
	// Timeout is how long it may take, without the time for looking up claims.
	Timeout time.Duration

	// Steps is how many elementary operations each of its templates may take.
	Steps int64

	// Memory is how many bytes each of its templates may allocate in all.
	Memory int64

	// Text is how many bytes its templates may yield together, and how long any string in them may be.
	Text int

	// Source is how many bytes each of its templates may have.
	Source int
}

// DefaultLimits returns limits that no realistic definition reaches.
func DefaultLimits() Limits {
	return Limits{Timeout: 1500 * time.Millisecond, Steps: 2_000_000, Memory: 16 << 20, Text: 1 << 20, Source: 64 << 10}
}

// AddFlags adds the limits to a flag set, with their current values as defaults.
func (l *Limits) AddFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&l.Timeout, "template-timeout", l.Timeout, "how long the evaluation of a PavProvisioner's field may take")
	flags.Int64Var(&l.Steps, "template-max-steps", l.Steps, "elementary operations that a template may take")
	flags.Int64Var(&l.Memory, "template-max-memory", l.Memory, "bytes that a template may allocate in all")
	flags.IntVar(&l.Text, "template-max-text", l.Text, "bytes that the results of the templates of a field may have")
	flags.IntVar(&l.Source, "template-max-source", l.Source, "bytes that a template may have")
}

// Validate returns all errors in the limits.
func (l *Limits) Validate() error {
	var problems []error
	for _, limit := range []struct {
		flag  string
		value int64
	}{
		{"--template-timeout", int64(l.Timeout)},
		{"--template-max-steps", l.Steps},
		{"--template-max-memory", l.Memory},
		{"--template-max-text", int64(l.Text)},
		{"--template-max-source", int64(l.Source)},
	} {
		if limit.value <= 0 {
			problems = append(problems, fmt.Errorf("%s: must be above 0", limit.flag))
		}
	}
	return errors.Join(problems...)
}

const (
	// maxDepth is how deep calls and values in a template may nest. Python's own bound is of that size.
	maxDepth = 200

	// maxDigits is how many digits an integer may have. Python converts no more than 4,300 of them to text.
	maxDigits = 20_000

	// maxLookUps is how many claims the templates of a field may look up.
	maxLookUps = 100
)

func (l *Limits) engine() py.Limits {
	return py.Limits{Steps: l.Steps, Memory: l.Memory, Text: l.Text, Depth: maxDepth, Digits: maxDigits, Time: l.Timeout}
}
