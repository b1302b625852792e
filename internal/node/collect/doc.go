// Package collect is the node agent's half of the pods that the controller agent runs: it gives a
// validation, creation or deletion pod of its node a /pav of its own, and, when its containers have
// ended, tells on the pod, once, what they left there. It judges nothing of what it tells, and never
// takes a directory away whose content has not been told while there was somebody to tell it to.
package collect
