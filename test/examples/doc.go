// Package examples contains tests of the examples that need no cluster. They lint the definitions, render the pods, and
// check the pods' scripts with shellcheck. The tests in test/e2e run the examples on a cluster.
package examples
