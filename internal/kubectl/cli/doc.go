// Package cli has what the commands of "kubectl pav" share: streams, the connection to a cluster, and the output of
// results. It contains no command and never sends a request to an API server.
package cli
