package render

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"
)

func TestSelectorOf(t *testing.T) {
	for name, test := range map[string]struct{ volume, want string }{
		"no affinity":     {"spec: {}", ""},
		"one node":        {"spec: {nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: host, operator: In, values: [n1]}]}]}}}", "host in (n1)"},
		"a zone, no type": {"spec: {nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Exists}, {key: type, operator: NotIn, values: [b, a]}]}]}}}", "type notin (a,b),zone"},
		"the first term":  {"spec: {nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}, {matchExpressions: [{key: b, operator: Exists}]}]}}}", "a"},
	} {
		volume := map[string]any{}
		if err := yaml.Unmarshal([]byte(test.volume), &volume); err != nil {
			t.Fatal(err)
		}
		if got := selectorOf(volume).String(); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestContinuation(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old")
	resumable := apierrors.NewResourceExpired("too old")
	resumable.ErrStatus.Continue = "next"
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"no error":                   {nil, ""},
		"another error":              {errors.New("x"), ""},
		"the list cannot continue":   {expired, ""},
		"the list continues":         {resumable, "next"},
		"the list continues, either": {fmt.Errorf("listing: %w", resumable), "next"},
	} {
		if got := continuation(test.err); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
