package generate

// The texts from which terminals choose.
var (
	spaces = []string{"  ", "\n", "\t", "\r\n", "\n  ", "\f", "\v", "\u00a0", "\u2003", "\x1c", "\u0085", "\u2028"}

	layouts = []string{"", "", "", "", "\n", "\n", "\n  ", "\n\t", " ", "\n\n", "  \n", "\n \n ", "\r\n", "\r", "\f", "\u00a0", "\n\u00a0"}

	texts = []string{
		"x", "word ", "a b", "\n", "\n", "  \n", "\n  ", "\n\n", " ", "\t", "é", "🚀", "日本", "{", "}", "%", "{ {", "} }", "%}", "}}", "#}", "<b>", "&",
		"'", `"`, `\`, `\n`, "$", "#", "# x\n", "\r\n", "\r", "\u2028", "\u0085", "\f", "\v", "\x1c", "\x00", "-", "+", "{}", "#{", "[", "a: 1\n", "  - x\n",
	}

	rawTexts = []string{"{{ x }}", "{% if %}", "{# c #}", "x", "\n", "  ", "\n  ", "{{", "%}", "{%", "{% end", "🚀", " raw ", "{% raw %}", "#}"}

	// yamlTexts are parts of documents. Most of them are valid YAML.
	yamlTexts = []string{
		"a: $YAMLVALUE\n", "b: $YAMLVALUE\n", "c:\n  - $YAMLVALUE\n  - $YAMLVALUE\n", "d:\n  x: $YAMLVALUE\n  y: $YAMLVALUE\n",
		"? k\n: v\n", "# comment\n", "e: |\n  one\n   two\n\n", "f: >\n  one\n  two\n\n  three\n", "g: |-\n  x\n\n", "h: >+\n  x\n\n",
		"i: {a: $YAMLVALUE, b: [$YAMLVALUE, $YAMLVALUE]}\n", "j: &anchor\n  p: 1\n", "k:\n  <<: {p: 1, q: 2}\n  q: 3\n", "'l': \"\\x41\\n\\u00e9\"\n",
		"m: 'it''s'\n", "n: plain text: no\n", "? [1, 2]\n: x\n", "{{ d|tojson }}\n", "o: {{ d|tojson }}\n", "p: {{ $str|tojson }}\n", "q: {{ $num }}\n",
		"r:\n- a\n- b\n", "1: x\n", "true: y\n", "~: z\n", "1.5: w\n", "s: !!str 1\n", "t: !!int '7'\n", "u: !!float 1\n", "v: !!binary aGk=\n", "w: !!set {a, b}\n",
	}

	yamlValues = []string{
		"1", "-7", "+3", "0", "007", "08", "0o17", "0x1F", "0b101", "1_000", "1:30", "190:20:30", "1.5", "-2.", ".5", "1e3", "1.0e+3", "1.5e3", "6.8523015e+5",
		".inf", "-.INF", ".nan", "1_0.5_0", "20:30.15", "yes", "No", "on", "OFF", "true", "False", "TRUE", "y", "n", "null", "~", "", "Null", "2021-01-01",
		"2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43.10", "2001-12-15 2:59:43", "abc", "a b", "'q'", "\"d\\tq\"", "- x", "[]", "{}", "[1, [2, 3]]",
		"{a: b}", "[a, b: c]", "{a, b: 1}", "x#y", "x #y", "'", "@x", "`x", "%x", "!x y", "!!str", "*anchor", "&a x", "é", "🚀", "1.2.3", "0.0", "-0", "12e03", "0x", "<<", "=", "|",
	}

	plainStrings = []string{
		"a", "b", "ab", "abc", "x", "A", "Hello", "World", " ", ", ", ",", "-", "/", "foo bar", "aXbXc", "1", "42", "1.5", "zz", "_", ":", "=", ".", "the quick brown fox", "a-b_c",
	}

	unusualStrings = []string{
		"é", "日本", "🚀", "<b>", "&amp;", "&", `"`, "'", "it's", "$HOME", "`x`", "{{", "}}", "{%", "%}", "#}", "%", "%s", "{}", "{0}", "\t", "\n", "\r\n", "\r", "\x00", "\x7f", "\u00a0",
		"\u2028", "ß", "ŉ", "ǅ", "İ", "ı", "Σ", "ΑΣ", "e\u0301", "½", "٣", "²", "\u200b", "\ufeff", "\u0085", "\v", "\f", "\x1c", "ﬁ", "1e5", "inf", "nan", "-0", "0x1f", " 7 ", "1_000",
	}

	stringEscapes = []string{`\n`, `\t`, `\\`, `\'`, `\"`, `\x41`, `\xe9`, `\u65e5`, `\U0001F680`, `\101`, `\0`, `\a`, `\b`, `\f`, `\v`, `\r`, `\q`, `\N{DIGIT ONE}`, "\\\n", `\777`, `\8`}

	peculiarRunes = []rune("éßŉǅǆǄİıſΣσςΐﬁﬄԱևΩΩKåÅªº²½٣५Ⅷⅷ①〇一ＡａｱㇰｶﾞабвАБВאבग़คำ한글ʼ’–—…·•€₤¡¿«»\u00a0\u00ad\u034f\u0301\u0345\u200b\u200d\u2003\u2028\u202e\u3000\ufeff\ufffd\U0001F680\U0001F1E9\U00010400\U00010428\U0001E900\U0001D7D8\U000E0041\u0085\x1c\x1f\x7f\u1e9e\u0149\u01f0\u0390\u1f80\u1fb3\ua64a\u13a0\uab70\u10d0\u1c90\u2160\u24b6")

	urlTexts = []string{
		"http://example.com", "https://example.com/a?b=c&d=<e>", "www.example.org", "(http://x.org)", "example.com", "foo.net.", "mailto:me@example.com", "me@example.com", "ftp://x.y",
		" ", " ", ", ", ".", "<", ">", "&", "word", "\\n", "http://a.com/(b)", "http://a.com).", "tel:+123", "HTTPS://EXAMPLE.COM", "http://localhost:80/x", "https://", "a@b", "é.com", "http://é.com/ü", "[x]", "&lt;http://a.b&gt;", "www.",
	}

	blanks = []string{"", "", " ", "  ", "\n", "\n", "\n\n", "\n  ", "  \n", "\t", "\n\t", " \n \n ", "\u00a0", "\f", "\v", "\u2028", "\x1c"}

	htmlParts = []string{
		"<", ">", "&", "\"", "'", "<b>", "</b>", "<br/>", "<!-- c -->", "<!--", "-->", "<a href=\"x\">", "<a", "x", "a b", " ", "  ", "\\n", "&lt;", "&amp;", "&lt", "&amp", "&#65;", "&#x41;", "&#x1F680;", "&#128;", "&#0;",
		"&#xD800;", "&#x110000;", "&#65", "&#;", "&#x;", "&eacute;", "&notit;", "&notin;", "&NotEqualTilde;", "&bogus;", "&nbsp;", "&quot;", "&apos;", "&#39;", "&#34;", "&&", "é", "🚀", "<p>text</p>", "<script>alert(1)</script>", "http://a.b", "<>", "< b>",
	}

	longParts = []string{
		"a", "the ", "quick ", "brown", " ", " ", "  ", "\\n", "\\n", "\\n\\n", "\\t", "\\r\\n", "\\r", "-", "well-known ", "a-b-c", "--", "averyverylongword", "it's ", "é", "日本", "🚀 ", "\\u2028", "\\x0b", "\\x0c", "\\x1c", "\\x85", "\\xa0", "1", "2nd ", "Hello, World! ", ".", ",", "...", "(x)", "word\\n  indented",
	}

	// yamlTokens are tokens of documents. Most of the documents are not valid YAML.
	yamlTokens = []string{
		"a", "b: ", "c: 1", ": ", ":", "- ", "-", "? ", "?", "\n", "\n", "\n", "\n  ", "\n  ", "\n    ", " ", "  ", "\t", "[", "]", "{", "}", ", ", ",", "'", "\"", "'q'", "\"d\"", "|", "|\n  x\n", ">\n  y\n  z\n", "|-", "|2", ">+", "#", " # c",
		"&a ", "*a", "&b", "*b", "!!str ", "!!int ", "! ", "!x ", "!<tag:yaml.org,2002:str> ", "---", "---\n", "...\n", "...", "%YAML 1.1\n", "%", "@", "`", "~", "null", "true", "1", "1.5", "0x1", "1:30", "2001-01-01", "<<", "<<: *a", "=", "é", "\\", "\"\\n\"", "\"\\x\"", "\u0085", "\u2028", "\ufeff", "\x07", "\r\n", "!!set {a}", "!!omap [a: 1]", "!!binary aGk=", "text with words",
	}

	formatTexts = []string{"", "", "", "x", "a=", ", ", "é", "<", "|"}
)
