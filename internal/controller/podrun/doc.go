// Package podrun runs the recorded pods of one kind of record, one after the other: it records a pod before it is created, creates it
// when it has a slot, takes it back if another agent has removed it from the record meanwhile, and lets pods go whose outcome is
// recorded. It is the same for every kind of record. Which pod is to run, and what its outcome means, the controller of that kind
// decides.
package podrun
