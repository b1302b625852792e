// Package collect is the node agent's part of the pods that the controller agent runs: it gives each validation,
// creation or deletion pod of its node a /pav of its own. When the pod's containers have ended, it reports the files
// in /pav, once, in an annotation of the pod. It does not interpret the files, and never removes a directory before
// they are reported, as long as the pod exists.
package collect
