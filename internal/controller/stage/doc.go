// Package stage lets go of PavStages whose node is gone: its Node object is deleted, or carries the
// out-of-service taint, by which an administrator vouches that nothing runs there any more. It
// never touches the stages of a node that exists: those are its node agent's.
package stage
