// Package archive makes container images without a container engine, and archives that container runtimes load. Equal
// files make equal images and equal archives: what differs between two machines, such as times and owners, is left out.
// It compiles nothing and pushes nothing.
package archive
