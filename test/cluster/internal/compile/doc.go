// Package compile builds the programs of a cluster from their Go modules. The name of the output directory depends on
// everything that determines the programs. Package compile never changes the modules.
package compile
