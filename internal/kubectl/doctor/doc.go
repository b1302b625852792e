// Package doctor is "kubectl pav doctor": it checks an installation of PaV, says in plain words what is wrong, and which
// command follows. It can also write a bundle for a bug report.
//
// Gather reads what the checks depend on, as far as the user may. Each check is a pure function of these Facts. Package
// doctor never writes to the API server, and never reads a Secret.
package doctor
