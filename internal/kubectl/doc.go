// Package kubectl is the command "kubectl pav". It puts together the commands of the packages below it, and completes
// names of objects, namespaces and contexts on the command line; completion must feel instant, so that it reads names
// only, gives up soon, and prints nothing on an error.
//
// No command is part of an agent, and none changes anything in a cluster but what its user asks for.
package kubectl
