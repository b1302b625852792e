// Package kubectl is the command "kubectl pav". It combines the commands of the packages below it, and completes
// names of objects, namespaces and contexts. Completion must feel instant: it reads only names, has a short timeout,
// and prints nothing on an error.
//
// No command is part of an agent, and a command changes nothing in a cluster except what its user asks for.
package kubectl
