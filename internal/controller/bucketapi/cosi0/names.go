package cosi0

import (
	"encoding/json"
	"slices"
	"strings"

	cosiv0 "github.com/albertofaria/pav/internal/api/cosi/proposal"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// kind is the kind of the objects that ask for a bucket and for access to it.
const kind = "Bucket"

// Definitions of kinds list the values that fields can have, but others than PaV's may list more.
var (
	// accessModes are what the modes of classes mean.
	accessModes = map[cosiv0.AccessMode]pavv1.BucketAccessMode{
		"": pavv1.AccessReadWrite, cosiv0.AccessReadWrite: pavv1.AccessReadWrite, cosiv0.AccessReadOnly: pavv1.AccessReadOnly, cosiv0.AccessWriteOnly: pavv1.AccessWriteOnly,
	}

	// policies are what the release policies of classes mean. The proposal has no default; a class that says nothing deletes nothing.
	policies = map[cosiv0.ReleasePolicy]pavv1.BucketReclaimPolicy{
		"": pavv1.BucketRetain, cosiv0.ReleaseRetain: pavv1.BucketRetain, cosiv0.ReleaseDelete: pavv1.BucketDelete,
	}

	// protocols are what the protocols of classes mean, in lower case.
	protocols = map[string]pavv1.BucketProtocol{"s3": pavv1.ProtocolS3, "azure": pavv1.ProtocolAzure, "gcs": pavv1.ProtocolGCS}
)

// naming is how a bucket is named.
type naming struct {
	// bucket is the name.
	bucket string

	// existing identifies a bucket that exists already, which the administrator chose; "" for none.
	existing string
}

// nameOf returns how the bucket of a Bucket is named. It never depends on when it is asked: a name that PaV makes has the UID of the Bucket.
func nameOf(object *cosiv0.Bucket, class *cosiv0.BucketClass) naming {
	if existing := class.BucketIdentifier; existing != "" {
		return naming{bucket: existing, existing: existing}
	}
	return naming{bucket: object.Spec.BucketPrefix + string(object.UID)}
}

// protocolsOf returns the protocols of a class that PaV knows, in its order.
func protocolsOf(class *cosiv0.BucketClass) []pavv1.BucketProtocol {
	var list []pavv1.BucketProtocol
	for _, name := range class.SupportedProtocols {
		if p, known := protocols[strings.ToLower(name)]; known {
			list = append(list, p)
		}
	}
	return list
}

// protocolOf returns the protocol by which clients use the buckets of a class. The proposal has no field for it: it is the first protocol of
// the class that the provisioner supports or, if the class lists none, the first one of the provisioner. If the provisioner supports none of
// the class, it is one that the provisioner will refuse.
func protocolOf(class *cosiv0.BucketClass, provisioner *pavv1.PavProvisioner) pavv1.BucketProtocol {
	supported := []pavv1.BucketProtocol{pavv1.ProtocolS3} // by default
	if v := provisioner.Spec.BucketValidation; v != nil && len(v.Protocols) > 0 {
		supported = v.Protocols
	}
	listed := protocolsOf(class)
	for _, p := range listed {
		if slices.Contains(supported, p) {
			return p
		}
	}
	return slices.Concat(listed, supported)[0]
}

// copyOfClass returns the class of a record, as it was when the record was written; nil if the record has no copy of it that can be read.
func copyOfClass(record *pavv1.PavBucket) *cosiv0.BucketClass {
	class := &cosiv0.BucketClass{}
	if record.Spec.Class == nil || json.Unmarshal(record.Spec.Class.Raw, class) != nil || class.Name == "" {
		return nil
	}
	return class
}
