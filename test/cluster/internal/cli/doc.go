// Package cli implements the command line of the program. The commands only translate arguments and call the packages
// that do the work.
package cli
