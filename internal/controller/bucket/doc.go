// Package bucket creates, updates and deletes the buckets of PavBuckets: it gathers what is known of one, decides on one step by
// tables, and takes it. It never deletes a bucket that PaV cannot prove to have made, and knows nothing of the APIs by which buckets
// are claimed: packages below bucketapi write the records, and show what has become of them.
package bucket
