// Package stage stages, publishes, unpublishes and unstages volumes on a node. PavStages are its records, and
// workflow pods
// do the work. It has no gRPC: package csi has, and maps the errors of this package to codes.
//
// Staging and unstaging are loops of three parts: observe gathers the current state, decide returns the next step (a
// pure
// function), and the step is taken. Every step may be repeated, so that the next call continues the work of an agent
// that
// was killed at any point. No step depends on a cache.
//
// The volumes of client pods are recorded on the node itself, so that publishing needs no API server. Between calls,
// package
// monitor watches stages. Package stage never stages a volume a second time while clients may still write to it.
package stage
