// Package collect is the node agent's part of the pods that the controller agent runs: it gives each validation,
// creation or deletion pod of its node a /pav of its own. When the pod's containers have ended, it reports the files
// in /pav, once, in an annotation of the pod. It does not interpret the files, and never removes a directory before
// they are reported, as long as the pod exists.
//
// The credentials that a grant pod leaves are sealed, and removed from what else the pod left; see package credentials. They
// are in memory only, and in no log and no error.
package collect
