// Package health knows how the volumes on a node are: it asks a volume whether it still answers, without waiting for one
// that hangs, and remembers what the PavStages say, for metrics and for answers that must not wait for the API server.
//
// It only looks. It never mounts, unmounts or writes anything, and never reads from the API server.
package health
