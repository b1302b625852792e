// Package render is "kubectl pav render": it shows the pods that a PavProvisioner makes of a claim, as the
// agents make them, by the agents' own code. What no file gives, as the objects of a cluster, it makes up, and
// says so. It asks an API server only for an installed definition to compare with.
package render
