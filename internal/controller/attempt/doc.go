// Package attempt follows one workflow pod of an object, from its record in the object's status to its outcome: what
// state the pod is in, how long PaV waits for it, when it is replaced, how its failure is reported, and which slot of
// the queue it has. It is the same for every kind of object that runs pods. What an outcome means for the object, and
// what is written to its status, the controller of that kind decides.
//
// Functions that decide are pure: they do no I/O and read no clock. The package writes nothing but pods.
package attempt
