package template

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLookups(t *testing.T) {
	tests := map[string]struct {
		allowed   []string
		namespace string
		refused   bool
		foreign   string
	}{
		"its own namespace":                          {namespace: "own"},
		"its own namespace, where no other is":       {allowed: []string{}, namespace: "own"},
		"another namespace, by default":              {namespace: "other", foreign: "other/data true"},
		"another namespace, that is allowed":         {allowed: []string{"a", "other"}, namespace: "other", foreign: "other/data true"},
		"another namespace, that is not allowed":     {allowed: []string{"a"}, namespace: "other", refused: true, foreign: "other/data false"},
		"another namespace, where none is allowed":   {allowed: []string{}, namespace: "other", refused: true, foreign: "other/data false"},
		"a part of the name of an allowed namespace": {allowed: []string{"others"}, namespace: "other", refused: true, foreign: "other/data false"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			asked, foreign := 0, ""
			lookups := Lookups{Own: "own", Allowed: test.allowed, Foreign: func(_ context.Context, name, namespace string, allowed bool) {
				foreign += fmt.Sprintf("%s/%s %t", namespace, name, allowed)
			}}
			get := lookups.Restrict(func(context.Context, string, string) (map[string]any, error) { asked++; return nil, nil })
			_, err := get(t.Context(), "data", test.namespace)
			if errors.Is(err, ErrNotAllowed) != test.refused || (asked == 0) != test.refused {
				t.Errorf("got error %v, and %d claims were looked up", err, asked)
			}
			if diff := cmp.Diff(test.foreign, foreign); diff != "" {
				t.Errorf("what was told (-want +got):\n%s", diff)
			}
		})
	}
}
