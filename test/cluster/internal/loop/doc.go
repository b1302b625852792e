// Package loop finds and detaches the loop devices of a cluster. They belong to the kernel, not to
// a namespace, so they outlive the node that made them. Devices of others are never touched.
package loop
