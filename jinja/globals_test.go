package jinja

import "testing"

func TestGlobals(t *testing.T) {
	t.Parallel()
	checkTemplates(t, []templateCase{
		{
			name:     "range",
			template: "{{ range(3)|list }} {{ range(1, 4)|list }} {{ range(4, 0, -2)|list }} {{ range(3) }} {{ range(true)|list }} {{ range(0, 5, 2) }}",
			want:     "[0, 1, 2] [1, 2, 3] [4, 2] range(0, 3) [0] range(0, 5, 2)",
		},
		{name: "range that is too large", template: "{{ range(100001) }}", fails: "other"},
		{name: "range that is just small enough", template: "{{ range(100000)|length }}", want: "100000"},
		{name: "range that is negative", template: "{{ range(-5)|list }}", want: "[]"},
		{name: "range of nothing", template: "{{ range() }}", fails: "type"},
		{name: "range of four", template: "{{ range(1, 2, 3, 4) }}", fails: "type"},
		{name: "range of a fraction", template: "{{ range(1.0) }}", fails: "type"},
		{name: "range by zero", template: "{{ range(1, 2, 0) }}", fails: "other"},
		{name: "range by name", template: "{{ range(stop=2) }}", fails: "type"},
		{name: "range of undefined", template: "{{ range(missing) }}", fails: "type"},
		{name: "range beyond the machine", template: "{{ range(10**30) }}", fails: "other"},
		{
			name:     "dict",
			template: "{{ dict(a=1, b=2) }} {{ dict([('a', 1), ['b', 2], 'cd']) }} {{ dict({'a': 1}, a=2) }} {{ dict() }} {{ dict(dict(a=1).items()) }}",
			want:     "{'a': 1, 'b': 2} {'a': 1, 'b': 2, 'c': 'd'} {'a': 2} {} {'a': 1}",
		},
		{name: "dict copies", template: "{% set a = {'x': 1} %}{{ dict(a) is sameas a }}", want: "False"},
		{name: "dict of keys", template: "{{ dict.fromkeys(['a', 'b'], 0) }}", want: "{'a': 0, 'b': 0}"},
		{name: "dict of two", template: "{{ dict(1, 2) }}", fails: "type"},
		{name: "dict of a number", template: "{{ dict(1) }}", fails: "type"},
		{name: "dict of numbers", template: "{{ dict([1]) }}", fails: "type"},
		{name: "dict of three", template: "{{ dict([(1, 2, 3)]) }}", fails: "other"},
		{name: "dict of lists as keys", template: "{{ dict([([], 1)]) }}", fails: "type"},
		{name: "dict of undefined", template: "{{ dict(missing) }}", fails: "undefined"},
		{
			name:     "namespace",
			template: "{% set ns = namespace(a=1) %}{% for i in [1,2] %}{% set ns.a = ns.a + i %}{% set ns.b = i %}{% endfor %}{{ ns.a }} {{ ns['b'] }} {{ ns.c is defined }} {{ ns }}",
			want:     "4 2 False <Namespace {'a': 4, 'b': 2}>",
		},
		{
			name:     "namespace of a dictionary",
			template: "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }} {{ ns|string }}",
			want:     "12 <Namespace {'a': 1, 'b': 2}>",
		},
		{name: "namespace of a number", template: "{{ namespace(1) }}", fails: "type"},
		{
			name:     "namespace in itself",
			template: "{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns }}",
			want:     "<Namespace {'x': [<Namespace {...}>]}>",
		},
		{name: "namespace has no items", template: "{{ namespace(a=1)|length }}", fails: "type"},
		{name: "namespace hides its own", template: "{{ namespace(a=1)._Namespace__attrs }}", want: ""},
		{name: "what namespace has no attribute of", template: "{{ namespace(a=1).b.c }}", fails: "undefined"},
		{
			name:     "namespace is true and itself",
			template: "{% set ns = namespace() %}{{ ns and true }} {{ ns == ns }} {{ ns == namespace() }}",
			want:     "True True False",
		},
		{
			name:     "cycler",
			template: "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.current }}{{ c.items }}{{ c.pos }}",
			want:     "ababNonea('a', 'b')0",
		},
		{name: "cycler of nothing", template: "{{ cycler() }}", fails: "other"},
		{name: "cycler by name", template: "{{ cycler(a=1) }}", fails: "type"},
		{name: "cycler takes nothing to go on", template: "{{ cycler(1).next(2) }}", fails: "type"},
		{name: "cycler cannot be iterated", template: "{{ cycler(1)|list }}", fails: "type"},
		{name: "joiner", template: "{% set j = joiner() %}[{{ j() }}{{ j() }}{{ j() }}]{{ j.used }}{{ j.sep }}", want: "[, , ]True, "},
		{name: "joiner with anything", template: "{% set j = joiner(sep=1) %}{{ j() }}{{ j() }}", want: "1"},
		{name: "joiner takes one", template: "{{ joiner(1, 2) }}", fails: "type"},
		{name: "joiner joins nothing", template: "{{ joiner()(1) }}", fails: "type"},
		{name: "lipsum of nothing", template: "[{{ lipsum(0) }}]", want: "[]"},
		{
			name:     "lipsum is HTML in paragraphs",
			template: "{{ lipsum(2)[:3] }} {{ lipsum(3).count('<p>') }} {{ lipsum(2, html=false).count('<p>') }} {{ lipsum(1, min=5, max=6, html=false).split()|length }}",
			want:     "<p> 3 0 5",
		},
		{name: "lipsum of less than the least", template: "{{ lipsum(1, min=5, max=5) }}", fails: "other"},
		{name: "lipsum of a string", template: "{{ lipsum('x') }}", fails: "type"},
	})
}
