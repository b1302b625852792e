// Package examples holds the tests of the examples that need no cluster: their definitions are linted,
// their pods rendered, and the scripts of these given to shellcheck. What the examples do on a cluster is
// tested in test/e2e.
package examples
