// Package source reads objects from YAML and JSON files as kubectl does, and finds the position in the file of each
// part, down to the characters of a string. It treats all kinds except List alike, and never contacts a cluster.
package source
