// Package paths computes the paths of a cluster's files: the checkout from which the cluster is built, the cache that
// all clusters of a user share, and the state directory of one cluster. It never creates or removes a file.
package paths
