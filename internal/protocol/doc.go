// Package protocol holds the names that Kubernetes, external provisioners and their users share:
// annotations, event reasons and how a claim is read. It has no PaV policy and does no I/O.
package protocol
