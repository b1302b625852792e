// Package yaml11 reads YAML 1.1 exactly as the safe loader of Python's PyYAML does, which is what the
// authors of templates have always been given: yes is true, 010 is eight, 1:30 is ninety, << merges.
// It has a parser of its own, as Go's libraries follow YAML 1.2 or libyaml, and take some text that
// PyYAML refuses for another value. What a text may expand to is bounded; no text makes it panic.
package yaml11
