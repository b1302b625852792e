// Package cli is the command line of the program. Commands only translate arguments and call the
// packages that do the work.
package cli
