// Package objectstore runs versitygw, an S3 server that keeps buckets as directories, for tests of buckets. It also has
// the functions with which the scripts of pods manage the buckets and accounts of that server: s3.sh, which the image of
// clients has, too.
//
// The server needs an absolute path for its accounts, because it changes its working directory. In a pod, it is
//
//	versitygw --port :7070 --health /health --iam-dir /accounts --iam-cache-disable \
//	  posix --disable-object-lock-file --sidecar /metadata /data
//
// with ROOT_ACCESS_KEY and ROOT_SECRET_KEY in the environment, and with three volumes. Without --sidecar, the tags and
// the policy of a bucket are extended attributes, which have 4 KiB in all on ext4: enough for about 80 accounts of a bucket.
// With --iam-cache-disable, a key is refused as soon as its account is deleted, whichever server of the same directories
// was asked to delete it. Without --disable-object-lock-file, files of deleted objects remain, which only several servers
// of the same directories need.
package objectstore
