// Package agent finds PaV's agents in a cluster: their namespace, which the installer chooses, and the labels of their
// objects. It is the one place in the plugin that knows them, and never writes.
package agent
