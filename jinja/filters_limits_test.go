package jinja

import "testing"

func TestFiltersKeepToTheLimits(t *testing.T) {
	t.Parallel()
	const nested = "{% set ns = namespace(x=1) %}{% for i in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}"
	checkTemplates(t, []templateCase{
		{name: "center", template: "{{ 'x'|center(10**12) }}", fails: "limit"},
		{name: "replace", template: "{{ ('a' * 10**4)|replace('', 'x' * 10**4) }}", fails: "limit"},
		{name: "indent", template: "{{ 'a'|indent(10**12) }}", fails: "limit"},
		{name: "indent of many lines", template: "{{ ('a\n' * 10**5)|indent(10**4) }}", fails: "limit"},
		{name: "join", template: "{{ range(10**5)|join('x' * 10**4) }}", fails: "limit"},
		{name: "format", template: "{{ '%1000000000d'|format(1) }}", fails: "limit"},
		{name: "batch", template: "{{ [1]|batch(10**12, 0)|list }}", fails: "limit"},
		{name: "slice", template: "{{ [1]|slice(10**12)|list }}", fails: "limit"},
		{name: "slice of more than the machine has", template: "{{ [1]|slice(10**30, 0)|list }}", fails: "limit"},
		{name: "round to many digits", template: "{{ 1|round(10**12, 'ceil') }}", fails: "limit"},
		{name: "sum of lists", template: "{{ ([[1]] * 10**5)|sum(start=[]) }}", fails: "limit"},
		{name: "sum of tuples", template: "{{ ([(1,)] * 10**5)|sum(start=()) }}", fails: "limit"},
		{name: "tojson indented", template: "{{ [[1]]|tojson(10**9) }}", fails: "limit"},
		{name: "tojson of what is nested", template: nested + "{{ ns.x|tojson }}", fails: "limit"},
		{name: "pprint of what is nested", template: nested + "{{ ns.x|pprint }}", fails: "limit"},
		{name: "pprint of a long key", template: "{{ {'k' * 10**6: range(10**5)|list}|pprint }}", fails: "limit"},
		{name: "wordwrap", template: "{{ ('a ' * 10**5)|wordwrap(1, wrapstring='x' * 10**4) }}", fails: "limit"},
		{name: "urlize", template: "{{ ('ab.com ' * 10**4)|urlize(target='x' * 10**5) }}", fails: "limit"},
		{name: "urlize of a long host", template: "{{ ('http://' ~ 'a.' * 10**6)|urlize }}", fails: "limit"},
		{name: "lipsum", template: "{{ lipsum(10**9) }}", fails: "limit"},
		{name: "lipsum of many words", template: "{{ lipsum(1, min=10**12, max=10**12 + 1) }}", fails: "limit"},
		{
			name:     "generators of generators",
			template: "{% set ns = namespace(x=[1]) %}{% for i in range(1000) %}{% set ns.x = ns.x|map('string') %}{% endfor %}{{ ns.x|list }}",
			fails:    "limit",
		},
		{name: "unique", template: "{{ range(10**5)|map('string')|map('replace', '', 'x' * 100)|unique|list }}", fails: "limit"},
	})
}
