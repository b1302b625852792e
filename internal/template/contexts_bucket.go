package template

// The types of the objects of buckets. Which of the kinds an object has depends on the API by which a bucket, or access to it, is
// requested.
const (
	typeBucketClaim = "ObjectBucketClaim, BucketClaim or PersistentVolumeClaim"
	typeBucketClass = "StorageClass or BucketClass"
	typeAccess      = "ObjectBucketClaim, BucketAccess or PersistentVolumeClaim"
	typeAccessClass = "StorageClass or BucketAccessClass"
	typeNamespace   = "Namespace"
)

// The types of variables of buckets that are mappings, or lists of them, whose keys are known.
const (
	TypeQuota          = "mapping with size and objects"
	TypeServiceAccount = "mapping with namespace and name"
	TypeRotation       = "mapping with number and previousAccountId"
	TypeBucketVolume   = "mapping with id, info and secretName"
	typeBuckets        = "list of mappings"
)

// bucketSections are the sections of buckets, in the order of a bucket's life.
var bucketSections = []string{"bucketValidation", "bucketCreation", "bucketUpdate", "bucketDeletion", "bucketAccessGrant", "bucketAccessRevoke"}

// contextOfBuckets is Context for the sections of buckets.
func contextOfBuckets(section string) ([]Variable, bool) {
	id := Variable{Name: "bucketId", Type: "string", Trust: TrustName, Doc: "What identifies the bucket in its store; where nobody told, bucketName."}
	switch section {
	case "bucketValidation", "bucketCreation":
		return bucketContext(), true
	case "bucketUpdate":
		return append(bucketContext(), id), true
	case "bucketDeletion":
		return append(bucketContext(), id, Variable{
			Name: "created", Type: "boolean", Doc: "Whether the bucket certainly is this claim's. If it is not, PaV runs no deletion pod.",
		}), true
	case "bucketAccessGrant":
		return accessContext(), true
	case "bucketAccessRevoke":
		return append(accessContext(), Variable{
			Name: "accountId", Type: "string", Trust: TrustAdministrator,
			Doc: "What identifies the account in its store, or none if no grant pod told. Then there may be an account accountName, or none.",
		}), true
	default:
		return nil, false
	}
}

func bucketContext() []Variable {
	return []Variable{
		{Name: "bucketName", Type: "string", Trust: TrustName, Doc: "The name that the bucket is to have. Where nameRequested is true, the claim chose it, of letters, digits, '.', '_' and '-'."},
		{Name: "protocols", Type: "list of string", Doc: "The protocols by which clients access the bucket, of S3, Azure and GCS."},
		{Name: "params", Type: "mapping of strings", Trust: TrustAdministrator, Doc: "The parameters of the class."},
		{Name: "quota", Type: TypeQuota, Doc: "What the claim asks for, or its class grants: size, in bytes, and objects, a number; each is none if there is no limit."},
		{Name: "additionalConfig", Type: "mapping of strings", Trust: TrustTenant, Doc: "Those entries of an ObjectBucketClaim's spec.additionalConfig whose keys bucketValidation.additionalConfig allows; else empty."},
		{Name: "claim", Type: typeBucketClaim, Trust: TrustTenant, Doc: "The claim that requests the bucket."},
		{Name: "class", Type: typeBucketClass, Trust: TrustAdministrator, Doc: "The class of the claim, as it was when the bucket was requested."},
		namespaceVariable,
		{Name: "existing", Type: "boolean", Doc: "Whether the bucket exists already, so that PaV neither creates nor deletes it."},
		{Name: "nameRequested", Type: "boolean", Doc: "Whether the claim chose the name of the bucket, which may be anybody's then."},
	}
}

var namespaceVariable = Variable{
	Name: "namespace", Type: typeNamespace, Trust: TrustTenant, Doc: "The Namespace of the object that requests the bucket or access to it, as it is now. If it is gone, it has only its name.",
}

func accessContext() []Variable {
	return []Variable{
		{Name: "accountName", Type: "string", Doc: "The name that the account is to have: ba- and a UID and, after a rotation, a number."},
		{Name: "protocol", Type: "string", Doc: "The protocol by which clients access the buckets: S3, Azure or GCS."},
		{Name: "authenticationType", Type: "string", Doc: "How clients prove who they are: Key or ServiceAccount."},
		{Name: "serviceAccount", Type: TypeServiceAccount, Trust: TrustName, Doc: "The ServiceAccount of the clients, or none."},
		{Name: "params", Type: "mapping of strings", Trust: TrustAdministrator, Doc: "The parameters of the class of the access."},
		{Name: "access", Type: typeAccess, Trust: TrustTenant, Doc: "The object that requests access."},
		{Name: "class", Type: typeAccessClass, Trust: TrustAdministrator, Doc: "The class of the access, as it was when access was requested."},
		namespaceVariable,
		{Name: "rotation", Type: TypeRotation, Trust: TrustAdministrator, Doc: "The number of the account among those of the access, from 0, and as previousAccountId the account that it replaces, or none."},
		{
			Name: "buckets", Type: typeBuckets, Trust: TrustAdministrator,
			Doc: "The buckets that are accessed: each is a mapping with id and name; mode, which is ReadWrite, ReadOnly or WriteOnly; info, a mapping of what its creation told; " +
				"params, of the class of the bucket; and grants, the list of all accounts that are to have access to it, each with accountId and mode. An account that is revoked is not among them.",
		},
	}
}
