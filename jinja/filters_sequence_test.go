package jinja

import "testing"

func TestSequenceFilters(t *testing.T) {
	t.Parallel()
	checkTemplates(t, []templateCase{
		{
			name:     "first and last",
			template: "{{ [1,2]|first }}{{ [1,2]|last }} {{ 'abc'|first }}{{ 'abc'|last }} {{ {'a': 1, 'b': 2}|first }}{{ {'a': 1, 'b': 2}|last }}",
			want:     "12 ac ab",
		},
		{name: "first and last of nothing", template: "[{{ []|first }}{{ []|last }}{{ missing|first }}{{ missing|last }}]", want: "[]"},
		{name: "using first of nothing", template: "{{ ([]|first).x }}", fails: "undefined"},
		{name: "first of a number", template: "{{ 1|first }}", fails: "type"},
		{name: "last of an iterator", template: "{{ ([1]|map('string'))|last }}", fails: "type"},
		{
			name:     "length",
			template: "{{ [1,2]|length }} {{ 'äb'|length }} {{ {}|count }} {{ missing|length }} {{ range(5)|count }}",
			want:     "2 2 0 0 5",
		},
		{name: "length of a number", template: "{{ 1|length }}", fails: "type"},
		{name: "length takes no names", template: "{{ [1]|length(obj=2) }}", fails: "type"},
		{
			name:     "list",
			template: "{{ 'äb'|list }} {{ {'a': 1}|list }} {{ range(3)|list }} {{ missing|list }} {{ (1, 2)|list }}",
			want:     "['ä', 'b'] ['a'] [0, 1, 2] [] [1, 2]",
		},
		{name: "list of a number", template: "{{ 1|list }}", fails: "type"},
		{
			name:     "reverse",
			template: "{{ 'äbc'|reverse }} {{ [1,2]|reverse|list }} {{ (1,2)|reverse|list }} {{ {'a': 1, 'b': 2}|reverse|list }} {{ range(3)|reverse|list }}",
			want:     "cbä [2, 1] [2, 1] ['b', 'a'] [2, 1, 0]",
		},
		{
			name:     "reverse of views",
			template: "{{ {'a': 1, 'b': 2}.items()|reverse|list }} {{ {'a': 1, 'b': 2}.values()|reverse|list }}",
			want:     "[('b', 2), ('a', 1)] [2, 1]",
		},
		{name: "reverse of an iterator is a list", template: "{{ ([1,2]|map('string'))|reverse }}", want: "['2', '1']"},
		{name: "reverse of HTML", template: "{% autoescape true %}{{ ('>b<'|safe)|reverse }}{% endautoescape %}", want: "<b>"},
		{name: "reverse of a number", template: "{{ 1|reverse }}", fails: "other"},
		{name: "items", template: "{{ {'a': 1}|items|list }} {{ missing|items|list }}", want: "[('a', 1)] []"},
		{name: "items of a list", template: "{{ [1]|items|list }}", fails: "type"},
		{name: "items of a list that nobody uses", template: "{{ ([1]|items) is iterable }}", want: "True"},
		{
			name:     "default",
			template: "{{ missing|default('d') }} {{ ''|default('d') }} {{ ''|d('d', true) }} {{ none|d('d') }} {{ none|d('d', boolean=true) }} [{{ missing|d }}]",
			want:     "d  d None d []",
		},
		{name: "default by name", template: "{{ missing|default(default_value=3) }}", want: "3"},
		{
			name:     "join",
			template: "{{ [1,'b',none]|join('-') }} {{ [1,2]|join }} {{ 'abc'|join(',') }} {{ users|join(', ', attribute='name') }} {{ users|join(', ', 'city.name') }} [{{ missing|join }}]",
			want:     "1-b-None 12 a,b,c Ann, bob, Cid oslo, Bonn, Oslo []",
		},
		{
			name:     "join escapes beside HTML",
			template: "{% autoescape true %}{{ ['<', '<b>'|safe]|join(' & ') }} {{ ['<', '<']|join('&') }} {{ ['<']|join('<br>'|safe) }} {{ ['<', 1]|join('<br>'|safe) }}{% endautoescape %}",
			want:     "&lt; &amp; <b> &lt;&amp;&lt; &lt; &lt;<br>1",
		},
		{name: "join without escaping is text", template: "{{ (['<b>'|safe]|join('<'|safe))|e }}", want: "&lt;b&gt;"},
		{name: "join of a number", template: "{{ 1|join }}", fails: "type"},
		{name: "join by a number", template: "{{ ['a', 'b']|join(1) }}", want: "a1b"},
		{
			name:     "batch",
			template: "{{ [1,2,3,4,5]|batch(2)|list }} {{ [1,2,3]|batch(2, 'x')|list }} {{ []|batch(2, 'x')|list }} {{ [1,2]|batch(0)|list }} {{ 'abc'|batch(2)|list }}",
			want:     "[[1, 2], [3, 4], [5]] [[1, 2], [3, 'x']] [] [[], [1, 2]] [['a', 'b'], ['c']]",
		},
		{
			name:     "batch by a fraction",
			template: "{{ [1,2,3]|batch(2.0)|list }} {{ [1,2,3]|batch('x')|list }}",
			want:     "[[1, 2], [3]] [[1, 2, 3]]",
		},
		{name: "batch by a fraction cannot be filled up", template: "{{ [1,2,3]|batch(2.0, 0)|list }}", fails: "type"},
		{name: "batch wants a size", template: "{{ [1]|batch }}", fails: "type"},
		{name: "batch of a number that nobody uses", template: "{{ (1|batch(2)) is iterable }}", want: "True"},
		{
			name:     "slice",
			template: "{{ [1,2,3,4,5]|slice(3)|list }} {{ [1,2,3,4]|slice(3, 'x')|list }} {{ []|slice(2)|list }} {{ [1]|slice(3, 0)|list }} {{ [1]|slice(-1)|list }}",
			want:     "[[1, 2], [3, 4], [5]] [[1, 2], [3, 'x'], [4, 'x']] [[], []] [[1], [0], [0]] []",
		},
		{name: "slice by zero", template: "{{ [1]|slice(0)|list }}", fails: "other"},
		{name: "slice by a fraction", template: "{{ [1]|slice(1.0)|list }}", fails: "type"},
		{name: "random of one", template: "{{ ['a']|random }}[{{ []|random }}]", want: "a[]"},
		{name: "random of a number", template: "{{ 1|random }}", fails: "type"},
		{name: "attr", template: "{{ 'ab'|attr('upper')() }}[{{ {'a': 1}|attr('a') }}]", want: "AB[]"},
		{name: "attr of undefined", template: "{{ missing|attr('a') }}", fails: "undefined"},
		{name: "attr that is private", template: "{{ 'ab'|attr('__class__') }}", want: ""},
		{name: "attr that is not used", template: "{{ ('ab'|attr('__class__')) is defined }}", want: "False"},
		{name: "attr by a number", template: "{{ 'ab'|attr(1) }}", fails: "type"},
	})
}
