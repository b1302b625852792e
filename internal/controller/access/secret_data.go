package access

import (
	"strings"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/credentials"
)

// secretData returns the data of the Secret with which who asked for access uses a bucket. Keys that the API has are never those of files
// below /pav/credentials/extra.
func secretData(record *pavv1.PavBucketAccess, bucket *pavv1.PavBucket, known credentials.Credentials) (map[string][]byte, error) {
	data := map[string][]byte{}
	for name, value := range known {
		if key, extra := strings.CutPrefix(name, credentials.Extra); extra {
			data[key] = value
		}
	}
	switch record.Spec.API {
	case pavv1.BucketAPIClaim:
		id, secret := trimmed(known[credentials.AccessKeyID]), trimmed(known[credentials.AccessSecretKey])
		data[objectbucketv1.AWSAccessKeyID], data[objectbucketv1.AWSSecretAccessKey] = id, secret
		data[objectbucketv1.AccessKeyID], data[objectbucketv1.SecretAccessKey] = id, secret
	case pavv1.BucketAPIVolume:
		addVolumeKeys(data, record.Spec.Protocol, known)
	case pavv1.BucketAPICOSI1:
		addCOSIKeys(data, record, bucket, known)
		return data, addBucketInfo(data, record, bucket, known)
	case pavv1.BucketAPICOSI2, pavv1.BucketAPICOSI0: // the proposal names no keys
		addCOSIKeys(data, record, bucket, known)
	default:
		return nil, refuse("PavBucketAccess %q was requested by the API %q, whose Secrets this version of PaV does not know", record.Name, record.Spec.API)
	}
	return data, nil
}

// addVolumeKeys adds what staging pods need: the credentials by the names that grant pods give them and, for S3, by those of the variables
// that clients read. What a volume's bucket is called, and where it is, templates know.
func addVolumeKeys(data map[string][]byte, by pavv1.BucketProtocol, known credentials.Credentials) {
	for name, value := range known {
		if !strings.HasPrefix(name, credentials.Extra) {
			data[name] = trimmed(value)
		}
	}
	if by == pavv1.ProtocolS3 {
		data[objectbucketv1.AWSAccessKeyID], data[objectbucketv1.AWSSecretAccessKey] = trimmed(known[credentials.AccessKeyID]), trimmed(known[credentials.AccessSecretKey])
	}
}

// trimmed returns a credential without the line feed that commands end their output with.
func trimmed(value []byte) []byte {
	return []byte(strings.TrimRight(string(value), "\r\n"))
}

// secretFinalizers are the finalizers that the APIs want on the Secrets of their accesses. PaV decides nothing by them.
var secretFinalizers = map[pavv1.BucketAPI][]string{
	pavv1.BucketAPIClaim: {objectbucketv1.Finalizer},
	pavv1.BucketAPICOSI1: {cosiv1.SecretFinalizer},
	pavv1.BucketAPICOSI2: {cosiv2.Finalizer},
}
