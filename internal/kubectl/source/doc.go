// Package source reads objects from YAML and JSON files as kubectl does, and knows where in the file each
// part of them is, down to the characters of a string. It knows no kind but List, and no cluster.
package source
