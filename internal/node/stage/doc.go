// Package stage is the domain of the node agent: it makes volumes available on the node and to
// pods, and takes them away again, with PavStages as its ledger and workflow pods as its only means
// of work. It speaks no gRPC: package csi does, and maps the errors of this package to codes.
//
// Staging and unstaging are loops of three beats: observe gathers what is, decide says what the next
// step is (a pure function), and the step is taken. Every step may be repeated, so that an agent
// that ends anywhere is continued by the next call. No step is taken on the word of a cache.
//
// What a client pod has is on record on the node itself, so that publishing needs no API server. Between
// calls the keeper looks after stages: it stages a dead volume anew, and unstages what kubelet has
// forgotten. It never makes a second stage of a volume that may still be written to.
package stage
