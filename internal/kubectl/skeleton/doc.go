// Package skeleton is "kubectl pav new": it prints a definition to begin with. It never asks the cluster.
package skeleton
