package template

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/albertofaria/pav/jinja"
)

func texts(errors []*jinja.Error) []string {
	var all []string
	for _, err := range errors {
		all = append(all, err.Error())
	}
	return all
}

func TestAnalyze_Mistakes(t *testing.T) {
	const namespaceHint = "what is set inside a loop, a macro or a block is not seen outside of it; use {% set ns = namespace(z=…) %} and {% set ns.z = … %}"
	tests := map[string]struct {
		section, template string
		errors, warnings  []string
	}{
		"nothing":                      {"volumeCreation", "{{ params.x }}{{ requestedMinCapacity }}{{ range(2) | list | tojson }}", nil, nil},
		"a syntax error":               {"volumeCreation", "a\n {{ 1 + }}", []string{"line 2, column 9: expected an expression, got '}}'"}, nil},
		"a filter and a test":          {"volumeCreation", "{{ params.x | tojso }}{{ params.x is definde }}", []string{"line 1, column 15: there is no filter 'tojso'; did you mean 'tojson'?", "line 1, column 35: there is no test 'definde'; did you mean 'defined'?"}, nil},
		"a filter inside an if":        {"volumeCreation", "{% if params.x %}{{ params.x | tobsh }}{% endif %}", []string{"line 1, column 32: there is no filter 'tobsh'; did you mean 'tobash'?"}, nil},
		"other templates":              {"volumeCreation", "{% include 'x' %}", []string{"line 1, column 4: 'include' is not available: a template stands alone and cannot use others"}, nil},
		"a name that is misspelt":      {"volumeCreation", "{{ parms.x }}", []string{"line 1, column 4: 'parms' is not known here; did you mean 'params'?"}, nil},
		"a function of Python":         {"volumeCreation", "{{ len(params) }}", []string{"line 1, column 4: 'len' is not known here; there is a filter 'length'"}, nil},
		"a name of another section":    {"volumeCreation", "{{ node.metadata.name }}", []string{"line 1, column 4: 'node' is not known here; it is known in volumeStaging, volumeExpansion.nodePodTemplate and volumeUnstaging; did you mean 'selectedNode'?"}, nil},
		"a handle in creation":         {"volumeCreation", "{{ handle }}", []string{"line 1, column 4: 'handle' is not known here; it is known in volumeValidation, volumeExpansion, volumeModification, snapshotCreation, snapshotDeletion, volumeStaging, volumeExpansion.nodePodTemplate and volumeUnstaging; did you mean 'defaultHandle'?"}, nil},
		"a handle in deletion":         {"volumeDeletion", "{{ handle }}", []string{"line 1, column 4: 'handle' is not known here; it is known in volumeValidation, volumeExpansion, volumeModification, snapshotCreation, snapshotDeletion, volumeStaging, volumeExpansion.nodePodTemplate and volumeUnstaging; did you mean 'volumeHandle'?"}, nil},
		"a capacity in creation":       {"volumeCreation", "{{ capacity }}", []string{"line 1, column 4: 'capacity' is not known here; it is known in volumeExpansion, volumeModification, snapshotCreation, snapshotDeletion, volumeStaging, volumeExpansion.nodePodTemplate and volumeUnstaging; did you mean 'requestedMinCapacity'?"}, nil},
		"a requested mode in staging":  {"volumeStaging", "{{ requestedVolumeMode }}", []string{"line 1, column 4: 'requestedVolumeMode' is not known here; it is known in volumeValidation, volumeCreation and volumeDeletion; did you mean 'volumeMode'?"}, nil},
		"a name of a loop":             {"volumeCreation", "{% for x in params %}{% set z = x %}{% endfor %}{{ z }}", []string{"line 1, column 52: 'z' is not known here: " + namespaceHint}, nil},
		"a name of a branch":           {"volumeCreation", "{% if params %}{% set z = 1 %}{% endif %}{{ z }}", nil, nil},
		"a name of a branch of a loop": {"volumeCreation", "{% for x in params %}{% if x %}{% set z = 1 %}{% endif %}{{ z }}{% endfor %}", nil, nil},
		"a name of a named block":      {"volumeCreation", "{% set z = 1 %}{% block b %}{{ z }}{% endblock %}", nil, nil},
		"names of statements":          {"volumeCreation", "{% macro m(a, b=1) %}{{ a }}{{ caller() }}{{ varargs }}{{ kwargs }}{% endmacro %}{% call(x) m(1) %}{{ x }}{% endcall %}{% for i, j in params.items() %}{{ loop.index }}{{ i }}{% endfor %}{% with w = 1 %}{{ w }}{% endwith %}", nil, nil},
		"a name outside of its loop":   {"volumeCreation", "{{ loop.index }}", []string{"line 1, column 4: 'loop' is not known here"}, nil},
		"a default":                    {"volumeCreation", "{{ nope | default('x') }}{{ nope|d }}", nil, []string{"line 1, column 4: 'nope' is not known here", "line 1, column 29: 'nope' is not known here"}},
		"a default of an attribute":    {"volumeCreation", "{{ nope.x | default('x') }}", []string{"line 1, column 4: 'nope' is not known here"}, nil},
		"is defined":                   {"volumeCreation", "{% if nope is defined %}{{ nope }}{% endif %}", nil, []string{"line 1, column 7: 'nope' is not known here", "line 1, column 28: 'nope' is not known here"}},
		"is not defined":               {"volumeCreation", "{% if nope is not defined %}a{% endif %}", nil, []string{"line 1, column 7: 'nope' is not known here"}},
		"a condition":                  {"volumeCreation", "{% if nope or params %}a{% endif %}", nil, []string{"line 1, column 7: 'nope' is not known here"}},
		"a value or another":           {"volumeCreation", "{{ nope or 'x' }}", nil, []string{"line 1, column 4: 'nope' is not known here"}},
		"a value and another":          {"volumeCreation", "{{ nope and 'x' }}", []string{"line 1, column 4: 'nope' is not known here"}, nil},
		"what is optional":             {"volumeValidation", "{{ sc.x }}{{ pvc.x }}{{ pv.x }}{{ handle }}{{ selectedNode.x }}", nil, nil},
		"several, in order":            {"volumeStaging", "{{ b | nosuch }}\n{{ a }}{% if c %}{% endif %}", []string{"line 1, column 4: 'b' is not known here", "line 1, column 8: there is no filter 'nosuch'", "line 2, column 4: 'a' is not known here"}, []string{"line 2, column 14: 'c' is not known here"}},
		"a section that is none":       {"volume", "{{ params }}", []string{"line 1, column 4: 'params' is not known here; it is known in volumeValidation, volumeCreation, volumeExpansion, volumeModification, volumeDeletion, snapshotCreation, snapshotDeletion, volumeStaging, volumeExpansion.nodePodTemplate, volumeUnstaging, bucketValidation, bucketCreation, bucketUpdate, bucketDeletion, bucketAccessGrant and bucketAccessRevoke"}, nil},
	}
	e := NewEvaluator(DefaultLimits())
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := e.Analyze(test.section, test.template)
			if diff := cmp.Diff(test.errors, texts(a.Errors)); diff != "" {
				t.Errorf("errors: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(test.warnings, texts(a.Warnings)); diff != "" {
				t.Errorf("warnings: -want +got:\n%s", diff)
			}
		})
	}
}

// Each of these templates can be evaluated in volumeCreation, with some claim or with any.
func TestAnalyze_RefusesNothingThatEvaluates(t *testing.T) {
	tests := map[string]struct {
		template string
		warnings int
	}{
		"a text for two sections":           {"{% if volumeMode is defined %}{{ node.metadata.name }}{% else %}{{ defaultHandle }}{% endif %}", 0},
		"one with not":                      {"{% if node is not defined %}{{ defaultHandle }}{% else %}{{ capacity }}{% endif %}", 0},
		"one that is in a branch":           {"{% if node is defined %}{% if params.x %}{{ capacity }}{{ fsType.x }}{% endif %}{% endif %}", 0},
		"one with elif":                     {"{% if not params %}{% elif node is defined %}{{ capacity }}{% endif %}", 0},
		"one of an expression":              {"{{ capacity if volumeMode is defined else requestedMinCapacity }}", 0},
		"one with and":                      {"{{ volumeMode is defined and node.metadata.name == 'x' }}", 0},
		"one that notes the answer":         {"{% set staging = node is defined %}{% if staging %}{{ node.metadata.name }}{% endif %}", 0},
		"one with a default":                {"{{ handle | default(defaultHandle) }}", 0},
		"one that asks for what is there":   {"{% if node %}{{ capacity }}{% endif %}", 2},
		"one that asks for an object":       {"{% if pvc %}{{ defaultHandle }}{% else %}{{ handle }}{% endif %}", 1},
		"a misspelt name where it is asked": {"{% if node is defined %}{{ nope }}{% endif %}", 1},
		"an argument":                       {"{% macro q(v, d) %}{{ v | default(d) | tobash }}{% endmacro %}{{ q(nope, 'none') }}", 1},
		"a macro that is not called":        {"{% macro m() %}{{ nope }}{{ nope.x }}{% endmacro %}", 2},
		"a list":                            {"{% set l = [nope] %}{% set m = {'a': nope} %}", 2},
		"a variable":                        {"{% set y = nope %}{% with z = nope %}{% endwith %}", 2},
		"what is put together":              {"{{ 'a' ~ nope }}", 1},
		"filters of what is empty":          {"{{ nope | string }}{{ nope | join }}{{ nope | length }}{{ nope | upper }}", 4},
		"the first of nothing":              {"{{ nope | first | default('x') }}{{ params[nope] | default('x') }}", 2},
		"tests":                             {"{{ nope is none }}{{ nope is string }}{{ nope == 1 }}{{ 1 in nope }}", 4},
		"a format":                          {"{{ 'a %s' % nope }}", 1},
		"a filter that may be there":        {"{% if 'foo' is filter %}{{ 'a' | foo }}{% endif %}{{ ('a' | foo) if 'foo' is filter else 'a' }}", 0},
		"a test that may be there":          {"{% if 'foo' is test %}{{ 'a' is foo }}{% endif %}", 0},
		"yaml in time":                      {"{% set yaml = 1 %}{% if params.x %}{% set yaml = true %}{% else %}{% set yaml = false %}{% endif %}", 0},
	}
	e := NewEvaluator(DefaultLimits())
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := e.Analyze("volumeCreation", test.template)
			if len(a.Errors) > 0 {
				t.Errorf("errors: %q", texts(a.Errors))
			}
			if warnings := texts(a.Warnings); len(warnings) != test.warnings || slices.ContainsFunc(warnings, func(w string) bool { return !strings.Contains(w, "is not known here") }) {
				t.Errorf("warnings: %q, want %d", warnings, test.warnings)
			}
		})
	}
}

// None of these templates can be evaluated, whatever the volume is, if the evaluation reaches the mistake.
func TestAnalyze_RefusesWhatFails(t *testing.T) {
	for _, template := range []string{
		"{{ nope }}", "{{ nope.x | default('x') }}", "{{ nope['x'] }}", "{{ nope() }}", "{{ nope | tobash }}", "{{ nope | tojson }}",
		"{{ nope | int }}", "{{ nope | first }}", "{{ nope + 1 }}", "{{ nope * 2 }}", "{{ -nope }}", "{{ nope < 1 }}", "{{ 1 < nope }}",
		"{{ params[nope] }}", "{{ 'abc'[:nope] }}", "{{ range(nope) }}", "{{ get_pvc(nope, 'x') }}", "{{ nope is even }}",
		"{% set x = nope | int %}", "{% set x = nope.y %}", "{% set a, b = nope %}", "{% set yaml = nope %}", "{{ nope | indent }}",
		"{% if params.x %}{{ nope }}{% endif %}", "{% if pvc %}{{ nope }}{% endif %}", "{{ nope | default('x') }}{{ nope }}",
		"{% for x in params %}{{ nope }}{% endfor %}", "{{ dict(**nope) }}", "{{ nope if params.x else 'y' }}",
		"{% if node is defined %}{% endif %}{{ capacity }}", "{% if params.x %}{{ 'a' | foo }}{% endif %}",
		"{% set yaml = 1 %}", "{% set yaml = 'true' %}", "{% set yaml = none %}", "{% set yaml = [] %}", "{% set yaml %}true{% endset %}",
		"{% macro yaml() %}{% endmacro %}", "{% set yaml = true %}{% set yaml = 1 %}", "{% if params.x %}{% set yaml = 'yes' %}{% endif %}",
	} {
		a := NewEvaluator(DefaultLimits()).Analyze("volumeCreation", template)
		if len(a.Errors) != 1 {
			t.Errorf("%s: errors %q, want one", template, texts(a.Errors))
		}
	}
}

func TestAnalyze_PlainAndYAML(t *testing.T) {
	tests := map[string]struct {
		template    string
		plain, yaml bool
	}{
		"text":                    {template: "a } b {\nc", plain: true},
		"a comment":               {template: "a {# b #}"},
		"an expression":           {template: "{{ 1 }}"},
		"yaml":                    {template: "{% set yaml = true %}a", yaml: true},
		"yaml, perhaps":           {template: "{% if readOnly %}{% set yaml = true %}{% endif %}a", yaml: true},
		"yaml of something":       {template: "{% set yaml = readOnly %}a", yaml: true},
		"no yaml":                 {template: "{% set yaml = false %}a"},
		"yaml inside of a loop":   {template: "{% for x in [1] %}{% set yaml = true %}{% endfor %}"},
		"yaml that is a variable": {template: "{% with yaml = true %}{% endwith %}"},
	}
	e := NewEvaluator(DefaultLimits())
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if a := e.Analyze("volumeStaging", test.template); a.Plain != test.plain || a.YAML != test.yaml || len(a.Errors) > 0 {
				t.Errorf("got plain %t, yaml %t, errors %v", a.Plain, a.YAML, a.Errors)
			}
		})
	}
}

func TestAnalyze_Paths(t *testing.T) {
	tests := map[string]struct {
		template string
		want     []string
	}{
		"attributes":           {"{{ pvc.metadata.labels.app }}", []string{"1:4 pvc.metadata.labels.app"}},
		"constant keys":        {"{{ node['metadata'].labels['a.b/c'] }}", []string{"1:4 node.metadata.labels.a.b/c"}},
		"a dynamic key":        {"{{ pvc.metadata.labels[params.x].y }}", []string{"1:4 pvc.metadata.labels"}},
		"an element":           {"{{ node.status.addresses[0].address }}", []string{"1:4 node.status.addresses"}},
		"a method":             {"{{ pvc.metadata.labels.items() | list }}{{ pvc.metadata.name.split('-') }}", []string{"1:4 pvc.metadata.labels", "1:44 pvc.metadata.name"}},
		"get":                  {"{{ pvc.metadata.labels.get('x') }}", []string{"1:4 pvc.metadata.labels", "1:4 pvc.metadata.labels.x guarded"}},
		"a default":            {"{{ pvc.metadata.labels.x | default('y') }}", []string{"1:4 pvc.metadata.labels.x guarded"}},
		"a test":               {"{% if pv.spec.x is defined %}{{ pv.spec.x.y }}{% endif %}", []string{"1:7 pv.spec.x guarded tested 2", "1:33 pv.spec.x.y tested 2"}},
		"a condition":          {"{% if pv.spec.x %}{{ pv.spec.x }}{% endif %}", []string{"1:7 pv.spec.x guarded tested 2", "1:22 pv.spec.x guarded tested 2"}},
		"a key looked for":     {"{% if 'x' in pv.spec %}{{ pv.spec.x }}{{ pv.spec.y }}{% endif %}", []string{"1:14 pv.spec guarded", "1:27 pv.spec.x guarded tested 2", "1:42 pv.spec.y"}},
		"of a default":         {"{{ (pv.spec.x | default({})).y }}{{ pv.spec.x }}", []string{"1:5 pv.spec.x guarded", "1:5 pv.spec.x.y tested 2", "1:37 pv.spec.x"}},
		"of what get returns":  {"{{ pv.spec.get('x', {}).y }}", []string{"1:4 pv.spec", "1:4 pv.spec.x guarded", "1:4 pv.spec.x.y tested 2"}},
		"a default, later":     {"{% set f = pv.spec.x %}{{ f | default('a') }}", []string{"1:12 pv.spec.x guarded"}},
		"what ~ puts together": {"{{ 'a' ~ pv.spec.x }}", []string{"1:10 pv.spec.x guarded"}},
		"a variable":           {"{% set m = pvc.metadata %}\n{{ m.name }}", []string{"1:12 pvc.metadata guarded", "1:12 pvc.metadata.name"}},
		"another claim":        {"{{ get_pvc('a', 'b').spec.volumeName }}", []string{"1:4 get_pvc().spec.volumeName"}},
		"the object itself":    {"{{ pvc | tojson }}", nil},
		"what is no object":    {"{{ params.x.y }}", nil},
		"in an inner scope":    {"{% for x in [1] %}{{ pvc.spec.a }}{% endfor %}{% macro m() %}{{ pvc.spec.b }}{% endmacro %}{{ m() }}", []string{"1:22 pvc.spec.a", "1:65 pvc.spec.b"}},
		"in another variable":  {"{{ get_pvc(pvc.metadata.name, params.x).metadata.uid }}", []string{"1:4 get_pvc().metadata.uid", "1:12 pvc.metadata.name"}},
	}
	e := NewEvaluator(DefaultLimits())
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range e.Analyze("volumeStaging", test.template).Paths {
				text := fmt.Sprintf("%d:%d %s", p.Line, p.Column, strings.Join(append([]string{p.Root}, p.Keys...), "."))
				if p.Guarded {
					text += " guarded"
				}
				if p.Tested > 0 {
					text += fmt.Sprintf(" tested %d", p.Tested)
				}
				got = append(got, text)
				if p.Type == "" {
					t.Errorf("%s has no type", text)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Context agrees with the functions that create contexts.
func TestContext_IsWhatTemplatesGet(t *testing.T) {
	claim, class, volume, node := object(t, leastClaim), object(t, leastClass), object(t, leastVolume), object(t, someNode)
	must := func(vars Variables, err error) Variables {
		if err != nil {
			t.Fatal(err)
		}
		return vars
	}
	dynamic := StagingObjects{Volume: volume, Claim: claim, Provisioned: claim, Node: node, Bucket: BucketVolumeVariable("b", nil, "s")}
	byHand := StagingObjects{Volume: volume, Claim: claim, Node: node}
	staging, static := must(StagingVariables(dynamic, true)), must(StagingVariables(byHand, true))
	snapshot := must(SnapshotVariables(SnapshotObjects{Snapshot: claim, Content: claim, Class: class, Volume: volume, Claim: claim}, map[string]string{"a": "b"}, "d", "h"))
	contexts := map[string][]Variables{
		"volumeValidation":   {must(DynamicValidationVariables(Request{Claim: claim, Class: class, Node: node})), must(DynamicValidationVariables(Request{Claim: claim, Class: class})), must(StaticValidationVariables(volume))},
		"volumeCreation":     {must(CreationVariables(Request{Claim: claim, Class: class, Node: node})), must(CreationVariables(Request{Claim: claim, Class: class}))},
		"volumeDeletion":     {must(DeletionVariables(Request{Claim: claim, Class: class, Node: node}, claim, "h")), must(DeletionVariables(Request{Claim: claim, Class: class}, claim, ""))},
		"volumeExpansion":    {must(ExpansionVariables(volume, claim, class, 2, []string{"n1"})), must(ExpansionVariables(volume, claim, nil, 2, nil))},
		"volumeModification": {must(ModificationVariables(volume, claim, class, map[string]string{"a": "b"}, nil, []string{"n1"})), must(ModificationVariables(volume, claim, nil, nil, nil, nil))},
		"snapshotCreation":   {snapshot},
		"snapshotDeletion":   {snapshot},
		"volumeStaging":      {staging, static},
		"volumeUnstaging":    {staging, static},
		NodeExpansion:        {must(NodeExpansionVariables(dynamic, true, 2)), must(NodeExpansionVariables(byHand, true, 2))},
		"bucketValidation":   {BucketVariables(wholeBucket(t)), BucketVariables(Bucket{})},
		"bucketCreation":     {BucketVariables(wholeBucket(t)), BucketVariables(Bucket{})},
		"bucketUpdate":       {BucketUpdateVariables(wholeBucket(t), "id"), BucketUpdateVariables(Bucket{}, "")},
		"bucketDeletion":     {BucketDeletionVariables(wholeBucket(t), "id", true), BucketDeletionVariables(Bucket{}, "", false)},
		"bucketAccessGrant":  {GrantVariables(wholeAccess(t)), GrantVariables(Access{})},
		"bucketAccessRevoke": {RevocationVariables(wholeAccess(t), "id"), RevocationVariables(Access{}, "")},
	}
	for _, section := range sections {
		if contexts[section] == nil {
			t.Errorf("%s is not compared", section)
		}
	}
	for section, variants := range contexts {
		described, ok := Context(section)
		if !ok {
			t.Errorf("there is no %s", section)
		}
		given := map[string]int{}
		for _, vars := range variants {
			for name := range vars {
				given[name]++
			}
		}
		for _, v := range described {
			if always := given[v.Name] == len(variants); given[v.Name] == 0 || always != (v.Optional == "") {
				t.Errorf("%s: %s is there in %d of %d contexts, and is said to be there %q", section, v.Name, given[v.Name], len(variants), v.Optional)
			}
			for _, vars := range variants {
				if value, there := vars[v.Name]; there && value != nil && !isOfType(value, v.Type) {
					t.Errorf("%s: %s is said to be of type %q, and is %T", section, v.Name, v.Type, value)
				}
			}
			if !strings.HasSuffix(v.Doc, ".") {
				t.Errorf("%s: %s is not described by a sentence: %q", section, v.Name, v.Doc)
			}
			delete(given, v.Name)
		}
		if len(given) > 0 {
			t.Errorf("%s: these are not described: %v", section, given)
		}
	}
	if _, ok := Context("spec"); ok || !slices.Contains(sections, "volumeDeletion") {
		t.Error("there is a section spec")
	}
}

func isOfType(value any, name string) bool {
	switch value.(type) {
	case string:
		return name == "string"
	case int64:
		return name == "integer"
	case bool:
		return name == "boolean"
	case []any:
		return name == "list of string" || name == typeBuckets
	case map[string]any:
		return name == "mapping of strings" || isObject(name)
	default:
		return false
	}
}
