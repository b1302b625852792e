// Package control is how the program talks to the first process of a node: one JSON request and one
// JSON answer over a unix socket that lies within the node.
package control
