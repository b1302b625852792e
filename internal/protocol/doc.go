// Package protocol has the names that Kubernetes, external provisioners and their users share: annotations, event
// reasons, and the rules for reading a claim. It has no PaV policy and does no I/O.
package protocol
