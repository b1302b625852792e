// Package controller is PaV's controller agent: it sets up the manager, its cache and the reconcilers of the packages
// below it, and has no logic of its own. The agent never mounts anything and never changes a node.
package controller
