package proposal

import "k8s.io/apimachinery/pkg/types"

// Finalizer holds a Bucket and its BucketContent as long as something has to be done about the bucket. PaV decides nothing by it: who removes
// one loses nothing.
const Finalizer = "cosi.io/finalizer"

// ProvisionerLabel on a Bucket and its BucketContent is the name of the provisioner.
const ProvisionerLabel = "cosi.io/provisioner"

// ContentOf returns the name of the BucketContent of a Bucket. The proposal wants the name of the class and a random suffix.
func ContentOf(class string, bucket types.UID) string { return class + "-" + string(bucket) }
