// Package stage makes volumes available on a node and to pods, and takes them away again. PavStages are its ledger, and
// workflow pods do the work. It speaks no gRPC: package csi does, and maps the errors of this package to codes.
//
// Staging and unstaging are loops of three parts: observe gathers the present state, decide returns the next step (a pure
// function), and the step is taken. Every step may be repeated, so that the next call continues what an agent has begun,
// wherever that ended. No step is taken on what a cache says.
//
// What a client pod has is recorded on the node itself, so that publishing needs no API server. Between calls, package
// monitor looks after stages. Package stage never makes a second stage of a volume that may still be written to.
package stage
