// Package jinja renders templates as Jinja 3.0 does in an immutable sandbox, with trim_blocks and
// lstrip_blocks. A template can use plain data and nothing else: no files, no other templates, no
// methods of Go. Its time and memory are limited, and it never changes the data that it
// is given. It knows nothing of Kubernetes or PaV.
package jinja
