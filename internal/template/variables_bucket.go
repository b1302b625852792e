package template

import "cmp"

// Bucket is a request for a bucket. Claim and Class are nil if there is none. Size, in bytes, and Objects are nil if the bucket has no
// such limit.
type Bucket struct {
	Name                        string
	Protocols                   []string
	Params, AdditionalConfig    map[string]string
	Size, Objects               *int64
	Claim, Class, Namespace     map[string]any
	IsExisting, IsNameRequested bool
}

// BucketVariables returns the context of bucketValidation and bucketCreation.
func BucketVariables(b Bucket) Variables {
	return Variables{
		"bucketName": b.Name, "protocols": listOf(b.Protocols), "params": mappingOf(b.Params), "additionalConfig": mappingOf(b.AdditionalConfig),
		"quota": map[string]any{"size": numberOrNone(b.Size), "objects": numberOrNone(b.Objects)},
		"claim": orNone(b.Claim), "class": orNone(b.Class), "namespace": orNone(b.Namespace),
		"existing": b.IsExisting, "nameRequested": b.IsNameRequested,
	}
}

// BucketUpdateVariables returns the context of bucketUpdate. ID identifies the bucket in its store.
func BucketUpdateVariables(b Bucket, id string) Variables {
	vars := BucketVariables(b)
	vars["bucketId"] = cmp.Or(id, b.Name)
	return vars
}

// BucketDeletionVariables returns the context of bucketDeletion. ID identifies the bucket in its store; "" if nobody told.
func BucketDeletionVariables(b Bucket, id string, created bool) Variables {
	vars := BucketUpdateVariables(b, id)
	vars["created"] = created
	return vars
}

// Access is a request for access to buckets. Object is what requests it. ServiceAccount is the name of that of the clients, or "".
type Access struct {
	AccountName, Protocol, AuthenticationType string
	ServiceAccountNamespace, ServiceAccount   string
	Params                                    map[string]string
	Object, Class, Namespace                  map[string]any

	// Number is that of the account, and PreviousAccountID is the account that it replaces, or "".
	Number            int64
	PreviousAccountID string

	Buckets []AccessedBucket
}

// AccessedBucket is a bucket that is accessed. Grants are all that are to be in force.
type AccessedBucket struct {
	ID, Name, Mode string
	Info, Params   map[string]string
	Grants         []BucketGrant
}

// BucketGrant is what an account may do with a bucket.
type BucketGrant struct{ AccountID, Mode string }

// GrantVariables returns the context of bucketAccessGrant.
func GrantVariables(a Access) Variables {
	vars := Variables{
		"accountName": a.AccountName, "protocol": a.Protocol, "authenticationType": a.AuthenticationType, "params": mappingOf(a.Params),
		"serviceAccount": nil, "access": orNone(a.Object), "class": orNone(a.Class), "namespace": orNone(a.Namespace),
		"rotation": map[string]any{"number": a.Number, "previousAccountId": textOrNone(a.PreviousAccountID)},
	}
	if a.ServiceAccount != "" {
		vars["serviceAccount"] = map[string]any{"namespace": a.ServiceAccountNamespace, "name": a.ServiceAccount}
	}
	buckets := make([]any, len(a.Buckets))
	for i, b := range a.Buckets {
		grants := make([]any, len(b.Grants))
		for j, grant := range b.Grants {
			grants[j] = map[string]any{"accountId": grant.AccountID, "mode": grant.Mode}
		}
		buckets[i] = map[string]any{
			"id": b.ID, "name": b.Name, "mode": b.Mode, "info": mappingOf(b.Info), "params": mappingOf(b.Params), "grants": grants,
		}
	}
	vars["buckets"] = buckets
	return vars
}

// RevocationVariables returns the context of bucketAccessRevoke. AccountID is "" if no grant pod told.
func RevocationVariables(a Access, accountID string) Variables {
	vars := GrantVariables(a)
	vars["accountId"] = textOrNone(accountID)
	return vars
}

func numberOrNone(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

func textOrNone(text string) any {
	if text == "" {
		return nil
	}
	return text
}
