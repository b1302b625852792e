package template

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// flowTexts returns flows as "line:column source", each with its properties.
func flowTexts(flows []Flow) []string {
	var all []string
	for _, f := range flows {
		text := fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Source)
		if f.Shell {
			text += " word"
		}
		if f.Safe {
			text += " safe"
		}
		all = append(all, text)
	}
	return all
}

// flowTests have templates of volumeStaging and their flows, each flow only once.
var flowTests = map[string]struct {
	template string
	want     []string
}{
	// Values that are printed as they are.
	"an annotation":                {"{{ pvc.metadata.annotations.x }}", []string{"1:4 pvc.metadata.annotations.x"}},
	"an annotation, subscribed":    {"{{ pvc['metadata']['annotations']['a/b'] }}", []string{"1:4 pvc.metadata.annotations.a/b"}},
	"a dynamic key":                {"{{ pvc.metadata.annotations[params.key] }}", []string{"1:4 pvc.metadata.annotations"}},
	"an element":                   {"{{ pvc.spec.accessModes[0] }}", []string{"1:4 pvc.spec.accessModes safe"}},
	"get":                          {"{{ pvc.metadata.annotations.get('x', 'y') }}", []string{"1:4 pvc.metadata.annotations.x"}},
	"get with a dynamic key":       {"{{ pvc.metadata.annotations.get(params.key) }}", []string{"1:4 pvc.metadata.annotations"}},
	"get with a tenant's default":  {"{{ params.get('x', pvc.metadata.labels.x) }}", []string{"1:20 pvc.metadata.labels.x"}},
	"a name":                       {"{{ pvc.metadata.name }}", []string{"1:4 pvc.metadata.name safe"}},
	"a quantity":                   {"{{ pvc.spec.resources.requests.storage }}", []string{"1:4 pvc.spec.resources.requests.storage safe"}},
	"a status":                     {"{{ pvc.status.phase }}", []string{"1:4 pvc.status.phase safe"}},
	"a name, subscribed":           {"{{ pvc.metadata.name[:8] }}", []string{"1:4 pvc.metadata.name safe"}},
	"another claim":                {"{{ get_pvc(params.base, 'x').metadata.annotations.y }}", []string{"1:4 get_pvc().metadata.annotations.y"}},
	"another claim, in a variable": {"{% set base = get_pvc('a', 'b') %}\n{{ base.metadata.labels.c }}", []string{"2:4 get_pvc().metadata.labels.c"}},
	"a whole claim":                {"{{ pvc | tojson }}", []string{"1:4 pvc"}},
	"two in one":                   {"{{ pvc.metadata.labels.a ~ pvc.metadata.labels.b }}", []string{"1:4 pvc.metadata.labels.a", "1:28 pvc.metadata.labels.b"}},
	"on another line":              {"a\n  b {{ 'x' }}\n  {{ pvc.metadata.labels.a }}", []string{"3:6 pvc.metadata.labels.a"}},

	// Values that the administrator or the cluster chooses.
	"parameters":            {"{{ params.x }}{{ params['y'] }}", nil},
	"the volume":            {"{{ pv.metadata.annotations.x }}{{ handle }}", nil},
	"the node":              {"{{ node.metadata.labels['kubernetes.io/hostname'] }}", nil},
	"numbers and modes":     {"{{ capacity }}{{ volumeMode }}{{ accessModes | join(',') }}{{ readOnly }}", nil},
	"text":                  {"echo 'pvc.metadata.annotations.x'", nil},
	"a raw block":           {"{% raw %}{{ pvc.metadata.annotations.x }}{% endraw %}", nil},
	"a comment":             {"{# {{ pvc.metadata.annotations.x }} #}a", nil},
	"a variable of a loop":  {"{% for pvc in params.list.split(',') %}{{ pvc }}{% endfor %}", nil},
	"a variable that hides": {"{% set pvc = params %}{{ pvc.x }}", nil},

	// Uses of a value that print no text of it.
	"a condition":              {"{% if pvc.metadata.annotations.x == 'y' %}a{% endif %}", nil},
	"a conditional expression": {"{{ 'a' if pvc.metadata.annotations.x else 'b' }}", nil},
	"a comparison":             {"{{ pvc.metadata.annotations.x == 'y' }}{{ 'a' in pvc.metadata.labels }}{{ not pvc.metadata.labels }}", nil},
	"a test":                   {"{{ pvc.metadata.annotations.x is defined }}", nil},
	"a length":                 {"{{ pvc.metadata.annotations | length }}{{ pvc.metadata.labels.x|count }}", nil},
	"a number":                 {"{{ pvc.metadata.annotations.x | int }}{{ pvc.metadata.annotations.x|float|round }}", nil},
	"a key":                    {"{{ params[pvc.metadata.labels.tier] }}{{ params.get(pvc.metadata.labels.tier, 'x') }}", nil},
	"a key of a written one":   {"{{ {'gold': 'a', 'silver': 'b'}[pvc.metadata.labels.tier] }}", nil},
	"arithmetic":               {"{{ pvc.metadata.annotations.x - 1 }}{{ pvc.metadata.annotations.x // 2 }}", nil},
	"methods that ask":         {"{{ pvc.metadata.labels.x.startswith('a') }}{{ 'abc'.find(pvc.metadata.labels.x) }}", nil},
	"the condition of a loop":  {"{% for x in params.a.split(',') if x != pvc.metadata.labels.y %}{{ x }}{% endfor %}", nil},
	"a separator of a split":   {"{{ params.a.split(pvc.metadata.labels.x)[0] }}", nil},
	"a claim's name as lookup": {"{{ get_pvc(pvc.metadata.annotations.base, 'x').metadata.name }}", []string{"1:4 get_pvc().metadata.name safe"}},
	"what is not printed":      {"{% set x = pvc.metadata.labels.a %}b", nil},

	// Shell words.
	"a word":                        {"{{ pvc.metadata.labels.a | tobash }}", []string{"1:4 pvc.metadata.labels.a word"}},
	"a word of several parts":       {"{{ ('a' ~ pvc.metadata.labels.a) | tobash }}", []string{"1:11 pvc.metadata.labels.a word"}},
	"a word that text follows":      {"{{ (pvc.metadata.labels.a | tobash) ~ 'a' }}", []string{"1:5 pvc.metadata.labels.a word"}},
	"a word that is added":          {"{{ 'a ' + (pvc.metadata.labels.a | tobash) }}", []string{"1:12 pvc.metadata.labels.a word"}},
	"a word in upper case":          {"{{ pvc.metadata.labels.a | tobash | upper }}", []string{"1:4 pvc.metadata.labels.a"}},
	"a word that is replaced":       {"{{ pvc.metadata.labels.a | tobash | replace('a', 'b') }}", []string{"1:4 pvc.metadata.labels.a"}},
	"a word that is cut":            {"{{ (pvc.metadata.labels.a | tobash)[:5] }}", []string{"1:5 pvc.metadata.labels.a"}},
	"a word as a string":            {"{{ pvc.metadata.labels.a | tobash | string | trim }}", []string{"1:4 pvc.metadata.labels.a word"}},
	"a word twice":                  {"{{ ('sh -c ' ~ (pvc.metadata.labels.a | tobash)) | tobash }}", []string{"1:17 pvc.metadata.labels.a word"}},
	"a default that is a word":      {"{{ pvc.metadata.labels.a | default('x') | tobash }}", []string{"1:4 pvc.metadata.labels.a word"}},
	"a word with a default":         {"{{ params.x | default(pvc.metadata.labels.a) }}", []string{"1:23 pvc.metadata.labels.a"}},
	"words, joined":                 {"{{ [pvc.metadata.labels.a | tobash, 'b'] | join(' ') }}", []string{"1:5 pvc.metadata.labels.a word"}},
	"words of a list":               {"{{ pvc.metadata.annotations.values() | map('tobash') | join(' ') }}", []string{"1:4 pvc.metadata.annotations word"}},
	"no words of a list":            {"{{ pvc.metadata.annotations.values() | join(' ') }}", []string{"1:4 pvc.metadata.annotations"}},
	"a list that becomes a word":    {"{{ pvc.spec.accessModes | join(',') | tobash }}", []string{"1:4 pvc.spec.accessModes word safe"}},
	"words, joined by a tenant":     {"{{ ['a', 'b'] | join(pvc.metadata.labels.a) }}", []string{"1:22 pvc.metadata.labels.a"}},
	"a word that is formatted":      {"{{ 'echo %s' | format(pvc.metadata.labels.a | tobash) }}", []string{"1:23 pvc.metadata.labels.a word"}},
	"a word, formatted by %":        {"{{ 'echo %s' % (pvc.metadata.labels.a | tobash) }}", []string{"1:17 pvc.metadata.labels.a word"}},
	"a word, formatted and cut":     {"{{ 'echo %.3s' % (pvc.metadata.labels.a | tobash) }}", []string{"1:19 pvc.metadata.labels.a"}},
	"a word, formatted by a method": {"{{ 'echo {}'.format(pvc.metadata.labels.a | tobash) }}", []string{"1:21 pvc.metadata.labels.a word"}},
	"formatted":                     {"{{ '%s' | format(pvc.metadata.labels.a) }}", []string{"1:18 pvc.metadata.labels.a"}},
	"a format":                      {"{{ pvc.metadata.labels.a | format('x') }}", []string{"1:4 pvc.metadata.labels.a"}},
	"JSON is no word":               {"{{ pvc.metadata.labels | tojson }}", []string{"1:4 pvc.metadata.labels"}},
	"JSON as a word":                {"{{ pvc.metadata.labels | tojson | tobash }}", []string{"1:4 pvc.metadata.labels word"}},
	"replaced by what a tenant has": {"{{ params.x | replace('NAME', pvc.metadata.labels.a) }}", []string{"1:31 pvc.metadata.labels.a"}},
	"a word that is escaped":        {"{% autoescape true %}{{ pvc.metadata.labels.a | tobash }}{% endautoescape %}", []string{"1:25 pvc.metadata.labels.a"}},
	"a block that is a word":        {"{% filter tobash %}a {{ pvc.metadata.labels.a }}{% endfilter %}", []string{"1:25 pvc.metadata.labels.a word"}},

	// Variables.
	"a variable":                          {"{% set a = pvc.metadata.labels.a %}\necho {{ a }}", []string{"2:9 pvc.metadata.labels.a"}},
	"a variable that is a word":           {"{% set a = pvc.metadata.labels.a | tobash %}\necho {{ a }}", []string{"2:9 pvc.metadata.labels.a word"}},
	"a variable that becomes a word":      {"{% set a = pvc.metadata.labels.a %}{% set a = a | tobash %}\necho {{ a }}", []string{"2:9 pvc.metadata.labels.a word"}},
	"a variable that is overwritten":      {"{% set a = pvc.metadata.labels.a %}{% set a = 'b' %}{{ a }}", nil},
	"a variable that may be overwritten":  {"{% set a = pvc.metadata.labels.a %}{% if readOnly %}{% set a = 'b' %}{% endif %}{{ a }}", []string{"1:84 pvc.metadata.labels.a"}},
	"a variable of a branch":              {"{% if readOnly %}{% set a = pvc.metadata.labels.a %}{% else %}{% set a = 'b' %}{% endif %}{{ a }}", []string{"1:94 pvc.metadata.labels.a"}},
	"variables that are unpacked":         {"{% set a, b = 'x', pvc.metadata.labels.a %}{{ a }}\n{{ b }}", []string{"2:4 pvc.metadata.labels.a"}},
	"a part of a claim":                   {"{% set m = pvc.metadata %}{{ m.name }}\n{{ m.annotations.x }}", []string{"1:30 pvc.metadata.name safe", "2:4 pvc.metadata.annotations.x"}},
	"a block of text":                     {"{% set a %}echo {{ pvc.metadata.labels.a }}{% endset %}\n{{ a }}", []string{"2:4 pvc.metadata.labels.a"}},
	"a block of text with a word":         {"{% set a %}echo {{ pvc.metadata.labels.a | tobash }}{% endset %}\n{{ a }}", []string{"2:4 pvc.metadata.labels.a word"}},
	"a block of text, filtered":           {"{% set a | tobash %}echo {{ pvc.metadata.labels.a }}{% endset %}\n{{ a }}", []string{"2:4 pvc.metadata.labels.a word"}},
	"with":                                {"{% with a = pvc.metadata.labels.a %}{{ a }}{% endwith %}", []string{"1:40 pvc.metadata.labels.a"}},
	"a mapping":                           {"{% set m = {'a': pvc.metadata.labels.a, 'b': params.b} %}{{ m.b }}\n{{ m.a }}", []string{"2:4 pvc.metadata.labels.a"}},
	"a mapping as JSON":                   {"{{ {'a': pvc.metadata.labels.a} | tojson }}", []string{"1:10 pvc.metadata.labels.a"}},
	"a namespace":                         {"{% set ns = namespace(a=pvc.metadata.labels.a, b='c') %}{{ ns.b }}\n{{ ns.a }}", []string{"2:4 pvc.metadata.labels.a"}},
	"a namespace that is set":             {"{% set ns = namespace(a='') %}{% for k in accessModes %}{% set ns.a = ns.a ~ pvc.metadata.labels[k] %}{% endfor %}\n{{ ns.a }}", []string{"2:4 pvc.metadata.labels"}},
	"a namespace that is set to words":    {"{% set ns = namespace(a='') %}{% for k, v in pvc.metadata.labels.items() %}{% set ns.a = ns.a ~ ' ' ~ ((k ~ '=' ~ v) | tobash) %}{% endfor %}\n{{ ns.a }}", []string{"2:4 pvc.metadata.labels word"}},
	"a namespace that notes a find":       {"{% set ns = namespace(found=false) %}{% for m in pvc.spec.accessModes %}{% if m == 'x' %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.found }}", nil},
	"a namespace that goes round in time": {"{% set ns = namespace(a='', b='') %}{% for i in range(9) %}{{ ns.b }}{% set ns.b = ns.a %}{% set ns.a = pvc.metadata.labels.x %}{% endfor %}", []string{"1:63 pvc.metadata.labels.x"}},

	// Loops and macros.
	"a loop over labels":         {"{% for k, v in pvc.metadata.labels.items() %}\n{{ k }}={{ v | tobash }}\n{% endfor %}", []string{"2:4 pvc.metadata.labels", "2:12 pvc.metadata.labels word"}},
	"a loop over something else": {"{% for k, v in pvc.metadata.labels.items() %}{% endfor %}{% for k, v in params.items() %}{{ k }}={{ v }}{% endfor %}", nil},
	"a loop over sorted items":   {"{% for k, v in pvc.metadata.labels | dictsort %}{{ v }}{% endfor %}", []string{"1:52 pvc.metadata.labels"}},
	"a loop over a written list": {"{% for x in ['a', pvc.metadata.name] %}{{ x | tobash }}{% endfor %}", []string{"1:43 pvc.metadata.name word safe"}},
	"what a loop cycles":         {"{% for x in pvc.metadata.labels %}{{ loop.cycle('a', 'b') }}{{ loop.index }}{% endfor %}", nil},
	"what was before":            {"{% for x in pvc.metadata.labels %}{{ loop.previtem }}{% endfor %}", []string{"1:38 pvc.metadata.labels"}},
	"a loop that calls itself":   {"{% for x in pvc.spec.x recursive %}{{ loop(x.y) }}{% endfor %}", []string{"1:39 pvc.spec.x"}},
	"a macro":                    {"{% macro m(a) %}echo {{ a }}{% endmacro %}{{ m('x') }}\n{{ m(pvc.metadata.labels.a) }}", []string{"2:6 pvc.metadata.labels.a"}},
	"a macro that makes a word":  {"{% macro q(a) %}{{ a | tobash }}{% endmacro %}{{ q(pvc.metadata.labels.a) }}", []string{"1:52 pvc.metadata.labels.a word"}},
	"a macro that is not called": {"{% macro m() %}{{ pvc.metadata.labels.a }}{% endmacro %}", nil},
	"a macro that is a word":     {"{% macro m() %}a {{ pvc.metadata.labels.a }}{% endmacro %}{{ m() | tobash }}", []string{"1:21 pvc.metadata.labels.a word"}},
	"a macro's default":          {"{% macro m(a=pvc.metadata.labels.a) %}{{ a }}{% endmacro %}{{ m() }}\n{{ m('x') }}", []string{"1:14 pvc.metadata.labels.a"}},
	"a named argument":           {"{% macro m(a, b='') %}{{ b }}{% endmacro %}{{ m(pvc.metadata.labels.a, b='x') }}{{ m('x', b=pvc.metadata.labels.b) }}", []string{"1:93 pvc.metadata.labels.b"}},
	"arguments in a mapping":     {"{% macro m(a) %}{{ a }}{% endmacro %}{{ m(**{'a': pvc.metadata.labels.a}) }}", []string{"1:51 pvc.metadata.labels.a"}},
	"varargs and kwargs":         {"{% macro m() %}{{ varargs | join }}{{ kwargs.x }}{% endmacro %}{{ m(pvc.metadata.labels.a, x=pvc.metadata.labels.b) }}", []string{"1:69 pvc.metadata.labels.a", "1:94 pvc.metadata.labels.b"}},
	"a macro that calls itself":  {"{% macro m(a, b) %}{{ b | tobash }}{% if a %}{{ m('', a) }}{% endif %}{% endmacro %}{{ m(pvc.metadata.labels.a, 'x') }}", []string{"1:90 pvc.metadata.labels.a word"}},
	"a call block":               {"{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}{{ pvc.metadata.labels.a }}{% endcall %}", []string{"1:63 pvc.metadata.labels.a"}},
	"a call block with values":   {"{% macro m(x) %}{{ caller(x) }}{% endmacro %}{% call(v) m(pvc.metadata.labels.a) %}{{ v | tobash }}{% endcall %}", []string{"1:59 pvc.metadata.labels.a word"}},
	"a named block":              {"{% set a = pvc.metadata.labels.a %}{% block b %}{{ a }}{% endblock %}", []string{"1:52 pvc.metadata.labels.a"}},
	"a named block, again":       {"{% filter tobash %}{% block b %}{{ pvc.metadata.labels.a }}{% endblock %}{% endfilter %}\n{{ self.b() }}", []string{"1:36 pvc.metadata.labels.a word", "1:36 pvc.metadata.labels.a"}},
	"a macro in a namespace":     {"{% macro m(a) %}{{ a }}{% endmacro %}{% set ns = namespace(m=m) %}{{ ns.m(pvc.metadata.labels.a) }}", []string{"1:75 pvc.metadata.labels.a"}},
	"a cycler":                   {"{% set c = cycler('a', pvc.metadata.labels.a) %}{{ c.next() }}", []string{"1:52 pvc.metadata.labels.a"}},
	"lists that are added":       {"{% set l = ['a'] + [pvc.metadata.labels.a | tobash] %}{{ l | join(' ') }}", []string{"1:58 pvc.metadata.labels.a word"}},
	"an attribute by its name":   {"{{ pvc | attr('metadata') | tojson }}", []string{"1:4 pvc"}},
}

func TestAnalyze_Flows(t *testing.T) {
	e := NewEvaluator(DefaultLimits())
	for name, test := range flowTests {
		t.Run(name, func(t *testing.T) {
			a := e.Analyze("volumeStaging", test.template)
			if len(a.Errors) > 0 {
				t.Errorf("it has errors: %v", a.Errors)
			}
			got := flowTexts(a.Flows)
			want := slices.Clone(test.want)
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.template, diff)
			}
		})
	}
}
