package yaml11

import (
	"regexp"
	"strings"
)

// resolver gives a tag to the plain scalars that match, if they begin with one of the characters.
type resolver struct {
	tag     string
	first   string
	pattern *regexp.Regexp
}

// whole makes a pattern for all of a scalar; like Python's $, it also matches before a last line break.
func whole(alternatives ...string) *regexp.Regexp {
	return regexp.MustCompile(`\A(?:` + strings.Join(alternatives, "|") + `)\n?\z`)
}

// resolvers are PyYAML's, in its order: the first that matches decides.
var resolvers = []resolver{
	{boolTag, "yYnNtTfFoO", whole(`yes|Yes|YES|no|No|NO`, `true|True|TRUE|false|False|FALSE`, `on|On|ON|off|Off|OFF`)},
	{floatTag, "-+0123456789.", whole(
		`[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?`,
		`\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?`,
		`[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*`,
		`[-+]?\.(?:inf|Inf|INF)`,
		`\.(?:nan|NaN|NAN)`,
	)},
	{intTag, "-+0123456789", whole(
		`[-+]?0b[0-1_]+`,
		`[-+]?0[0-7_]+`,
		`[-+]?(?:0|[1-9][0-9_]*)`,
		`[-+]?0x[0-9a-fA-F_]+`,
		`[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+`,
	)},
	{mergeTag, "<", whole(`<<`)},
	{nullTag, "~nN", whole(`~`, `null|Null|NULL`)},
	{timestampTag, "0123456789", whole(
		`[0-9]{4}-[0-9]{2}-[0-9]{2}`,
		`[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?`,
	)},
	{valueTag, "=", whole(`=`)},
}

// resolvePlain returns the tag of a plain scalar.
func resolvePlain(text string) string {
	if text == "" {
		return nullTag
	}
	for _, r := range resolvers {
		if strings.IndexByte(r.first, text[0]) >= 0 && r.pattern.MatchString(text) {
			return r.tag
		}
	}
	return stringTag
}

// resolveScalar gives a scalar its tag where none was written. "!" stands for the tag of a plain one,
// though YAML 1.1 has it the other way round.
func (n *node) resolveScalar(plain bool) {
	switch {
	case n.tag == "!", n.tag == "" && plain:
		n.tag = resolvePlain(n.text)
	case n.tag == "":
		n.tag = stringTag
	}
}

// resolveCollection makes a node a list or mapping.
func (n *node) resolveCollection(f form, byDefault string) {
	n.form = f
	if n.tag == "" || n.tag == "!" {
		n.tag = byDefault
	}
}
