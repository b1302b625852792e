package jinja

import "testing"

func TestOrderFilters(t *testing.T) {
	t.Parallel()
	checkTemplates(t, []templateCase{
		{
			name:     "sort",
			template: "{{ [3,1,2]|sort }} {{ ['b', 'A', 'c']|sort }} {{ ['b', 'A', 'c']|sort(case_sensitive=true) }} {{ [1,3,2]|sort(true) }} {{ 'bca'|sort }}",
			want:     "[1, 2, 3] ['A', 'b', 'c'] ['A', 'b', 'c'] [3, 2, 1] ['a', 'b', 'c']",
		},
		{
			name:     "sort is stable",
			template: "{{ ['b', 'B', 'a', 'A']|sort }} {{ ['b', 'B', 'a', 'A']|sort(reverse=true) }}",
			want:     "['a', 'A', 'b', 'B'] ['b', 'B', 'a', 'A']",
		},
		{
			name:     "sort by attributes",
			template: "{{ users|sort(attribute='age,name')|map(attribute='name')|list }} {{ users|sort(attribute='city.name')|map(attribute='name')|list }} {{ [[1,2],[0,3]]|sort(attribute=0) }}",
			want:     "['bob', 'Ann', 'Cid'] ['bob', 'Ann', 'Cid'] [[0, 3], [1, 2]]",
		},
		{
			name:     "sort by an attribute that none has",
			template: "{{ [{'b': 1}, {'c': 1}]|sort(attribute='a') }}",
			want:     "[{'b': 1}, {'c': 1}]",
		},
		{name: "sort by an attribute that some have", template: "{{ [{'a': 1}, {}]|sort(attribute='a') }}", fails: "undefined"},
		{name: "sort of different types", template: "{{ [1,'a']|sort }}", fails: "type"},
		{name: "sort of one", template: "{{ [missing]|sort|length }}{{ [none]|sort }}", want: "1[None]"},
		{
			name:     "sort of many",
			template: "{% set ns = namespace(x=[]) %}{% for i in range(150) %}{% set ns.x = ns.x + [i * 37 % 101] %}{% endfor %}{{ ns.x|sort }}{{ ns.x|sort(true)|first }}",
			want:     "[0, 0, 1, 2, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 9, 10, 10, 11, 12, 12, 13, 13, 14, 15, 16, 16, 17, 18, 19, 19, 20, 20, 21, 22, 22, 23, 23, 24, 25, 26, 26, 27, 28, 29, 29, 30, 30, 31, 32, 33, 33, 34, 35, 36, 36, 37, 37, 38, 39, 39, 40, 40, 41, 42, 43, 43, 44, 45, 46, 46, 47, 47, 48, 49, 49, 50, 50, 51, 52, 53, 53, 54, 55, 56, 56, 57, 57, 58, 59, 59, 60, 60, 61, 62, 63, 63, 64, 65, 66, 66, 67, 67, 68, 69, 70, 70, 71, 72, 73, 73, 74, 74, 75, 76, 76, 77, 77, 78, 79, 80, 80, 81, 82, 83, 83, 84, 84, 85, 86, 86, 87, 87, 88, 89, 90, 90, 91, 92, 93, 93, 94, 94, 95, 96, 97, 97, 98, 99, 100, 100]100",
		},
		{name: "sort by what is no order", template: "{{ [3, 'nan'|float, 1, 'nan'|float, 2]|sort }}", want: "[3, nan, 1, nan, 2]"},
		{name: "sort in reverse of a string", template: "{{ [1]|sort('x') }}", fails: "type"},
		{name: "sort in reverse of none", template: "{{ [1]|sort(none) }}", fails: "type"},
		{name: "sort in reverse of a number", template: "{{ [1,2]|sort(2) }}", want: "[2, 1]"},
		{
			name:     "dictsort",
			template: "{{ {'b': 1, 'A': 2, 'c': 0}|dictsort }} {{ {'b': 1, 'A': 2}|dictsort(true) }} {{ {'b': 1, 'A': 2, 'c': 0}|dictsort(by='value') }} {{ {'b': 1, 'A': 2}|dictsort(reverse=true) }}",
			want:     "[('A', 2), ('b', 1), ('c', 0)] [('A', 2), ('b', 1)] [('c', 0), ('b', 1), ('A', 2)] [('b', 1), ('A', 2)]",
		},
		{name: "dictsort by something else", template: "{{ {}|dictsort(by='x') }}", fails: "other"},
		{name: "dictsort of values that cannot be compared", template: "{{ {'a': 1, 'b': none}|dictsort(false, 'value') }}", fails: "type"},
		{name: "dictsort of undefined values", template: "{{ {'a': missing, 'b': missing}|dictsort(false, 'value') }}", fails: "undefined"},
		{name: "dictsort of a list", template: "{{ [1]|dictsort }}", fails: "other"},
		{name: "dictsort of undefined", template: "{{ missing|dictsort }}", fails: "undefined"},
		{
			name:     "unique",
			template: "{{ ['a', 'A', 'b']|unique|list }} {{ ['a', 'A']|unique(true)|list }} {{ [1, true, 1.0, 2]|unique|list }} {{ users|unique(attribute='age')|map(attribute='name')|list }}",
			want:     "['a', 'b'] ['a', 'A'] [1, 2] ['Ann', 'bob']",
		},
		{name: "unique of lists", template: "{{ [[1]]|unique|list }}", fails: "type"},
		{name: "unique of undefined", template: "{{ [missing, missing, 1]|unique|list|length }}", want: "2"},
		{
			name:     "min and max",
			template: "{{ [2,1,3]|min }} {{ [2,1,3]|max }} {{ ['b', 'A']|min }} {{ ['b', 'A']|min(true) }} {{ ['b', 'A']|max }} {{ users|max(attribute='age') }} [{{ []|min }}]",
			want:     "1 3 A A b {'name': 'Ann', 'age': 30, 'city': {'name': 'oslo'}} []",
		},
		{name: "min is the first", template: "{{ ['a', 'A']|min }} {{ ['A', 'a']|max }} {{ [1, 1.0, true]|max }}", want: "a A 1"},
		{name: "min of different types", template: "{{ [1, '1']|min }}", fails: "type"},
		{name: "using min of nothing", template: "{{ []|min + 1 }}", fails: "undefined"},
		{name: "sum", template: "{{ [1,2,3]|sum }} {{ [0.1]*3|sum }} {{ [1,2]|sum(start=10) }} {{ users|sum(attribute='age') }} {{ users|sum('age', 1.5) }} {{ [[1],[2]]|sum(start=[]) }} {{ missing|sum }}", fails: "type"},
		{name: "sum of strings", template: "{{ ['a']|sum }}", fails: "type"},
		{name: "sum from a string", template: "{{ ['a']|sum(start='') }}", fails: "type"},
		{name: "sum of nothing from a string", template: "{{ []|sum(start='') }}", fails: "type"},
		{name: "sum of undefined", template: "{{ [missing]|sum }}", fails: "undefined"},
		{
			name:     "groupby",
			template: "{% for g in users|groupby('age') %}{{ g.grouper }}: {{ g.list|map(attribute='name')|join(',') }}; {% endfor %}",
			want:     "25: bob; 30: Ann,Cid; ",
		},
		{
			name:     "groupby does not look at case",
			template: "{% for city, list in users|groupby('city.name') %}{{ city }}: {{ list|length }}; {% endfor %}",
			want:     "Bonn: 1; oslo: 2; ",
		},
		{
			name:     "groupby looks at case",
			template: "{% for city, list in users|groupby('city.name', case_sensitive=true) %}{{ city }}: {{ list|length }}; {% endfor %}",
			want:     "Bonn: 1; Oslo: 1; oslo: 1; ",
		},
		{
			name:     "groupby with a default",
			template: "{{ [{'a': 'x'}, {}]|groupby('a', default='d') }}",
			want:     "[('d', [{}]), ('x', [{'a': 'x'}])]",
		},
		{name: "groupby of different types", template: "{{ [{'a': 'x'}, {'a': 1}]|groupby('a') }}", fails: "type"},
		{name: "groupby where some have nothing", template: "{{ [{'a': 'x'}, {}]|groupby('a') }}", fails: "undefined"},
		{
			name:     "groupby gives tuples",
			template: "{{ ['a', 'bb']|groupby(0) }} {{ (['a']|groupby(0))[0][0] }}",
			want:     "[('a', ['a']), ('b', ['bb'])] a",
		},
		{name: "groupby wants an attribute", template: "{{ []|groupby }}", fails: "type"},
	})
}
