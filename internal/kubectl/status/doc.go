// Package status has the commands that show how volumes are: "kubectl pav get", a table of volumes and of the nodes
// that have them, and "kubectl pav describe", what happened to one volume, why it is not ready, and what to do next.
//
// Gather reads everything about a volume that the user may read; Build makes of it, without a further request, one
// timeline across all objects and a diagnosis. Package status never writes to the API server.
package status
