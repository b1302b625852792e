// Package access grants, rotates and revokes the accesses of PavBucketAccesses: it gathers what is known of one, decides on one step
// by tables, and takes it. It opens the credentials that a grant pod has left sealed, and writes them to the Secrets of the requester,
// and nowhere else: no status, event or log has one.
package access
