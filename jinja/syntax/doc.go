// Package syntax reads Jinja: source to tokens, tokens to a tree. It knows the language and the
// whitespace rules of trim_blocks and lstrip_blocks. It never evaluates, and does not know what names mean.
package syntax
