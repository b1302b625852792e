package jinja

import "testing"

func TestToJSON(t *testing.T) {
	t.Parallel()
	checkTemplates(t, []templateCase{
		{
			name:     "plain values",
			template: "{{ [1, 1.5, true, none, 'a', 1e16, -0.0]|tojson }}",
			want:     `[1, 1.5, true, null, "a", 1e+16, -0.0]`,
		},
		{
			name:     "keys are sorted",
			template: "{{ {'b': 1, 'a': {'d': [], 'c': {}}}|tojson }}",
			want:     `{"a": {"c": {}, "d": []}, "b": 1}`,
		},
		{
			name:     "keys that are no strings",
			template: "{{ {1: 2}|tojson }} {{ {1.5: 2}|tojson }} {{ {true: 2}|tojson }} {{ {none: 2}|tojson }}",
			want:     `{"1": 2} {"1.5": 2} {"true": 2} {"null": 2}`,
		},
		{
			name:     "safe in HTML",
			template: `{{ "<script>'&\"</script>"|tojson }}`,
			want:     `"\u003cscript\u003e\u0027\u0026\"\u003c/script\u003e"`,
		},
		{name: "is HTML", template: "{% autoescape true %}{{ {'a': '<'}|tojson }}{% endautoescape %}", want: `{"a": "\u003c"}`},
		{
			name:     "characters that need an escape",
			template: `{{ 'é😀\n\t\r\\/\x00\x7f\u2028\b\f'|tojson }}`,
			want:     `"\u00e9\ud83d\ude00\n\t\r\\/\u0000\u007f\u2028\b\f"`,
		},
		{name: "infinity", template: "{{ ['inf'|float, '-inf'|float, 'nan'|float]|tojson }}", want: "[Infinity, -Infinity, NaN]"},
		{name: "tuples are lists", template: "{{ (1, (2,))|tojson }}", want: "[1, [2]]"},
		{name: "HTML is a string", template: "{{ '<b>'|safe|tojson }}", want: `"\u003cb\u003e"`},
		{name: "large integers", template: "{{ (10**30)|tojson }}", want: "1000000000000000000000000000000"},
		{
			name:     "indented",
			template: "{{ {'b': [1, {'c': 2}], 'a': [], 'd': {}}|tojson(2) }}",
			want:     "{\n  \"a\": [],\n  \"b\": [\n    1,\n    {\n      \"c\": 2\n    }\n  ],\n  \"d\": {}\n}",
		},
		{name: "indented by nothing", template: "{{ [1, 2]|tojson(0) }}", want: "[\n1,\n2\n]"},
		{
			name:     "indented by a string",
			template: "{{ [1, [2]]|tojson(indent='<') }}",
			want:     "[\n\\u003c1,\n\\u003c[\n\\u003c\\u003c2\n\\u003c]\n]",
		},
		{
			name:     "indented by HTML",
			template: "{{ ['a', {'b': 'c'}, ['d']]|tojson(indent=' '|safe) }}",
			want:     "[\n \\u0026#34;a\\u0026#34;,\n {\n  \"b\": \"c\"\n },\n [\n  \\u0026#34;d\\u0026#34;\n ]\n]",
		},
		{name: "indented by true", template: "{{ [1]|tojson(true) }}", want: "[\n 1\n]"},
		{name: "a string is not indented", template: "{{ 'a'|tojson(missing) }}", want: `"a"`},
		{name: "indented by undefined", template: "{{ 1|tojson(missing) }}", fails: "undefined"},
		{name: "indented by a fraction", template: "{{ [1]|tojson(1.5) }}", fails: "type"},
		{name: "keys that cannot be compared", template: "{{ {1: 1, 'a': 2}|tojson }}", fails: "type"},
		{name: "a key that is a tuple", template: "{{ {(1, 2): 1}|tojson }}", fails: "type"},
		{name: "a key that is undefined", template: "{{ {missing: 1}|tojson }}", fails: "type"},
		{name: "undefined", template: "{{ missing|tojson }}", fails: "type"},
		{name: "undefined inside", template: "{{ [missing]|tojson }}", fails: "type"},
		{name: "an iterator", template: "{{ [1]|map('string')|tojson }}", fails: "type"},
		{name: "a range", template: "{{ range(3)|tojson }}", fails: "type"},
		{name: "a view", template: "{{ {}.keys()|tojson }}", fails: "type"},
	})
}
