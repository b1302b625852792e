package obc

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

// The names of what clients are told of a bucket, in a PavBucket.
const (
	infoEndpoint  = "endpoint"
	infoHost      = "host"
	infoPort      = "port"
	infoRegion    = "region"
	infoSubRegion = "subRegion"
)

// The ports of schemes. Clients of S3 take an endpoint without a scheme for one with https.
const (
	httpsPort = 443
	httpPort  = 80
)

// hostAndPort returns where a bucket is. Host and port that are given by themselves take precedence over those of the endpoint. An IPv6
// address has its brackets, so that ":" and the port can follow it. The port is 0 if it is not known.
func hostAndPort(info map[string]string) (host string, port int) {
	scheme, rest, found := strings.Cut(info[infoEndpoint], "://")
	if !found {
		scheme, rest = "", info[infoEndpoint]
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	rest = rest[strings.LastIndex(rest, "@")+1:]
	host = rest
	if name, text, err := net.SplitHostPort(rest); err == nil {
		host, port = name, portOf(text)
		if strings.Contains(name, ":") {
			host = "[" + name + "]"
		}
	}
	switch {
	case host == "":
		port = 0
	case port == 0 && strings.EqualFold(scheme, "http"):
		port = httpPort
	case port == 0:
		port = httpsPort
	}
	if given := info[infoHost]; given != "" {
		host = given
	}
	if given := portOf(info[infoPort]); given != 0 {
		port = given
	}
	return host, port
}

// portOf returns a port, or 0 if the text is none.
func portOf(text string) int {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return int(port)
}

// configData returns the data of the ConfigMap of a bucket. The keys of the protocol are always there.
func configData(b *pavv1.PavBucket) map[string]string {
	data := maps.Clone(b.Status.ExtraInfo)
	if data == nil {
		data = map[string]string{}
	}
	host, port := hostAndPort(b.Status.Info)
	data[objectbucketv1.BucketName] = b.Status.BucketID
	data[objectbucketv1.BucketHost] = host
	data[objectbucketv1.BucketPort] = ""
	if port != 0 {
		data[objectbucketv1.BucketPort] = strconv.Itoa(port)
	}
	data[objectbucketv1.BucketRegion] = b.Status.Info[infoRegion]
	data[objectbucketv1.BucketSubRegion] = b.Status.Info[infoSubRegion]
	return data
}

// hashOf returns a short name for the data of a ConfigMap.
func hashOf(data map[string]string) string {
	text, err := json.Marshal(data)
	if err != nil {
		return "" // such values have no such error
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:10])
}

// objectBucketOf returns the ObjectBucket of a claim.
func objectBucketOf(o observation) *objectbucketv1.ObjectBucket {
	b := &objectbucketv1.ObjectBucket{
		ObjectMeta: metav1.ObjectMeta{
			Name:       objectbucketv1.BucketOf(o.name.Namespace, o.name.Name),
			Finalizers: []string{objectbucketv1.Finalizer},
			Labels: map[string]string{
				pavv1.ProvisionerLabel:          o.bucket.Spec.Provisioner,
				objectbucketv1.ProvisionerLabel: protocol.ObjectBucketProvisioner(o.bucket.Spec.Provisioner),
			},
		},
		Spec: objectbucketv1.ObjectBucketSpec{StorageClassName: o.claim.Spec.StorageClassName},
	}
	fill(b, o)
	return b
}

// fill writes into an ObjectBucket what the record of a claim says. Its class stays as it was: the claim may name another one by now.
func fill(b *objectbucketv1.ObjectBucket, o observation) {
	record := o.bucket
	host, port := hostAndPort(record.Status.Info)
	b.Spec.ReclaimPolicy = new(corev1.PersistentVolumeReclaimPolicy(record.Spec.ReclaimPolicy))
	b.Spec.ClaimRef = &corev1.ObjectReference{
		APIVersion: objectbucketv1.GroupVersion.String(), Kind: kind, Namespace: o.name.Namespace, Name: o.name.Name, UID: o.uid,
	}
	b.Spec.Endpoint = &objectbucketv1.Endpoint{
		BucketHost: host, BucketPort: port, BucketName: record.Status.BucketID,
		Region: record.Status.Info[infoRegion], SubRegion: record.Status.Info[infoSubRegion], AdditionalConfig: additionalConfig(o),
	}
}

// additionalConfig returns what clients are told of a bucket besides: what the definition lets claims set, and what the store says, which
// takes precedence.
func additionalConfig(o observation) map[string]string {
	config := map[string]string{}
	if o.provisioner != nil && o.provisioner.Spec.BucketValidation != nil {
		for key, value := range o.claim.Spec.AdditionalConfig {
			if slices.Contains(o.provisioner.Spec.BucketValidation.AdditionalConfig, key) {
				config[key] = value
			}
		}
	}
	maps.Copy(config, o.bucket.Status.ExtraInfo)
	return config
}

// shows reports whether an ObjectBucket shows what the record of the claim says.
func shows(b *objectbucketv1.ObjectBucket, o observation) bool {
	filled := b.DeepCopy()
	fill(filled, o)
	return b.Status.Phase == objectbucketv1.BucketBound && equality.Semantic.DeepEqual(b, filled)
}
