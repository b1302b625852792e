package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestTopologyKeys_AreThoseThatTheDefinitionNamesAsTheyAre(t *testing.T) {
	for name, test := range map[string]struct {
		field string // as JSON; empty for a provisioner without volumeCreation
		want  []string
	}{
		"there is no volumeCreation":      {},
		"the field is not set":            {field: "null"},
		"one label":                       {`[{"topology.example.org/rack": "r1"}]`, []string{"topology.example.org/rack"}},
		"its value is a template":         {`[{"kubernetes.io/hostname": "{{ selectedNode.metadata.name }}"}]`, []string{"kubernetes.io/hostname"}},
		"several, some of them twice":     {`[{"b": "1", "a": "1"}, {"c": "1"}, {"b": "2"}]`, []string{"a", "b", "c"}},
		"the whole field is a template":   {field: `"{% set yaml = true %}[{a: b}]"`},
		"an element is a template":        {`["{% set yaml = true %}{a: b}", {"c": "d"}]`, []string{"c"}},
		"a key is a template":             {`[{"{{ key }}": "x", "{% if a %}b{% endif %}": "x", "c{# d #}": "x", "e": "x"}]`, []string{"e"}},
		"a key that no label can have":    {`[{"a b": "x", "": "x", "/": "x"}]`, nil},
		"no list":                         {field: `{"a": "b"}`},
		"a list of what is no mapping":    {field: `[1, null, ["a"], true]`},
		"an empty list":                   {field: `[]`},
		"a value that is no text, either": {`[{"a": {"b": "c"}}]`, []string{"a"}},
		"no JSON":                         {field: `[{"a": "b"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := &PavProvisioner{}
			if test.field != "" {
				p.Spec.VolumeCreation = &VolumeCreation{AccessibleTopology: &Template{Raw: []byte(test.field)}}
			}
			if diff := cmp.Diff(test.want, p.TopologyKeys(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
	p := &PavProvisioner{Spec: PavProvisionerSpec{VolumeCreation: &VolumeCreation{}}}
	if got := p.TopologyKeys(); len(got) > 0 {
		t.Errorf("without the field, there are keys: %q", got)
	}
}
