package jinja

import "testing"

func TestPrettyPrint(t *testing.T) {
	t.Parallel()
	checkTemplates(t, []templateCase{
		{
			name:     "what fits on a line",
			template: "{{ {'b': 1, 'a': [1, 'x', none, 1.5, (1,), ()]}|pprint }}",
			want:     "{'a': [1, 'x', None, 1.5, (1,), ()], 'b': 1}",
		},
		{
			name:     "scalars",
			template: `{{ 'it\'s'|pprint }} {{ 1|pprint }} {{ none|pprint }} {{ missing|pprint }} {{ ('<'|safe)|pprint }}`,
			want:     `"it's" 1 None Undefined Markup('<')`,
		},
		{
			name:     "a long list",
			template: "{{ range(40)|list|pprint }}",
			want:     "[0,\n 1,\n 2,\n 3,\n 4,\n 5,\n 6,\n 7,\n 8,\n 9,\n 10,\n 11,\n 12,\n 13,\n 14,\n 15,\n 16,\n 17,\n 18,\n 19,\n 20,\n 21,\n 22,\n 23,\n 24,\n 25,\n 26,\n 27,\n 28,\n 29,\n 30,\n 31,\n 32,\n 33,\n 34,\n 35,\n 36,\n 37,\n 38,\n 39]",
		},
		{
			name:     "a long dictionary",
			template: "{{ {'some key': 'a value that is long', 'another key': 'a value that is long', 'a': 'b'}|pprint }}",
			want:     "{'a': 'b',\n 'another key': 'a value that is long',\n 'some key': 'a value that is long'}",
		},
		{
			name:     "what is nested",
			template: "{{ {'metadata': {'name': 'example', 'labels': {'app.kubernetes.io/name': 'example', 'tier': 'backend'}}, 'spec': {'containers': [{'name': 'main', 'image': 'example.com/image:1', 'args': ['--verbose', '--port=80']}], 'replicas': 3}}|pprint }}",
			want:     "{'metadata': {'labels': {'app.kubernetes.io/name': 'example',\n                         'tier': 'backend'},\n              'name': 'example'},\n 'spec': {'containers': [{'args': ['--verbose', '--port=80'],\n                          'image': 'example.com/image:1',\n                          'name': 'main'}],\n          'replicas': 3}}",
		},
		{
			name:     "a long string",
			template: "{{ ('the quick brown fox jumps over the lazy dog ' * 4)|pprint }}",
			want:     "('the quick brown fox jumps over the lazy dog the quick brown fox jumps over '\n 'the lazy dog the quick brown fox jumps over the lazy dog the quick brown fox '\n 'jumps over the lazy dog ')",
		},
		{
			name:     "a long string inside",
			template: "{{ {'key': 'the quick brown fox jumps over the lazy dog ' * 3, 'k': 1}|pprint }}",
			want:     "{'k': 1,\n 'key': 'the quick brown fox jumps over the lazy dog the quick brown fox jumps '\n        'over the lazy dog the quick brown fox jumps over the lazy dog '}",
		},
		{
			name:     "a string of lines",
			template: `{{ ('line one of these\nand another\n' * 5)|pprint }}`,
			want:     "('line one of these\\n'\n 'and another\\n'\n 'line one of these\\n'\n 'and another\\n'\n 'line one of these\\n'\n 'and another\\n'\n 'line one of these\\n'\n 'and another\\n'\n 'line one of these\\n'\n 'and another\\n')",
		},
		{
			name:     "a long word",
			template: "{{ ('x' * 100)|pprint }}{{ [('x' * 100) ~ ' y']|pprint }}",
			want:     "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'['xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx '\n 'y']",
		},
		{
			name:     "a tuple of one",
			template: "{{ ('x' * 80,)|pprint }}",
			want:     "('xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',)",
		},
		{
			name:     "keys of different types",
			template: "{{ {'b': 1, 2: 1, none: 1, 1.5: 1, ('a',): 1}|pprint }}",
			want:     "{None: 1, 1.5: 1, 2: 1, 'b': 1, ('a',): 1}",
		},
		{
			name:     "wide characters",
			template: "{{ ['ä' * 70, 'ö']|pprint }}{{ ['ä' * 75, 'ö']|pprint }}",
			want:     "['ääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääää', 'ö']['äääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääää',\n 'ö']",
		},
		{
			name:     "bytes",
			template: "{{ ('äbc' * 40).encode()|pprint }}",
			want:     "(b'\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc'\n b'\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc'\n b'\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc'\n b'\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc'\n b'\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc'\n b'\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc\\xc3\\xa4bc')",
		},
		{
			name:     "groups stay on a line",
			template: "{{ users|groupby('age')|pprint }}",
			want:     "[(25, [{'name': 'bob', 'age': 25, 'city': {'name': 'Bonn'}}]),\n (30, [{'name': 'Ann', 'age': 30, 'city': {'name': 'oslo'}}, {'name': 'Cid', 'age': 30, 'city': {'name': 'Oslo'}}])]",
		},
		{
			name:     "empty ones",
			template: "{{ {'a' * 80: {}, 'b': [], 'c': (), 'd': ''}|pprint }}",
			want:     "{'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa': {},\n 'b': [],\n 'c': (),\n 'd': ''}",
		},
	})
}
