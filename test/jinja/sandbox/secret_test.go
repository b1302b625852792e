package sandbox

import (
	"strings"
	"testing"

	"github.com/albertofaria/pav/test/jinja/cases"
)

// Errors name types, attributes and arguments. They never contain a value or a text of the source.
func TestErrors_ContainNoSecrets(t *testing.T) {
	context := variables(t)
	for _, expression := range leaks {
		t.Run(expression, func(t *testing.T) {
			source := "text '" + sourceText + "' {{ " + expression + " }}"
			if strings.HasPrefix(expression, "{%") {
				source = "{# " + sourceText + " #}" + expression
			}
			got := cases.Evaluate(t.Context(), source, context)
			if got.Class == "" {
				t.Errorf("it yields %q, and no error", got.Text)
			}
			if strings.Contains(got.Message, secret) || strings.Contains(got.Message, sourceText) {
				t.Errorf("its error is %q", got.Message)
			}
		})
	}
}

// leaks are expressions with a mistake. Python's error messages for them contain the values in the expression or values
// next to them.
var leaks = []string{
	"secret + 1", "1 + secret", "-secret", "secret / 2", "secret < 1", "secret()", "secret.nope.nope", "secret['nope'].nope", "secret[secret].nope",
	"d[secret]", "d[secret].nope", "d[secret] + 1", "nope[secret]", "nums[secret]", "nums[secret].nope", "{}[secret].nope", "(d|attr(secret)).nope", "self[secret]()", "loop[secret].nope",
	"[].index(secret)", "nums.index(secret)", "s.index(secret)", "s.rindex(secret)", "secret.index('@')", "[secret].index(1)", "(secret,).index(1)", "range(3).index(secret)",
	"'%d' % secret", "'%c' % secret", "'%s' % (secret, secret)", "('%(' ~ secret ~ ')s') % d", "('%q' ~ secret) % 1", "'%s %s' % secret", "'%d' % d", "secret % 1", "secret % (1, 2)",
	"('{' ~ secret ~ '}').format()", "('{0.' ~ secret ~ '.x}').format(1)", "('{0[' ~ secret ~ '][x]}').format(d)", "('{:' ~ secret ~ '}').format(1)", "('{!' ~ secret ~ '}').format(1)",
	"'{:d}'.format(secret)", "('{' ~ secret).format()", "('{' ~ secret ~ '}').format_map(d)",
	"'x'.encode(secret)", "('é' ~ secret).encode('ascii')", "'é'.encode('ascii', secret)", "('é' ~ secret).encode().decode('ascii')", "1.5.fromhex(secret)", "(5).to_bytes(2, secret)", "(5).from_bytes(secret, 'big')",
	"s.split('', 1) ~ secret", "secret.split(1)", "s.translate(1)", "secret.join([1])", "s.join([secret, 1])", "s.center(secret)", "s.center(9, secret)", "s.replace(secret)", "s.ljust(1, secret)", "s.startswith([secret])",
	"secret|abs", "secret|round", "1.5|round(secret)", "1.5|round(1, secret)", "secret|filesizeformat", "d|dictsort(by=secret)", "secret|dictsort", "secret|items|list",
	"{secret ~ ' x': 1}|xmlattr", "secret|xmlattr", "words|map(secret)|list", "words|select(secret)|list", "words|selectattr(secret, secret)|list", "words|map(secret, secret)|list",
	"words|sum", "words|sum(attribute=secret)", "words|map(attribute=secret)|sum", "words|sort(attribute=secret) ~ nope.x", "[secret, 1]|sort", "[secret, 1]|max", "[1, secret]|min", "[{'a': secret}, {'a': 1}]|sort(attribute='a')",
	"words|groupby(secret)|list ~ nope.x", "words|groupby([secret])", "s|urlize(extra_schemes=[secret ~ ' '])", "s|indent([secret])", "s|wordwrap(secret)", "s|truncate(secret)", "s|center(secret)", "s|batch(secret)|list|first",
	"s|replace(secret, 1, secret)", "s|format(secret, secret)", "secret|format(1)", "s|default(nope=secret)", "s|upper(secret)", "secret|nosuch", "secret is nosuch", "[nope, secret]|tojson(indent=secret)", "s.nope|tojson",
	"range(secret)", "range(1, 5, secret)", "dict(secret)", "dict([secret])", "dict([[secret]])", "dict(1, **{secret: 1})", "dict(**{secret: 1})|list ~ nope.x", "namespace(secret)", "cycler(secret)[secret].x",
	"joiner(secret, secret)", "joiner(**{secret: 1})", "lipsum(secret)", "range(**{secret: 1})", "s.upper(**{secret: 1})", "s.replace(*words, **d)", "7 is divisibleby secret", "secret is divisibleby 2", "1 in secret", "secret in 1", "{[secret]: 1}", "{secret: 1}[[secret]]",
	"s is sameas", "1 / (secret|length - secret|length)", "(secret|e) + 1", "secret|tobash + 1", "[secret]|tobash", "d", "words", "none", "[secret]", "nope", "{'a': secret}", "secret.upper",
	"{% for a, b in [secret] %}{% endfor %}", "{% for a in secret.nope.x %}{% endfor %}", "{% set a, b = secret %}", "{% set secret.x = 1 %}", "{% set d.x = secret %}", "{% include secret %}", "{% import secret as x %}", "{% extends secret %}",
	"{% macro m() %}{% endmacro %}{{ m(secret) }}", "{% macro m() %}{% endmacro %}{{ m(**{secret: 1}) }}", "{% macro m(a) %}{% endmacro %}{{ m(secret, a=secret) }}", "{% call secret() %}{% endcall %}",
	"{% set yaml = secret %}", "{% set yaml = true %}{{ secret }}: [", "{% set yaml = true %}'{{ secret }}", "{% set yaml = true %}&{{ secret }} a: *b", "{% set yaml = true %}*{{ secret|replace('-', '') }}", "{% set yaml = true %}!{{ secret }} x",
	"{% set yaml = true %}{{ secret }}\n\tx: @", "{% set yaml = true %}!!int {{ secret }}", "{% set yaml = true %}!!binary {{ secret }}%", "{% set yaml = true %}%{{ secret }} 1\n---\n@", "{% set yaml = true %}!!timestamp {{ secret }}", "{% set yaml = true %}\"\\{{ secret }}\"", "{% set yaml = true %}{{ secret }}: 1\n? [a]\n: {{ secret }}\n@",
}
