// Package index defines the field indexes of the controller's cache, by which reconcilers find
// objects without listing. It reads objects and decides nothing.
package index
