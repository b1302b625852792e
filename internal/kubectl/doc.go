// Package kubectl is the command "kubectl pav": it puts together the commands of the packages below it, and
// has no logic of its own. None of them is part of an agent; they change nothing in a cluster but what
// their user asks for in so many words.
package kubectl
