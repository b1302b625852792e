// Package e2e holds the end-to-end tests: PaV on a real cluster, installed from deployment.yaml as a
// user installs it. They are run by test/e2e/run ('make test-e2e'), which boots the cluster and
// runs them in its network.
package e2e
