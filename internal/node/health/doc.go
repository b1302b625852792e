// Package health has the condition of the volumes on a node: it probes whether a volume still answers, without
// waiting for one that hangs, and remembers the status of the PavStages, for metrics and for answers that must not
// wait for the API server.
//
// It never mounts, unmounts or writes anything, and never reads from the API server.
package health
