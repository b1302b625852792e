// Package loop finds and detaches the loop devices of a cluster. Loop devices belong to the kernel and not to a
// namespace, so they outlive the node that created them. Package loop never touches devices of other users.
package loop
