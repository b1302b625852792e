// Package yaml11 reads YAML 1.1 exactly as the safe loader of Python's PyYAML does, which is what the
// authors of templates have always been given: yes is true, 010 is eight, 1:30 is ninety, << merges.
// It has a parser of its own. That of go.yaml.in/yaml/v3, a port of libyaml, refuses texts that PyYAML
// takes: the pairs of \u escapes that the filter tojson writes for 🚀, the escape \/, and directives such
// as %YAML 1.2. It takes tabs before and in values, which PyYAML refuses. What a text may expand to is
// bounded; no text makes it panic.
package yaml11
