// Package template turns the fields of a PavProvisioner into plain values: it evaluates every
// string at any depth as a Jinja template, in the contexts that the contract defines, and checks the
// type of what results. Data goes in and values come out; it knows no Kubernetes client, reads no
// file and remembers nothing but definitions that it has compiled.
package template
