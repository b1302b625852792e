package jinja

import "testing"

func TestTests(t *testing.T) {
	t.Parallel()
	checkTemplates(t, []templateCase{
		{
			name:     "odd, even, divisibleby",
			template: "{{ 3 is odd }} {{ 4 is odd }} {{ 4 is even }} {{ 3.0 is odd }} {{ -3 is odd }} {{ 9 is divisibleby(3) }} {{ 9 is divisibleby 2 }} {{ true is odd }}",
			want:     "True False True True True True False True",
		},
		{name: "a generator without variables is searched from its beginning", template: "{{ 1 in [1, 2]|map('int') }} {{ 3 in [1, 2]|map('int') }}", want: "True False"},
		{name: "a generator without variables that fails", template: "{{ none in none|items }}", fails: "type"},
		{name: "methods of one object", template: "{% set l = [1] %}{{ l.count == l.count }} {{ l.count == l.index }} {{ l.count == [1].count }}", want: "True False False"},
		{name: "methods of different texts", template: "{{ 'a'.upper == 'b'.upper }} {{ 'a'.upper == 'a'.lower }}", want: "False False"},
		{name: "methods of equal texts may be of one object or of two", template: "{{ 'a'.upper == 'a'.upper }}", fails: "other"},
		{name: "a method as a key", template: "{{ {'a'.upper: 1}|length }}", fails: "other"},
		{name: "self is iterable, although its iteration fails", template: "{{ self is iterable }} {{ self is sequence }}", want: "True False"},
		{name: "a method is no filter and no test", template: "{{ 'a'.upper is filter }} {{ 'a'.upper is test }}", want: "False False"},
		{name: "a tuple with a method as a key", template: "{{ {('a'.upper, 1): 1}|length }}", fails: "other"},
		{name: "a method is no key of any dictionary", template: "{{ 'a'.upper in {'a': 1} }} {{ ('a'.upper, 1) in {'a': 1}.keys() }} {{ {'a': 1}.get('a'.upper, 'none') }}", want: "False False none"},
		{name: "odd of a format", template: "{{ '%d' is odd }}", want: "False"},
		{name: "odd of a string", template: "{{ 'a' is odd }}", fails: "type"},
		{name: "odd of undefined", template: "{{ missing is odd }}", fails: "undefined"},
		{name: "divisibleby zero", template: "{{ 1 is divisibleby(0) }}", fails: "other"},
		{
			name:     "defined",
			template: "{{ missing is defined }} {{ missing is undefined }} {{ none is defined }} {{ users[0].x is defined }}",
			want:     "False True True False",
		},
		{
			name:     "filter and test",
			template: "{{ 'upper' is filter }} {{ 'x' is filter }} {{ 'odd' is test }} {{ 'x' is test }} {{ 1 is filter }} {{ missing is test }} {{ '==' is test }}",
			want:     "True False True False False False True",
		},
		{name: "a list is no name of a filter", template: "{{ [] is filter }}", fails: "type"},
		{
			name:     "types",
			template: "{% for v in [none, true, false, 1, 1.5, 'a', [], {}, (), range(1), missing] %}{{ v is none }}{{ v is boolean }}{{ v is true }}{{ v is false }}{{ v is integer }}{{ v is float }}{{ v is number }}{{ v is string }}{{ v is mapping }}{{ v is sequence }}{{ v is iterable }}{{ v is callable }} {% endfor %}",
			want:     "TrueFalseFalseFalseFalseFalseFalseFalseFalseFalseFalseFalse FalseTrueTrueFalseFalseFalseTrueFalseFalseFalseFalseFalse FalseTrueFalseTrueFalseFalseTrueFalseFalseFalseFalseFalse FalseFalseFalseFalseTrueFalseTrueFalseFalseFalseFalseFalse FalseFalseFalseFalseFalseTrueTrueFalseFalseFalseFalseFalse FalseFalseFalseFalseFalseFalseFalseTrueFalseTrueTrueFalse FalseFalseFalseFalseFalseFalseFalseFalseFalseTrueTrueFalse FalseFalseFalseFalseFalseFalseFalseFalseTrueTrueTrueFalse FalseFalseFalseFalseFalseFalseFalseFalseFalseTrueTrueFalse FalseFalseFalseFalseFalseFalseFalseFalseFalseTrueTrueFalse FalseFalseFalseFalseFalseFalseFalseFalseFalseTrueTrueTrue ",
		},
		{
			name:     "types of iterators",
			template: "{% for v in [[1]|map('string'), {}.items(), {}.keys(), namespace(), cycler(1), joiner(), range, dict, 'a'.upper] %}{{ v is sequence }}{{ v is iterable }}{{ v is callable }}{{ v is mapping }} {% endfor %}",
			want:     "FalseTrueFalseFalse FalseTrueFalseFalse FalseTrueFalseFalse FalseFalseFalseFalse FalseFalseFalseFalse FalseFalseTrueFalse FalseFalseTrueFalse FalseFalseTrueFalse FalseFalseTrueFalse ",
		},
		{
			name:     "lower and upper",
			template: "{{ 'a1' is lower }} {{ 'A' is lower }} {{ 'A1' is upper }} {{ 1 is upper }} {{ '' is lower }} {{ true is lower }}",
			want:     "True False True False False False",
		},
		{
			name:     "sameas",
			template: "{{ none is sameas none }} {{ true is sameas true }} {{ 1 is sameas true }} {{ users is sameas users }} {{ [] is sameas [] }} {{ users[0] is sameas users[0] }}",
			want:     "True True False True False True",
		},
		{
			name:     "escaped",
			template: "{{ ('a'|safe) is escaped }} {{ 'a' is escaped }} {{ missing is escaped }}",
			want:     "True False False",
		},
		{
			name:     "in",
			template: "{{ 1 is in [1] }} {{ 'a' is in 'cat' }} {{ 'k' is in {'k': 1} }} {{ 1 is in missing }}",
			want:     "True True True False",
		},
		{
			name:     "in an iterable",
			template: "{{ 1 is in [1, 2] }} {{ '1' is in([1]|map('string')) }} {{ 3 is in range(3) }}",
			want:     "True True False",
		},
		{name: "in nothing", template: "{{ 1 is in() }}", fails: "type"},
		{name: "in a number", template: "{{ 1 is in 1 }}", fails: "type"},
		{name: "a number in a string", template: "{{ 1 is in '1' }}", fails: "type"},
		{
			name:     "comparisons",
			template: "{{ 1 is eq 1 }} {{ 1 is equalto(1.0) }} {{ 1 is ne 2 }} {{ 1 is lt 2 }} {{ 1 is lessthan 1 }} {{ 1 is le 1 }} {{ 2 is gt 1 }} {{ 2 is greaterthan 3 }} {{ 2 is ge 2 }}",
			want:     "True True True True False True True False True",
		},
		{name: "comparison of different types", template: "{{ 1 is lt 'a' }}", fails: "type"},
		{name: "comparison with undefined", template: "{{ 1 is gt missing }}", fails: "undefined"},
		{name: "a test that takes nothing", template: "{{ 1 is odd(2) }}", fails: "type"},
		{name: "a comparison by name", template: "{{ 1 is eq(b=1) }}", fails: "type"},
	})
}
