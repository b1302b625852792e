// Package image creates container images without a container engine. Each image has one layer with a few files. It is
// written as an archive, and containerd imports it under exactly the given names.
package image
