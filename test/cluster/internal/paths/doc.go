// Package paths says where everything that belongs to a cluster lies: the checkout that it is made
// from, the cache that all clusters of a user share, and the state directory of one cluster. It only
// computes names; it never makes or removes a file.
package paths
