// Package addon registers reconcilers of kinds that are add-ons of a cluster: as soon as their definitions are there, and the agent has the
// rights to watch them. Without these, a watch would fail for ever, and the agent with it.
package addon
