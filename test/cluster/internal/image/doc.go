// Package image makes container images without any engine: a layer from a few files, written as an
// archive that containerd imports under exactly the given names.
package image
