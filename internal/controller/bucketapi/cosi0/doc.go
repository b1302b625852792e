// Package cosi0 serves the kinds of COSI's first proposal: Bucket, BucketContent and BucketClass of cosi.io. A Bucket of a class whose
// provisioner is a PavProvisioner asks for a bucket and for access to it at once, as an ObjectBucketClaim does. Package cosi0 writes the
// PavBucket and the PavBucketAccess of each, shows what has become of them in the Bucket and its BucketContent, and releases the records when
// the Bucket goes. All truth is in the records. It runs no pods, and touches neither BucketContents that it did not write nor Buckets of
// classes of other provisioners.
package cosi0
