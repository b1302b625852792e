// Package reconcile has what the reconcilers of both agents share: field indexes and who holds a volume's storage,
// reads that are repeated if they fail for a moment, predicates for watches, the backoff of failed passes, and how a
// pass ends that found its cache to be stale.
//
// It reads. It never writes to the API server, and decides nothing about volumes.
package reconcile
