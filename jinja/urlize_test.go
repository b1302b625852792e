package jinja

import "testing"

func TestURLize(t *testing.T) {
	t.Parallel()
	checkTemplates(t, []templateCase{
		{
			name:     "schemes",
			template: "{{ 'see http://x.com/a?b=1#c and https://y.org'|urlize }}",
			want:     `see <a href="http://x.com/a?b=1#c" rel="noopener">http://x.com/a?b=1#c</a> and <a href="https://y.org" rel="noopener">https://y.org</a>`,
		},
		{
			name:     "www",
			template: "{{ 'www.example.com, (www.x.org) <www.y.net>.'|urlize }}",
			want:     `<a href="https://www.example.com" rel="noopener">www.example.com</a>, (<a href="https://www.x.org" rel="noopener">www.x.org</a>) &lt;<a href="https://www.y.net" rel="noopener">www.y.net</a>&gt;.`,
		},
		{
			name:     "hosts of well-known domains",
			template: "{{ 'example.com example.de a.info x.museum'|urlize }}",
			want:     `<a href="https://example.com" rel="noopener">example.com</a> example.de a.info x.museum`,
		},
		{
			name:     "addresses",
			template: "{{ 'http://1.2.3.4:8080/x http://[::1]/ http://[1:2:3::]:80 http://1.2.3'|urlize }}",
			want:     `<a href="http://1.2.3.4:8080/x" rel="noopener">http://1.2.3.4:8080/x</a> <a href="http://[::1]/" rel="noopener">http://[::1]/</a> <a href="http://[1:2:3::]:80" rel="noopener">http://[1:2:3::]:80</a> http://1.2.3`,
		},
		{
			name:     "mail",
			template: "{{ 'me@x.org mailto:me@x.org mailto:x @x me@x a:b@x.org'|urlize }}",
			want:     `<a href="mailto:me@x.org">me@x.org</a> <a href="mailto:me@x.org">me@x.org</a> mailto:x @x me@x a:b@x.org`,
		},
		{
			name:     "punctuation around",
			template: `{{ '(http://x.com). "http://y.com", http://z.com...'|urlize }}`,
			want:     `(<a href="http://x.com" rel="noopener">http://x.com</a>). &#34;http://y.com&#34;, <a href="http://z.com" rel="noopener">http://z.com</a>...`,
		},
		{
			name:     "balanced brackets",
			template: "{{ 'http://x.com/(a) (http://x.com/(a)) http://x.com/((a)'|urlize }}",
			want:     `<a href="http://x.com/(a)" rel="noopener">http://x.com/(a)</a> (<a href="http://x.com/(a)" rel="noopener">http://x.com/(a)</a>) <a href="http://x.com/((a)" rel="noopener">http://x.com/((a)</a>`,
		},
		{
			name:     "white space stays",
			template: `{{ ' http://x.com\n\t www.y.com  '|urlize }}`,
			want:     " <a href=\"http://x.com\" rel=\"noopener\">http://x.com</a>\n\t <a href=\"https://www.y.com\" rel=\"noopener\">www.y.com</a>  ",
		},
		{
			name:     "escapes",
			template: `{{ '<b> http://x.com/?a=1&b="2"'|urlize }}`,
			want:     `&lt;b&gt; <a href="http://x.com/?a=1&amp;b=&#34;2&#34;" rel="noopener">http://x.com/?a=1&amp;b=&#34;2&#34;</a>`,
		},
		{
			name:     "leaves HTML",
			template: "{{ ('<b>http://x.com</b> <http://x.com>'|safe)|urlize }}",
			want:     `<b>http://x.com</b> <<a href="http://x.com" rel="noopener">http://x.com</a>>`,
		},
		{
			name:     "shortens",
			template: "{{ 'http://example.com/long'|urlize(10) }}",
			want:     `<a href="http://example.com/long" rel="noopener">http://exa...</a>`,
		},
		{
			name:     "does not shorten what fits",
			template: "{{ 'http://x.com'|urlize(12) }}",
			want:     `<a href="http://x.com" rel="noopener">http://x.com</a>`,
		},
		{
			name:     "shortens to nothing",
			template: "{{ 'http://x.com'|urlize(0) }}",
			want:     `<a href="http://x.com" rel="noopener">...</a>`,
		},
		{
			name:     "shortens from the end",
			template: "{{ 'http://x.com'|urlize(-2) }}",
			want:     `<a href="http://x.com" rel="noopener">http://x.c...</a>`,
		},
		{name: "nofollow", template: "{{ 'x.com'|urlize(nofollow=true) }}", want: "x.com"},
		{name: "target", template: `{{ 'x.com'|urlize(target='"_blank"') }}`, want: "x.com"},
		{name: "rel", template: "{{ 'x.com'|urlize(rel='b a noopener') }}", want: "x.com"},
		{
			name:     "other schemes",
			template: "{{ 'tel:123 ftp://x tel: x:y'|urlize(extra_schemes=['tel:', 'ftp://']) }}",
			want:     `<a href="tel:123" rel="noopener">tel:123</a> <a href="ftp://x" rel="noopener">ftp://x</a> tel: x:y`,
		},
		{
			name:     "other schemes of an iterator are gone",
			template: "{{ 'tel:123'|urlize(extra_schemes=['tel:']|map('string')) }}",
			want:     "tel:123",
		},
		{name: "a scheme without a colon", template: "{{ 'x'|urlize(extra_schemes=['tel']) }}", fails: "other"},
		{name: "a scheme that is no string", template: "{{ 'x'|urlize(extra_schemes=[1]) }}", fails: "type"},
		{name: "rel that is no string", template: "{{ 'x'|urlize(rel=1) }}", fails: "other"},
		{name: "a limit that is no number", template: "{{ 'x.com'|urlize('a') }}", want: "x.com"},
		{name: "a limit that is not needed", template: "{{ 'x'|urlize('a') }}", want: "x"},
		{
			name:     "case does not matter",
			template: "{{ 'HTTP://X.com WWW.x.COM X.Com'|urlize }}",
			want:     `<a href="https://HTTP://X.com" rel="noopener">HTTP://X.com</a> <a href="https://WWW.x.COM" rel="noopener">WWW.x.COM</a> X.Com`,
		},
		{
			name:     "letters of any script in hosts",
			template: "{{ 'http://bücher.com http://xn--bcher-kva.example bücher.com http://x.bücher'|urlize }}",
			want:     `<a href="http://bücher.com" rel="noopener">http://bücher.com</a> <a href="http://xn--bcher-kva.example" rel="noopener">http://xn--bcher-kva.example</a> <a href="https://bücher.com" rel="noopener">bücher.com</a> http://x.bücher`,
		},
		{
			name:     "letters that are the same without case",
			template: "{{ 'x.ınfo httpſ://x.com'|urlize }}",
			want:     `x.ınfo <a href="https://httpſ://x.com" rel="noopener">httpſ://x.com</a>`,
		},
		{
			name:     "with automatic escaping",
			template: "{% autoescape true %}{{ 'x.com <'|urlize }}{% endautoescape %}",
			want:     "x.com &lt;",
		},
		{name: "of a list", template: "{{ ['x.com']|urlize }}", want: "[&#39;x.com&#39;]"},
		{name: "of undefined", template: "[{{ missing|urlize }}]", want: "[]"},
	})
}
