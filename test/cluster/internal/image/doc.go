// Package image creates the images of the cluster and of tests, without a container engine. Each image has one layer
// with files of the machine. The image of PaV itself is made by hack/image.
package image
