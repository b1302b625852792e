// Package template turns the fields of a PavProvisioner into plain values: it evaluates every string at any depth as
// a Jinja template, in the contexts that the contract defines, and checks the type of the result. It has no
// Kubernetes client, reads no files, and caches only compiled definitions.
package template
