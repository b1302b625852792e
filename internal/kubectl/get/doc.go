// Package get is "kubectl pav get": a table of volumes and of where they are available. It changes nothing.
package get
