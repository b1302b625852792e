// Package compile builds the programs that a cluster consists of from their Go modules, into a
// directory that is named after everything that goes into them. It never changes the modules.
package compile
