package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	cosi "sigs.k8s.io/container-object-storage-interface-spec"
)

// call is a call of the sidecar that is about a bucket.
type call struct {
	Call       string            `json:"call"`
	Bucket     string            `json:"bucket"`
	Account    string            `json:"account,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
}

// driver is a driver of a store in which everything that is asked for exists.
type driver struct {
	name string

	mu    sync.Mutex
	calls io.Writer
}

var (
	_ cosi.IdentityServer    = &driver{}
	_ cosi.ProvisionerServer = &driver{}
)

// DriverGetInfo returns the name of the driver.
func (d *driver) DriverGetInfo(context.Context, *cosi.DriverGetInfoRequest) (*cosi.DriverGetInfoResponse, error) {
	return &cosi.DriverGetInfoResponse{Name: d.name}, nil
}

// DriverCreateBucket makes a bucket.
func (d *driver) DriverCreateBucket(_ context.Context, r *cosi.DriverCreateBucketRequest) (*cosi.DriverCreateBucketResponse, error) {
	return &cosi.DriverCreateBucketResponse{BucketId: r.GetName()}, d.write(call{Call: "Create", Bucket: r.GetName(), Parameters: r.GetParameters()})
}

// DriverDeleteBucket deletes a bucket.
func (d *driver) DriverDeleteBucket(_ context.Context, r *cosi.DriverDeleteBucketRequest) (*cosi.DriverDeleteBucketResponse, error) {
	return &cosi.DriverDeleteBucketResponse{}, d.write(call{Call: "Delete", Bucket: r.GetBucketId()})
}

// DriverGrantBucketAccess makes an account that has access to a bucket.
func (d *driver) DriverGrantBucketAccess(_ context.Context, r *cosi.DriverGrantBucketAccessRequest) (*cosi.DriverGrantBucketAccessResponse, error) {
	account := r.GetName()
	return &cosi.DriverGrantBucketAccessResponse{
		AccountId: account,
		Credentials: map[string]*cosi.CredentialDetails{"s3": {Secrets: map[string]string{
			"accessKeyID": account, "accessSecretKey": "secret of " + account, "endpoint": "https://s3.example:9000", "region": "here",
		}}},
	}, d.write(call{Call: "Grant", Bucket: r.GetBucketId(), Account: account, Parameters: r.GetParameters()})
}

// DriverRevokeBucketAccess deletes an account.
func (d *driver) DriverRevokeBucketAccess(_ context.Context, r *cosi.DriverRevokeBucketAccessRequest) (*cosi.DriverRevokeBucketAccessResponse, error) {
	return &cosi.DriverRevokeBucketAccessResponse{}, d.write(call{Call: "Revoke", Bucket: r.GetBucketId(), Account: r.GetAccountId()})
}

func (d *driver) write(c call) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := json.NewEncoder(d.calls).Encode(c); err != nil {
		return fmt.Errorf("writing a call: %w", err)
	}
	return nil
}
