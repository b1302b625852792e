// Package reconcile has what the reconcilers of both agents share: field indexes, the holders of a volume's storage,
// reads that are repeated if they fail for a moment, predicates for watches, the backoff of failed passes, and the
// end of a pass that found its cache to be stale.
//
// It never writes to the API server, and decides nothing about volumes.
package reconcile
