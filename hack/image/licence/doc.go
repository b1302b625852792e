// Package licence collects the licences of what is linked into a Go program. It judges none of them, and downloads
// nothing: it reads the modules that the program was built from.
package licence
