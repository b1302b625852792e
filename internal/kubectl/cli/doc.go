// Package cli is what the commands of "kubectl pav" share: streams, the connection to a cluster, and how
// results are written. It knows no command and asks no API server by itself.
package cli
