// Package ledger writes the statuses of PaV's own objects that record work. A status is written only if the object was not
// written by another process meanwhile: a decision on an old status must not be recorded.
//
// What is recorded, the controller of that kind decides.
package ledger
