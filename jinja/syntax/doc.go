// Package syntax reads Jinja: source to tokens, tokens to a tree. It knows the language and the
// whitespace rules of trim_blocks and lstrip_blocks; it never evaluates, and what names mean is not
// its business.
package syntax
