// Package startup lets pods run on a new node once PaV can serve volumes there.
//
// An administrator may register nodes with the taint pavv1.NotReadyTaint. Reconciler removes it when the drivers of PaV and of
// all PavProvisioners are registered on the node, so that no pod waits there for a driver that is about to be registered.
//
// It never adds a taint, and changes nothing else of a node.
package startup
