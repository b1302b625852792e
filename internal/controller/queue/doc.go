// Package queue says which volumes may have a workflow pod now: a limited number at once, overall
// and for each provisioner; the others wait and are woken when it is their turn. It keeps its books in
// memory, knows no pods, starts nothing and never waits.
package queue
