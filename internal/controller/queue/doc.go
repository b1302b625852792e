// Package queue limits how many objects have a workflow pod at once, overall and for each provisioner. The other
// objects wait, and are woken when they get a slot. Its state is in memory. It never creates a pod and never blocks.
package queue
