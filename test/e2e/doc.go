// Package e2e holds the end-to-end tests: PaV on a real cluster, installed from deployment.yaml and
// deployment-buckets.yaml as a user installs it. They are run by test/e2e/run, which boots a cluster and runs them in its network:
// 'make test-e2e' has those that can share one, and 'make test-e2e-alone' those that cannot.
package e2e
