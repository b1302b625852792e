// Package bucketapi has what the adapters of bucket APIs have in common: how they read and write the objects of these APIs, and their
// records. It knows none of the APIs.
package bucketapi
