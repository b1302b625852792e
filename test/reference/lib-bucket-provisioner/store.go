package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/kube-object-storage/lib-bucket-provisioner/pkg/apis/objectbucket.io/v1alpha1"
	"github.com/kube-object-storage/lib-bucket-provisioner/pkg/provisioner/api"
)

// The keys of what the store tells of a bucket besides the protocol's fields.
const (
	keyAccount = "account" // in the ObjectBucket, for Delete and Revoke
	keyTier    = "tier"
	keyHint    = "hint"
)

// accountPrefix and the UID of its claim are the name of an account.
const accountPrefix = "ba-"

// errExisting means that a claim asks for a bucket that exists in a server.
var errExisting = errors.New("only new buckets are served with -functions")

// call is a call of the library.
type call struct {
	Call   string            `json:"call"`
	Bucket string            `json:"bucket"`
	User   string            `json:"user"`
	Config map[string]string `json:"config,omitempty"` // additionalConfig of the claim
}

// store is a store in which everything that is asked for exists: in the answers, or in a server.
type store struct {
	mu    sync.Mutex
	calls io.Writer

	// server is where buckets and accounts are made; nil for nowhere.
	server *gateway
}

var _ api.Provisioner = &store{}

// GenerateUserID returns the name of the account of a claim.
func (s *store) GenerateUserID(claim *v1alpha1.ObjectBucketClaim, _ *v1alpha1.ObjectBucket) (string, error) {
	return accountPrefix + string(claim.UID), nil
}

// Provision makes a bucket, and grants access to it.
func (s *store) Provision(o *api.BucketOptions) (*v1alpha1.ObjectBucket, error) {
	secret := "secret of " + o.UserID
	if s.server != nil {
		secret = rand.Text()
		if err := s.server.give(o.Parameters["endpoint"], o.BucketName, string(o.ObjectBucketClaim.UID), o.UserID, secret); err != nil {
			return nil, fmt.Errorf("making bucket %s: %w", o.BucketName, err)
		}
	}
	return s.give("Provision", o, secret)
}

// Grant grants access to a bucket that exists.
func (s *store) Grant(o *api.BucketOptions) (*v1alpha1.ObjectBucket, error) {
	if s.server != nil {
		return nil, errExisting
	}
	return s.give("Grant", o, "secret of "+o.UserID)
}

// Delete deletes a bucket and its account.
func (s *store) Delete(bucket *v1alpha1.ObjectBucket) error {
	if s.server != nil {
		at, account := bucket.Spec.Endpoint, bucket.Spec.AdditionalState[keyAccount]
		endpoint := "http://" + net.JoinHostPort(at.BucketHost, strconv.Itoa(at.BucketPort))
		if err := s.server.take(endpoint, at.BucketName, strings.TrimPrefix(account, accountPrefix), account); err != nil {
			return fmt.Errorf("deleting bucket %s: %w", at.BucketName, err)
		}
	}
	return s.take("Delete", bucket)
}

// Revoke deletes the account of a bucket.
func (s *store) Revoke(bucket *v1alpha1.ObjectBucket) error {
	if s.server != nil {
		return errExisting
	}
	return s.take("Revoke", bucket)
}

func (s *store) give(name string, o *api.BucketOptions, secret string) (*v1alpha1.ObjectBucket, error) {
	endpoint, err := url.Parse(o.Parameters["endpoint"])
	if err != nil {
		return nil, fmt.Errorf("the endpoint of the class: %w", err)
	}
	port, err := strconv.Atoi(endpoint.Port())
	if err != nil {
		return nil, fmt.Errorf("the port of the endpoint of the class: %w", err)
	}
	if err := s.write(call{Call: name, Bucket: o.BucketName, User: o.UserID, Config: o.ObjectBucketClaim.Spec.AdditionalConfig}); err != nil {
		return nil, err
	}
	return &v1alpha1.ObjectBucket{Spec: v1alpha1.ObjectBucketSpec{Connection: &v1alpha1.Connection{
		Endpoint: &v1alpha1.Endpoint{
			BucketHost: endpoint.Hostname(), BucketPort: port, BucketName: o.BucketName, Region: "here",
			AdditionalConfigData: map[string]string{keyTier: "gold"},
		},
		Authentication: &v1alpha1.Authentication{
			AccessKeys:           &v1alpha1.AccessKeys{AccessKeyID: o.UserID, SecretAccessKey: secret},
			AdditionalSecretData: map[string]string{keyHint: "more"},
		},
		AdditionalState: map[string]string{keyAccount: o.UserID},
	}}}, nil
}

func (s *store) take(name string, bucket *v1alpha1.ObjectBucket) error {
	return s.write(call{Call: name, Bucket: bucket.Spec.Endpoint.BucketName, User: bucket.Spec.AdditionalState[keyAccount]})
}

// write writes a call. The library may have several claims at work.
func (s *store) write(c call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := json.NewEncoder(s.calls).Encode(c); err != nil {
		return fmt.Errorf("writing a call: %w", err)
	}
	return nil
}
