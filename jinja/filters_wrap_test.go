package jinja

import "testing"

func TestWordWrap(t *testing.T) {
	t.Parallel()
	checkTemplates(t, []templateCase{
		{name: "between words", template: "{{ 'the quick brown fox jumps'|wordwrap(10) }}", want: "the quick\nbrown fox\njumps"},
		{name: "each line by itself", template: `{{ 'aa bb\n\ncc dd'|wordwrap(4) }}`, want: "aa\nbb\n\ncc\ndd"},
		{name: "drops white space at the ends of lines only", template: "[{{ '  aa   bb  '|wordwrap(4) }}]", want: "[  aa\nbb]"},
		{name: "breaks long words", template: "{{ 'abcdefghij kl'|wordwrap(4) }}", want: "abcd\nefgh\nij\nkl"},
		{name: "leaves long words", template: "{{ 'a abcdefghij kl'|wordwrap(4, false) }}", want: "a\nabcdefghij\nkl"},
		{
			name:     "behind hyphens between letters",
			template: "{{ 'goof-ball e-mail x-1 a-b-c-d -b ab-cd'|wordwrap(6) }}",
			want:     "goof-\nball\ne-mail\nx-1\na-b-\nc-d -b\nab-cd",
		},
		{
			name:     "not behind hyphens",
			template: "{{ 'goof-ball ab-cd'|wordwrap(6, break_on_hyphens=false) }}",
			want:     "goof-b\nall\nab-cd",
		},
		{
			name:     "only true allows to divide words",
			template: "{{ 'goof-ball ab-cd'|wordwrap(6, break_on_hyphens=1) }}",
			want:     "goof-\nball\nab-cd",
		},
		{name: "breaks a long word behind its last hyphen", template: "{{ '12-34-5678901'|wordwrap(8) }}", want: "12-34-\n5678901"},
		{name: "at dashes", template: "{{ 'one--two three---four'|wordwrap(6) }}", want: "one--\ntwo\nthree\n---\nfour"},
		{
			name:     "joins lines with anything",
			template: `{{ 'aa bb\ncc dd'|wordwrap(2, wrapstring='<br>') }}`,
			want:     "aa<br>bb<br>cc<br>dd",
		},
		{
			name:     "a string that is HTML escapes lines",
			template: "{% autoescape true %}{{ 'a< b>'|wordwrap(2, wrapstring='<br>'|safe) }}{% endautoescape %}",
			want:     "a&lt;<br>b&gt;",
		},
		{
			name:     "HTML becomes text",
			template: "{% autoescape true %}{{ '<b> &'|safe|wordwrap(3) }}{% endautoescape %}",
			want:     "&lt;b&gt;\n&amp;",
		},
		{name: "no-break spaces stay inside", template: `{{ 'aa\u00a0bb cc'|wordwrap(5) }}`, want: "aa\u00a0bb\ncc"},
		{name: "counts characters", template: "{{ 'ääää öööö'|wordwrap(4) }}", want: "ääää\nöööö"},
		{name: "letters of any script divide words", template: "{{ 'ää-öö-üü'|wordwrap(3) }}", want: "ää-\nöö-\nüü"},
		{name: "of nothing", template: "[{{ ''|wordwrap(0) }}]", want: "[]"},
		{name: "to nothing", template: "{{ 'a'|wordwrap(0) }}", fails: "other"},
		{name: "to a fraction without long words", template: "{{ 'aa bb'|wordwrap(3.5) }}", want: "aa\nbb"},
		{name: "to a fraction with long words", template: "{{ 'aaaaa bb'|wordwrap(3.5) }}", fails: "type"},
		{name: "to less than one", template: "{{ 'aab'|wordwrap(0.5) }}", want: "a\na\nb"},
		{name: "to a string", template: "{{ 'a'|wordwrap('3') }}", fails: "type"},
		{name: "of a number", template: "{{ 5|wordwrap }}", fails: "other"},
		{name: "of undefined", template: "{{ missing|wordwrap }}", fails: "undefined"},
		{name: "joined by a number", template: "{{ 'a'|wordwrap(wrapstring=5) }}", fails: "other"},
	})
}
