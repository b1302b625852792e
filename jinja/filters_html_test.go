package jinja

import "testing"

func TestHTMLFilters(t *testing.T) {
	t.Parallel()
	checkTemplates(t, []templateCase{
		{name: "escape", template: `{{ '<a href="x">&\'</a>'|escape }}`, want: "&lt;a href=&#34;x&#34;&gt;&amp;&#39;&lt;/a&gt;"},
		{name: "escape leaves HTML", template: "{{ '<b>'|safe|e }}", want: "<b>"},
		{name: "forceescape does not", template: "{{ '<b>'|safe|forceescape }}", want: "&lt;b&gt;"},
		{name: "escape of a list", template: "{{ ['<']|e }}", want: "[&#39;&lt;&#39;]"},
		{name: "safe of undefined", template: "[{{ missing|safe }}]", want: "[]"},
		{
			name:     "striptags",
			template: `{{ '<p>just a small \n <a href="#">example</a> link</p>\n<!-- <p>c</p> --> &amp; &copy;'|striptags }}`,
			want:     "just a small example link & ©",
		},
		{name: "striptags of HTML", template: "{{ ('a &lt;b&gt; c'|safe)|striptags }}", want: "a <b> c"},
		{
			name:     "striptags of numeric references",
			template: "{{ '&#65;&#x42;&#0;&#128;&#xD800;&#1114112;&#11;'|striptags }}",
			want:     "AB�€��",
		},
		{
			name:     "striptags of names without a semicolon",
			template: "{{ '&notit; &ampx &bogus; &lt'|striptags }}",
			want:     "¬it; &x &bogus; <",
		},
		{
			name:     "xmlattr",
			template: `{{ {'class': 'a', 'none': none, 'id': '<"', 'n': 3, 'u': missing}|xmlattr }}`,
			want:     ` class="a" id="&lt;&#34;" n="3"`,
		},
		{name: "xmlattr without the space", template: "{{ {'class': 'a'}|xmlattr(false) }}", want: `class="a"`},
		{name: "xmlattr of nothing", template: "[{{ {}|xmlattr }}]", want: "[]"},
		{
			name:     "xmlattr with automatic escaping",
			template: "{% autoescape true %}{{ {'a&b': '<'}|xmlattr }}{% endautoescape %}",
			want:     ` a&amp;b="&lt;"`,
		},
		{name: "xmlattr without it is text", template: "{{ ({'a&b': '<'}|xmlattr)|e }}", want: " a&amp;amp;b=&#34;&amp;lt;&#34;"},
		{name: "xmlattr refuses a space in a name", template: "{{ {'a b': 1}|xmlattr }}", fails: "other"},
		{name: "xmlattr refuses a slash in a name", template: "{{ {'a/b': 1}|xmlattr }}", fails: "other"},
		{name: "xmlattr does not look at names that are left out", template: "[{{ {'a/b': none}|xmlattr }}]", want: "[]"},
		{name: "xmlattr wants strings as names", template: "{{ {1: 1}|xmlattr }}", fails: "type"},
		{name: "xmlattr of a list", template: "{{ [1]|xmlattr }}", fails: "other"},
		{name: "xmlattr of undefined", template: "{{ missing|xmlattr }}", fails: "undefined"},
		{
			name:     "urlencode of a string leaves slashes",
			template: "{{ 'a/b c?d=é&~_-.'|urlencode }}",
			want:     "a/b%20c%3Fd%3D%C3%A9%26~_-.",
		},
		{
			name:     "urlencode of a dictionary",
			template: "{{ {'a b': 'c/d', 'e': 1, 'f': none}|urlencode }}",
			want:     "a+b=c%2Fd&e=1&f=None",
		},
		{name: "urlencode of pairs", template: "{{ [('a', 1), ['b', '&'], 'cd']|urlencode }}", want: "a=1&b=%26&c=d"},
		{name: "urlencode of a number", template: "{{ 1.5|urlencode }}", want: "1.5"},
		{name: "urlencode of undefined", template: "[{{ missing|urlencode }}]", want: "[]"},
		{name: "urlencode of what is no pair", template: "{{ [1]|urlencode }}", fails: "type"},
		{name: "urlencode of three", template: "{{ ['abc']|urlencode }}", fails: "other"},
		{name: "urlencode of one", template: "{{ ['a']|urlencode }}", fails: "other"},
	})
}
