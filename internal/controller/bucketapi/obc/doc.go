// Package obc serves ObjectBucketClaims: it writes the PavBucket and the PavBucketAccess of each, shows what has become of them in the
// claim, its ObjectBucket and its ConfigMap, and releases the records when the claim goes. All truth is in the records. It runs no pods,
// and never touches the claims of other provisioners.
package obc
