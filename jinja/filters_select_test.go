package jinja

import "testing"

func TestMapAndSelect(t *testing.T) {
	t.Parallel()
	checkTemplates(t, []templateCase{
		{
			name:     "map with a filter",
			template: "{{ ['a', 'b']|map('upper')|list }} {{ ['a-b']|map('replace', '-', '+')|list }}",
			want:     "['A', 'B'] ['a+b']",
		},
		{
			name:     "map with an attribute",
			template: "{{ users|map(attribute='name')|list }} {{ users|map(attribute='city.name')|join(',') }}",
			want:     "['Ann', 'bob', 'Cid'] oslo,Bonn,Oslo",
		},
		{
			name:     "map with a default",
			template: "{{ [{'a': 1}, {}]|map(attribute='a', default='d')|list }} {{ [{}]|map(attribute='a.b', default={'b': 2})|list }}",
			want:     "[1, 'd'] [2]",
		},
		{
			name:     "map with an index",
			template: "{{ [[1, [2]], [3, [4]]]|map(attribute='1.0')|list }} {{ ['ab']|map(attribute=1)|list }}",
			want:     "[2, 4] ['b']",
		},
		{
			name:     "map of nothing asks for no filter",
			template: "{{ []|map('nosuch')|list }}{{ missing|map|list }}{{ 0|map|list }}",
			want:     "[][][]",
		},
		{name: "map with an unknown filter", template: "{{ [1]|map('nosuch')|list }}", fails: "other"},
		{name: "map with an unknown filter that nobody uses", template: "{{ ([1]|map('nosuch')) is iterable }}", want: "True"},
		{name: "map without a filter", template: "{{ [1]|map|list }}", fails: "other"},
		{name: "map with more than an attribute", template: "{{ [1]|map(attribute='a', x=1)|list }}", fails: "other"},
		{name: "map with what names no filter", template: "{{ [1]|map(1)|list }}", fails: "other"},
		{name: "map with a list as a filter", template: "{{ [1]|map([])|list }}", fails: "type"},
		{name: "map of a number", template: "{{ 1|map('string')|list }}", fails: "type"},
		{name: "map with a part that is a digit, but no number", template: "{{ ['a']|map(attribute='²')|list }}", fails: "other"},
		{
			name:     "map escapes with automatic escaping",
			template: "{% autoescape true %}{{ ['<', '>']|map('escape')|join }}{% endautoescape %}",
			want:     "&lt;&gt;",
		},
		{
			name:     "select",
			template: "{{ [1,2,3]|select('odd')|list }} {{ [0,1,'']|select|list }} {{ [1,2,3]|select('gt', 1)|list }} {{ [1,2]|select('in', [2])|list }}",
			want:     "[1, 3] [1] [2, 3] [2]",
		},
		{
			name:     "reject",
			template: "{{ [1,2,3]|reject('odd')|list }} {{ [0,1,'']|reject|list }} {{ [1,'a']|reject('string')|list }}",
			want:     "[2] [0, ''] [1]",
		},
		{
			name:     "selectattr",
			template: "{{ users|selectattr('age', '==', 30)|map(attribute='name')|list }} {{ [{'a': 1}, {'a': 0}, {}]|selectattr('a')|list }}",
			want:     "['Ann', 'Cid'] [{'a': 1}]",
		},
		{
			name:     "rejectattr",
			template: "{{ users|rejectattr('city.name', 'lower')|map(attribute='name')|list }} {{ [{'a': 1}, {}]|rejectattr('a', 'defined')|list }}",
			want:     "['bob', 'Cid'] [{}]",
		},
		{name: "select ignores names without a test", template: "{{ [1,0]|select(x=1)|list }}", want: "[1]"},
		{name: "select with an unknown test", template: "{{ [1]|select('nosuch')|list }}", fails: "other"},
		{name: "select of nothing asks for no test", template: "{{ []|select('nosuch')|list }}", want: "[]"},
		{name: "selectattr without an attribute", template: "{{ [1]|selectattr|list }}", fails: "other"},
		{name: "select with too much", template: "{{ [1]|select('odd', 2)|list }}", fails: "type"},
		{name: "select fails where its test does", template: "{{ ['a']|select('odd')|list }}", fails: "type"},
		{
			name:     "what is selected can be iterated once",
			template: "{% set x = [1,2]|select %}{{ x|list }}{{ x|list }}",
			want:     "[1, 2][]",
		},
	})
}
