// Package status has the commands that show the state of volumes. "kubectl pav get" lists volumes and the nodes that
// have them. "kubectl pav describe" shows what happened to one volume, why it is not ready, and what to do next.
//
// Gather reads everything about a volume that the user may read. Build turns it into a timeline of all objects and a
// diagnosis, without further requests. Package status never writes to the API server.
package status
