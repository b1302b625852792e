package template

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestLimits(t *testing.T) {
	l := DefaultLimits()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	l.AddFlags(flags)
	if err := l.Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	all := []string{"--template-timeout=0s", "--template-max-steps=0", "--template-max-memory=-1", "--template-max-text=0", "--template-max-source=0"}
	if err := flags.Parse(all); err != nil {
		t.Fatal(err)
	}
	err := l.Validate()
	for _, flag := range all {
		name, _, _ := strings.Cut(flag, "=")
		if err == nil || !strings.Contains(err.Error(), name+":") {
			t.Errorf("%v does not tell of %s", err, name)
		}
	}
}

func TestLimits_CanBeRaised(t *testing.T) {
	l := DefaultLimits()
	l.Text = 4 << 20
	got, err := NewEvaluator(l).Evaluate(t.Context(), Field{Path: "spec.x"}, definition(t, "{{ 'x' * 2000000 }}"), nil, noPVC)
	if text, ok := got.(string); err != nil || !ok || len(text) != 2_000_000 {
		t.Errorf("got %T, %v", got, err)
	}
}
