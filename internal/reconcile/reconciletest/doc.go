// Package reconciletest has the cluster of unit tests of controllers: a client without an API server, with the indexes of their
// caches. Only tests import it.
package reconciletest
