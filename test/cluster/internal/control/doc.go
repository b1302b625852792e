// Package control implements the protocol between this program and the first process of a node: one JSON request and
// one JSON answer over a unix socket on the node.
package control
