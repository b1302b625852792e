package topology

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

const field = "spec.volumeCreation.accessibleTopology"

// zone is the label with which clouds name the zone of a node.
const zone = "topology.kubernetes.io/zone"

type (
	list   = []any
	object = map[string]any
	labels = pavv1.TopologyLabels
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		value any
		want  []labels
	}{
		"an absent field is everywhere":          {nil, nil},
		"a label":                                {list{object{zone: "a"}}, []labels{{zone: "a"}}},
		"several labels":                         {list{object{zone: "a", "rack": "1"}}, []labels{{zone: "a", "rack": "1"}}},
		"alternatives, in their order":           {list{object{zone: "b"}, object{zone: "a"}}, []labels{{zone: "b"}, {zone: "a"}}},
		"an empty value, which labels may have":  {list{object{"node-role.kubernetes.io/worker": ""}}, []labels{{"node-role.kubernetes.io/worker": ""}}},
		"alternatives that repeat others go":     {list{object{"a": "1", "b": "2"}, object{"a": "1"}, object{"b": "2", "a": "1"}}, []labels{{"a": "1", "b": "2"}, {"a": "1"}}},
		"the longest name and the longest value": {list{object{strings.Repeat("n", 63): strings.Repeat("v", 63)}}, []labels{{strings.Repeat("n", 63): strings.Repeat("v", 63)}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(field, test.value)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the topology (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParse_RefusesWithThePath(t *testing.T) {
	for name, test := range map[string]struct {
		value       any
		path, words string
	}{
		"a mapping":                  {object{zone: "a"}, ": ", "must be a list of mappings of node labels to values, not a mapping"},
		"text":                       {"[{zone: a}]", ": ", "{% set yaml = true %}"},
		"an empty list":              {list{}, ": ", "leave the field out"},
		"a list of text":             {list{object{zone: "a"}, "zone"}, "[1]: ", "must be a mapping of node labels to values, not a string"},
		"a list of lists":            {list{list{}}, "[0]: ", "not a list"},
		"a list of nothing":          {list{nil}, "[0]: ", "not null"},
		"an empty mapping":           {list{object{zone: "a"}, object{}}, "[1]: ", "the mapping is empty"},
		"a number":                   {list{object{zone: int64(1)}}, "[0][" + zone + "]: ", "must be a string, not the number 1: quote it"},
		"a fraction":                 {list{object{zone: 1.5}}, "[0][" + zone + "]: ", "not the number 1.5: quote it"},
		"a boolean":                  {list{object{zone: true}}, "[0][" + zone + "]: ", "not the boolean true: quote it"},
		"no value":                   {list{object{zone: nil}}, "[0][" + zone + "]: ", "not null"},
		"values":                     {list{object{zone: list{"a"}}}, "[0][" + zone + "]: ", "not a list"},
		"what no template yields":    {list{object{zone: struct{}{}}}, "[0][" + zone + "]: ", "not a struct {}"},
		"a name with two slashes":    {list{object{"a/b/c": "x"}}, "[0]: ", `"a/b/c" is not a valid label name`},
		"a name without a name":      {list{object{"": "x"}}, "[0]: ", `"" is not a valid label name`},
		"a name with a comma":        {list{object{"a,b": "x"}}, "[0]: ", `"a,b" is not a valid label name`},
		"a value with a space":       {list{object{zone: "a b"}}, "[0][" + zone + "]: ", `"a b" is not a valid label value`},
		"a value of 64 bytes":        {list{object{zone: strings.Repeat("v", 64)}}, "[0][" + zone + "]: ", "no more than 63"},
		"the first of several wrong": {list{object{"b": "b b", "a": "a a"}}, "[0][a]: ", `"a a"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(field, test.value)
			if err == nil {
				t.Fatalf("it is not refused: %v", got)
			}
			if !strings.HasPrefix(err.Error(), field+test.path) || !strings.Contains(err.Error(), test.words) {
				t.Errorf("got %q, want it to begin with %q and have %q", err, field+test.path, test.words)
			}
		})
	}
}

func TestParse_DoesNotRepeatTextOfAnyLength(t *testing.T) {
	long := strings.Repeat("€", 1<<16)
	for name, value := range map[string]any{"a name": list{object{long: "x"}}, "a value": list{object{zone: long}}} {
		if _, err := Parse(field, value); err == nil || len(err.Error()) > 1024 || strings.ToValidUTF8(err.Error(), "") != err.Error() {
			t.Errorf("%s: got %d bytes", name, len(err.Error()))
		}
	}
}
